// Settings of stored files: the data folder, or a bucket of an S3 service.
import type { Config, S3Place, S3Service } from './config.ts'
import { isUrl, type SettingsReader } from './read.ts'

/** Names of AWS, DNS labels with dots, and plain folders without `.` and `..`. */
const S3_PLACE = /^s3:\/\/(?<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(?<prefix>[\w.-]+(?:\/[\w.-]+)*))?\/?$/
const DOTS = /(?:^|\/)\.{1,2}(?:\/|$)/

/** Null for a text that is not `s3://BUCKET` or `s3://BUCKET/PREFIX`. */
export function readS3Location(text: string): S3Place | null {
  const { bucket, prefix = '' } = S3_PLACE.exec(text)?.groups ?? {}
  return bucket === undefined || DOTS.test(prefix) ? null : { bucket, prefix }
}

export function readObjects(read: SettingsReader): Pick<Config, 's3' | 'objects'> {
  const { mistakes } = read
  const place = read.text('MUSTER_OBJECTS')
  const bucket = place === '' ? null : readS3Location(place)
  if (place !== '' && bucket === null) {
    mistakes.push(
      `MUSTER_OBJECTS must be s3://BUCKET or s3://BUCKET/PREFIX, not ${JSON.stringify(place)}. ` +
        'A bucket has 3 to 63 small letters, digits, dots and hyphens.',
    )
  }
  const s3 = readService(read)
  if (bucket !== null && s3 === null) {
    mistakes.push('MUSTER_OBJECTS needs MUSTER_S3_ACCESS_KEY_ID and MUSTER_S3_SECRET_ACCESS_KEY.')
  }
  const upload_endpoint = readOrigin(read, 'MUSTER_S3_UPLOAD_ENDPOINT')
  return {
    s3,
    objects: bucket === null || s3 === null ? null : { ...bucket, upload_endpoint },
  }
}

/** Null: there are no credentials. A backup may use the service while stored files are in the data folder. */
function readService(read: SettingsReader): S3Service | null {
  const endpoint = readOrigin(read, 'MUSTER_S3_ENDPOINT')
  const region = read.text('MUSTER_S3_REGION')
  const is_own = read.isSet('MUSTER_S3_ACCESS_KEY_ID') || read.isSet('MUSTER_S3_SECRET_ACCESS_KEY')
  const access_key_id = read.textOrNull(is_own ? 'MUSTER_S3_ACCESS_KEY_ID' : 'AWS_ACCESS_KEY_ID')
  const secret_access_key = read.textOrNull(is_own ? 'MUSTER_S3_SECRET_ACCESS_KEY' : 'AWS_SECRET_ACCESS_KEY')
  if (access_key_id === null || secret_access_key === null) {
    if (is_own) read.mistakes.push('MUSTER_S3_ACCESS_KEY_ID and MUSTER_S3_SECRET_ACCESS_KEY: set both, or neither.')
    return null
  }
  return { endpoint: endpoint ?? `https://s3.${region}.amazonaws.com`, region, access_key_id, secret_access_key }
}

/** Null: not set. */
function readOrigin(read: SettingsReader, name: 'MUSTER_S3_ENDPOINT' | 'MUSTER_S3_UPLOAD_ENDPOINT'): string | null {
  const text = read.textOrNull(name)
  if (text === null) return null
  if (isUrl(text, /^https?:\/\//)) {
    const { origin, pathname, search, username } = new URL(text)
    if (pathname === '/' && search === '' && username === '') return origin
  }
  read.mistakes.push(`${name} must be an http(s):// address without a path, such as https://s3.example.com.`)
  return null
}
