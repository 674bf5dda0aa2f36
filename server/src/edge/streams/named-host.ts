// The host that a browser names when it begins a connection: over HTTP in the Host header, over TLS in the server name of the
// first message (RFC 6066). A raw port in production shares its addresses with the main domain, sites and custom domains. So
// a page can link to http://MAIN_DOMAIN:26005/, and the browser then sends the cookies of that host. The edge recognises
// such a connection by the named host, and refuses it before a byte reaches the lobby.
import { isIP } from 'node:net'
import { bareHost } from '../../text/bare-host.ts'
import { NAMED_HOST_BYTES_MAX } from '../limits.ts'
import { canonicalHost, type HostMeaning, isRawPortHost } from '../routes/hosts.ts'
import type { FirstBytesFilter } from '../splice.ts'

/** Null: these bytes name no host; most games send such bytes. `unknown`: more bytes decide. */
export type NamedHost = { kind: 'host'; host: string } | { kind: 'unknown' } | null

const UNKNOWN: NamedHost = { kind: 'unknown' }
/** How the requests of browsers begin. */
const REQUEST_BEGINNINGS = ['GET', 'HEAD', 'POST', 'OPTIONS', 'PUT', 'DELETE', 'PATCH'].map((method) => `${method} /`)
const REQUEST_LINE = /^[^\n]* HTTP\/1\.[01]\r?\n/
const HOST_LINE = /\nhost:([^\r\n]*)\r?\n/i
const HEAD_END = /\n\r?\n/

/** `bytes`: the first bytes of the client. */
export function namedHost(bytes: Buffer): NamedHost {
  return bytes[0] === HANDSHAKE_RECORD ? serverName(bytes) : requestHost(bytes.toString('latin1'))
}

function requestHost(text: string): NamedHost {
  const is_request = REQUEST_BEGINNINGS.some((item) => text.startsWith(item.slice(0, text.length)))
  if (!is_request) return null
  if (!text.includes('\n')) return UNKNOWN
  if (!REQUEST_LINE.test(text)) return null
  const host = HOST_LINE.exec(text)?.[1]?.trim()
  if (host !== undefined) return { kind: 'host', host }
  return HEAD_END.test(text) ? null : UNKNOWN
}

const HANDSHAKE_RECORD = 0x16
const TLS_MAJOR = 3
const RECORD_HEAD_BYTES = 5
const CLIENT_HELLO = 1
const HELLO_HEAD_BYTES = 4
/** Version and random value of a ClientHello. */
const HELLO_FIXED_BYTES = 34
const SERVER_NAME_EXTENSION = 0
const HOST_NAME = 0
const NO_HOST: NamedHost = { kind: 'host', host: '' }

/** Every browser sends its first message in one record. For any other handshake the name is empty, which is refused. */
function serverName(bytes: Buffer): NamedHost {
  const beginning = [HANDSHAKE_RECORD, TLS_MAJOR, bytes[2], bytes[3], bytes[4], CLIENT_HELLO]
  if (!bytes.subarray(0, beginning.length).every((byte, index) => byte === beginning[index])) return null
  if (bytes.length < RECORD_HEAD_BYTES) return UNKNOWN
  const record_end = RECORD_HEAD_BYTES + bytes.readUInt16BE(3)
  if (bytes.length < record_end) return UNKNOWN
  const record = bytes.subarray(RECORD_HEAD_BYTES, record_end)
  if (record.length < HELLO_HEAD_BYTES) return NO_HOST
  const hello_end = HELLO_HEAD_BYTES + record.readUIntBE(1, 3)
  if (record.length < hello_end) return NO_HOST
  try {
    return nameIn(record.subarray(HELLO_HEAD_BYTES, hello_end))
  } catch (error) {
    // A length points beyond the end of the message.
    if (error instanceof RangeError) return NO_HOST
    throw error
  }
}

/** Throws a RangeError for a malformed message. */
function nameIn(hello: Buffer): NamedHost {
  let at = HELLO_FIXED_BYTES
  at += 1 + hello.readUInt8(at)
  at += 2 + hello.readUInt16BE(at)
  at += 1 + hello.readUInt8(at)
  at += 2
  while (at < hello.length) {
    const type = hello.readUInt16BE(at)
    const length = hello.readUInt16BE(at + 2)
    // The list's length takes two bytes, the kind of name one, and its length two.
    if (type === SERVER_NAME_EXTENSION && hello.readUInt8(at + 6) === HOST_NAME) {
      const name_length = hello.readUInt16BE(at + 7)
      return { kind: 'host', host: hello.toString('latin1', at + 9, at + 9 + name_length) }
    }
    at += 4 + length
  }
  return null
}

/**
 * Keeps a client's first bytes back until they show which host they name. Refuses every host but those of raw ports.
 *
 * After FIRST_BYTES_MS_MAX, bytes that contain no cookie are no longer kept back: a request's incomplete first line, and an
 * incomplete handshake. They are still read, so a host that later bytes name is refused before these bytes pass. A request
 * whose first line is complete is kept back until it names its host.
 */
export function createHostFilter(meaningOf: (host: string) => HostMeaning | null): FirstBytesFilter {
  let read: Buffer = Buffer.alloc(0)
  let passed_length = 0
  let is_late = false
  let is_decided = false
  const pass = (): Buffer => {
    const bytes = passed_length === 0 ? read : read.subarray(passed_length)
    passed_length = read.length
    return bytes
  }
  const passIfHarmless = (): Buffer | 'held' => (hasCookie(read) ? 'held' : pass())
  return {
    take(chunk) {
      read = read.length === 0 ? chunk : Buffer.concat([read, chunk])
      const named = namedHost(read)
      is_decided = named?.kind !== 'unknown'
      if (named === null) return pass()
      if (named.kind === 'host') return isAllowed(named.host, meaningOf) ? pass() : 'refused'
      if (read.length >= NAMED_HOST_BYTES_MAX) return 'refused'
      return is_late ? passIfHarmless() : 'held'
    },
    late() {
      is_late = true
      return passIfHarmless()
    },
    end: () => (hasCookie(read) ? 'refused' : pass()),
    isDecided: () => is_decided,
  }
}

/** Whether undecided bytes may contain a cookie: those of a request may once its first line is complete. */
function hasCookie(bytes: Buffer): boolean {
  return bytes[0] !== HANDSHAKE_RECORD && bytes.includes('\n')
}

/** An address is allowed, because the platform serves no page under one. In development raw ports have their own address. */
function isAllowed(header: string, meaningOf: (host: string) => HostMeaning | null): boolean {
  const host = canonicalHost(header)
  if (host === null) return false
  return isIP(bareHost(host)) !== 0 || isRawPortHost(meaningOf(host))
}
