// Whether a page may send a file straight to a bucket. A browser asks the service first (Fetch standard, 3.2.2), without a
// signature, and sends nothing unless the CORS rules of the bucket allow it.
import { once } from 'node:events'
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { SecureContext } from 'node:tls'

const PREFLIGHT_MS_MAX = 10_000
const METHOD = 'PUT'
const HEADER = 'content-type'

type Preflight = { url: string; origin: string; trust: () => SecureContext }

/** Returns what the response lacks, in words; null: the page may send files. Rejects when there is no response. */
export async function findPreflightFault({ url, origin, trust }: Preflight): Promise<string | null> {
  const is_tls = url.startsWith('https:')
  const request = (is_tls ? requestHttps : requestHttp)(url, {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': METHOD, 'access-control-request-headers': HEADER },
    agent: false,
    signal: AbortSignal.timeout(PREFLIGHT_MS_MAX),
    ...(is_tls && { secureContext: trust() }),
  })
  request.end()
  const [{ statusCode = 0, headers }] = (await once(request, 'response')) as [IncomingMessage]
  request.destroy()
  if (statusCode < 200 || statusCode > 299) return `status ${statusCode}`
  const missing = [
    ['access-control-allow-origin', origin],
    ['access-control-allow-methods', METHOD],
    ['access-control-allow-headers', HEADER],
  ].filter(([name, value]) => !lists(headers[name!], value!))
  return missing.length === 0 ? null : missing.map(([name, value]) => `no ${value} in ${name}`).join(', ')
}

function lists(header: string | string[] | undefined, value: string): boolean {
  const items = String(header ?? '').split(',')
  return items.some((item) => ['*', value.toLowerCase()].includes(item.trim().toLowerCase()))
}
