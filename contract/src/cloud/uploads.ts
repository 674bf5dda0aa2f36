// Uploads: prepare (with the build, site or picture) -> PUT every file to its presigned URL -> complete. A completed upload
// never changes.
import Type from 'typebox'
import { UploadId } from '../ids.ts'
import { operation } from '../operation.ts'
import { Bytes, ContentLength, Empty, object } from '../records.ts'

/** Files of an upload. */
export const UPLOAD_FILES_MAX = 10_000
/** Bytes of the path of an uploaded file. */
export const UPLOAD_PATH_BYTES_MAX = 1_024

/** Length of every part of a file except the last. */
export const PART_BYTES = 100 * 1024 * 1024
/** Smaller builds are not uploaded in parts. */
export const MULTIPART_BYTES_MIN = 5 * 1024 * 1024
/** Parts of a multipart upload. */
export const PARTS_MAX = 10_000

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
  },
  'A file to upload.',
)

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
  errors: ['UPLOAD_NOT_FOUND', 'UPLOAD_INCOMPLETE', 'ARCHIVE_INVALID'],
})
