// A certificate authority for ACME (RFC 8555) that issues certificates of one name by the HTTP challenge. Every request must
// be signed, and every nonce is valid once. The proof is fetched from the edge under the requested name.
import assert from 'node:assert/strict'
import { createHash, createPublicKey, randomBytes, verify, type webcrypto } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { Pkcs10CertificateRequest, SubjectAlternativeNameExtension } from '@peculiar/x509'
import type { TestAuthority } from './certificates.ts'

const ALTERNATIVE_NAMES = '2.5.29.17'
export const ACME_HOST = 'acme.example'

type JsonWebKey = webcrypto.JsonWebKey
type Status = 'pending' | 'valid' | 'invalid' | 'ready'
type Order = { host: string; status: Status; token: string; account: string; chain: string | null }

export type AcmeServer = {
  directory_url: string
  /** Hosts that were ordered, in their order. */
  orders: string[]
  accounts: Map<string, JsonWebKey>
  /** How long what is issued lives. */
  lifetime_ms: number
  /** Instead of what it would fetch for the host; undefined: it fetches. */
  fails: Set<string>
  /** Of the challenge of each order. */
  tokens: string[]
}

export async function startAcme(
  t: TestContext,
  options: { authority: TestAuthority; edgePort: () => number },
): Promise<AcmeServer> {
  const { authority, edgePort } = options
  const nonces = new Set<string>()
  const orders: Order[] = []
  const acme: AcmeServer = {
    directory_url: '',
    orders: [],
    accounts: new Map(),
    lifetime_ms: 90 * 24 * 3_600_000,
    fails: new Set(),
    tokens: [],
  }
  const { cert, key } = await authority.issue([ACME_HOST])
  const server = createServer({ cert, key }, (req, res) => {
    answer(req, res).catch((error: unknown) => res.writeHead(500).end(String(error)))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const base = `https://${ACME_HOST}:${(server.address() as AddressInfo).port}`
  acme.directory_url = `${base}/directory`

  const reply = (res: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void => {
    const nonce = randomBytes(12).toString('base64url')
    nonces.add(nonce)
    const is_text = typeof body === 'string'
    res.writeHead(status, {
      'replay-nonce': nonce,
      'content-type': is_text ? 'application/pem-certificate-chain' : 'application/json',
      ...headers,
    })
    res.end(is_text ? body : JSON.stringify(body))
  }

  const orderBody = (order: Order, id: number) => ({
    status: order.status,
    identifiers: [{ type: 'dns', value: order.host }],
    authorizations: [`${base}/authz/${id}`],
    finalize: `${base}/finalize/${id}`,
    ...(order.chain !== null && { certificate: `${base}/certificate/${id}` }),
  })
  const challengeBody = (order: Order, id: number) => ({
    type: 'http-01',
    url: `${base}/challenge/${id}`,
    token: order.token,
    status: order.status === 'ready' ? 'valid' : order.status,
  })

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const path = req.url ?? ''
    if (path === '/directory') {
      return reply(res, 200, {
        newNonce: `${base}/new-nonce`,
        newAccount: `${base}/new-account`,
        newOrder: `${base}/new-order`,
        meta: { caaIdentities: [ACME_HOST] },
      })
    }
    if (path === '/new-nonce') return reply(res, 200, {})
    const { payload, account, thumbprint } = readSigned(await text(req), `${base}${path}`)
    if (path === '/new-account') return reply(res, 201, { status: 'valid' }, { location: account })
    if (path === '/new-order') {
      const [identifier] = payload.identifiers as { type: string; value: string }[]
      assert.ok(identifier)
      const token = randomBytes(24).toString('base64url')
      acme.tokens.push(token)
      const order: Order = { host: identifier.value, status: 'pending', token, account, chain: null }
      acme.orders.push(order.host)
      const id = orders.push(order) - 1
      return reply(res, 201, orderBody(order, id), { location: `${base}/order/${id}` })
    }
    const [, what, number] = path.split('/')
    const id = Number(number)
    const order = orders[id]
    assert.ok(order && order.account === account, 'an order of somebody else')
    if (what === 'challenge') {
      const proof = acme.fails.has(order.host) ? 'failed' : await fetchProof(order)
      order.status = proof === `${order.token}.${thumbprint}` ? 'ready' : 'invalid'
      return reply(res, 200, challengeBody(order, id))
    }
    if (what === 'authz') {
      const status = order.status === 'ready' ? 'valid' : order.status
      return reply(res, 200, {
        status,
        identifier: { type: 'dns', value: order.host },
        challenges: [{ ...challengeBody(order, id), type: 'dns-01' }, challengeBody(order, id)],
      })
    }
    if (what === 'finalize') {
      assert.equal(order.status, 'ready', 'not proven')
      const wish = new Pkcs10CertificateRequest(Buffer.from(String(payload.csr), 'base64url'))
      assert.ok(await wish.verify())
      const extension = wish.getExtension(ALTERNATIVE_NAMES)
      const names =
        extension instanceof SubjectAlternativeNameExtension && extension.names.items.map(({ value }) => value)
      assert.deepEqual(names, [order.host], 'a request for something else')
      order.chain =
        (await authority.sign([order.host], wish.publicKey, { until_ms: acme.lifetime_ms })) + authority.cert
      order.status = 'valid'
    }
    if (what === 'certificate') return reply(res, 200, order.chain ?? '')
    return reply(res, 200, orderBody(order, id))
  }

  /** RFC 8555, 6.2: by the account's own key, for this address, with a nonce that was given out and not used. */
  function readSigned(body: string, url: string) {
    const jws = JSON.parse(body) as { protected: string; payload: string; signature: string }
    const head = JSON.parse(Buffer.from(jws.protected, 'base64url').toString()) as {
      alg: string
      nonce: string
      url: string
      jwk?: JsonWebKey
      kid?: string
    }
    assert.equal(head.url, url)
    assert.ok(nonces.delete(head.nonce), 'a nonce is good once')
    const jwk = head.jwk ?? acme.accounts.get(head.kid ?? '')
    assert.ok(jwk && head.alg === 'ES256')
    const key = createPublicKey({ key: jwk, format: 'jwk' })
    const signature = Buffer.from(jws.signature, 'base64url')
    const signed = Buffer.from(`${jws.protected}.${jws.payload}`)
    assert.ok(verify('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }, signature), 'the signature')
    const { crv, kty, x, y } = jwk
    const thumbprint = createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url')
    const account = `${base}/account/${thumbprint}`
    acme.accounts.set(account, jwk)
    const payload = jws.payload === '' ? {} : JSON.parse(Buffer.from(jws.payload, 'base64url').toString())
    return { payload: payload as Record<string, unknown>, account, thumbprint }
  }

  async function fetchProof({ host, token }: Order): Promise<string> {
    const req = request({
      host: '127.0.0.1',
      port: edgePort(),
      path: `/.well-known/acme-challenge/${token}`,
      headers: { host },
      agent: false,
    })
    req.end()
    const [res] = (await once(req, 'response')) as [IncomingMessage]
    const body = await text(res)
    return res.statusCode === 200 ? body : `status ${res.statusCode}`
  }

  return acme
}
