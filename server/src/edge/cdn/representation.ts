// Which form of a file a request gets: the encoding that it accepts, and the part that it asks for. A part is always one
// of what was uploaded, so that parts fetched years apart, from edges of other versions, fit together.
import { ApiError } from '@muster/contract'
import { isCompressible } from '../../objects/content-type.ts'
import type { Encoding } from '../../objects/pack.ts'
import { COMPRESSED_BYTES_MIN, MEMORY_FILE_BYTES_MAX } from '../limits.ts'
import type { SiteEntry, SiteFile } from './sites.ts'

export type Representation = {
  file: SiteFile
  /** To be packed by us; null: its bytes are sent as they are. */
  packed: Encoding | null
  /** Another request might have got another form. */
  varies: boolean
}

/** brotli before gzip before plain. Throws CDN_NOT_ACCEPTABLE when there is none that is accepted. */
export function chooseRepresentation(
  { file, br, gzip }: SiteEntry,
  accept_encoding: string | undefined,
  wants_part: boolean,
): Representation {
  const is_packable =
    file !== null && br === null && gzip === null && file.content_encoding === null && isWorthPacking(file)
  const varies = is_packable || br !== null || gzip !== null
  if (file !== null && (!varies || wants_part || accept_encoding === undefined)) return { file, packed: null, varies }
  // Without the header every encoding is accepted (RFC 9110, 12.5.3).
  const accepted = accept_encoding === undefined ? { br: true, gzip: true } : acceptedEncodings(accept_encoding)
  const ready = accepted.br && br !== null ? br : accepted.gzip ? gzip : null
  if (ready !== null) return { file: ready, packed: null, varies }
  if (file === null) throw new ApiError('CDN_NOT_ACCEPTABLE')
  const packed = !is_packable ? null : accepted.br ? 'br' : accepted.gzip ? 'gzip' : null
  return { file, packed, varies }
}

function isWorthPacking({ content_type, content_length }: SiteFile): boolean {
  return (
    content_length >= COMPRESSED_BYTES_MIN && content_length <= MEMORY_FILE_BYTES_MAX && isCompressible(content_type)
  )
}

const REFUSED = /;\s*q=0(?:\.0{0,3})?\s*$/i

/** RFC 9110, 12.5.3. Weights but zero are not looked at: of what is accepted, the smallest is sent. */
function acceptedEncodings(header: string): Record<Encoding, boolean> {
  const told = new Map<string, boolean>()
  for (const item of header.toLowerCase().split(',')) told.set(item.split(';', 1)[0]!.trim(), !REFUSED.test(item))
  const any = told.get('*') ?? false
  return { br: told.get('br') ?? any, gzip: told.get('gzip') ?? told.get('x-gzip') ?? any }
}

/** Both included. */
export type Range = { start: number; end: number }

const SINGLE_RANGE = /^bytes=(\d{0,15})-(\d{0,15})$/

/**
 * The one range that a request asks for; null: the whole file. Several ranges are answered by the whole file too, which
 * RFC 9110 (14.2) allows: no browser or engine asks for several, and answers to them are how small requests become
 * large ones. `if_range` counts only when it is the very tag; dates never do, for there are none here.
 * Throws CDN_RANGE_NOT_SATISFIABLE.
 */
export function rangeOf(
  header: string | undefined,
  if_range: string | undefined,
  { content_length, etag }: Pick<SiteFile, 'content_length' | 'etag'>,
): Range | null {
  if (header === undefined || (if_range !== undefined && if_range.trim() !== etag)) return null
  const [, first = '', last = ''] = SINGLE_RANGE.exec(header.trim().toLowerCase()) ?? []
  if (first === '' && last === '') return null
  if (first === '') return lastBytes(Number(last), content_length)
  const start = Number(first)
  const end = last === '' ? content_length - 1 : Math.min(Number(last), content_length - 1)
  if (last !== '' && Number(last) < start) return null
  if (start >= content_length) throw new ApiError('CDN_RANGE_NOT_SATISFIABLE', { content_length })
  return { start, end }
}

function lastBytes(count: number, content_length: number): Range {
  if (count === 0 || content_length === 0) throw new ApiError('CDN_RANGE_NOT_SATISFIABLE', { content_length })
  return { start: Math.max(0, content_length - count), end: content_length - 1 }
}

/** If-None-Match: a list of tags, weak or not, or a star. */
export function isKnown(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  return header.split(',').some((item) => {
    const tag = item.trim()
    return tag === '*' || tag === etag || tag === `W/${etag}`
  })
}
