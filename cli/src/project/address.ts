// The members of muster.yaml that say where a project belongs. Every command reads them; the rest of the file is read by the
// commands that deploy.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseDocument } from 'yaml'
import { EXIT, Failure } from '../failure.ts'

export type ProjectAddress = { file: string; url?: string; game?: string; namespace?: string }

const FILES = ['muster.yaml', 'muster.yml', 'muster.json'] as const
const MEMBERS = ['url', 'game', 'namespace'] as const
/** Folders from the current one upwards in which the file is looked for. */
const FOLDERS_MAX = 64

/** Null: there is no such file in the folder, or in one above it. */
export function findProjectFile(cwd: string): string | null {
  let folder = cwd
  for (let depth = 0; depth < FOLDERS_MAX; depth++) {
    for (const name of FILES) if (existsSync(join(folder, name))) return join(folder, name)
    const above = dirname(folder)
    if (above === folder) return null
    folder = above
  }
  return null
}

export function readProjectAddress(cwd: string): ProjectAddress | null {
  const file = findProjectFile(cwd)
  if (file === null) return null
  const document = parseDocument(readFileSync(file, 'utf8'))
  const [error] = document.errors
  if (error !== undefined) {
    const [position] = error.linePos ?? []
    throw new Failure(`${file} cannot be read.`, {
      exit_code: EXIT.failed,
      details: [{ path: 'YAML', line: position?.line ?? 1, column: position?.col ?? 1, message: error.message }],
    })
  }
  const address: ProjectAddress = { file }
  for (const member of MEMBERS) {
    const value: unknown = document.get(member)
    if (typeof value === 'string' && value !== '') address[member] = value
  }
  return address
}
