// Small files in memory: those asked for last, up to MEMORY_FILES_BYTES_MAX of them. An object of a completed upload
// never changes, so what is here is never wrong.
import { buffer } from 'node:stream/consumers'
import type { Objects } from '../objects/objects.ts'
import { MEMORY_FILES_BYTES_MAX } from './limits.ts'

export type Memory = {
  /** The whole object, from memory if it is there. Rejects as Objects.read does. */
  read: (object_key: string) => Promise<Buffer>
}

export function createMemory(objects: Objects, bytes_max = MEMORY_FILES_BYTES_MAX): Memory {
  // In the order of their last use. A promise is there from the first who asks, so that the file is read once.
  const files = new Map<string, { bytes: Promise<Buffer>; length: number }>()
  let length_sum = 0

  function forget(object_key: string): void {
    length_sum -= files.get(object_key)?.length ?? 0
    files.delete(object_key)
  }

  async function load(object_key: string): Promise<Buffer> {
    try {
      const bytes = await buffer(await objects.read(object_key))
      const file = files.get(object_key)
      if (file !== undefined) {
        file.length = bytes.length
        length_sum += bytes.length
      }
      for (const oldest of files.keys()) {
        if (length_sum <= bytes_max) break
        forget(oldest)
      }
      return bytes
    } catch (error) {
      forget(object_key)
      throw error
    }
  }

  return {
    read(object_key) {
      const file = files.get(object_key)
      if (file !== undefined) {
        files.delete(object_key)
        files.set(object_key, file)
        return file.bytes
      }
      const bytes = load(object_key)
      files.set(object_key, { bytes, length: 0 })
      return bytes
    },
  }
}
