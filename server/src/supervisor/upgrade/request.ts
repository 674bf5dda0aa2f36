// The request of `muster upgrade` to the supervisor: a file of the data folder, which only the platform's user can write. SIGUSR2
// makes the supervisor read it.
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hasShape } from '@musterhost/contract/schema-check'
import Type, { type Static } from 'typebox'

const FILE = 'upgrade-request.json'

/**
 * The new program. `exec_path`: of its Node. `cli_path`, `role_path`: what Node runs: the supervisor, and a role. `check_path`: what
 * Node runs to try the program and the settings (compile.ts). Members that are optional were added after the first release.
 */
const UpgradeRequest = Type.Object({
  version: Type.String(),
  wire_version: Type.Integer(),
  exec_path: Type.String(),
  cli_path: Type.String(),
  role_path: Type.String(),
  request_id: Type.Optional(Type.String()),
  check_path: Type.Optional(Type.String()),
  hand_over: Type.Optional(Type.Object({ min: Type.Integer(), max: Type.Integer() })),
})
export type UpgradeRequest = Static<typeof UpgradeRequest>

export function writeUpgradeRequest(data_dir: string, request: UpgradeRequest): void {
  const path = join(data_dir, FILE)
  writeFileSync(`${path}.new`, JSON.stringify(request), { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** Removes the request. Null: there is none, or one of a version that this one does not understand. */
export function takeUpgradeRequest(data_dir: string): UpgradeRequest | null {
  const path = join(data_dir, FILE)
  if (!existsSync(path)) return null
  const text = readFileSync(path, 'utf8')
  rmSync(path)
  try {
    const value: unknown = JSON.parse(text)
    return hasShape(UpgradeRequest, value) ? value : null
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}
