// Secrets for the server of `muster dev`. No platform returns a value, so they are read from a file of the project: lines of
// NAME=value, as in other .env files. No upload includes the file.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { ApiError, ENV_NAME_PATTERN, isPlatformVariable, listGameSecrets } from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { isMissing } from '../deploy/file-errors.ts'
import { EXIT, Failure } from '../failure.ts'
import type { Terminal } from '../terminal.ts'

const SECRETS_FILE = '.env.secrets'
/** Bytes of the file. */
const FILE_BYTES_MAX = 256 * 1024
const NAME = new RegExp(ENV_NAME_PATTERN)

/** By name; empty without the file. Throws a Failure for a name that a lobby cannot have. */
export function readSecretsFile(folder: string): Record<string, string> {
  const file = join(folder, SECRETS_FILE)
  const secrets: Record<string, string> = {}
  for (const [name, value] of Object.entries(parseEnv(readText(file)))) {
    if (!NAME.test(name) || isPlatformVariable(name)) {
      const reason = isPlatformVariable(name) ? 'the platform sets it in every lobby' : 'it is no name of a variable'
      throw new Failure(`${file} has the secret ${name}, which no lobby can have: ${reason}.`, {
        exit_code: EXIT.usage,
        remedy: 'Give it another name.',
      })
    }
    secrets[name] = value ?? ''
  }
  return secrets
}

/** Prints the names of the secrets that the server gets, and of those that the game has and the file lacks. */
export async function saySecrets(
  terminal: Terminal,
  client: Client,
  { game_id, namespace_id }: { game_id: string; namespace_id: string },
  secrets: Readonly<Record<string, string>>,
): Promise<void> {
  const names = Object.keys(secrets)
  if (names.length > 0) terminal.note(`secrets of ${SECRETS_FILE}: ${names.join(', ')}`)
  const there = await namesOf(client, game_id, namespace_id)
  const lacking = there.filter((name) => secrets[name] === undefined)
  if (lacking.length > 0) {
    terminal.note(
      `secrets that lobbies have and this server lacks: ${lacking.join(', ')}. Write NAME=value into ${SECRETS_FILE}.`,
    )
  }
}

async function namesOf(client: Client, game_id: string, namespace_id: string): Promise<string[]> {
  try {
    const { secrets } = await client.call(listGameSecrets, { params: { game_id } })
    const here = secrets.filter((secret) => [undefined, namespace_id].includes(secret.namespace_id))
    return [...new Set(here.map(({ name }) => name))]
  } catch (error) {
    // A platform of an older release has no secrets.
    if (error instanceof ApiError && error.code === 'API_NOT_FOUND') return []
    throw error
  }
}

function readText(file: string): string {
  try {
    const text = readFileSync(file, 'utf8')
    if (text.length <= FILE_BYTES_MAX) return text
  } catch (error) {
    if (isMissing(error)) return ''
    throw new Failure(`${file} cannot be read: ${(error as Error).message}`, { cause: error })
  }
  throw new Failure(`${file} is longer than ${FILE_BYTES_MAX} bytes.`, { exit_code: EXIT.usage })
}
