// A local file with the verified bytes of an object, for readers that need a path: parsers of archives and images.
import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Recorded, soundBytes } from './damage.ts'
import { openIncoming } from './incoming.ts'
import type { Objects } from './objects.ts'

/**
 * Calls `work` with the path of the object's bytes. Where the store has no local files, the object is fetched into `folder` and
 * removed afterwards. Rejects with ObjectDamaged when the fetched bytes are not the recorded ones.
 */
export async function withLocalFile<T>(
  objects: Objects,
  recorded: Recorded,
  folder: string,
  work: (path: string) => Promise<T>,
): Promise<T> {
  const path = objects.localPath(recorded.object_key)
  if (path !== null) return work(path)
  const fetched = openIncoming(folder).newPath(recorded.object_key)
  try {
    await pipeline(
      Readable.from(soundBytes(objects, recorded)),
      createWriteStream(fetched, { mode: 0o600, flags: 'wx' }),
    )
    return await work(fetched)
  } finally {
    await rm(fetched, { force: true })
  }
}
