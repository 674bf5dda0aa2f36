// Copies stored files into another store, those that it does not have yet. So a copy that was broken off goes on where it was.

import { Readable } from 'node:stream'
import type { ClientBase } from 'pg'
import { ObjectDamaged, type Recorded, soundBytes } from '../objects/damage.ts'
import type { Objects } from '../objects/objects.ts'
import { forEachAtOnce } from './files.ts'
import type { LackingObject } from './manifest.ts'
import type { BackupObjects } from './repository.ts'
import { storedFiles } from './stored.ts'

export type CopiedObjects = {
  /** Objects that `to` has now, and their bytes. */
  object_count: number
  object_bytes: number
  /** Objects that this call has copied, and their bytes. */
  copied_count: number
  copied_bytes: number
  /** Objects that are missing or damaged, in the order of their keys. */
  lacking_objects: LackingObject[]
}

/** `onObject`: for each object that `to` has. `is_new`: this call has copied it. */
export async function copyObjects(
  client: ClientBase,
  { from, to }: { from: Objects; to: BackupObjects },
  onObject: (object: Recorded & { sha256: string }, is_new: boolean) => void = () => undefined,
): Promise<CopiedObjects> {
  const copied: CopiedObjects = {
    ...{ object_count: 0, object_bytes: 0, copied_count: 0, copied_bytes: 0, lacking_objects: [] },
  }
  await forEachAtOnce(storedFiles(client), async (file) => {
    const { object_key, content_length } = file
    const done = await copyOne(from, to, file)
    if (done === 'missing' || done === 'damaged') {
      copied.lacking_objects.push({ object_key, reason: file.is_marked ? 'damaged' : done })
      return
    }
    copied.object_count++
    copied.object_bytes += content_length
    if (done.is_new) {
      copied.copied_count++
      copied.copied_bytes += content_length
    }
    onObject({ object_key, content_length, sha256: done.sha256 }, done.is_new)
  })
  copied.lacking_objects.sort((a, b) => (a.object_key < b.object_key ? -1 : 1))
  return copied
}

/** `is_new`: `to` did not have it. */
async function copyOne(
  from: Objects,
  to: BackupObjects,
  file: Recorded,
): Promise<{ sha256: string; is_new: boolean } | 'missing' | 'damaged'> {
  const { object_key, content_length } = file
  const there = file.sha256 === null ? null : await to.hashOf(file)
  if (there !== null) return { sha256: there, is_new: false }
  // A very old upload has no recorded hash.
  const sha256 = file.sha256 ?? (await from.stat(object_key))?.sha256 ?? null
  if (sha256 === null) return 'missing'
  try {
    await to.put(object_key, Readable.from(soundBytes(from, { object_key, content_length, sha256 })), content_length)
    return { sha256, is_new: true }
  } catch (error) {
    if (!(error instanceof ObjectDamaged)) throw error
    return error.reason === 'missing' ? 'missing' : 'damaged'
  }
}
