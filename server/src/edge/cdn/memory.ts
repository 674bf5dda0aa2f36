// Small files in memory: the most recently requested ones, plain and compressed, up to MEMORY_FILES_BYTES_MAX. A file is
// verified by its recorded hash when it is read. An object of a completed upload never changes, so the copy stays valid.
import type { Recorded } from '../../objects/damage.ts'
import { type Encoding, pack } from '../../objects/pack.ts'
import { MEMORY_FILES_BYTES_MAX } from '../limits.ts'
import type { SiteFiles } from './disk-cache.ts'

export type Memory = {
  /**
   * Returns the whole file, compressed unless `encoding` is null: at once when it is in memory. Rejects with ObjectDamaged.
   */
  read: (file: Recorded, encoding: Encoding | null) => Buffer | Promise<Buffer>
}

export function createMemory(files_of_sites: SiteFiles, bytes_max = MEMORY_FILES_BYTES_MAX): Memory {
  // In order of last use. The first request stores a promise, so that concurrent requests read the file once.
  const files = new Map<string, { bytes: Buffer | Promise<Buffer>; length: number }>()
  let length_sum = 0

  function forget(key: string): void {
    length_sum -= files.get(key)?.length ?? 0
    files.delete(key)
  }

  async function load(key: string, recorded: Recorded, encoding: Encoding | null): Promise<Buffer> {
    try {
      const plain = await files_of_sites.readWhole(recorded)
      const bytes = encoding === null ? plain : await pack(plain, encoding)
      const file = files.get(key)
      if (file !== undefined) {
        file.bytes = bytes
        file.length = bytes.length
        length_sum += bytes.length
      }
      for (const oldest of files.keys()) {
        if (length_sum <= bytes_max) break
        forget(oldest)
      }
      return bytes
    } catch (error) {
      forget(key)
      throw error
    }
  }

  return {
    read(recorded, encoding) {
      const { object_key } = recorded
      const key = encoding === null ? object_key : `${object_key} ${encoding}`
      const file = files.get(key)
      if (file !== undefined) {
        files.delete(key)
        files.set(key, file)
        return file.bytes
      }
      const bytes = load(key, recorded, encoding)
      files.set(key, { bytes, length: 0 })
      return bytes
    },
  }
}
