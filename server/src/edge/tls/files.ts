// Certificates from files: what another program keeps in a folder (certbot, mkcert, an orchestrator's secret), read at the
// start and again whenever a file has changed. A pair that cannot be read any more, as in the moment in which one file of
// it is new and the other is not, stays what it was.
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from '../../context.ts'
import { StartError } from '../../start-error.ts'
import { CERTIFICATE_BYTES_MAX, CERTIFICATES_MAX, CERTIFICATES_READ_MS } from '../limits.ts'
import { byName, type Certificate, type CertificatesByName, readCertificate } from './certificate.ts'

export type FileCertificates = {
  all: () => CertificatesByName
  /** Without those that also name a host under which no raw port may be reached. */
  ofRawPorts: () => CertificatesByName
  close: () => void
}

type Pair = { chain: string; key: string }
type Read = { fingerprint: string; certificate: Certificate | null }

/** Which file holds the key of which: certbot's names, those of most others, and mkcert's. */
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
    ctx.log.info({ folder, names: [...all.keys()] }, 'certificates have been read')
    for (const { names } of certificates) {
      if (!names.some(isRawPortName) || names.every(isRawPortName)) continue
      ctx.log.warn({ names }, 'a certificate of the job domain names other hosts as well; raw ports do not show it')
    }
  }

  async function keepReading(): Promise<void> {
    const { signal } = closing
    while (!signal.aborted) {
      // Cut short by the end.
      await delay(CERTIFICATES_READ_MS, undefined, { signal }).catch(() => {})
      if (signal.aborted) return
      await read().catch((error: unknown) =>
        ctx.log.warn({ err: error }, 'certificates cannot be read; the old ones hold'),
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

/** In the folder itself and in those right below it, as certbot has one for each. */
async function findPairs(folder: string): Promise<Pair[]> {
  const names = (await readdir(folder)).sort()
  const pairs = pairsOf(folder, names)
  for (const name of names) {
    if (pairs.length >= CERTIFICATES_MAX) break
    const inside = await readdir(join(folder, name)).catch((error: NodeJS.ErrnoException) => {
      // A file, or gone by now.
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

/** Links are followed: a renewal often only points them elsewhere. */
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
    const [chain, key] = await Promise.all([readPem(pair.chain), readPem(pair.key)])
    const certificate = readCertificate(chain, key)
    if (certificate.names.length === 0) throw new Error('It names no host.')
    return { fingerprint, certificate }
  } catch (error) {
    ctx.log.warn({ err: error, file: pair.chain }, 'a certificate cannot be used')
    return { fingerprint, certificate: before?.certificate ?? null }
  }
}

async function readPem(path: string): Promise<string> {
  const { size } = await stat(path)
  if (size > CERTIFICATE_BYTES_MAX) throw new Error(`${path} has more than ${CERTIFICATE_BYTES_MAX} bytes.`)
  return readFile(path, 'utf8')
}
