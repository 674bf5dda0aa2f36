// Looks up a program or a folder in an image, before the start, so that a missing one has a reason. The engine describes the
// files of a container that was created and not started.
import { posix } from 'node:path'
import { LRUCache } from 'lru-cache'
import { type EngineClient, ignoreDone } from './engine.ts'

/** Paths of images that are remembered. */
const PATHS_MAX = 10_000
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

/** `env`: the environment of the image, lines of NAME=value. `working_folder`: that of the image itself. */
export type EngineImage = { id: string; env: readonly string[]; working_folder: string }

/** The container in which files are looked up. It never runs. The sweep of its lobby also removes it. */
export type Probe = { name: string; labels: Readonly<Record<string, string>> }

/** `path`: of the search, like PATH. `relative_to`: the folder of names with a slash; null: such names are not searched. */
type ProgramSearch = { name: string; path: string | undefined; relative_to: string | null }

type Kind = 'executable' | 'file' | 'folder' | 'nothing'

export class ImagePrograms {
  readonly #engine: EngineClient
  /** By image and path. Images do not change. */
  readonly #kinds = new LRUCache<string, Kind>({ max: PATHS_MAX })

  constructor(engine: EngineClient) {
    this.#engine = engine
  }

  /** The absolute path of the program; otherwise whether there is a file that is not executable. */
  find(
    image: EngineImage,
    probe: Probe,
    search: ProgramSearch,
  ): Promise<{ command: string } | 'not_executable' | 'nothing'> {
    return this.#lookUp(image, probe, async (kindOf) => {
      let is_there = false
      for (const candidate of candidatesOf(search)) {
        const kind = await kindOf(candidate)
        if (kind === 'executable') return { command: candidate }
        is_there ||= kind === 'file'
      }
      return is_there ? 'not_executable' : 'nothing'
    })
  }

  hasFolder(image: EngineImage, probe: Probe, path: string): Promise<boolean> {
    return this.#lookUp(image, probe, async (kindOf) => (await kindOf(path)) === 'folder')
  }

  /** `ask` may look up any number of paths. The container exists only if one of them is unknown. */
  async #lookUp<T>(
    image: EngineImage,
    probe: Probe,
    ask: (kindOf: (path: string) => Promise<Kind>) => Promise<T>,
  ): Promise<T> {
    let is_made = false
    const makeProbe = async (): Promise<void> => {
      is_made = true
      const body = {
        Image: image.id,
        Entrypoint: ['never'],
        Labels: probe.labels,
        HostConfig: { NetworkMode: 'none' },
      }
      await this.#engine.call('POST', '/containers/create', { query: { name: probe.name }, body })
    }
    try {
      return await ask(async (path) => {
        const key = `${image.id} ${path}`
        const known = this.#kinds.get(key)
        if (known !== undefined) return known
        if (!is_made) await makeProbe()
        const kind = await this.#kindOf(probe.name, path)
        this.#kinds.set(key, kind)
        return kind
      })
    } finally {
      if (is_made)
        await this.#engine.call('DELETE', `/containers/${probe.name}`, { query: { force: '1' } }).catch(ignoreDone)
    }
  }

  async #kindOf(container: string, path: string): Promise<Kind> {
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
      if (mode >= GO_MODE.folder) return 'folder'
      if ((mode & GO_MODE.other) !== 0) return 'nothing'
      return (mode & GO_MODE.executable) === 0 ? 'file' : 'executable'
    }
    return 'nothing'
  }
}

function candidatesOf({ name, path, relative_to }: ProgramSearch): string[] {
  if (name.startsWith('/')) return [name]
  if (name.includes('/')) return relative_to === null ? [] : [posix.resolve(relative_to, name)]
  const folders = (path ?? DEFAULT_PATH).split(':').filter((folder) => folder.startsWith('/'))
  return name === '' ? [] : folders.slice(0, PATH_FOLDERS_MAX).map((folder) => posix.join(folder, name))
}

type StatHeader = { mode: number; linkTarget: string }
