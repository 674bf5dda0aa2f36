// Sends the parts of an upload to their presigned URLs, a few at a time, and reports how many bytes of each file have left.
import type { createGameCdnSite, ResponseOf } from '@musterhost/contract'
import { call } from '../../api/call.ts'
import { CallError } from '../../api/call-error.ts'
import { completeUpload, getUpload } from '../../api/operations.gen.ts'
import type { LocalFile } from './local-files.ts'

export type UploadPart = ResponseOf<typeof createGameCdnSite>['presigned_requests'][number]

const PARTS_AT_ONCE_MAX = 3
const BODY_TOO_LARGE = 413
const TRIES_MAX = 4
const WAIT_MS = 1_000
/** A response lists this many parts of an upload. */
const PARTS_LISTED = 1_000
const LISTS_MAX = 25
/** Larger files are sent without a hash: hashing needs the whole file in memory. */
const HASHED_BYTES_MAX = 64 * 1024 * 1024
const CONTENT_TYPE = /^[A-Za-z0-9!#$&^_.+-]+\/[A-Za-z0-9!#$&^_.+-]+$/

export type Transfer = {
  files: readonly LocalFile[]
  signal: AbortSignal
  /** `bytes`: how many bytes of the file have left since the last report. Negative when a part begins anew. */
  onSent: (path: string, bytes: number) => void
}

export type PreparedFile = { path: string; content_length: number; content_type?: string; sha256?: string }

/** What is announced about a file. With the hash, contents that the group stores already are not sent again. */
export async function prepareFile({ path, file }: LocalFile): Promise<PreparedFile> {
  const prepared: PreparedFile = { path, content_length: file.size }
  if (CONTENT_TYPE.test(file.type)) prepared.content_type = file.type
  // Without HTTPS only localhost may hash.
  if (file.size > HASHED_BYTES_MAX || globalThis.crypto.subtle === undefined) return prepared
  const hash = await crypto.subtle.digest('SHA-256', await file.arrayBuffer())
  prepared.sha256 = [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  return prepared
}

/** Sends the parts and completes the upload. Throws a CallError; what has arrived stays, and `resume` sends the rest. */
export async function sendAll(upload_id: string, parts: readonly UploadPart[], transfer: Transfer): Promise<void> {
  const waiting = [...parts]
  const files = new Map(transfer.files.map(({ path, file }) => [path, file]))
  async function sendNext(): Promise<void> {
    for (let part = waiting.shift(); part !== undefined; part = waiting.shift()) {
      const file = files.get(part.path)
      if (file === undefined)
        throw new CallError('FILE_MISSING', `Choose the same files again: ${part.path} is missing.`)
      await sendOne(part, file, transfer)
    }
  }
  await Promise.all(Array.from({ length: PARTS_AT_ONCE_MAX }, sendNext))
  await call(completeUpload, { params: { upload_id } }, transfer.signal)
}

/** Continues an upload with the parts that have not arrived. */
export async function resume(upload_id: string, transfer: Transfer): Promise<void> {
  const missing: UploadPart[] = []
  for (let list = 0; list < LISTS_MAX; list++) {
    const params = { upload_id }
    const upload = await call(getUpload, { params, query: { offset: list * PARTS_LISTED } }, transfer.signal)
    if (upload.complete) return
    for (const part of upload.parts) if (part.is_arrived) transfer.onSent(part.path, part.content_length)
    missing.push(...upload.presigned_requests)
    if ((list + 1) * PARTS_LISTED >= upload.part_count) break
  }
  await sendAll(upload_id, missing, transfer)
}

/** Sends one part, again after a failure that may pass. */
export async function sendOne(
  part: UploadPart,
  file: File,
  transfer: Pick<Transfer, 'signal' | 'onSent'>,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    let sent = 0
    try {
      await put(part, file, transfer.signal, (bytes) => {
        transfer.onSent(part.path, bytes - sent)
        sent = bytes
      })
      transfer.onSent(part.path, part.content_length - sent)
      return
    } catch (error) {
      transfer.onSent(part.path, -sent)
      const is_final = error instanceof CallError && error.status >= 400 && error.status < 500
      if (attempt >= TRIES_MAX || is_final || transfer.signal.aborted) throw error
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS * attempt))
    }
  }
}

/** XMLHttpRequest, because `fetch` does not report how much of a body has been sent. */
function put(part: UploadPart, file: File, signal: AbortSignal, onSent: (bytes: number) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    const abort = (): void => request.abort()
    signal.addEventListener('abort', abort, { once: true })
    request.addEventListener('loadend', () => signal.removeEventListener('abort', abort))
    request.upload.addEventListener('progress', ({ loaded }) => onSent(Math.min(loaded, part.content_length)))
    request.addEventListener('error', () => reject(unreachable(part.url)))
    request.addEventListener('abort', () => reject(new CallError('CANCELLED', 'The upload was paused.')))
    request.addEventListener('load', () => {
      if (request.status >= 200 && request.status < 300) resolve()
      else reject(errorOf(request, part))
    })
    request.open('PUT', part.url)
    // The type of the part is that of the file as it was announced.
    const type = CONTENT_TYPE.test(file.type) ? file.type : ''
    request.send(file.slice(part.byte_offset, part.byte_offset + part.content_length, type))
  })
}

function errorOf({ status, responseText }: XMLHttpRequest, { url, content_length }: UploadPart): CallError {
  try {
    const { code, message, ray_id } = JSON.parse(responseText) as { code: string; message: string; ray_id?: string }
    return new CallError(code, message, { status, ray_id: ray_id ?? null })
  } catch {
    const { host } = new URL(url)
    const sentence = `Something in front of the platform at ${host} returned status ${status}, not Muster.`
    if (status !== BODY_TOO_LARGE) return new CallError('UPLOAD_FAILED', sentence, { status })
    const remedy = 'Its operator must allow longer bodies (nginx: client_max_body_size 0).'
    return new BodyTooLargeError(`${sentence} ${remedy}`, content_length)
  }
}

/** Something in front of the platform accepts only shorter bodies than this one. */
export class BodyTooLargeError extends CallError {
  readonly body_bytes: number

  constructor(message: string, body_bytes: number) {
    super('UPLOAD_FAILED', message, { status: BODY_TOO_LARGE })
    this.body_bytes = body_bytes
  }
}

/** A browser hides why a request to another host failed. A bucket without a rule for this page is the usual cause. */
function unreachable(url: string): CallError {
  const { origin } = new URL(url, location.href)
  if (origin === location.origin) return CallError.unreachable()
  const rule = `the CORS rules of the bucket must allow PUT with content-type from ${location.origin} (docs/objects.md)`
  return new CallError('UPLOAD_FAILED', `The file could not be sent to ${origin}. It may be unreachable, or ${rule}.`)
}
