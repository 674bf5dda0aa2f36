// The commands for the platform's own credentials: `muster admin-token` and `muster keys rotate`. A user who can read the
// data folder has all of them anyway, so these commands require no other proof.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ApiError, revokeToken } from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { send } from '@musterhost/contract/node-send'
import { readConfig } from '../config/read-config.ts'
import { StartError } from '../config/start-error.ts'
import { type Keys, openKeys } from '../tokens/keys.ts'
import { openRing, rotateRing, rotateSeals, SEAL_RING } from '../tokens/ring.ts'
import { adminFile, issueAdminToken, writeAdminToken } from './folders.ts'

/** The admin token of the data folder. Throws a StartError that names what is missing. */
export function readAdminToken(env: NodeJS.ProcessEnv): string {
  return readToken(readConfig(env).data_dir)
}

function readToken(data_dir: string): string {
  const file = adminFile(data_dir)
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT') {
      const message = `${file} cannot be read (${code}): run this command as the user of the platform.`
      throw new StartError(message, { cause: error })
    }
    const message = existsSync(join(data_dir, 'keys'))
      ? `${file} is missing: the api role writes it when it starts.`
      : `There is no platform in ${data_dir}: set MUSTER_DATA to the data folder of yours, or start one with "muster start".`
    throw new StartError(message, { cause: error })
  }
}

/**
 * Revokes the admin token and writes a new one in its place. The platform must run. After a crash in between, the same
 * command completes it, because the keys of the data folder are the proof, not the old token. Throws a StartError that
 * names what is missing.
 */
export async function rotateAdminToken(env: NodeJS.ProcessEnv): Promise<{ file: string }> {
  const config = readConfig(env)
  const file = adminFile(config.data_dir)
  const old_token = readToken(config.data_dir)
  const keys = await openKeys(join(config.data_dir, 'keys'))
  const old_id = tokenIdOf(old_token, keys)
  const token = issueAdminToken(keys, Date.now())
  if (old_id !== null) {
    const url = `http://${config.internal_host}:${config.api_port}`
    await createClient({ url, token, send })
      .call(revokeToken, { params: { token_id: old_id } })
      .catch((error: unknown) => {
        if (error instanceof ApiError) throw error
        throw new StartError(`The api does not respond at ${url}: start it, then rotate the admin token.`, {
          cause: error,
        })
      })
  }
  writeAdminToken(file, token)
  return { file }
}

/** Null: the token is no longer valid, so there is nothing to revoke. */
function tokenIdOf(token: string, keys: Keys): string | null {
  try {
    return keys.verify(token, Date.now()).token_id
  } catch (error) {
    if (error instanceof ApiError) return null
    throw error
  }
}

/** Running roles load the new keys without a restart. Tokens signed with the old keys are valid until `verify_until_ms`. */
export async function rotateKeys(
  env: NodeJS.ProcessEnv,
  grace_ms: number,
): Promise<{ sign_from_ms: number; verify_until_ms: number }> {
  const folder = join(readConfig(env).data_dir, 'keys')
  const now_ms = Date.now()
  // A platform that was last started by a release without seals has no ring of them: this makes the first.
  await openRing(folder, SEAL_RING)
  await rotateSeals(folder, { now_ms })
  return rotateRing(folder, { now_ms, grace_ms })
}
