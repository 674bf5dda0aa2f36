// Credentials of registries, from a file in the format of `docker login`: {"auths": {"HOST": {"auth": "BASE64"}}}.
import { readFile } from 'node:fs/promises'

/** The name under which docker keeps the credentials of docker.io. */
const DOCKER_HUB_KEY = 'https://index.docker.io/v1/'

export type Credentials = { username: string; password: string }

/** Read at each pull, so that a change needs no restart. Null for a registry without credentials. Throws when unreadable. */
export async function readCredentials(file: string | null, host: string): Promise<Credentials | null> {
  if (file === null) return null
  type File = { auths?: Record<string, { auth?: unknown } | null> }
  const { auths = {} } = JSON.parse(await readFile(file, 'utf8')) as File
  const found = auths[host] ?? auths[`https://${host}`] ?? (host === 'docker.io' ? auths[DOCKER_HUB_KEY] : undefined)
  if (typeof found?.auth !== 'string') return null
  const text = Buffer.from(found.auth, 'base64').toString()
  const colon = text.indexOf(':')
  return colon === -1 ? null : { username: text.slice(0, colon), password: text.slice(colon + 1) }
}
