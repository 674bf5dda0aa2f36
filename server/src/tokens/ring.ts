// The key rings: `ring.json` has the keys that sign, `seals.json` those that encrypt. Each is one file (mode 0600), so that
// it appears complete. The first process of the first start makes it, and no later start changes it. A rotation appends
// keys, which are used only after every running process has read them. Old signing keys verify until their end. Old
// encryption keys stay, to decrypt what they encrypted. The root of Keys.mac is not rotated, because the database contains
// values derived from it.
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { chmod, link, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** hkdf-sha256 is the root from which Keys.mac takes a subkey for each purpose. */
export const RING_ALGORITHMS = ['ed25519', 'hmac-sha256', 'hkdf-sha256'] as const
export type RingAlgorithm = (typeof RING_ALGORITHMS)[number] | 'aes-256-gcm'
const SIGNING_ALGORITHMS = ['ed25519', 'hmac-sha256'] as const

/** `algorithms`: those that the ring must contain. `lost`: the consequence of a lost ring. */
type RingKind = { file: string; algorithms: readonly RingAlgorithm[]; lost: string }
const TOKEN_RING: RingKind = { file: 'ring.json', algorithms: RING_ALGORITHMS, lost: 'all tokens are void' }
export const SEAL_RING: RingKind = {
  file: 'seals.json',
  algorithms: ['aes-256-gcm'],
  lost: 'the secrets of all versions and the keys of all certificates are lost',
}

/** `secret` is base64url: PKCS #8 for ed25519, 32 random bytes for the others. */
export type RingKey = {
  kid: string
  algorithm: RingAlgorithm
  secret: string
  /** The last key of its algorithm whose time has come is used. Absent: from the beginning. */
  sign_from_ms?: number
  /** From this time on its signatures are invalid. Absent: forever valid. */
  verify_until_ms?: number
}

export type Ring = { keys: readonly RingKey[] }

const SECRET_BYTES = 32
/** Keys of one ring. Each rotation adds two or one. */
const KEYS_MAX = 256
/** Bytes of a ring's file: 256 keys with some room. */
const RING_BYTES_MAX = 128 * 1024
/** How often running processes read the ring. A new key is used after SPREAD_MS, when all have read it. */
export const RING_READ_MS = 3_000
export const SPREAD_MS = 10_000

export function createRing({ algorithms } = TOKEN_RING): Ring {
  return { keys: algorithms.map(createRingKey) }
}

export function createRingKey(algorithm: RingAlgorithm): RingKey {
  const secret =
    algorithm === 'ed25519'
      ? generateKeyPairSync('ed25519').privateKey.export({ format: 'der', type: 'pkcs8' })
      : randomBytes(SECRET_BYTES)
  return { kid: randomBytes(6).toString('hex'), algorithm, secret: secret.toString('base64url') }
}

/**
 * Reads the ring of a folder, or makes it. Processes that start at once get the same one: the file appears complete, by a
 * hard link that fails for all but the first. Throws when the file is damaged or readable by other users, because a new
 * ring would silently void every token.
 */
export async function openRing(folder: string, kind = TOKEN_RING): Promise<Ring> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  return (await readRing(folder, kind)) ?? (await placeRing(folder, kind))
}

/** Reads the ring as openRing does, but not again while its file is unchanged: every process asks every RING_READ_MS. */
export async function followRing(
  folder: string,
  kind = TOKEN_RING,
): Promise<{ ring: Ring; read: () => Promise<Ring> }> {
  let ring: Ring | null = null
  let version: string | null = null
  const read = async (): Promise<Ring> => {
    // Before the file is read, so that a change meanwhile is read the next time.
    const found = await fileVersion(join(folder, kind.file))
    if (ring === null || found === null || found !== version) ring = await openRing(folder, kind)
    version = found
    return ring
  }
  return { ring: await read(), read }
}

/** Changes with the bytes and the mode of a file. Null: it cannot be read. */
async function fileVersion(path: string): Promise<string | null> {
  const found = await stat(path).catch(() => null)
  return found && `${found.ino} ${found.size} ${found.mtimeMs} ${found.ctimeMs}`
}

async function readRing(folder: string, kind: RingKind): Promise<Ring | null> {
  const path = join(folder, kind.file)
  let text: string
  try {
    const { mode, size } = await stat(path)
    if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
      throw new Error(
        `${path} contains the platform's keys and is readable by other users. If none of them read it, run: chmod 600 ${path}`,
      )
    }
    if (size > RING_BYTES_MAX) throw new Error(`${path} is too large to be a key ring.`)
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (isFileError(error, 'ENOENT')) return null
    throw error
  }
  const ring = parseRing(text, kind)
  if (ring === null) throw new Error(`${path} is not a key ring. Restore it from a backup; without it ${kind.lost}.`)
  return ring
}

/** Puts a new ring into the folder, unless another process was first. Returns the ring of the folder. */
export async function placeRing(folder: string, kind = TOKEN_RING): Promise<Ring> {
  const path = join(folder, kind.file)
  await chmod(folder, 0o700)
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  try {
    await writeRing(draft, createRing(kind))
    await link(draft, path)
  } catch (error) {
    // Another process was first: its ring is used.
    if (!isFileError(error, 'EEXIST')) throw error
  } finally {
    await rm(draft, { force: true })
  }
  await syncFolder(folder)
  const ring = await readRing(folder, kind)
  if (ring === null) throw new Error(`${path} vanished while it was being opened.`)
  return ring
}

/**
 * Adds new keys for every algorithm that signs tokens. They sign from `now_ms` + SPREAD_MS on. The old keys verify for
 * `grace_ms` longer, and ended keys are removed. Throws when the ring would have too many keys.
 */
export async function rotateRing(
  folder: string,
  { now_ms, grace_ms }: { now_ms: number; grace_ms: number },
): Promise<{ sign_from_ms: number; verify_until_ms: number }> {
  const before = await requireRing(folder, TOKEN_RING)
  const sign_from_ms = Math.trunc(now_ms) + SPREAD_MS
  const verify_until_ms = sign_from_ms + Math.trunc(grace_ms)
  const kept = before.keys
    .filter((key) => key.algorithm === 'hkdf-sha256' || (key.verify_until_ms ?? now_ms + 1) > now_ms)
    .map((key) => (key.algorithm === 'hkdf-sha256' ? key : { verify_until_ms, ...key }))
  const fresh = SIGNING_ALGORITHMS.map((algorithm) => ({ ...createRingKey(algorithm), sign_from_ms }))
  await replaceRing(folder, TOKEN_RING, [...kept, ...fresh])
  return { sign_from_ms, verify_until_ms }
}

/** Adds a new key that encrypts from `now_ms` + SPREAD_MS on. The old keys stay, to open their seals. */
export async function rotateSeals(folder: string, { now_ms }: { now_ms: number }): Promise<void> {
  const before = await requireRing(folder, SEAL_RING)
  const fresh = { ...createRingKey('aes-256-gcm'), sign_from_ms: Math.trunc(now_ms) + SPREAD_MS }
  await replaceRing(folder, SEAL_RING, [...before.keys, fresh])
}

async function requireRing(folder: string, kind: RingKind): Promise<Ring> {
  const ring = await readRing(folder, kind)
  if (ring === null) throw new Error(`${join(folder, kind.file)} does not exist: nothing to rotate.`)
  return ring
}

async function replaceRing(folder: string, kind: RingKind, keys: readonly RingKey[]): Promise<void> {
  if (keys.length > KEYS_MAX) throw new Error(`${kind.file} would have more than ${KEYS_MAX} keys.`)
  const path = join(folder, kind.file)
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  try {
    await writeRing(draft, { keys })
    await rename(draft, path)
  } finally {
    await rm(draft, { force: true })
  }
  await syncFolder(folder)
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

/** The ring's name must be durable before the first token is issued. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function parseRing(text: string, { algorithms }: RingKind): Ring | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  if (typeof value !== 'object' || value === null || !('keys' in value) || !Array.isArray(value.keys)) return null
  const items: unknown[] = value.keys
  const keys = items.filter((item) => isRingKey(item, algorithms))
  if (keys.length !== items.length || keys.length > KEYS_MAX) return null
  if (new Set(keys.map((key) => key.kid)).size !== keys.length) return null
  return algorithms.every((algorithm) => keys.some((key) => key.algorithm === algorithm)) ? { keys } : null
}

function isRingKey(value: unknown, algorithms: readonly RingAlgorithm[]): value is RingKey {
  if (typeof value !== 'object' || value === null) return false
  const { kid, algorithm, secret, sign_from_ms, verify_until_ms } = value as Record<string, unknown>
  return (
    isTime(sign_from_ms) &&
    isTime(verify_until_ms) &&
    typeof kid === 'string' &&
    /^[a-z0-9]{1,32}$/.test(kid) &&
    algorithms.some((known) => known === algorithm) &&
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
