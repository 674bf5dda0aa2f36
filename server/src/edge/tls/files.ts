// Certificates from files that another program keeps in a folder (certbot, mkcert, an orchestrator's secret). They are read at
// the start, and again whenever a file has changed. A pair that cannot be read, for example while only one of its files is
// new, keeps its previous certificate.
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { StartError } from '../../config/start-error.ts'
import type { Context } from '../../context.ts'
import { CERTIFICATE_BYTES_MAX, CERTIFICATES_MAX, CERTIFICATES_READ_MS } from '../limits.ts'
import { byName, type Certificate, type CertificatesByName, readCertificate } from './certificate.ts'

export type FileCertificates = {
  all: () => CertificatesByName
  /** The certificates all of whose names may be used for raw ports. */
  ofRawPorts: () => CertificatesByName
  close: () => void
}

type Pair = { chain: string; key: string }
type Read = { fingerprint: string; certificate: Certificate | null }

/** The names of a chain's file and its key's file: certbot's, those of most other programs, and mkcert's. */
const LAYOUTS: readonly { chain: RegExp; key: (file: string) => string }[] = [
  { chain: /^fullchain\.pem$/, key: () => 'privkey.pem' },
  { chain: /\.crt$/, key: (file) => file.replace(/\.crt$/, '.key') },
  { chain: /(?<!-key)\.pem$/, key: (file) => file.replace(/\.pem$/, '-key.pem') },
]

/** `isRawPortName`: whether a raw port may be reached under this name. Throws a StartError when the folder cannot be read. */
export async function openFileCertificates(
  ctx: Context,
  folder: string,
  isRawPortName: (name: string) => boolean,
): Promise<FileCertificates> {
  let known = new Map<string, Read>()
  let all: CertificatesByName = new Map()
  let of_raw_ports: CertificatesByName = new Map()
  const closing = new AbortController()

  async function read(): Promise<void> {
    const found = new Map<string, Read>()
    let has_changed = false
    for (const pair of await findPairs(folder)) {
      const before = known.get(pair.chain)
      const fingerprint = await fingerprintOf(pair)
      const next = before?.fingerprint === fingerprint ? before : await readPair(ctx, pair, fingerprint, before)
      has_changed ||= next !== before
      found.set(pair.chain, next)
    }
    if (!has_changed && found.size === known.size) return
    known = found
    const certificates = [...found.values()].flatMap(({ certificate }) => certificate ?? [])
    all = byName(certificates)
    of_raw_ports = byName(certificates.filter(({ names }) => names.every(isRawPortName)))
    ctx.log.info({ folder, names: [...all.keys()] }, 'certificates read')
    for (const { names } of certificates) {
      if (!names.some(isRawPortName) || names.every(isRawPortName)) continue
      ctx.log.warn({ names }, 'certificate of the job domain also names other hosts; raw ports do not use it')
    }
  }

  async function keepReading(): Promise<void> {
    const { signal } = closing
    while (!signal.aborted) {
      // close() ends the wait.
      await delay(CERTIFICATES_READ_MS, undefined, { signal }).catch(() => {})
      if (signal.aborted) return
      await read().catch((error: unknown) =>
        ctx.log.warn({ err: error }, 'certificates cannot be read; keeping the previous ones'),
      )
    }
  }

  try {
    await read()
  } catch (error) {
    const { code = String(error) } = error as NodeJS.ErrnoException
    throw new StartError(`MUSTER_TLS_CERTIFICATES names ${folder}, which cannot be read (${code}).`, { cause: error })
  }
  void keepReading()
  return { all: () => all, ofRawPorts: () => of_raw_ports, close: () => closing.abort() }
}

/** Finds pairs in the folder and in its direct subfolders: certbot has one for each certificate. */
export async function findPairs(folder: string): Promise<Pair[]> {
  const names = (await readdir(folder)).sort()
  const pairs = pairsOf(folder, names)
  for (const name of names) {
    if (pairs.length >= CERTIFICATES_MAX) break
    const inside = await readdir(join(folder, name)).catch((error: NodeJS.ErrnoException) => {
      // It is a file, or was removed.
      if (error.code === 'ENOTDIR' || error.code === 'ENOENT') return []
      throw error
    })
    pairs.push(...pairsOf(join(folder, name), inside.sort()))
  }
  return pairs.slice(0, CERTIFICATES_MAX)
}

function pairsOf(folder: string, files: readonly string[]): Pair[] {
  const present = new Set(files)
  return files.flatMap((chain) => {
    const key = LAYOUTS.find((layout) => layout.chain.test(chain))?.key(chain)
    return key !== undefined && present.has(key) ? [{ chain: join(folder, chain), key: join(folder, key) }] : []
  })
}

/** Follows links, because a renewal often changes only a link. */
async function fingerprintOf({ chain, key }: Pair): Promise<string> {
  const parts = await Promise.all(
    [chain, key].map((path) =>
      stat(path).then(
        ({ ino, size, mtimeMs, ctimeMs }) => `${ino}:${size}:${mtimeMs}:${ctimeMs}`,
        (error: NodeJS.ErrnoException) => error.code ?? 'unknown',
      ),
    ),
  )
  return parts.join(' ')
}

async function readPair(ctx: Context, pair: Pair, fingerprint: string, before: Read | undefined): Promise<Read> {
  try {
    return { fingerprint, certificate: await loadPair(pair) }
  } catch (error) {
    ctx.log.warn({ err: error, file: pair.chain }, 'certificate cannot be used')
    return { fingerprint, certificate: before?.certificate ?? null }
  }
}

/** Throws an Error when the pair cannot be used. Its validity in time is not checked. */
export async function loadPair(pair: Pair): Promise<Certificate> {
  const [chain, key] = await Promise.all([readPem(pair.chain), readPem(pair.key)])
  const certificate = readCertificate(chain, key)
  if (certificate.names.length === 0) throw new Error('The certificate names no host.')
  return certificate
}

async function readPem(path: string): Promise<string> {
  const { size } = await stat(path)
  if (size > CERTIFICATE_BYTES_MAX) throw new Error(`${path} has more than ${CERTIFICATE_BYTES_MAX} bytes.`)
  return readFile(path, 'utf8')
}
