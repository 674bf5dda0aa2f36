// Chooses the form of a file that a request gets: the encoding that it accepts, and the range that it requests. A range is
// always one of the uploaded bytes, so that ranges fetched at different times, from edges of different versions, fit. A range
// of an uploaded compressed file has its Content-Encoding. A form that the edge makes is only sent whole.
import { ApiError } from '@musterhost/contract'
import { type ChosenForm, chooseForm, isCompressible } from '@musterhost/contract/site'
import type { ByteRange } from '../../objects/objects.ts'
import { COMPRESSED_BYTES_MIN, MEMORY_FILE_BYTES_MAX } from '../limits.ts'
import type { SiteEntry, SiteFile } from './sites.ts'

export type Representation = ChosenForm<SiteFile>

/** Throws CDN_NOT_ACCEPTABLE when no available form is accepted. */
export function chooseRepresentation(
  entry: SiteEntry,
  accept_encoding: string | undefined,
  wants_part: boolean,
): Representation {
  const chosen = chooseForm(entry, { accept_encoding, wants_part, isPackable: isWorthPacking })
  if (chosen === null) throw new ApiError('CDN_NOT_ACCEPTABLE')
  return chosen
}

function isWorthPacking({ content_type, content_length }: SiteFile): boolean {
  return (
    content_length >= COMPRESSED_BYTES_MIN && content_length <= MEMORY_FILE_BYTES_MAX && isCompressible(content_type)
  )
}

const SINGLE_RANGE = /^bytes=(\d{0,15})-(\d{0,15})$/

/**
 * Returns the single range that a request asks for; null: the whole file. A request for several ranges gets the whole file
 * too, which RFC 9110 (14.2) allows: no browser or engine sends one, and it would turn small requests into large responses.
 * `if_range` must be the exact tag; a date never matches, because responses have none. Throws CDN_RANGE_NOT_SATISFIABLE.
 */
export function rangeOf(
  header: string | undefined,
  if_range: string | undefined,
  { content_length, etag }: Pick<SiteFile, 'content_length' | 'etag'>,
): ByteRange | null {
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

function lastBytes(count: number, content_length: number): ByteRange {
  if (count === 0 || content_length === 0) throw new ApiError('CDN_RANGE_NOT_SATISFIABLE', { content_length })
  return { start: Math.max(0, content_length - count), end: content_length - 1 }
}

/** Whether If-Match, a list of strong tags or a star, contains the tag. Without the header every file is wanted. */
export function isWanted(header: string | undefined, etag: string): boolean {
  if (header === undefined) return true
  return header.split(',').some((item) => ['*', etag].includes(item.trim()))
}

/** Whether If-None-Match, a list of strong or weak tags or a star, contains the tag. */
export function isKnown(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  return header.split(',').some((item) => {
    const tag = item.trim()
    return tag === '*' || tag === etag || tag === `W/${etag}`
  })
}
