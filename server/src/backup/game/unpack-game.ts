// Opens a game file: unpacks the archive into a folder, which is a backup then. The file may come from anywhere, so only the
// paths of a backup are taken, and plain files.
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { extract } from 'tar-stream'
import { StartError } from '../../config/start-error.ts'
import type { OpenedBackup } from '../repository.ts'

const PATH =
  /^(?:manifest\.json|SHA256SUMS|jobs\.copy|tables\/[a-z][a-z0-9_]{0,62}\.copy|objects\/[0-9a-f]{2}\/[0-9a-f]{32})$/
/** Files of an archive. */
const ENTRIES_MAX = 2_000_000
/** Bytes of all files together. */
const BYTES_MAX = 1024 ** 4

/** Throws a StartError for a file that is no game file, or breaks off. */
export async function unpackGame(path: string, folder: string): Promise<OpenedBackup> {
  const refuse = (why: string): StartError => new StartError(`${path} is not a game file: ${why}.`)
  const archive = extract()
  // An entry that breaks off with the archive has no end of its own.
  const broken = new AbortController()
  const reading = pipeline(createReadStream(path), archive).then(
    () => null,
    (error: Error) => {
      broken.abort(error)
      return error
    },
  )
  const names = new Set<string>()
  let left = BYTES_MAX
  try {
    for await (const entry of archive) {
      const { name, type, size = 0 } = entry.header
      left -= size
      if (type !== 'file' || !PATH.test(name) || names.has(name)) throw refuse(`it has the entry ${shown(name)}`)
      if (names.size >= ENTRIES_MAX || left < 0) throw refuse('it is too large')
      names.add(name)
      const target = join(folder, name)
      await mkdir(dirname(target), { recursive: true, mode: 0o700 })
      await pipeline(entry, createWriteStream(target, { mode: 0o600, flags: 'wx' }), {
        signal: broken.signal,
      })
    }
  } catch (error) {
    archive.destroy()
    const failure = await reading
    if (error instanceof StartError) throw error
    const { code, syscall, message } = (broken.signal.aborted ? failure : error) as NodeJS.ErrnoException
    if (code === 'ENOENT' && syscall === 'open') throw new StartError(`There is no file ${path}.`, { cause: error })
    if (syscall !== undefined) throw error
    throw refuse(message.toLowerCase())
  }
  const failure = await reading
  if (failure !== null) throw refuse(failure.message)
  if (!names.has('manifest.json')) throw refuse('it has no manifest.json')
  return { label: path, folder, objects: null }
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 80))
}
