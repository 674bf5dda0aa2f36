// Requests of the browser SDK: sends one request, turns every failure into a MusterError, and retries temporary ones.
import { errorOf, isTemporary, MusterError, retryDelay } from './error.ts'

/** Attempts of one call. */
const ATTEMPTS_MAX = 32
/** No new attempt begins after this time. The first may last longer, because find waits for a starting server. */
const RETRYING_MS_MAX = 30_000

export type Site = { matchmaker_url: string; version_id: string | null }
export type SiteOptions = { matchmaker_url?: string; token?: string; version_id?: string | null }

/** The options, completed by what the platform says to its own pages. */
export async function siteOf(options: SiteOptions, signal: AbortSignal | undefined): Promise<Site> {
  const { matchmaker_url, token, version_id } = options
  const body: SiteOptions = matchmaker_url
    ? { matchmaker_url }
    : await send('/.well-known/muster.json', signal === undefined ? {} : { signal })
  const url = body.matchmaker_url
  if (typeof url !== 'string') {
    throw new MusterError('BAD_ANSWER', 'This page was not served by the platform: give createClient a matchmaker_url.')
  }
  const own = token === undefined ? (pageVersion() ?? body.version_id ?? null) : null
  return { matchmaker_url: url.replace(/\/$/, ''), version_id: version_id === undefined ? own : version_id }
}

type TimedPage = { serverTiming?: readonly { name: string; description: string }[] }

/** The page's own response says it: a later deploy changes nothing. */
function pageVersion(): string | undefined {
  const [page] = performance.getEntriesByType('navigation' as never) as TimedPage[]
  return page?.serverTiming?.find(({ name }) => name === 'muster-version')?.description
}

export async function send(url: string, request: RequestInit): Promise<object> {
  let response: Response
  let text: string
  try {
    response = await fetch(url, request)
    text = await response.text()
  } catch (error) {
    if (request.signal?.aborted) throw error
    throw new MusterError('CONNECTION_FAILED', 'The platform cannot be reached.')
  }
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    // Not a response of the platform, perhaps the page of a proxy: errorOf reports it.
  }
  if (response.ok && typeof body === 'object' && body !== null) return body
  throw errorOf(response.status, body, response.headers.get('retry-after'))
}

export async function retrying<T>(attempt: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  const begin_ms = performance.now()
  for (let count = 0; ; count++) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof MusterError) || !isTemporary(error) || count + 1 >= ATTEMPTS_MAX) throw error
      // Up to 50 % longer, so that the players of a failed lobby do not all return at once.
      const delay_ms = retryDelay(error, count) * (1 + Math.random() / 2)
      if (performance.now() - begin_ms + delay_ms > RETRYING_MS_MAX) throw error
      await pause(delay_ms, signal)
    }
  }
}

/** Rejects with the signal's reason when it is aborted. */
export function pause(delay_ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, delay_ms)
    if (signal?.aborted) abort()
    else signal?.addEventListener('abort', abort, { once: true })
  })
}
