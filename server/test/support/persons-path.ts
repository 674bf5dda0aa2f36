// The PATH of a person's shell: without the folders that npm puts before it for scripts, so that `node` is the machine's own.
import { delimiter } from 'node:path'

export function personsPath(): string {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return folders.filter((folder) => !folder.includes('node_modules')).join(delimiter)
}
