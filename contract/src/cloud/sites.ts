// Sites: the files that the CDN serves for the namespaces whose version names them.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { Bytes, DisplayName, Id, IsCut, object, Timestamp } from '../records.ts'
import { PrepareFile, PresignedRequest, UPLOAD_FILES_MAX } from './uploads.ts'

export const SITE_DISPLAY_NAME_LENGTH_MAX = 128

export const SiteSummary = object({
  site_id: Id,
  upload_id: Id,
  display_name: Type.String(),
  create_ts: Timestamp,
  content_length: Bytes('Bytes of all files.'),
  complete: Type.Boolean({ description: 'True when the site has been fully uploaded.' }),
})

const defaults = {
  service: 'api',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  path: '/cloud/games/{game_id}/cdn/sites',
  params: object({ game_id: Id }),
} as const

export const createGameCdnSite = operation({
  ...defaults,
  id: 'games.cdn.createGameCdnSite',
  method: 'POST',
  summary: 'Prepares the upload of a site.',
  role: 'developer',
  body: object({
    display_name: DisplayName(SITE_DISPLAY_NAME_LENGTH_MAX),
    files: Type.Array(PrepareFile, { minItems: 1, maxItems: UPLOAD_FILES_MAX }),
    multipart_upload: Type.Optional(
      Type.Boolean({ description: 'Upload files of more than 100 MiB in parts of that length, the last one shorter.' }),
    ),
  }),
  response: object({
    site_id: Id,
    upload_id: Id,
    presigned_requests: Type.Array(PresignedRequest, {
      description: 'One for each file or part, in the order of the files.',
    }),
  }),
  errors: ['GAME_NOT_FOUND', 'UPLOAD_INVALID', 'UPLOAD_TOO_LARGE', 'QUOTA_REACHED'],
})

export const listGameCdnSites = operation({
  ...defaults,
  id: 'games.cdn.listGameCdnSites',
  method: 'GET',
  summary: 'Lists sites of a game, newest first.',
  role: 'viewer',
  response: object({ sites: Type.Array(SiteSummary), is_cut: IsCut('It has the 1,000 newest.') }),
  errors: ['GAME_NOT_FOUND'],
})
