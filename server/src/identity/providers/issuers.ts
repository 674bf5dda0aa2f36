// Issuers of OpenID Connect: their configuration and their keys, read by discovery and kept for some time. All requests obey
// the platform's rules for outgoing calls. Keys that a provider rotates are read again when a token names an unknown one, at
// most every 30 seconds.
import { SIGN_IN_PROVIDERS_MAX } from '@musterhost/contract'
import {
  createRemoteJWKSet,
  errors,
  customFetch as fetchOfKeys,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
  type RemoteJWKSet,
} from 'jose'
import { LRUCache } from 'lru-cache'
import {
  type AuthorizationServer,
  allowInsecureRequests,
  customFetch,
  discoveryRequest,
  processDiscoveryResponse,
} from 'oauth4webapi'
import type { Context } from '../../context.ts'
import { createDns } from '../../outbound/dns.ts'
import { type FetchRules, safeFetch } from '../../outbound/safe-fetch.ts'
import { webhookRules } from '../../outbound/webhook-rules.ts'
import { signInFailure } from './failures.ts'

/** For one request, from the look-up of the name to the end of the response. */
const REQUEST_MS_MAX = 8_000
const RESPONSE_BYTES_MAX = 512 * 1024
const CONFIGURATION_AGE_MS = 60 * 60_000
/** A failed discovery is not repeated within this time: each one may take the time of a request. */
const FAILURE_AGE_MS = 3_000
const KEYS_AGE_MS = 10 * 60_000
/** Between two reads of the keys because of an unknown one. */
const KEYS_PAUSE_MS = 30_000
/** Tolerance in the times of tokens. */
export const CLOCK_TOLERANCE_S = 60
/** A token that was issued longer ago is not of this sign-in. */
const TOKEN_AGE_S_MAX = 15 * 60
/** Issuers that are kept: those of the providers, and of checks. */
const ISSUERS_MAX = 2 * SIGN_IN_PROVIDERS_MAX
/** Algorithms with a public key. A secret that both sides know proves less, and `none` proves nothing. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']

type Fetch = (
  url: string,
  init: {
    method: 'GET' | 'POST'
    headers?: Headers | Record<string, string>
    body?: URLSearchParams | undefined
    signal?: AbortSignal | undefined
  },
) => Promise<Response>

/** `verify`: returns the claims of a token that the issuer signed for the client. */
export type Issuer = {
  as: AuthorizationServer
  /** Options of each request of the library. */
  options: { [customFetch]: Fetch; [allowInsecureRequests]: boolean }
  keys: RemoteJWKSet
  verify: (token: string, client_id: string, options?: JWTVerifyOptions) => Promise<JWTPayload>
}

export type Issuers = {
  /** Throws SIGN_IN_FAILED, a FetchFailure or an error of the library. */
  open: (issuer: string) => Promise<Issuer>
  /** Forgets what was read. */
  forget: (issuer: string) => void
}

export function createIssuers(ctx: Context): Issuers {
  const fetch = createFetch({
    ...webhookRules(ctx.config),
    names: createDns(ctx.config.dns_servers),
    trust: ctx.trust,
  })
  const kept = new LRUCache<string, { issuer: Promise<Issuer>; until_ms: number }>({ max: ISSUERS_MAX })
  return {
    open(text) {
      const known = kept.get(text)
      if (known !== undefined && known.until_ms > ctx.elapsed()) return known.issuer
      const entry = { issuer: openIssuer(ctx, fetch, text), until_ms: ctx.elapsed() + CONFIGURATION_AGE_MS }
      kept.set(text, entry)
      entry.issuer.catch(() => {
        entry.until_ms = ctx.elapsed() + FAILURE_AGE_MS
      })
      return entry.issuer
    },
    forget: (text) => void kept.delete(text),
  }
}

async function openIssuer(ctx: Context, fetch: Fetch, text: string): Promise<Issuer> {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null) throw signInFailure('provider', 'The issuer is not a URL. An administrator sets it again.')
  // Where http is not allowed, the rules of outgoing calls refuse it.
  const options = { [customFetch]: fetch, [allowInsecureRequests]: url.protocol === 'http:' }
  const as = await processDiscoveryResponse(url, await discoveryRequest(url, { ...options, algorithm: 'oidc' }))
  const jwks_url = as.jwks_uri ?? ''
  if (!URL.canParse(jwks_url) || as.authorization_endpoint === undefined || as.token_endpoint === undefined) {
    throw signInFailure(
      'provider',
      'The configuration of the issuer lacks jwks_uri, authorization_endpoint or token_endpoint. Check the issuer.',
    )
  }
  const keys = createRemoteJWKSet(new URL(jwks_url), {
    [fetchOfKeys]: (address, init) => fetch(address, init),
    timeoutDuration: REQUEST_MS_MAX,
    // The pause is counted below, by the platform's clock.
    cooldownDuration: Number.POSITIVE_INFINITY,
    cacheMaxAge: KEYS_AGE_MS,
  })
  const findKey = withReload(ctx, keys)
  const verify = async (token: string, client_id: string, more: JWTVerifyOptions = {}): Promise<JWTPayload> => {
    const { payload } = await jwtVerify(token, findKey, {
      issuer: as.issuer,
      audience: client_id,
      algorithms: ALGORITHMS,
      clockTolerance: CLOCK_TOLERANCE_S,
      currentDate: new Date(ctx.now()),
      maxTokenAge: TOKEN_AGE_S_MAX,
      ...more,
    })
    return payload
  }
  return { as, options, keys, verify }
}

/** Reads the keys again when a token names an unknown one: once for all requests that wait, and then not for some time. */
function withReload(ctx: Pick<Context, 'elapsed'>, keys: RemoteJWKSet): JWTVerifyGetKey {
  let read_ms = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | null = null
  return async (header, token) => {
    try {
      return await keys(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      if (reading === null && ctx.elapsed() - read_ms < KEYS_PAUSE_MS) throw error
      reading ??= keys.reload().finally(() => {
        read_ms = ctx.elapsed()
        reading = null
      })
      await reading
      return await keys(header, token)
    }
  }
}

/** An address at the provider that a browser may be sent to; null for one that a browser must not open, as of a script. */
export function webUrl(text: string | undefined): URL | null {
  const url = text !== undefined && URL.canParse(text) ? new URL(text) : null
  return url !== null && (url.protocol === 'https:' || url.protocol === 'http:') ? url : null
}

/** The fetch that the libraries call. Redirects are not followed. */
function createFetch(rules: FetchRules): Fetch {
  return async (url, { method, headers, body, signal }) => {
    const fetched = await safeFetch(
      {
        url,
        method,
        headers: Object.fromEntries(headers instanceof Headers ? headers : Object.entries(headers ?? {})),
        timeout_ms: REQUEST_MS_MAX,
        body_bytes_max: RESPONSE_BYTES_MAX,
        ...(body === undefined || body === null ? {} : { body: body.toString() }),
        ...(signal === undefined ? {} : { signal }),
      },
      rules,
    )
    const { status } = fetched
    const names = ['content-type', 'www-authenticate', 'cache-control', 'date'] as const
    const kept = names.flatMap((name): [string, string][] => {
      const value = fetched.headers[name]
      return typeof value === 'string' ? [[name, value]] : []
    })
    const has_body = status >= 200 && status !== 204 && status !== 205 && status !== 304
    return new Response(has_body ? new Uint8Array(fetched.body) : null, {
      status: status < 200 || status > 599 ? 502 : status,
      headers: kept,
    })
  }
}
