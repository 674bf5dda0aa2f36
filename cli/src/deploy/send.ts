// Sends files to presigned addresses: several at once, each from the disk in bounded memory. A broken connection or a temporary
// refusal is repeated from the start of the part. The address of a request is a secret, so no error contains it.
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { visibleText } from '@musterhost/contract/visible-text'
import { EXIT, Failure } from '../failure.ts'
import { sizeText } from '../progress.ts'
import type { FolderFile } from './files.ts'
import { readLocalFile } from './files.ts'

/** Requests at once. */
const SENDS_AT_ONCE_MAX = 4
/** Attempts of one request before the deploy fails. */
const ATTEMPTS_MAX = 6
const PAUSE_MS_FIRST = 250
/** The pause before a part is sent again. */
const PAUSE_MS_MAX = 8_000
/** A connection over which nothing moves is given up after this. */
const SILENCE_MS_MAX = 60_000
/** Wait for the response to a request whose body could not be sent whole. */
const REFUSAL_WAIT_MS_MAX = 1_000
/** Bytes of a response that are read. */
const RESPONSE_BYTES_MAX = 64 * 1024

/** A part of a file, and where it is sent. `content_type`: as it was prepared. */
export type Sending = {
  file: FolderFile
  url: string
  byte_offset: number
  content_length: number
  content_type: string | null
}

export type SendOptions = { signal: AbortSignal; advance: (bytes: number) => void }

/** Throws a Failure for the first part that cannot be sent; the others then end too. */
export async function sendAll(sendings: readonly Sending[], options: SendOptions): Promise<void> {
  const failed = new AbortController()
  const signal = AbortSignal.any([options.signal, failed.signal])
  let next = 0
  const work = Array.from({ length: SENDS_AT_ONCE_MAX }, async () => {
    while (next < sendings.length) {
      signal.throwIfAborted()
      await sendWithRetries(sendings[next++]!, { ...options, signal })
    }
  })
  const ends = await Promise.allSettled(
    work.map((one) =>
      one.catch((error: unknown) => {
        // The first reason stays.
        failed.abort(error)
        throw error
      }),
    ),
  )
  options.signal.throwIfAborted()
  if (failed.signal.aborted) throw failed.signal.reason
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}

async function sendWithRetries(sending: Sending, options: SendOptions): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    let sent_bytes = 0
    const advance = (bytes: number): void => {
      sent_bytes += bytes
      options.advance(bytes)
    }
    try {
      return await send(sending, { signal: options.signal, advance })
    } catch (error) {
      // A bar shows what has arrived.
      if (sent_bytes > 0) options.advance(-sent_bytes)
      options.signal.throwIfAborted()
      if (!(error instanceof TemporaryError)) throw error
      if (attempt === ATTEMPTS_MAX) throw givenUp(sending, error)
      await sleep(Math.min(PAUSE_MS_FIRST * 2 ** (attempt - 1), PAUSE_MS_MAX), undefined, { signal: options.signal })
    }
  }
}

function givenUp({ file, content_length }: Sending, { message, cause }: TemporaryError): Failure {
  const sentence = `${file.path} could not be sent after ${ATTEMPTS_MAX} attempts: ${message}`
  const remedy = 'Deploy again: files that have arrived are not sent again.'
  if (!CUT.includes((cause as NodeJS.ErrnoException | undefined)?.code ?? '')) {
    return new Failure(sentence, { remedy, cause })
  }
  return new BodyTooLongFailure(`${sentence}. ${sizeText(content_length)} were sent.`, content_length, {
    remedy,
    cause,
  })
}

/** Errors of a connection that the other side has cut. A proxy may refuse a long body so, without a response. */
const CUT = ['ECONNRESET', 'EPIPE']

/** Worth another attempt. */
class TemporaryError extends Error {}

async function send(sending: Sending, { signal, advance }: SendOptions): Promise<void> {
  const { file, byte_offset, content_length, content_type } = sending
  const url = new URL(sending.url)
  const request = (url.protocol === 'https:' ? requestHttps : requestHttp)(url, {
    method: 'PUT',
    headers: { 'content-length': content_length, ...(content_type === null ? {} : { 'content-type': content_type }) },
    timeout: SILENCE_MS_MAX,
    signal,
  })
  request.once('timeout', () => request.destroy(new Error(`nothing moved for ${SILENCE_MS_MAX / 1000} s`)))
  const response = new Promise<Refusal>((resolve, reject) => {
    request.once('error', reject)
    request.once('response', (message) => {
      let text = ''
      message.setEncoding('utf8')
      message.on('data', (chunk: string) => {
        if (text.length < RESPONSE_BYTES_MAX) text += chunk
      })
      message.once('error', reject)
      const { 'x-ray-id': ray, server = 'a server' } = message.headers
      const ray_id = typeof ray === 'string' ? ray : undefined
      const responder = `${visibleText(String(server))} at ${url.host}`
      message.once('end', () => resolve({ status: message.statusCode ?? 0, text, ray_id, responder }))
    })
  })
  response.catch(() => {})
  const body = Readable.from(
    counted(readLocalFile(file, { start: byte_offset, length: content_length, signal }), advance),
  )
  try {
    await pipeline(body, request)
  } catch (error) {
    if (error instanceof Failure) throw error
    // The platform may have refused the request before it had all bytes: its response says why.
    const refusal = await Promise.race([response, sleep(REFUSAL_WAIT_MS_MAX, null, { ref: false })]).catch(() => null)
    if (refusal === null) throw new TemporaryError((error as Error).message, { cause: error })
  }
  const refusal = await response.catch((error: Error) => {
    throw new TemporaryError(error.message, { cause: error })
  })
  if (refusal.status < 200 || refusal.status > 299) throw refusalOf(sending, refusal)
}

async function* counted(chunks: AsyncIterable<Buffer>, advance: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    yield chunk
    advance(chunk.length)
  }
}

const TOO_MANY_REQUESTS = 429
const SERVER_ERRORS_MIN = 500

const BODY_TOO_LARGE = 413

/** `responder`: what responded, where it is not the platform: each response of the platform has a ray. */
type Refusal = { status: number; text: string; ray_id: string | undefined; responder: string }

/** Shorter bodies than this one may pass what is in front of the platform. */
export class BodyTooLongFailure extends Failure {
  readonly body_bytes: number

  constructor(sentence: string, body_bytes: number, options: { remedy: string; cause?: unknown }) {
    super(sentence, { exit_code: EXIT.failed, ...options })
    this.body_bytes = body_bytes
  }
}

function refusalOf({ file, content_length }: Sending, { status, text, ray_id, responder }: Refusal): Error {
  const { message, reason } = errorBodyOf(text)
  const why =
    ray_id === undefined ? `status ${status} from ${responder}, not from Muster` : (message ?? `status ${status}`)
  if (ray_id === undefined && status === BODY_TOO_LARGE) {
    return new BodyTooLongFailure(
      `${file.path} was refused: ${why}. ${sizeText(content_length)} were sent.`,
      content_length,
      { remedy: 'Its operator must allow longer bodies (nginx: client_max_body_size 0), or let uploads pass it by.' },
    )
  }
  // A full disk does not empty within seconds.
  const is_full = reason === 'disk_full'
  if (!is_full && (status === TOO_MANY_REQUESTS || status >= SERVER_ERRORS_MIN)) return new TemporaryError(why)
  return new Failure(`${file.path} was refused: ${why}`, {
    exit_code: EXIT.failed,
    ...(is_full
      ? { remedy: 'The disk of the platform is full. Its operator must make room; then deploy again to continue.' }
      : {}),
    ...(ray_id === undefined ? {} : { ray_id }),
  })
}

function errorBodyOf(text: string): { message?: string; reason?: unknown } {
  try {
    const body: unknown = JSON.parse(text)
    if (typeof body !== 'object' || body === null) return {}
    const { message, metadata } = body as { message?: unknown; metadata?: { reason?: unknown } | null }
    return { ...(typeof message === 'string' ? { message } : {}), reason: metadata?.reason }
  } catch {
    // A proxy in between responds with a page.
    return {}
  }
}
