// Builds: what a lobby runs. An archive (tar.gz or zip) is unpacked and run; images are stored, and no version runs them
// yet.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { Bytes, DisplayName, Id, IsCut, object, Timestamp } from '../records.ts'
import { PrepareFile, PresignedRequest } from './uploads.ts'

export const BUILD_DISPLAY_NAME_LENGTH_MAX = 128
export const BUILD_TAGS_MAX = 64

/** name:tag, as an image is named. */
const IMAGE_TAG_PATTERN = '^[a-z0-9]+([._/-][a-z0-9]+)*:[A-Za-z0-9_][A-Za-z0-9_.-]*$'

export const BuildTags = Type.Record(
  Type.String({ pattern: '^[A-Za-z0-9]([A-Za-z0-9_./-]{0,126}[A-Za-z0-9])?$' }),
  Type.String({ maxLength: 512 }),
  { additionalProperties: false, maxProperties: BUILD_TAGS_MAX, description: 'Tags of the build.' },
)

export const BuildSummary = object({
  build_id: Id,
  upload_id: Id,
  display_name: Type.String(),
  create_ts: Timestamp,
  content_length: Bytes('Bytes.'),
  complete: Type.Boolean({ description: 'True when the build has been fully uploaded.' }),
  tags: Type.Record(Type.String(), Type.String(), { description: 'Tags of the build. Builds can be listed by them.' }),
})

const defaults = {
  service: 'api',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  path: '/cloud/games/{game_id}/builds',
  params: object({ game_id: Id }),
} as const

export const createGameBuild = operation({
  ...defaults,
  id: 'games.builds.createGameBuild',
  method: 'POST',
  summary: 'Prepares the upload of a build.',
  role: 'developer',
  body: object({
    display_name: DisplayName(BUILD_DISPLAY_NAME_LENGTH_MAX),
    image_tag: Type.String({
      pattern: IMAGE_TAG_PATTERN,
      maxLength: 255,
      description: 'name:tag, unique in the game.',
    }),
    image_file: PrepareFile,
    multipart_upload: Type.Optional(
      Type.Boolean({ description: 'Upload the file in parts of 100 MiB, the last one shorter. From 5 MiB on.' }),
    ),
    kind: Type.Optional(
      Type.Enum(['archive', 'docker_image', 'oci_bundle'], {
        description: 'archive unless said. The others are stored; a version that names one is refused so far.',
      }),
    ),
    compression: Type.Optional(
      Type.Enum(['none', 'gzip', 'lz4'], {
        description: 'How it is packed. Of an archive the platform looks at the bytes, and lz4 is not taken.',
      }),
    ),
    tags: Type.Optional(BuildTags),
  }),
  response: object({
    build_id: Id,
    upload_id: Id,
    image_presigned_request: Type.Optional(PresignedRequest),
    image_presigned_requests: Type.Optional(
      Type.Array(PresignedRequest, { description: 'With multipart_upload, one for each part, in order.' }),
    ),
  }),
  errors: ['GAME_NOT_FOUND', 'NAME_TAKEN', 'UPLOAD_INVALID', 'UPLOAD_TOO_LARGE', 'QUOTA_REACHED'],
})

export const listGameBuilds = operation({
  ...defaults,
  id: 'games.builds.listGameBuilds',
  method: 'GET',
  summary: 'Lists builds of a game, newest first.',
  role: 'viewer',
  query: object({
    tags: Type.Optional(
      Type.Array(Type.String({ pattern: '^[^=]+=', maxLength: 641 }), {
        maxItems: BUILD_TAGS_MAX,
        description:
          'Lists only builds with all of these tags, each as `name=value`. Repeat the member for several tags.',
      }),
    ),
  }),
  response: object({ builds: Type.Array(BuildSummary), is_cut: IsCut('It has the 1,000 newest.') }),
  errors: ['GAME_NOT_FOUND'],
})
