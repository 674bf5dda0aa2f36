// Builds: the programs that lobbies run. An archive (tar.gz or zip) or a container image is unpacked and run.
import Type from 'typebox'
import { BuildId, GameId, UploadId } from '../ids.ts'
import { operation } from '../operation.ts'
import { Before, Bytes, DisplayName, described, IsCut, object, PageLimit, Timestamp } from '../records.ts'
import { PartBytes, PrepareFile, PresignedRequest } from './uploads.ts'

/** Characters of the display name of a build. */
export const BUILD_DISPLAY_NAME_LENGTH_MAX = 128
/** Tags of a build. */
export const BUILD_TAGS_MAX = 64

/** The form of an image name: `name:tag`. */
const IMAGE_TAG_PATTERN = '^[a-z0-9]+([._/-][a-z0-9]+)*:[A-Za-z0-9_][A-Za-z0-9_.-]*$'

export const BuildTags = Type.Record(
  Type.String({ pattern: '^[A-Za-z0-9]([A-Za-z0-9_./-]{0,126}[A-Za-z0-9])?$' }),
  Type.String({ maxLength: 512 }),
  {
    additionalProperties: false,
    maxProperties: BUILD_TAGS_MAX,
    description: 'Tags of the build, at most 64. Builds can be listed by tag.',
  },
)

export const BuildSummary = object(
  {
    build_id: BuildId,
    upload_id: UploadId,
    display_name: Type.String({ description: 'Name for people.' }),
    create_ts: Timestamp('When the build was created.'),
    content_length: Bytes('Length of the uploaded file in bytes.'),
    complete: Type.Boolean({
      description: 'Whether the upload is complete. Only a complete build can be used by a version.',
    }),
    tags: Type.Record(Type.String(), Type.String(), { description: 'Tags of the build. Builds can be listed by tag.' }),
  },
  'A build without its files.',
)

const defaults = {
  service: 'api',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  path: '/cloud/games/{game_id}/builds',
  params: object({ game_id: GameId }),
} as const

export const createGameBuild = operation({
  ...defaults,
  id: 'games.builds.createGameBuild',
  method: 'POST',
  summary: 'Creates a build and prepares its upload.',
  role: 'developer',
  body: object({
    display_name: DisplayName(BUILD_DISPLAY_NAME_LENGTH_MAX),
    image_tag: Type.String({
      pattern: IMAGE_TAG_PATTERN,
      maxLength: 255,
      description: 'Unique name of the build in the game, as `name:tag`. Example: `arena:1`.',
    }),
    image_file: PrepareFile,
    multipart_upload: Type.Optional(
      Type.Boolean({
        description:
          'Whether the file is uploaded in parts of `part_bytes` (the last one shorter). Requires a file of at least 5 MiB. Default false.',
      }),
    ),
    part_bytes: Type.Optional(PartBytes),
    kind: Type.Optional(
      Type.Enum(['archive', 'docker_image', 'oci_bundle'], {
        description:
          'What the file is. `archive`: a tar, tar.gz or zip of files. `docker_image`: the output of `docker save`. `oci_bundle`: an OCI image layout as a tar. Default `archive`.',
      }),
    ),
    compression: Type.Optional(
      Type.Enum(['none', 'gzip', 'lz4', 'zstd'], {
        description:
          'How the file is compressed. The platform detects it from the bytes. `zstd` is for images only; `lz4` is refused.',
      }),
    ),
    tags: Type.Optional(BuildTags),
  }),
  response: object({
    build_id: BuildId,
    upload_id: UploadId,
    image_presigned_request: Type.Optional(
      described(
        PresignedRequest,
        'Without `multipart_upload`: where to upload the file. Absent when the group already stores its content.',
      ),
    ),
    image_presigned_requests: Type.Optional(
      Type.Array(PresignedRequest, {
        description:
          'With `multipart_upload`: one request for each part, in order. Empty when the group already stores the content.',
      }),
    ),
  }),
  errors: ['GAME_NOT_FOUND', 'NAME_TAKEN', 'UPLOAD_INVALID', 'UPLOAD_TOO_LARGE', 'QUOTA_REACHED'],
})

export const listGameBuilds = operation({
  ...defaults,
  id: 'games.builds.listGameBuilds',
  method: 'GET',
  summary: 'Lists the builds of a game, newest first.',
  role: 'viewer',
  query: object({
    before_build_id: Before('build_id'),
    limit: PageLimit,
    tags: Type.Optional(
      Type.Array(Type.String({ pattern: '^[^=]+=', maxLength: 641 }), {
        maxItems: BUILD_TAGS_MAX,
        description:
          'Lists only builds with all of these tags. Each is `name=value`; repeat the parameter for several tags.',
      }),
    ),
  }),
  response: object({
    builds: Type.Array(BuildSummary, { description: 'The builds, newest first.' }),
    is_cut: IsCut('Continue with `before_build_id`.'),
  }),
  errors: ['GAME_NOT_FOUND'],
})
