// What a runner must know of a lobby whose node is away: a file in the lobby's folder, written when the container runs.
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isGone } from '../../../procfs.ts'
import type { ContainerFacts } from '../docker/container.ts'
import type { Handle } from '../driver.ts'

const FILE = 'task.json'

export type RunFile = { handle: Handle; facts: ContainerFacts }

export function writeRunFile(folder: string, file: RunFile): void {
  const path = join(folder, FILE)
  writeFileSync(`${path}.new`, JSON.stringify(file), { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** Null: the lobby never ran, or is cleaned up. */
export function readRunFile(folder: string): RunFile | null {
  try {
    return JSON.parse(readFileSync(join(folder, FILE), 'utf8')) as RunFile
  } catch (error) {
    if (isGone(error)) return null
    throw error
  }
}
