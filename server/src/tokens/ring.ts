// The key ring: every secret that the platform signs with, in one file (`ring.json`, mode 0600), so that it comes into
// being all at once. Made on the first start by whichever process comes first, and never changed by a start. A rotation
// appends keys, which sign only after every running process has read them, and gives the old ones an end, until which
// they verify. The root of Keys.mac is not rotated: what is derived from it lies in the database, or ends within hours.
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { chmod, link, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** hkdf-sha256 is the root from which Keys.mac takes a subkey for each purpose. */
export const RING_ALGORITHMS = ['ed25519', 'hmac-sha256', 'hkdf-sha256'] as const
export type RingAlgorithm = (typeof RING_ALGORITHMS)[number]
const SIGNING_ALGORITHMS = ['ed25519', 'hmac-sha256'] as const

/** `secret` is base64url: PKCS #8 for ed25519, 32 random bytes for the others. */
export type RingKey = {
  kid: string
  algorithm: RingAlgorithm
  secret: string
  /** The last key of its algorithm whose time has come signs. Absent: from the beginning. */
  sign_from_ms?: number
  /** From then on nothing that it signed is valid. Absent: for ever. */
  verify_until_ms?: number
}

export type Ring = { keys: readonly RingKey[] }

const SECRET_BYTES = 32
const KEYS_MAX = 64
const RING_BYTES_MAX = 64 * 1024
/** Running processes look at the ring every RING_READ_MS; a new key waits for the slowest of them. */
export const RING_READ_MS = 1_000
export const SPREAD_MS = 10_000

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
    await writeRing(draft, createRing())
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

/**
 * New keys for everything that signs tokens. They sign from SPREAD_MS after `now_ms` on; the old ones verify for
 * `grace_ms` longer, and those whose end has come are dropped. Throws when there are too many to keep.
 */
export async function rotateRing(
  folder: string,
  { now_ms, grace_ms }: { now_ms: number; grace_ms: number },
): Promise<{ sign_from_ms: number; verify_until_ms: number }> {
  const path = ringPath(folder)
  const before = await readRing(path)
  if (before === null) throw new Error(`${path} is not there: nothing to rotate.`)
  const sign_from_ms = Math.trunc(now_ms) + SPREAD_MS
  const verify_until_ms = sign_from_ms + Math.trunc(grace_ms)
  const kept = before.keys
    .filter((key) => key.algorithm === 'hkdf-sha256' || (key.verify_until_ms ?? now_ms + 1) > now_ms)
    .map((key) => (key.algorithm === 'hkdf-sha256' ? key : { verify_until_ms, ...key }))
  const fresh = SIGNING_ALGORITHMS.map((algorithm) => ({ ...createRingKey(algorithm), sign_from_ms }))
  const keys = [...kept, ...fresh]
  if (keys.length > KEYS_MAX)
    throw new Error(`The ring would have more than ${KEYS_MAX} keys; wait for the end of some.`)
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  try {
    await writeRing(draft, { keys })
    await rename(draft, path)
  } finally {
    await rm(draft, { force: true })
  }
  await syncFolder(folder)
  return { sign_from_ms, verify_until_ms }
}

async function writeRing(path: string, ring: Ring): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(`${JSON.stringify(ring, null, 2)}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
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
  const { kid, algorithm, secret, sign_from_ms, verify_until_ms } = value as Record<string, unknown>
  return (
    isTime(sign_from_ms) &&
    isTime(verify_until_ms) &&
    typeof kid === 'string' &&
    /^[a-z0-9]{1,32}$/.test(kid) &&
    RING_ALGORITHMS.some((known) => known === algorithm) &&
    typeof secret === 'string' &&
    Buffer.from(secret, 'base64url').length >= SECRET_BYTES
  )
}

function isTime(value: unknown): boolean {
  return value === undefined || (Number.isSafeInteger(value) && (value as number) >= 0)
}

function isFileError(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
