// Uploads: prepare (with the build, site or picture) -> PUT every file to its presigned URL -> complete. A completed upload
// never changes.
import Type from 'typebox'
import { GameId, UploadId } from '../ids.ts'
import { operation } from '../operation.ts'
import { Bytes, ContentLength, Empty, object, Timestamp } from '../records.ts'

/** Files of an upload. */
export const UPLOAD_FILES_MAX = 10_000
/** Bytes of the path of an uploaded file. */
export const UPLOAD_PATH_BYTES_MAX = 1_024

/** Length of every part of a file except the last, where the request names none. It is also the longest. */
export const PART_BYTES = 100 * 1024 * 1024
/** Smaller builds are not uploaded in parts. S3 accepts no shorter parts either. */
export const MULTIPART_BYTES_MIN = 5 * 1024 * 1024
/** Parts of a multipart upload. */
export const PARTS_MAX = 10_000

/** Parts of an upload in one response. */
export const UPLOAD_PARTS_LISTED_MAX = 1_000

const Sha256 = (description: string) => Type.String({ pattern: '^[0-9a-f]{64}$', description })

/** type/subtype with at most four parameters, safe in a header as it is. */
const CONTENT_TYPE_PATTERN = '^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(; ?[A-Za-z0-9-]+=[A-Za-z0-9_.-]+){0,4}$'

export const PrepareFile = object(
  {
    path: Type.String({
      minLength: 1,
      maxLength: UPLOAD_PATH_BYTES_MAX,
      description:
        'Relative path of the file, with `/` between folders: at most 1,024 bytes of UTF-8, in Unicode normal form C. Example: `assets/logo.png`.',
    }),
    content_type: Type.Optional(
      Type.String({
        pattern: CONTENT_TYPE_PATTERN,
        maxLength: 128,
        description: 'MIME type of the file. Example: `text/html`.',
      }),
    ),
    content_length: ContentLength,
    sha256: Type.Optional(
      Sha256(
        'SHA-256 of the whole file, 64 lower-case hexadecimal digits. If the developer group already stores this content, the file needs no PUT request. Otherwise the arrived bytes must have this hash.',
      ),
    ),
  },
  'A file to upload.',
)

const Content = object(
  {
    sha256: Sha256('SHA-256 of the whole file, 64 lower-case hexadecimal digits.'),
    content_length: ContentLength,
  },
  'The content of a file, whatever its path.',
)

export const PartBytes = Type.Integer({
  minimum: MULTIPART_BYTES_MIN,
  maximum: PART_BYTES,
  description:
    'With `multipart_upload`: length of each part but the last, in bytes, from 5 MiB to 100 MiB. A proxy in front of the platform may refuse longer bodies. Default 100 MiB.',
})

export const PresignedRequest = object(
  {
    path: Type.String({ description: 'Path of the file, as it was prepared.' }),
    url: Type.String({ description: 'URL for the PUT request. Send the Content-Type that was prepared, if any.' }),
    byte_offset: Bytes('Offset of the part in the file; 0 for a whole file.'),
    content_length: Bytes('Exact length of the PUT body in bytes.'),
  },
  'A PUT request that uploads a file or a part of it.',
)

export const completeUpload = operation({
  id: 'uploads.completeUpload',
  service: 'api',
  method: 'POST',
  path: '/cloud/uploads/{upload_id}/complete',
  summary:
    'Completes an upload after all files have been sent, and joins the parts of files. A repeated call changes nothing.',
  role: 'developer',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  params: object({ upload_id: UploadId }),
  response: Empty,
  errors: ['UPLOAD_NOT_FOUND', 'UPLOAD_INCOMPLETE', 'UPLOAD_INVALID', 'ARCHIVE_INVALID'],
})

const defaults = { service: 'api', auth: ['admin', 'user', 'cloud'], role: 'developer', rate_limit: 'cloud' } as const

export const getUpload = operation({
  ...defaults,
  id: 'uploads.getUpload',
  method: 'GET',
  path: '/cloud/uploads/{upload_id}',
  summary:
    'Gets which files and parts of an upload have arrived, with new URLs for the rest. So an interrupted upload can be resumed.',
  params: object({ upload_id: UploadId }),
  query: object({
    offset: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: UPLOAD_FILES_MAX + PARTS_MAX,
        description: 'How many parts to skip. Default 0. For an upload of more than 1,000 parts.',
      }),
    ),
  }),
  response: object({
    upload_id: UploadId,
    kind: Type.Enum(['build', 'site'], { description: 'What the upload is for.' }),
    content_length: Bytes('Length of all files together, in bytes.'),
    create_ts: Timestamp('When the upload was prepared.'),
    complete: Type.Boolean({ description: 'Whether the upload is complete. Then it has no PUT requests.' }),
    part_count: Type.Integer({
      minimum: 0,
      description: 'Parts of the whole upload. A file that is not sent in parts is one part.',
    }),
    parts: Type.Array(
      object({
        path: Type.String({ description: 'Path of the file, as it was prepared.' }),
        byte_offset: Bytes('Offset of the part in the file; 0 for a whole file.'),
        content_length: Bytes('Length of the part in bytes.'),
        is_arrived: Type.Boolean({ description: 'Whether the platform has all bytes of the part.' }),
        sha256: Type.Optional(
          Sha256('SHA-256 of the whole file. Present in a complete upload, where the platform has computed it.'),
        ),
      }),
      { description: 'At most 1,000 parts from `offset` on, by path and offset.' },
    ),
    presigned_requests: Type.Array(PresignedRequest, {
      description:
        'New PUT requests for the listed parts that have not arrived. Earlier URLs stay valid until they expire.',
    }),
  }),
  errors: ['UPLOAD_NOT_FOUND'],
})

export const listStoredContents = operation({
  ...defaults,
  id: 'uploads.listStoredContents',
  method: 'POST',
  path: '/cloud/games/{game_id}/stored-contents',
  summary:
    'Lists which of these contents the developer group of the game already stores. Other groups are never asked.',
  params: object({ game_id: GameId }),
  body: object({
    contents: Type.Array(Content, {
      minItems: 1,
      maxItems: UPLOAD_FILES_MAX,
      description: 'Contents to look up, at most 10,000.',
    }),
  }),
  response: object({
    stored: Type.Array(Content, {
      description:
        'The contents that a complete upload of the group has. A file that names one of them needs no PUT request.',
    }),
  }),
  errors: ['GAME_NOT_FOUND'],
})
