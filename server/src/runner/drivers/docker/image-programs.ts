// Finds a program among the files of an image, before the start, so that a missing one has a reason. The engine describes
// the files of a container that was created and not started.
import { posix } from 'node:path'
import { LRUCache } from 'lru-cache'
import { notExecutable, notFound, type Program } from '../find-program.ts'
import type { EngineClient } from './engine.ts'

/** Programs whose place in an image is remembered. */
const PROGRAMS_MAX = 1_000
/** Links followed from one path. */
const LINKS_MAX = 16
/** Folders of an image's PATH that are searched. */
const PATH_FOLDERS_MAX = 32
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
/** The bits of Go's os.FileMode, in which the engine reports a mode. */
const GO_MODE = {
  folder: 2 ** 31,
  link: 2 ** 27,
  other: 2 ** 26 + 2 ** 25 + 2 ** 24 + 2 ** 21,
  executable: 0o111,
} as const
const STAT_HEADER = 'x-docker-container-path-stat'

/** `env`: the environment of the image, lines of NAME=value. */
export type Image = { id: string; env: readonly string[] }

export class ImagePrograms {
  readonly #engine: EngineClient
  readonly #found = new LRUCache<string, Program>({ max: PROGRAMS_MAX })

  constructor(engine: EngineClient) {
    this.#engine = engine
  }

  /** `name`: an absolute path, or a name without a slash. `container`: a container of the image. */
  async find(container: string, image: Image, name: string): Promise<Program> {
    const key = `${image.id} ${name}`
    const known = this.#found.get(key)
    if (known !== undefined) return known
    const found = await this.#search(container, image, name)
    this.#found.set(key, found)
    return found
  }

  async #search(container: string, { env }: Image, name: string): Promise<Program> {
    const path = env.find((line) => line.startsWith('PATH='))?.slice('PATH='.length) ?? DEFAULT_PATH
    const folders = path.split(':').filter((folder) => folder.startsWith('/'))
    const candidates = name.startsWith('/') ? [name] : folders.map((folder) => posix.join(folder, name))
    let is_there = false
    for (const candidate of candidates.slice(0, PATH_FOLDERS_MAX)) {
      const kind = await this.#kindOf(container, candidate)
      if (kind === 'executable') return { command: candidate }
      is_there ||= kind === 'file'
    }
    return is_there ? notExecutable(name) : notFound(name, 'the image')
  }

  async #kindOf(container: string, path: string): Promise<'executable' | 'file' | 'nothing'> {
    let current = path
    for (let followed = 0; followed < LINKS_MAX; followed++) {
      const header = await this.#engine.headerOf(`/containers/${container}/archive`, { path: current }, STAT_HEADER)
      if (header === null) return 'nothing'
      const { mode, linkTarget } = JSON.parse(Buffer.from(header, 'base64').toString()) as StatHeader
      if ((mode & GO_MODE.link) !== 0 && linkTarget !== '' && linkTarget !== current) {
        current = posix.resolve(posix.dirname(current), linkTarget)
        continue
      }
      // Bit 31 is the sign of a number of 32 bits.
      if (mode >= GO_MODE.folder || (mode & GO_MODE.other) !== 0) return 'nothing'
      return (mode & GO_MODE.executable) === 0 ? 'file' : 'executable'
    }
    return 'nothing'
  }
}

type StatHeader = { mode: number; linkTarget: string }
