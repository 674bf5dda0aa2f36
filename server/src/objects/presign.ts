// Presigned addresses. A client with such an address may PUT one object, of one length and one content type, until it
// expires. The signature covers the method and the literal address, so there is one canonical form: an address that would
// have to be decoded, sorted or completed first is refused. The object's key is random and belongs to one file (upload,
// path, offset), so the address does not contain these.
//
//   <base_url>/objects/<object_key>?content_length=12&content_type=text%2Fhtml&expires=1767225600000&signature=<hex>
import { timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { ApiError } from '@musterhost/contract'
import type { Keys } from '../tokens/keys.ts'
import { isObjectKey } from './objects.ts'

export type PutGrant = {
  object_key: string
  /** In bytes, 0 included. */
  content_length: number
  /** Null: the request may name any type. */
  content_type: string | null
  /** The first moment at which the address is no longer valid, in ms since the epoch. */
  expire_ms: number
}

/** Characters of an address. Every signed one is far shorter, and a longer one is refused unread. */
const ADDRESS_LENGTH_MAX = 1024

const ADDRESS =
  /^\/objects\/(?<object_key>[0-9a-f]{32})\?content_length=(?<content_length>0|[1-9]\d{0,15})(?:&content_type=(?<content_type>[\w.~%-]+))?&expires=(?<expires>[1-9]\d{0,15})&signature=(?<signature>(?:[0-9a-f]{2})+)$/

/** Text that a header can carry, with the length of real types. Spaces at the ends would be removed on the way. */
const CONTENT_TYPE = /^[\x21-\x7e](?:[\x20-\x7e]{0,125}[\x21-\x7e])?$/

/**
 * `base_url` is an origin without a path and without a slash at the end: `http://localhost:8080`. Throws ApiError
 * UPLOAD_INVALID for a content type that no header can carry.
 */
export function presignPut(keys: Keys, grant: PutGrant & { base_url: string }): string {
  if (grant.content_type !== null && !CONTENT_TYPE.test(grant.content_type)) {
    const message = 'A content type is 1 to 127 printable ASCII characters.'
    throw new ApiError('UPLOAD_INVALID', { reason: 'content_type' }, { message })
  }
  const address = addressOf(grant)
  return `${grant.base_url}${address}&signature=${signatureOf(keys, address).toString('hex')}`
}

/**
 * Returns what a PUT may do. `url`: the literal target of the request (`request.raw.url`). `headers`: those of Node. Throws
 * ApiError UPLOAD_FORBIDDEN. Its `metadata.reason` is `method`, `form`, `signature`, `expired`, `content_length`,
 * `content_type` or `transfer_encoding`. It does not need the body.
 */
export function verifyPut(
  keys: Keys,
  request: { method: string; url: string; headers: IncomingHttpHeaders },
  now_ms: number,
): PutGrant {
  const { method, url, headers } = request
  if (method !== 'PUT') throw refused('method', 'The address is for PUT.')
  const { grant, signature } = readAddress(url)
  const expected = signatureOf(keys, addressOf(grant))
  if (signature.length !== expected.length || !timingSafeEqual(signature, expected)) {
    throw refused('signature', 'The signature does not belong to this address.')
  }
  if (now_ms >= grant.expire_ms) throw refused('expired', 'The address has expired.')
  if (headers['transfer-encoding'] !== undefined) {
    throw refused('transfer_encoding', 'The body must be sent with a Content-Length, not in chunks.')
  }
  if (headers['content-length'] !== String(grant.content_length)) {
    throw refused('content_length', `Content-Length must be ${grant.content_length}.`)
  }
  const { content_type } = grant
  if (content_type !== null && headers['content-type']?.toLowerCase() !== content_type.toLowerCase()) {
    throw refused('content_type', `Content-Type must be ${content_type}.`)
  }
  return grant
}

function readAddress(url: string): { grant: PutGrant; signature: Buffer } {
  const { object_key, content_length, content_type, expires, signature } =
    (url.length <= ADDRESS_LENGTH_MAX && ADDRESS.exec(url)?.groups) || {}
  const form = refused('form', 'This is not an address that the platform has signed.')
  if (object_key === undefined || signature === undefined) throw form
  const grant = {
    object_key,
    content_length: Number(content_length),
    content_type: content_type === undefined ? null : decoded(content_type),
    expire_ms: Number(expires),
  }
  // The platform writes each address in one form. Others, with escapes of plain characters or in lower case, or with
  // inexact numbers, are refused.
  if (url !== `${addressOf(grant)}&signature=${signature}`) throw form
  return { grant, signature: Buffer.from(signature, 'hex') }
}

function addressOf(grant: PutGrant): string {
  const { object_key, content_length, content_type, expire_ms } = grant
  if (!isObjectKey(object_key)) throw new Error(`${JSON.stringify(object_key)} is not an object key.`)
  const type = content_type === null ? '' : `&content_type=${encoded(content_type)}`
  return `/objects/${object_key}?content_length=${content_length}${type}&expires=${expire_ms}`
}

function signatureOf(keys: Keys, address: string): Buffer {
  return keys.mac('upload', `PUT ${address}`)
}

/** Encodes everything but letters, digits and `-._~` as %XX, so that no client rewrites the address. */
function encoded(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** Malformed text is returned unchanged. It then fails the comparison with the canonical form. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch (error) {
    if (error instanceof URIError) return text
    throw error
  }
}

function refused(reason: string, message: string): ApiError {
  return new ApiError('UPLOAD_FORBIDDEN', { reason }, { message })
}
