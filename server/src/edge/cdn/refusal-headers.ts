// The headers of a refused request for a file of a site, or for a picture.
import { ApiError } from '@musterhost/contract'
import { CHALLENGE } from './basic-auth.ts'
import { METHOD_NOT_ALLOWED_HEADERS } from './preflight.ts'

export function headersOfRefusal(error: unknown): readonly string[] {
  if (!(error instanceof ApiError)) return []
  if (error.code === 'API_UNAUTHORIZED') return CHALLENGE
  if (error.code === 'API_METHOD_NOT_ALLOWED') return METHOD_NOT_ALLOWED_HEADERS
  if (error.code === 'CDN_NOT_ACCEPTABLE') return ['vary', 'Accept-Encoding']
  if (error.code !== 'CDN_RANGE_NOT_SATISFIABLE') return []
  return ['content-range', `bytes */${String(error.metadata.content_length)}`]
}
