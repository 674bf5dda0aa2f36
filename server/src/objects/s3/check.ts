// Whether a bucket can be used: a trial object is written, read and removed. It is asked at a start and by the doctor.
import { createHash, randomBytes } from 'node:crypto'
import { ObjectsAway, S3CertificateError, type S3Client, S3Error } from './client.ts'

/** A service refuses signatures of another time. */
const SKEW_MS_MAX = 5 * 60_000
const TRIAL_BYTES = 32

/** `is_away`: the service does not respond, which may pass. The remedy names a setting or a thing to do. */
export type BucketFault = { sentence: string; remedy: string; is_away: boolean }

/** Null: it can be used. */
export async function findBucketFault(client: S3Client, now: () => number): Promise<BucketFault | null> {
  const key = `checks/${randomBytes(8).toString('hex')}`
  const bytes = randomBytes(TRIAL_BYTES)
  const body = {
    content_length: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    open: () => bytes,
  }
  try {
    await client.send({ method: 'PUT', key, body })
    const { headers } = await client.send({ method: 'HEAD', key })
    await client.send({ method: 'DELETE', key })
    if (headers['content-length'] === String(TRIAL_BYTES)) return null
    return refused(`${client.name} does not return what was stored.`, 'MUSTER_S3_ENDPOINT')
  } catch (error) {
    return faultOf(error, client.name, now())
  }
}

function faultOf(error: unknown, name: string, now_ms: number): BucketFault {
  if (error instanceof ObjectsAway) {
    const { cause } = error
    if (cause instanceof S3CertificateError) return refused(cause.message, cause.setting)
    const why = cause instanceof S3Error ? cause.message : reasonOf(cause)
    const sentence = `The S3 service of ${name} does not respond (${why}).`
    return { sentence, remedy: 'MUSTER_S3_ENDPOINT', is_away: true }
  }
  if (!(error instanceof S3Error)) {
    return refused(`The S3 service of ${name} cannot be used: ${reasonOf(error)}.`, 'MUSTER_S3_ENDPOINT')
  }
  const { code, status, date_ms } = error
  const skew_ms = date_ms === null ? 0 : now_ms - date_ms
  if (code === 'RequestTimeTooSkewed' || (status === 403 && Math.abs(skew_ms) > SKEW_MS_MAX)) {
    const minutes = Math.round(Math.abs(skew_ms) / 60_000)
    const sentence = `The clock of this machine is ${minutes} min ${skew_ms > 0 ? 'ahead of' : 'behind'} the S3 service, which refuses its signatures.`
    return refused(sentence, 'sudo timedatectl set-ntp true')
  }
  const sentences: Record<string, [string, string]> = {
    NoSuchBucket: [`There is no bucket for ${name}.`, 'MUSTER_OBJECTS'],
    InvalidAccessKeyId: [`The S3 service of ${name} does not know the access key.`, 'MUSTER_S3_ACCESS_KEY_ID'],
    SignatureDoesNotMatch: [`The S3 service of ${name} does not accept the secret.`, 'MUSTER_S3_SECRET_ACCESS_KEY'],
    AuthorizationHeaderMalformed: [`${name} is in another region: ${error.message}`, 'MUSTER_S3_REGION'],
    AccessDenied: [`The access key may not write to ${name}.`, 'MUSTER_S3_ACCESS_KEY_ID'],
  }
  const [sentence, remedy] = sentences[code] ?? [`${name} cannot be used. ${error.message}`, 'MUSTER_OBJECTS']
  return refused(sentence, remedy)
}

function refused(sentence: string, remedy: string): BucketFault {
  return { sentence, remedy, is_away: false }
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return code ?? message
}
