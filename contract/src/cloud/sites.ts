// Sites: the files that the CDN serves for the namespaces whose version names the site.
import Type from 'typebox'
import { GameId, SiteId, UploadId } from '../ids.ts'
import { operation } from '../operation.ts'
import { Before, Bytes, DisplayName, IsCut, object, PageLimit, Timestamp } from '../records.ts'
import { PartBytes, PrepareFile, PresignedRequest, UPLOAD_FILES_MAX } from './uploads.ts'

/** Characters of the display name of a site. */
export const SITE_DISPLAY_NAME_LENGTH_MAX = 128

export const SiteSummary = object(
  {
    site_id: SiteId,
    upload_id: UploadId,
    display_name: Type.String({ description: 'Name for people.' }),
    create_ts: Timestamp('When the site was created.'),
    content_length: Bytes('Length of all files together, in bytes.'),
    complete: Type.Boolean({
      description: 'Whether the upload is complete. Only a complete site can be used by a version.',
    }),
  },
  'A site without its files.',
)

const defaults = {
  service: 'api',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  path: '/cloud/games/{game_id}/cdn/sites',
  params: object({ game_id: GameId }),
} as const

export const createGameCdnSite = operation({
  ...defaults,
  id: 'games.cdn.createGameCdnSite',
  method: 'POST',
  summary: 'Creates a site and prepares its upload.',
  role: 'developer',
  body: object({
    display_name: DisplayName(SITE_DISPLAY_NAME_LENGTH_MAX),
    files: Type.Array(PrepareFile, {
      minItems: 1,
      maxItems: UPLOAD_FILES_MAX,
      description: 'The files of the site, 1 to 10,000.',
    }),
    multipart_upload: Type.Optional(
      Type.Boolean({
        description:
          'Whether files longer than `part_bytes` are uploaded in parts of it (the last one shorter). Default false.',
      }),
    ),
    part_bytes: Type.Optional(PartBytes),
  }),
  response: object({
    site_id: SiteId,
    upload_id: UploadId,
    presigned_requests: Type.Array(PresignedRequest, {
      description: 'One request for each file or part, in the order of the files.',
    }),
  }),
  errors: ['GAME_NOT_FOUND', 'UPLOAD_INVALID', 'UPLOAD_TOO_LARGE', 'QUOTA_REACHED'],
})

export const listGameCdnSites = operation({
  ...defaults,
  id: 'games.cdn.listGameCdnSites',
  method: 'GET',
  summary: 'Lists the sites of a game, newest first.',
  role: 'viewer',
  query: object({ before_site_id: Before('site_id'), limit: PageLimit }),
  response: object({
    sites: Type.Array(SiteSummary, { description: 'The sites, newest first.' }),
    is_cut: IsCut('Continue with `before_site_id`.'),
  }),
  errors: ['GAME_NOT_FOUND'],
})
