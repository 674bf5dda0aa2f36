// Layers on this machine, beside the unpacked builds: each is unpacked once for the user of its image, and shared by all
// builds that have it. `<layers>/<digest>-<uid>-<gid>/` has `entries.json` and the files, named by numbers: no path of an
// image becomes a path here. The builds have hard links to the files, so a layer can be removed while lobbies run.
//
// The mode of a file grants other users what its image grants the image's user. The server is that user, under the uid of
// its lobby. The group, which is that of the platform's user, has no right. Set-uid and set-gid bits are dropped. No other user
// of the machine reaches these files: the folder of the layers and that of each build (unpack-image.ts) are closed to them.
import { createHash } from 'node:crypto'
import {
  type FileHandle,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import type { ImageUser } from '../../objects/container-image/config.ts'
import type { Layer } from '../../objects/container-image/image.ts'
import type { Access, LayerEntry } from '../../objects/container-image/layer.ts'
import { syncFolder } from '../../objects/sync-folder.ts'

/** An unused layer is kept for this time after its last use. */
const UNUSED_KEPT_MS = 3_600_000
/** Files flushed at once. More of them make it no faster. */
const FLUSHES_MAX = 16
const PARTIAL = '.partial-'
const ENTRIES_FILE = 'entries.json'

/** An entry of a cached layer. `file`: the number of its bytes; hard links share it. */
export type CachedEntry =
  | { kind: 'directory'; path: string; mode: number }
  | { kind: 'file'; path: string; mode: number; file: number; sha256: string }
  | { kind: 'symlink'; path: string; target: string }
  | { kind: 'whiteout' | 'opaque'; path: string }

export type CachedLayer = { name: string; folder: string; entries: CachedEntry[] }

export class LayerCache {
  readonly #folder: string
  readonly #now: () => number

  private constructor(folder: string, now: () => number) {
    this.#folder = folder
    this.#now = now
  }

  /** Removes what a killed runner left. */
  static async open(folder: string, now: () => number): Promise<LayerCache> {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    for (const name of await readdir(folder)) {
      if (name.startsWith(PARTIAL)) await rm(join(folder, name), { recursive: true })
    }
    return new LayerCache(folder, now)
  }

  static nameOf({ diff_id }: Pick<Layer, 'diff_id'>, { uid, gid }: ImageUser): string {
    return `${diff_id}-${uid}-${gid}`
  }

  /** The layer, unpacked now unless it was before. */
  async take(layer: Layer, user: ImageUser): Promise<CachedLayer> {
    const name = LayerCache.nameOf(layer, user)
    const folder = join(this.#folder, name)
    const entries = (await readEntries(folder)) ?? (await this.#unpack(layer, user, folder))
    const now = new Date(this.#now())
    await utimes(folder, now, now)
    return { name, folder, entries }
  }

  /** Removes layers that turned out to be damaged. */
  async forget(names: readonly string[]): Promise<void> {
    for (const name of names) await rm(join(this.#folder, name), { recursive: true, force: true })
  }

  /** Removes layers that no build uses. */
  async sweep(used: ReadonlySet<string>): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      if (used.has(name) || name.startsWith(PARTIAL)) continue
      const used_ms = (await stat(join(this.#folder, name))).mtimeMs
      if (this.#now() - used_ms > UNUSED_KEPT_MS) await rm(join(this.#folder, name), { recursive: true })
    }
  }

  async #unpack(layer: Layer, user: ImageUser, folder: string): Promise<CachedEntry[]> {
    const partial = await mkdtemp(join(this.#folder, PARTIAL))
    const writer = new LayerWriter(partial, user)
    try {
      for await (const entry of layer.entries()) await writer.add(entry)
      await writer.finish()
      await writeEntries(partial, writer.entries)
      await rename(partial, folder).catch((error: NodeJS.ErrnoException) => {
        // Another build with this layer was faster.
        if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
      })
      await syncFolder(this.#folder)
      const entries = await readEntries(folder)
      if (entries === null) throw new Error('An unpacked layer cannot be read back.')
      return entries
    } finally {
      await writer.settled()
      await rm(partial, { recursive: true, force: true })
    }
  }
}

class LayerWriter {
  readonly entries: CachedEntry[] = []
  readonly #folder: string
  readonly #user: ImageUser
  readonly #files = new Map<string, Extract<CachedEntry, { kind: 'file' }>>()
  readonly #flushes = new Set<Promise<unknown>>()
  readonly #faults: unknown[] = []

  constructor(folder: string, user: ImageUser) {
    this.#folder = folder
    this.#user = user
  }

  async add(entry: LayerEntry): Promise<void> {
    const { path } = entry
    if (entry.kind === 'file') {
      const mode = modeFor(this.#user, entry.access, entry.access.mode & 0o111)
      const file = this.#files.size
      const sha256 = await this.#write(String(file), mode, entry.body)
      const cached = { kind: 'file', path, mode, file, sha256 } as const
      this.#files.set(path, cached)
      this.entries.push(cached)
    } else if (entry.kind === 'hard_link') {
      this.entries.push({ ...this.#files.get(entry.target)!, path })
      // A link to a link has the same file.
      this.#files.set(path, this.#files.get(entry.target)!)
    } else if (entry.kind === 'directory') {
      this.entries.push({ kind: 'directory', path, mode: modeFor(this.#user, entry.access, 0o111) })
    } else this.entries.push(entry)
  }

  async finish(): Promise<void> {
    await this.settled()
    if (this.#faults.length > 0) throw new AggregateError(this.#faults, 'A layer could not be written to the disk.')
  }

  async settled(): Promise<void> {
    await Promise.all(this.#flushes)
  }

  async #write(name: string, mode: number, body: AsyncIterable<Uint8Array>): Promise<string> {
    const hash = createHash('sha256')
    const handle = await open(join(this.#folder, name), 'wx', 0o600)
    try {
      for await (const chunk of body) {
        hash.update(chunk)
        await handle.appendFile(chunk)
      }
      await handle.chmod(mode)
    } catch (error) {
      await handle.close()
      throw error
    }
    await this.#flush(handle)
    return hash.digest('hex')
  }

  async #flush(handle: FileHandle): Promise<void> {
    if (this.#flushes.size >= FLUSHES_MAX) await Promise.race(this.#flushes)
    const flush: Promise<unknown> = handle
      .sync()
      .catch((error: unknown) => this.#faults.push(error))
      .then(() => handle.close())
      .finally(() => this.#flushes.delete(flush))
    this.#flushes.add(flush)
  }
}

/** The mode of a folder that no layer lists: it belongs to root, as container engines make it. */
export function unlistedFolderMode(user: ImageUser): number {
  return modeFor(user, { mode: 0o755, uid: 0, gid: 0 }, 0o111)
}

/** What `access` grants the user, for other users. The platform's user keeps reading and writing. */
function modeFor(user: ImageUser, { mode, uid, gid }: Access, executable: number): number {
  let granted = mode & 7
  if (user.uid === 0) granted = 6 | (executable === 0 ? 0 : 1)
  else if (user.uid === uid) granted = (mode >> 6) & 7
  else if (user.gid === gid) granted = (mode >> 3) & 7
  const own = 6 | (executable === 0 ? 0 : 1)
  return (own << 6) | granted
}

/** The first line is the hash of the rest, so that a damaged list is recognised. */
async function writeEntries(folder: string, entries: readonly CachedEntry[]): Promise<void> {
  const text = JSON.stringify(entries)
  const path = join(folder, ENTRIES_FILE)
  await writeFile(path, `${hashOf(text)}\n${text}`, { mode: 0o600, flush: true })
  await syncFolder(folder)
}

/** Null when there is no such layer, or its list is damaged. */
async function readEntries(folder: string): Promise<CachedEntry[] | null> {
  try {
    const text = await readFile(join(folder, ENTRIES_FILE), 'utf8')
    const line = text.indexOf('\n')
    const list = text.slice(line + 1)
    if (line !== -1 && text.slice(0, line) === hashOf(list)) return JSON.parse(list) as CachedEntry[]
    await rm(folder, { recursive: true })
    return null
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
