// The files of the built hub: its one HTML document, and assets whose names contain a hash of their content. In a checkout the
// hub is built beside the start of the platform, and a later build replaces the folder: the next request reads it again.
import { readdir, readFile, stat } from 'node:fs/promises'
import { extname } from 'node:path'

/** In the package they lie at the same place beside the compiled server. */
const FOLDER = new URL('../../../../hub/dist/', import.meta.url)
const DOCUMENT = 'index.html'
const ICON = 'hub-icon.svg'
export const ASSETS_PATH = '/hub-assets/'

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}
const CODINGS = [
  { name: 'br', ending: '.br' },
  { name: 'gzip', ending: '.gz' },
] as const

export type HubFile = { type: string; coding: 'br' | 'gzip' | null; bytes: Buffer }

export type HubFiles = {
  /** The document of every page. `__NONCE__` stands for the nonce of the response. */
  document: string
  /** `path`: the path of the request. Undefined when the hub has no such file. */
  read: (path: string, accepted_codings: string) => Promise<HubFile | undefined>
}

export class Hub {
  readonly #folder: URL
  #files: Promise<HubFiles | null> = Promise.resolve(null)
  /** The build that `#files` are from. */
  #version = ''

  constructor(folder = FOLDER) {
    this.#folder = folder
  }

  /** Null when the hub is not built, or not yet. */
  async files(): Promise<HubFiles | null> {
    const version = await versionOf(this.#folder)
    if (version !== this.#version) {
      this.#version = version
      this.#files = version === '' ? Promise.resolve(null) : openFiles(this.#folder)
      // A folder that is replaced meanwhile is read by the next request.
      this.#files.catch(() => {
        this.#version = ''
      })
    }
    return this.#files
  }
}

/** Empty when the hub is not built. */
async function versionOf(folder: URL): Promise<string> {
  try {
    const { ino, mtimeMs } = await stat(new URL(DOCUMENT, folder))
    return `${ino} ${mtimeMs}`
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}

async function openFiles(folder: URL): Promise<HubFiles> {
  const document = await readFile(new URL(DOCUMENT, folder), 'utf8')
  const assets = await readdir(new URL(ASSETS_PATH.slice(1), folder))
  // Only these names are ever read, whatever a request asks for.
  const names = new Map([...assets.map((name) => ASSETS_PATH + name), `/${ICON}`].map((path) => [path, path.slice(1)]))
  return {
    document,
    async read(path, accepted_codings) {
      const name = names.get(path)
      const type = TYPES[extname(path)]
      if (name === undefined || type === undefined) return undefined
      // `br;q=0` refuses the coding.
      const accepted = accepted_codings.split(',').map((text) => text.trim())
      const coding = CODINGS.find(({ name: coded, ending }) => accepted.includes(coded) && names.has(path + ending))
      const bytes = await readFile(new URL(name + (coding?.ending ?? ''), folder))
      return { type, coding: coding?.name ?? null, bytes }
    },
  }
}
