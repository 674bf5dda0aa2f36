// Requests of the browser SDK: sends one request, turns every failure into a MusterError, and retries temporary ones.
import { errorOf, isTemporary, MusterError, retryDelay } from './error.js'

/** Attempts of one call. */
const ATTEMPTS_MAX = 32
/** No new attempt begins after this time. The first may last longer, because find waits for a starting server. */
const RETRYING_MS_MAX = 30_000

export async function matchmakerAddress(signal                         )                  {
  const body = await send('/.well-known/muster.json', signal === undefined ? {} : { signal })
  const { matchmaker_url } = body                                
  if (typeof matchmaker_url === 'string') return matchmaker_url
  throw new MusterError('BAD_ANSWER', 'This page was not served by the platform: give createClient a matchmaker_url.')
}

export async function send(url        , request             )                  {
  let response          
  let text        
  try {
    response = await fetch(url, request)
    text = await response.text()
  } catch (error) {
    if (request.signal?.aborted) throw error
    throw new MusterError('CONNECTION_FAILED', 'The platform cannot be reached.')
  }
  let body         
  try {
    body = JSON.parse(text)
  } catch {
    // Not a response of the platform, perhaps the page of a proxy: errorOf reports it.
  }
  if (response.ok && typeof body === 'object' && body !== null) return body
  throw errorOf(response.status, body, response.headers.get('retry-after'))
}

export async function retrying   (attempt                  , signal                         )             {
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
export function pause(delay_ms        , signal                         )                {
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
