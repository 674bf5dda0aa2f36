/// <reference path="./oidc-provider.d.ts" />
// A real provider of OpenID Connect on loopback, with one client, and the browser of a person who signs in there. The person has
// no password: the page of the log-in signs in the account that the test names.
import assert from 'node:assert/strict'
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import Provider from 'oidc-provider'

export const CLIENT_ID = 'muster'
export const CLIENT_SECRET = 'planted-client-secret-of-the-provider'
const STEPS_MAX = 12

export type OidcAccount = { name: string; email: string; email_verified: boolean; groups: string[] }

export type OidcServer = {
  issuer: string
  accounts: Map<string, OidcAccount>
  /** Who signs in next. */
  person: string
  id_token_ttl_s: number
  /** Requests by path. */
  requests: string[]
  /** Logout tokens that the platform refused. */
  faults: string[]
  /** From now on another key signs, and the old one is gone. */
  rotate: () => void
}

type Addresses = { redirect: string; sign_out: string; backchannel: string }

/** `addressesOf`: where the client is registered, which is known only with the platform. */
export async function startOidcServer(t: TestContext, addressesOf: () => Addresses): Promise<OidcServer> {
  let provider: Provider | null = null
  const server = createServer((request, response) => {
    oidc.requests.push(new URL(request.url ?? '/', oidc.issuer).pathname)
    provider ??= createProvider(oidc, addressesOf())
    if (!(request.url ?? '').startsWith('/login/')) return provider.callback()(request, response)
    provider.interactionFinished(request, response, { login: { accountId: oidc.person } }).catch((error: unknown) => {
      response.writeHead(500).end(String(error))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const oidc: OidcServer = {
    issuer: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    accounts: new Map(),
    person: '',
    id_token_ttl_s: 3_600,
    requests: [],
    faults: [],
    rotate: () => {
      provider = createProvider(oidc, addressesOf())
    },
  }
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return oidc
}

function createProvider(oidc: OidcServer, { redirect, sign_out, backchannel }: Addresses): Provider {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const key = { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), alg: 'RS256', use: 'sig' }
  const provider = new Provider(oidc.issuer, {
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: CLIENT_SECRET,
        redirect_uris: [redirect],
        post_logout_redirect_uris: [sign_out],
        backchannel_logout_uri: backchannel,
        backchannel_logout_session_required: true,
      },
    ],
    jwks: { keys: [key] },
    cookies: { keys: ['planted-cookie-key'] },
    scopes: ['openid', 'profile', 'email', 'groups'],
    claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'], groups: ['groups'] },
    features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/login/${uid}` },
    ttl: { IdToken: () => oidc.id_token_ttl_s, AccessToken: 3_600, Grant: 3_600, Interaction: 3_600, Session: 3_600 },
    // The provider refuses to call this machine, which the platform is on.
    fetch: (url: string, { dispatcher: _, ...init }: RequestInit & { dispatcher?: unknown }) => fetch(url, init),
    findAccount: (_context: unknown, accountId: string) => ({
      accountId,
      claims: () => ({ sub: accountId, ...oidc.accounts.get(accountId) }),
    }),
    loadExistingGrant,
  })
  provider.on('backchannel.error', (_context, error) => oidc.faults.push(String(error)))
  return provider
}

type GrantContext = {
  oidc: { provider: Provider; client: { clientId: string }; session: { accountId: string } }
}

/** Every person consents. */
async function loadExistingGrant({ oidc: { provider, client, session } }: GrantContext) {
  const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId })
  grant.addOIDCScope('openid profile email groups')
  await grant.save()
  return grant
}

/** A browser as far as a provider needs one: it keeps cookies and follows redirects, until one leads to the hub. */
export class Browser {
  readonly #cookies = new Map<string, string>()

  /** Returns the address of the hub that the provider leads to. */
  async visit(address: string, hub_url: string): Promise<URL> {
    let url = new URL(address)
    for (let step = 0; step < STEPS_MAX; step++) {
      const response = await this.#fetch(url)
      const location = response.headers.get('location')
      assert.ok(location !== null, `${url.pathname}: ${response.status} ${await response.text()}`)
      url = new URL(location, url)
      if (url.href.startsWith(hub_url)) return url
    }
    throw new Error('The provider redirects without end.')
  }

  /** Confirms the sign-out on the page of the provider. Returns where the provider leads to. */
  async signOut(address: string): Promise<string> {
    const url = new URL(address)
    const page = await (await this.#fetch(url)).text()
    const xsrf = /name="xsrf" value="([^"]+)"/.exec(page)?.[1]
    const action = /action="([^"]+)"/.exec(page)?.[1]
    assert.ok(xsrf !== undefined && action !== undefined, page)
    const body = new URLSearchParams({ xsrf, logout: 'yes' })
    const response = await this.#fetch(new URL(action, url), { method: 'POST', body })
    return response.headers.get('location') ?? ''
  }

  async #fetch(url: URL, init: RequestInit = {}): Promise<Response> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, { ...init, redirect: 'manual', headers: { cookie } })
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';', 1)
      const at = pair.indexOf('=')
      const value = pair.slice(at + 1)
      if (value === '') this.#cookies.delete(pair.slice(0, at))
      else this.#cookies.set(pair.slice(0, at), value)
    }
    return response
  }
}
