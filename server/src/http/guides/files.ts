// The guides: the Markdown files of docs/ for people who use the platform, and that of the SDK. Those for people who change the
// platform are in the repository only.
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const DOCS = new URL('../../../../docs/', import.meta.url)
const SDK = new URL('../../../../sdk/README.md', import.meta.url)
const ENDING = '.md'
/** The list of all pages. Its address is the folder's. */
const INDEX = 'README'
/** Guides that are read. */
const GUIDES_MAX = 500

/** `name`: the last part of its address, '' for the list of all guides. `path`: from the root of the repository. */
export type GuideFile = { name: string; path: string; text: string }

/** In the order of their names. Empty where the platform was installed without them. */
export function readGuides(): GuideFile[] {
  const guides = ['', 'commands/'].flatMap((folder) =>
    namesIn(new URL(folder, DOCS)).map((file): GuideFile => {
      const base = file.slice(0, -ENDING.length)
      const name = base === INDEX ? folder.replace(/\/$/, '') : `${folder}${base}`
      return { name, path: `docs/${folder}${file}`, text: readFileSync(new URL(`${folder}${file}`, DOCS), 'utf8') }
    }),
  )
  if (guides.length === 0) return []
  return [...guides, { name: 'sdk', path: 'sdk/README.md', text: readFileSync(fileURLToPath(SDK), 'utf8') }]
}

function namesIn(folder: URL): string[] {
  try {
    const names = readdirSync(folder).filter((name) => name.endsWith(ENDING))
    return names.sort().slice(0, GUIDES_MAX)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
