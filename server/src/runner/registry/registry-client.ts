// The HTTP API of image registries (OCI distribution specification): manifests and blobs by digest, nothing else. A token is
// asked for where the registry wants one. Redirects are followed, because registries keep their blobs elsewhere; none of
// them leads from https to http, and none receives the credentials.
import { ApiError } from '@musterhost/contract'
import { readBounded } from '../../flow/read-bounded.ts'
import { INDEX_TYPES, MANIFEST_TYPES } from '../../objects/container-image/manifest.ts'
import type { Credentials } from './registry-auth.ts'

/** Redirects followed to one blob. */
const REDIRECTS_MAX = 5
/** Bytes of a response with a token. */
const TOKEN_BYTES_MAX = 64 * 1024
const HTTP_UNAUTHORIZED = 401
const HTTP_FORBIDDEN = 403
const HTTP_NOT_FOUND = 404

type RegistryTarget = { host: string; origin: string; repository: string; credentials: Credentials | null }

/** The message is a sentence for the developer. */
export function pullRefused(message: string, options?: ErrorOptions): ApiError {
  const refusal = new ApiError('ARCHIVE_INVALID', {}, { message })
  if (options?.cause !== undefined) refusal.cause = options.cause
  return refusal
}

export class RegistryClient {
  readonly #target: RegistryTarget
  readonly #signal: AbortSignal
  #authorization: string | null = null

  constructor(target: RegistryTarget, signal: AbortSignal) {
    this.#target = target
    this.#signal = signal
  }

  /** `bytes_max`: a longer one is refused. */
  async manifest(digest: string, bytes_max: number): Promise<{ media_type: string; bytes: Buffer }> {
    const response = await this.#get('manifests', digest)
    const media_type = (response.headers.get('content-type') ?? '').split(';')[0]!.trim()
    return { media_type, bytes: await bytesOf(response, bytes_max) }
  }

  /** The caller counts the bytes and compares their digest. */
  async *blob(digest: string): AsyncGenerator<Uint8Array> {
    const response = await this.#get('blobs', digest)
    if (response.body !== null) yield* response.body as AsyncIterable<Uint8Array>
  }

  async #get(kind: 'manifests' | 'blobs', digest: string): Promise<Response> {
    const { origin, repository, host } = this.#target
    const url = new URL(`${origin}/v2/${repository}/${kind}/${digest}`)
    let response = await this.#fetch(url)
    if (response.status === HTTP_UNAUTHORIZED) {
      this.#authorization = await this.#authorize(response)
      response = await this.#fetch(url)
    }
    if (response.ok) return response
    await response.body?.cancel()
    if (response.status === HTTP_NOT_FOUND) {
      throw pullRefused(`${host} has no ${repository}@${digest}. Correct the name or the digest, or push the image.`)
    }
    if (response.status === HTTP_UNAUTHORIZED || response.status === HTTP_FORBIDDEN) {
      throw pullRefused(
        `${host} refuses access to ${repository} (status ${response.status}). Its operator adds credentials to MUSTER_REGISTRY_AUTH.`,
      )
    }
    throw pullRefused(`${host} returned status ${response.status} for ${repository}@${digest}. Try again later.`)
  }

  async #fetch(first: URL): Promise<Response> {
    let url = first
    for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
      const is_registry = url.origin === first.origin
      const response = await this.#send(url, {
        Accept: [...MANIFEST_TYPES, ...INDEX_TYPES, 'application/octet-stream'].join(', '),
        ...(is_registry && this.#authorization !== null && { Authorization: this.#authorization }),
      })
      const location = response.headers.get('location')
      if (response.status < 300 || response.status >= 400 || location === null) return response
      await response.body?.cancel()
      url = this.#checked(new URL(location, url))
    }
    throw pullRefused(`${this.#target.host} redirects more than ${REDIRECTS_MAX} times.`)
  }

  /** A Bearer token of the server that the registry names, or Basic credentials. */
  async #authorize(refused: Response): Promise<string | null> {
    const challenge = refused.headers.get('www-authenticate') ?? ''
    await refused.body?.cancel()
    const { credentials, host, repository } = this.#target
    const basic =
      credentials === null
        ? null
        : `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`
    if (!/^bearer /i.test(challenge)) return basic
    const members = new Map([...challenge.matchAll(/\b([a-z]+)="([^"]*)"/g)].map(([, name, value]) => [name, value]))
    const realm = members.get('realm')
    if (realm === undefined || !URL.canParse(realm)) return basic
    const url = this.#checked(new URL(realm))
    url.searchParams.set('service', members.get('service') ?? host)
    url.searchParams.set('scope', members.get('scope') ?? `repository:${repository}:pull`)
    const response = await this.#send(url, basic === null ? {} : { Authorization: basic })
    const text = (await bytesOf(response, TOKEN_BYTES_MAX)).toString()
    if (!response.ok) return null
    try {
      const { token, access_token } = JSON.parse(text) as { token?: unknown; access_token?: unknown }
      const found = typeof token === 'string' ? token : access_token
      return typeof found === 'string' ? `Bearer ${found}` : null
    } catch {
      return null
    }
  }

  #checked(url: URL): URL {
    const is_allowed =
      url.protocol === 'https:' || (url.protocol === 'http:' && this.#target.origin.startsWith('http:'))
    if (!is_allowed) throw pullRefused(`${this.#target.host} refers to ${url.origin}, which is not https.`)
    return url
  }

  async #send(url: URL, headers: Record<string, string>): Promise<Response> {
    try {
      return await fetch(url, { headers, redirect: 'manual', signal: this.#signal })
    } catch (error) {
      throw this.#signal.aborted ? this.#signal.reason : failedToConnect(url, error)
    }
  }
}

function failedToConnect(url: URL, error: unknown): ApiError {
  const { cause } = error as Error
  const reason = cause instanceof Error ? cause.message : String(error)
  return pullRefused(`The registry ${url.host} does not respond: ${reason}.`, { cause: error })
}

function bytesOf(response: Response, bytes_max: number): Promise<Buffer> {
  const body = (response.body ?? []) as AsyncIterable<Uint8Array>
  return readBounded(body, bytes_max, () => pullRefused(`A document of the registry exceeds ${bytes_max} bytes.`))
}
