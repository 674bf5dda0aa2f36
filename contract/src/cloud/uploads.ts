// Uploads: prepare (of the thing that is uploaded) -> PUT every file to its presigned address -> complete. A completed
// upload never changes.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { Bytes, ContentLength, Empty, Id, object } from '../records.ts'

export const UPLOAD_FILES_MAX = 10_000
export const UPLOAD_PATH_BYTES_MAX = 1_024

/** A file that is uploaded in parts has this many bytes in each but the last. */
export const PART_BYTES = 100 * 1024 * 1024
/** A build that is smaller is not uploaded in parts. */
export const MULTIPART_BYTES_MIN = 5 * 1024 * 1024
export const PARTS_MAX = 10_000

/** type/subtype, with a parameter or two: what may stand in a header as it is. */
const CONTENT_TYPE_PATTERN = '^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(; ?[A-Za-z0-9-]+=[A-Za-z0-9_.-]+){0,4}$'

export const PrepareFile = object(
  {
    path: Type.String({
      minLength: 1,
      maxLength: UPLOAD_PATH_BYTES_MAX,
      description: 'File name, relative, with / between folders; at most 1,024 bytes of UTF-8 in normal form C.',
    }),
    content_type: Type.Optional(
      Type.String({ pattern: CONTENT_TYPE_PATTERN, maxLength: 128, description: 'MIME type.' }),
    ),
    content_length: ContentLength,
  },
  'A file that is to be uploaded.',
)

export const PresignedRequest = object(
  {
    path: Type.String({ description: 'File name; equals the path given when the upload was prepared.' }),
    url: Type.String({ description: 'PUT the bytes here, with the Content-Type that was prepared, if one was.' }),
    byte_offset: Bytes('Where these bytes begin in the file; 0 for a whole file.'),
    content_length: Bytes('How many bytes are expected, exactly.'),
  },
  'Where to upload a file by HTTP PUT.',
)

export const completeUpload = operation({
  id: 'uploads.completeUpload',
  service: 'api',
  method: 'POST',
  path: '/cloud/uploads/{upload_id}/complete',
  summary:
    'Completes an upload when every file has arrived; parts become one file. Completing it again changes nothing.',
  role: 'developer',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  params: object({ upload_id: Id }),
  response: Empty,
  errors: ['UPLOAD_NOT_FOUND', 'UPLOAD_INCOMPLETE', 'ARCHIVE_INVALID'],
})
