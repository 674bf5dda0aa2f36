// Signatures of DNS messages by a shared key (TSIG, RFC 8945): of a request, and of the response to it. A message is signed
// with the time, so the two clocks may differ by FUDGE_S.
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { TsigAlgorithm, TsigKey } from '../text/tsig-key.ts'
import { DNS_CLASS, DNS_TYPE, decodeMessage, encodeName, encodeRecord, readName, uint16 } from './dns-message.ts'

const FUDGE_S = 300
const HASHES: Readonly<Record<TsigAlgorithm, string>> = {
  'hmac-sha256': 'sha256',
  'hmac-sha384': 'sha384',
  'hmac-sha512': 'sha512',
}
/** Error codes of the TSIG record, beside those of the header (RFC 8945, 3). */
const ERRORS: Readonly<Record<number, string>> = { 16: 'BADSIG', 17: 'BADKEY', 18: 'BADTIME', 22: 'BADTRUNC' }
const COUNT_OF_ADDITIONALS = 10

/** The name server does not accept the signature, or its own signature cannot be believed. */
export class TsigFailure extends Error {
  /** Whether the name server itself reports the failure. */
  readonly is_refusal: boolean
  constructor(message: string, is_refusal = false) {
    super(message)
    this.name = 'TsigFailure'
    this.is_refusal = is_refusal
  }
}

type Variables = { time_s: number; fudge_s: number; error: number; other: Buffer }

/** The message with the record that signs it, and the signature, which the response is signed over as well. */
export function signMessage(message: Buffer, key: TsigKey, now_ms: number): { signed: Buffer; mac: Buffer } {
  const variables = { time_s: Math.floor(now_ms / 1_000), fudge_s: FUDGE_S, error: 0, other: Buffer.alloc(0) }
  const mac = macOf(key, [message, encodeVariables(key, variables)])
  const data = Buffer.concat([
    encodeName(key.algorithm),
    timeAndFudge(variables),
    uint16(mac.length),
    mac,
    message.subarray(0, 2),
    uint16(0),
    uint16(0),
  ])
  const record = encodeRecord({ name: key.name, type: DNS_TYPE.TSIG, class: DNS_CLASS.ANY, ttl: 0, data })
  return { signed: withAdditionals(Buffer.concat([message, record]), 1), mac }
}

/** Throws a TsigFailure unless the response was signed with the key, now, in response to the request of this signature. */
export function verifyResponse(response: Buffer, key: TsigKey, request_mac: Buffer, now_ms: number): void {
  const { additionals } = decodeMessage(response)
  const record = additionals.at(-1)
  if (record?.type !== DNS_TYPE.TSIG) throw new TsigFailure('The response of the name server is not signed.')
  const { algorithm, mac, original_id, ...variables } = readTsig(record.data)
  // A response with one of these errors has no signature: the name server could make none.
  const error = ERRORS[variables.error]
  if (error === 'BADKEY' || error === 'BADSIG') {
    throw new TsigFailure(`The name server does not accept the key ${key.name} (${error}).`, true)
  }
  if (record.name !== key.name || algorithm !== key.algorithm)
    throw new TsigFailure('The response of the name server is signed with another key.')
  const unsigned = withAdditionals(Buffer.from(response.subarray(0, record.start)), additionals.length - 1)
  original_id.copy(unsigned)
  const expected = macOf(key, [uint16(request_mac.length), request_mac, unsigned, encodeVariables(key, variables)])
  if (mac.length !== expected.length || !timingSafeEqual(mac, expected))
    throw new TsigFailure('The signature of the response of the name server is wrong.')
  if (error !== undefined) {
    const clocks = error === 'BADTIME' ? `: its clock and this one differ by more than ${FUDGE_S} s` : ''
    throw new TsigFailure(`The name server refuses the signature (${error})${clocks}.`, true)
  }
  if (Math.abs(now_ms / 1_000 - variables.time_s) > variables.fudge_s)
    throw new TsigFailure('The response of the name server was signed at another time.')
}

function readTsig(data: Buffer): Variables & { algorithm: string; mac: Buffer; original_id: Buffer } {
  const { name: algorithm, end } = readName(data, 0)
  if (end + 10 > data.length) throw new TsigFailure('The signature of the name server is cut off.')
  const mac_start = end + 10
  const mac_end = mac_start + data.readUInt16BE(end + 8)
  if (mac_end + 6 > data.length) throw new TsigFailure('The signature of the name server is cut off.')
  const other_start = mac_end + 6
  return {
    algorithm,
    time_s: data.readUIntBE(end, 6),
    fudge_s: data.readUInt16BE(end + 6),
    mac: data.subarray(mac_start, mac_end),
    original_id: data.subarray(mac_end, mac_end + 2),
    error: data.readUInt16BE(mac_end + 2),
    other: data.subarray(other_start, other_start + data.readUInt16BE(mac_end + 4)),
  }
}

/** What a signature covers beside the message (RFC 8945, 4.3.3). */
function encodeVariables(key: TsigKey, variables: Variables): Buffer {
  return Buffer.concat([
    encodeName(key.name),
    uint16(DNS_CLASS.ANY),
    Buffer.alloc(4),
    encodeName(key.algorithm),
    timeAndFudge(variables),
    uint16(variables.error),
    uint16(variables.other.length),
    variables.other,
  ])
}

function timeAndFudge({ time_s, fudge_s }: Variables): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeUIntBE(time_s, 0, 6)
  bytes.writeUInt16BE(fudge_s, 6)
  return bytes
}

function macOf(key: TsigKey, parts: readonly Buffer[]): Buffer {
  const hmac = createHmac(HASHES[key.algorithm], Buffer.from(key.secret, 'base64'))
  for (const part of parts) hmac.update(part)
  return hmac.digest()
}

/** Changes the message that it is given. */
function withAdditionals(message: Buffer, count: number): Buffer {
  message.writeUInt16BE(count, COUNT_OF_ADDITIONALS)
  return message
}
