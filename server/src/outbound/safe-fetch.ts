// An HTTP request to an address that somebody else chose. The name is resolved once, every address that comes back is
// classified, and the connection goes to one of those: there is no second look-up that could answer differently. No
// redirect is followed, nothing is unpacked, nothing is kept for the next call; from the look-up to the last byte that is
// wanted there is one deadline. What fails is a FetchFailure with a reason; any status is an answer.
import {
  type ClientRequest,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  request as requestHttp,
} from 'node:http'
import { request as requestHttps } from 'node:https'
import { type BlockList, isIP } from 'node:net'
import { urlTextFault } from '@musterhost/contract/formats'
import { readBounded } from '../flow/read-bounded.ts'
import { bareHost } from '../text/bare-host.ts'
import { type CertificateAuthorities, readCertificateAuthorities } from './certificate-authorities.ts'
import { type Dns, DnsFailure } from './dns.ts'
import { isOwn, mayReach } from './public-address.ts'

/** Characters of an address. */
const URL_LENGTH_MAX = 2_048
/** All header lines of a response together. */
const HEADER_BYTES_MAX = 16 * 1024
/** Interim responses (100 Continue, 103 Early Hints) before the response. */
const INTERIM_ANSWERS_MAX = 4
/** Addresses that are tried when a connection cannot be made. */
const CONNECTIONS_MAX = 3
/** Ports below this are other services' by convention, and these above it are those of databases and caches. */
const FREE_PORT_MIN = 1_024
const DATA_PORTS: readonly number[] = [1433, 1521, 3306, 5432, 6379, 9042, 11211, 27017]
/** Largest port number. */
const PORT_MAX = 65_535
const LOCALHOST = 'localhost'
/** RFC 6761, 6.3. Development servers listen on one of them or on both. */
const LOCALHOST_ADDRESSES = ['127.0.0.1', '::1']
const LOCAL_NAME = /(?:^|\.)(?:localhost|local|internal|home\.arpa)$/

export type FetchFailureReason =
  | 'url'
  | 'dns'
  | 'address_not_public'
  | 'connection'
  | 'tls'
  | 'protocol'
  | 'timeout'
  | 'too_large'

/** The message is one readable line. */
export class FetchFailure extends Error {
  readonly reason: FetchFailureReason
  constructor(reason: FetchFailureReason, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'FetchFailure'
    this.reason = reason
  }
}

export type FetchRules = {
  schemes: readonly ('http' | 'https')[]
  names: Dns
  /** Networks that may be reached though they are not public. */
  private_networks: BlockList
  /** Ports of the platform's own that are not called. */
  own_ports: readonly number[]
  /** Whether the name localhost is called. Its addresses must be in `private_networks` too. */
  calls_localhost?: boolean
  /** Whether this machine's own addresses are refused too. */
  own_addresses?: 'refused'
  /** Certificate authorities that are trusted; absent: the well-known ones. */
  trust?: CertificateAuthorities
}

export type FetchRequest = {
  url: string
  method?: 'GET' | 'POST' | 'HEAD'
  headers?: OutgoingHttpHeaders
  body?: string
  /** From the look-up of the name to the last byte that is read. */
  timeout_ms: number
  /** 0: the status is all that is wanted, and the connection ends there. */
  body_bytes_max: number
  signal?: AbortSignal
}

export type Fetched = { status: number; headers: IncomingHttpHeaders; body: Buffer }

/**
 * Why a url cannot be called, as far as it can be said without asking anybody; for what is checked when it is set.
 * Throws a FetchFailure with the reason `url` or `address_not_public`.
 */
export function parseTarget(text: string, rules: Omit<FetchRules, 'names'>): URL {
  const refuse = (message: string): never => {
    throw new FetchFailure('url', message)
  }
  if (text.length > URL_LENGTH_MAX) refuse(`The address is longer than ${URL_LENGTH_MAX} characters.`)
  const text_fault = urlTextFault(text)
  if (text_fault !== null) refuse(text_fault)
  if (!URL.canParse(text)) refuse('The address is not a URL.')
  const url = new URL(text)
  const scheme = url.protocol.slice(0, -1)
  if (!rules.schemes.some((item) => item === scheme))
    refuse(`The address must begin with ${rules.schemes.join(' or ')}.`)
  if (url.username !== '' || url.password !== '') refuse('The address must not carry a user or a password.')
  if (text.includes('#')) refuse('The address must not have a fragment.')
  const port = portOf(url)
  const is_taken = DATA_PORTS.includes(port) || rules.own_ports.includes(port)
  const is_free = port >= FREE_PORT_MIN && port <= PORT_MAX && !is_taken
  if (port !== 80 && port !== 443 && !is_free) refuse(`Port ${port} is not called.`)
  const host = hostOf(url)
  if (rules.calls_localhost && host === LOCALHOST) return url
  if (isIP(host) === 0) {
    if (LOCAL_NAME.test(host)) throw notPublic(host)
    if (!host.includes('.')) refuse('The host of the address has no domain.')
  } else if (!mayReach(host, rules.private_networks)) throw notPublic(host)
  return url
}

/** Throws a FetchFailure. */
export async function safeFetch(wish: FetchRequest, rules: FetchRules): Promise<Fetched> {
  const url = parseTarget(wish.url, rules)
  const deadline = AbortSignal.timeout(wish.timeout_ms)
  const signal = wish.signal ? AbortSignal.any([deadline, wish.signal]) : deadline
  const late = () => new FetchFailure('timeout', `${url.host} did not answer within ${wish.timeout_ms} ms.`)
  const addresses = await addressesOf(url, rules, signal).catch((error: unknown) => {
    throw signal.aborted ? late() : error
  })
  let failure: FetchFailure | undefined
  for (const address of addresses.slice(0, CONNECTIONS_MAX)) {
    try {
      return await exchange(url, address, wish, signal, rules.trust ?? WELL_KNOWN)
    } catch (error) {
      if (signal.aborted) throw late()
      failure = error instanceof FetchFailure ? error : toFailure(url, error)
      // Only what has not been sent may be sent again.
      if (failure.reason !== 'connection') break
    }
  }
  throw failure ?? notPublic(url.hostname)
}

async function addressesOf(url: URL, rules: FetchRules, signal: AbortSignal): Promise<string[]> {
  const host = hostOf(url)
  const isRefused = (address: string): boolean =>
    !mayReach(address, rules.private_networks) ||
    (rules.own_addresses === 'refused' && isOwn(address, rules.private_networks))
  if (isIP(host) !== 0) {
    if (isRefused(host)) throw notPublic(host)
    return [host]
  }
  const addresses = await (rules.calls_localhost && host === LOCALHOST
    ? Promise.resolve(LOCALHOST_ADDRESSES)
    : rules.names.addresses(host, signal)
  ).catch((error: unknown) => {
    throw error instanceof DnsFailure ? new FetchFailure('dns', error.message, { cause: error }) : error
  })
  // One that is not public among those that are is an attempt, or a mistake; either way it is not a server of theirs.
  if (addresses.some(isRefused)) throw notPublic(host)
  return addresses
}

const WELL_KNOWN = readCertificateAuthorities([])

function exchange(
  url: URL,
  address: string,
  wish: FetchRequest,
  signal: AbortSignal,
  trust: CertificateAuthorities,
): Promise<Fetched> {
  const { promise, resolve, reject } = Promise.withResolvers<Fetched>()
  const is_secure = url.protocol === 'https:'
  const host = hostOf(url)
  let interim_answers = 0
  let is_connected = false
  const req: ClientRequest = (is_secure ? requestHttps : requestHttp)({
    host: address,
    port: portOf(url),
    // The certificate must be that of the name, and of the address where there is no name.
    ...(is_secure && isIP(host) === 0 && { servername: host }),
    // Said here, so that nothing in the environment of the process says otherwise.
    ...(is_secure && { secureContext: trust(), rejectUnauthorized: true }),
    method: wish.method ?? 'GET',
    path: `${url.pathname}${url.search}`,
    headers: {
      ...wish.headers,
      host: url.host,
      connection: 'close',
      'accept-encoding': 'identity',
      ...(wish.body !== undefined && { 'content-length': Buffer.byteLength(wish.body) }),
    },
    agent: false,
    maxHeaderSize: HEADER_BYTES_MAX,
    insecureHTTPParser: false,
    signal,
  })
  const fail = (failure: unknown) => {
    reject(failure)
    req.destroy()
  }
  const violation = () => new FetchFailure('protocol', `${url.host} does not answer in HTTP.`)
  req.on('socket', (socket) => {
    socket.once(is_secure ? 'secureConnect' : 'connect', () => {
      is_connected = true
    })
  })
  req.on('information', () => {
    interim_answers++
    if (interim_answers > INTERIM_ANSWERS_MAX) fail(violation())
  })
  req.on('upgrade', (_res, socket) => {
    socket.destroy()
    fail(violation())
  })
  req.on('error', (error) => reject(is_connected && !signal.aborted ? afterConnect(url, error) : error))
  req.on('response', (res) => {
    if (wish.body_bytes_max === 0) {
      // Whatever comes after the head, in the same packet too, does not matter.
      resolve({ status: res.statusCode ?? 0, headers: res.headers, body: Buffer.alloc(0) })
      res.on('error', () => {})
      req.destroy()
      return
    }
    readBounded(res, wish.body_bytes_max, () => tooLarge(wish.body_bytes_max)).then(
      (body) => {
        resolve({ status: res.statusCode ?? 0, headers: res.headers, body })
        req.destroy()
      },
      (error: unknown) => fail(error instanceof FetchFailure ? error : afterConnect(url, error)),
    )
  })
  // As bytes: in front of a text Node writes the head in its encoding too, where headers are Latin-1.
  req.end(wish.body === undefined ? undefined : Buffer.from(wish.body))
  return promise
}

function tooLarge(bytes_max: number): FetchFailure {
  return new FetchFailure('too_large', `The answer has more than ${bytes_max} bytes.`)
}

function afterConnect(url: URL, error: unknown): FetchFailure {
  const { code } = error as NodeJS.ErrnoException
  const what = code?.startsWith('HPE_') ? 'does not answer in HTTP' : 'ended the connection without an answer'
  return new FetchFailure('protocol', `${url.host} ${what}.`, { cause: error })
}

const CONNECTION_CODES = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT', 'EADDRNOTAVAIL', 'ECONNRESET']

/** Before there was a connection, with TLS where it is wanted. */
function toFailure(url: URL, error: unknown): FetchFailure {
  const { code = '', message } = error as NodeJS.ErrnoException
  const is_secure = url.protocol === 'https:'
  // A server that resets in the middle of a handshake is there.
  if (CONNECTION_CODES.includes(code) && !(is_secure && code === 'ECONNRESET')) {
    return new FetchFailure('connection', `No connection to ${url.host} (${code}).`, { cause: error })
  }
  if (is_secure) {
    const why = (code || message).replace(/\s+/g, ' ')
    return new FetchFailure('tls', `No secure connection to ${url.host} (${why}).`, { cause: error })
  }
  return new FetchFailure('connection', `No connection to ${url.host} (${code || message}).`, { cause: error })
}

function notPublic(host: string): FetchFailure {
  return new FetchFailure('address_not_public', `${host} is not a public address.`)
}

function portOf(url: URL): number {
  return url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)
}

/** Without brackets and trailing dot. */
function hostOf(url: URL): string {
  return bareHost(url.hostname).replace(/\.$/, '')
}
