// The key ring: every secret that the platform signs with, in one file (`ring.json`, mode 0600), so that it comes into
// being all at once. Made on the first start by whichever process comes first, and never changed by a start. The last
// key of an algorithm signs; all of them verify. So a rotation appends a key, restarts, and drops the old one later.
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { chmod, link, mkdir, open, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** hkdf-sha256 is the root from which Keys.mac takes a subkey for each purpose. */
export const RING_ALGORITHMS = ['ed25519', 'hmac-sha256', 'hkdf-sha256'] as const
export type RingAlgorithm = (typeof RING_ALGORITHMS)[number]

/** `secret` is base64url: PKCS #8 for ed25519, 32 random bytes for the others. */
export type RingKey = { kid: string; algorithm: RingAlgorithm; secret: string }

export type Ring = { keys: readonly RingKey[] }

const SECRET_BYTES = 32
const KEYS_MAX = 64
const RING_BYTES_MAX = 64 * 1024

export function createRing(): Ring {
  return { keys: RING_ALGORITHMS.map(createRingKey) }
}

export function createRingKey(algorithm: RingAlgorithm): RingKey {
  const secret =
    algorithm === 'ed25519'
      ? generateKeyPairSync('ed25519').privateKey.export({ format: 'der', type: 'pkcs8' })
      : randomBytes(SECRET_BYTES)
  return { kid: randomBytes(6).toString('hex'), algorithm, secret: secret.toString('base64url') }
}

/**
 * The ring of a folder, made when there is none. Processes that start at once get the same one: the file appears
 * complete, by a hard link that fails for all but the first. Throws when the file is damaged or others may read it:
 * a new ring in its place would silently void every token.
 */
export async function openRing(folder: string): Promise<Ring> {
  const path = ringPath(folder)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  return (await readRing(path)) ?? (await placeRing(folder))
}

function ringPath(folder: string): string {
  return join(folder, 'ring.json')
}

async function readRing(path: string): Promise<Ring | null> {
  let text: string
  try {
    const { mode, size } = await stat(path)
    if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
      throw new Error(
        `${path} holds the platform's keys and may be read by others. If nobody did, run: chmod 600 ${path}`,
      )
    }
    if (size > RING_BYTES_MAX) throw new Error(`${path} is too large to be a key ring.`)
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (isFileError(error, 'ENOENT')) return null
    throw error
  }
  const ring = parseRing(text)
  if (ring === null)
    throw new Error(`${path} is not a key ring. Restore it from a backup; without it all tokens are void.`)
  return ring
}

/** Puts a new ring into the folder, unless there is one by now; answers the one that is there then. */
export async function placeRing(folder: string): Promise<Ring> {
  const path = ringPath(folder)
  await chmod(folder, 0o700)
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  try {
    const file = await open(draft, 'wx', 0o600)
    try {
      await file.writeFile(`${JSON.stringify(createRing(), null, 2)}\n`)
      await file.sync()
    } finally {
      await file.close()
    }
    await link(draft, path)
  } catch (error) {
    // Another process was first: its ring is the ring.
    if (!isFileError(error, 'EEXIST')) throw error
  } finally {
    await rm(draft, { force: true })
  }
  await syncFolder(folder)
  const ring = await readRing(path)
  if (ring === null) throw new Error(`${path} vanished while it was being opened.`)
  return ring
}

/** No token may leave before the name of the ring is as durable as its bytes. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function parseRing(text: string): Ring | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  if (typeof value !== 'object' || value === null || !('keys' in value) || !Array.isArray(value.keys)) return null
  const items: unknown[] = value.keys
  const keys = items.filter(isRingKey)
  if (keys.length !== items.length || keys.length > KEYS_MAX) return null
  if (new Set(keys.map((key) => key.kid)).size !== keys.length) return null
  return RING_ALGORITHMS.every((algorithm) => keys.some((key) => key.algorithm === algorithm)) ? { keys } : null
}

function isRingKey(value: unknown): value is RingKey {
  if (typeof value !== 'object' || value === null) return false
  const { kid, algorithm, secret }: { kid?: unknown; algorithm?: unknown; secret?: unknown } = value
  return (
    typeof kid === 'string' &&
    /^[a-z0-9]{1,32}$/.test(kid) &&
    RING_ALGORITHMS.some((known) => known === algorithm) &&
    typeof secret === 'string' &&
    Buffer.from(secret, 'base64url').length >= SECRET_BYTES
  )
}

function isFileError(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
