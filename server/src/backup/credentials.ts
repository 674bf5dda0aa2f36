// The platform's own credentials: the key folder, without what belongs to this machine's PostgreSQL, and the admin token.
// With a backup anybody has them, and can act as the platform.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PASSWORD_FILE } from '../database/embedded/cluster.ts'
import { SOCKET_FOLDER_FILE } from '../database/embedded/socket-folder.ts'
import { isValid, openKeys } from '../tokens/keys.ts'
import { filesOf } from './files.ts'
import { ADMIN_TOKEN_FILE } from './manifest.ts'
import { type BackupCheck, counted } from './report.ts'

const KEYS = 'keys'
const RING_FILE = `${KEYS}/ring.json`
const OF_THIS_MACHINE = [PASSWORD_FILE, SOCKET_FOLDER_FILE]

/** Their paths, the same in a data folder and in a backup. Drafts that are about to be renamed are none of them. */
export async function credentialFiles(folder: string): Promise<string[]> {
  const names = existsSync(join(folder, KEYS)) ? await filesOf(join(folder, KEYS)) : []
  const kept = names.filter((name) => !OF_THIS_MACHINE.includes(name) && !/\.[0-9a-f]{12}$/.test(name))
  return [
    ...kept.map((name) => `${KEYS}/${name}`),
    ...(existsSync(join(folder, ADMIN_TOKEN_FILE)) ? [ADMIN_TOKEN_FILE] : []),
  ]
}

/** Whether the key ring of a data folder or a backup can be used, and the admin token with it. */
export async function checkCredentials(folder: string, now_ms: number): Promise<BackupCheck> {
  const findings: string[] = []
  const remarks: string[] = []
  const files = await credentialFiles(folder)
  if (!files.includes(RING_FILE)) findings.push(`${RING_FILE} is missing: without it no token is valid`)
  else {
    const keys = await openKeys(join(folder, KEYS)).catch((error: Error) => void findings.push(error.message))
    if (keys && files.includes(ADMIN_TOKEN_FILE)) {
      const token = (await readFile(join(folder, ADMIN_TOKEN_FILE), 'utf8')).trim()
      if (!isValid(keys, token, now_ms))
        remarks.push(`${ADMIN_TOKEN_FILE} is not valid any more; the next start of the platform makes another one`)
    }
  }
  return { name: 'keys', looked_at: counted(files.length, 'file'), findings, remarks }
}
