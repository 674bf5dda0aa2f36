// What a joined machine keeps: which platform it belongs to, and its key and certificate. The file proves the node to the
// platform, so only its user can read it. It is replaced in one step.
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { requireShape } from '@musterhost/contract/schema-check'
import Type, { type Static } from 'typebox'
import { StartError } from '../../config/start-error.ts'
import { NODE_ROLES } from '../protocol.ts'

/** `certificate`, `key` and `authority`: PEM. */
const NodeFile = Type.Object({
  platform_url: Type.String(),
  node_id: Type.String(),
  region: Type.String(),
  roles: Type.Array(Type.Enum([...NODE_ROLES])),
  authority: Type.String(),
  certificate: Type.String(),
  key: Type.String(),
})
export type NodeFile = Static<typeof NodeFile>

const NAME = 'node.json'

export function nodeFilePath(data_dir: string): string {
  return join(data_dir, NAME)
}

/** Null: the machine has not joined a platform. Throws a StartError when the file is damaged. */
export function readNodeFile(data_dir: string): NodeFile | null {
  const path = nodeFilePath(data_dir)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  try {
    return requireShape(NodeFile, JSON.parse(text))
  } catch (error) {
    throw new StartError(`${path} is damaged. Remove it, and join again with a new invitation.`, { cause: error })
  }
}

export function writeNodeFile(data_dir: string, file: NodeFile): void {
  const path = nodeFilePath(data_dir)
  rmSync(`${path}.new`, { force: true })
  writeFileSync(`${path}.new`, `${JSON.stringify(file, null, 2)}\n`, { mode: 0o600, flush: true })
  renameSync(`${path}.new`, path)
}
