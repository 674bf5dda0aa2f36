// What the operator does with the platform's own credentials: `muster admin-token` and `muster keys rotate`. Whoever may
// read the data folder holds all of them anyway, so these commands ask for no other proof.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ApiError, revokeToken } from '@muster/contract'
import { createClient } from '@muster/contract/client'
import { readConfig } from '../config.ts'
import { type Keys, openKeys } from '../tokens/keys.ts'
import { openRing, rotateRing, rotateSeals, SEAL_RING } from '../tokens/ring.ts'
import { adminFile, issueAdminToken, writeAdminToken } from './folders.ts'

/** The admin token of the data folder as it stands. */
export function readAdminToken(env: NodeJS.ProcessEnv): string {
  return readFileSync(adminFile(readConfig(env).data_dir), 'utf8').trim()
}

/**
 * Revokes the admin token and writes another one in its place. The platform must run. Whatever happens in between, the
 * same command mends it: the keys of the data folder are the proof, not the old token.
 */
export async function rotateAdminToken(env: NodeJS.ProcessEnv): Promise<{ file: string }> {
  const config = readConfig(env)
  const file = adminFile(config.data_dir)
  const keys = await openKeys(join(config.data_dir, 'keys'))
  const old_id = tokenIdOf(readFileSync(file, 'utf8').trim(), keys)
  const token = issueAdminToken(keys, Date.now())
  if (old_id !== null) {
    const client = createClient({ url: `http://${config.internal_host}:${config.api_port}`, token })
    await client.call(revokeToken, { params: { token_id: old_id } })
  }
  writeAdminToken(file, token)
  return { file }
}

/** Null: it is not valid any more, so there is nothing to revoke. */
function tokenIdOf(token: string, keys: Keys): string | null {
  try {
    return keys.verify(token, Date.now()).token_id
  } catch (error) {
    if (error instanceof ApiError) return null
    throw error
  }
}

/** Running roles take the new keys up by themselves. Tokens of the old ones are valid until `verify_until_ms`. */
export async function rotateKeys(
  env: NodeJS.ProcessEnv,
  grace_ms: number,
): Promise<{ sign_from_ms: number; verify_until_ms: number }> {
  const folder = join(readConfig(env).data_dir, 'keys')
  const now_ms = Date.now()
  // A platform that has not been started since there are seals has none: its next start makes the first.
  await openRing(folder, SEAL_RING)
  await rotateSeals(folder, { now_ms })
  return rotateRing(folder, { now_ms, grace_ms })
}
