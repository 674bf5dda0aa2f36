// One certificate by ACME (RFC 8555): of a host, proven over HTTP by the edge, or of a wildcard, proven by DNS. The protocol
// is acme-client's. Its HTTP calls are replaced, so that they have a deadline, a bound and the authorities of the settings,
// whatever the environment says.
import { X509Certificate } from 'node:crypto'
import { Client, crypto } from 'acme-client'
import type { Config } from '../../config/config.ts'
import type { Context } from '../../context.ts'
import { createDns } from '../../outbound/dns.ts'
import { parseNetworks } from '../../outbound/public-address.ts'
import { type FetchRules, safeFetch } from '../../outbound/safe-fetch.ts'
import { ACME_ACCOUNT_KEYS } from '../../tokens/sealed-columns.ts'
import { findCaaFault } from './caa.ts'
import { dnsChallenge } from './dns-challenge.ts'
import { httpChallenge } from './http-challenge.ts'

type Acme = NonNullable<Config['acme']>
export type Issued = { chain: string; private_key: string; expire_ms: number }

/** One request to the certificate authority. */
const CALL_MS_MAX = 15_000
/** Body of a response of the authority. */
const ANSWER_BYTES_MAX = 256 * 1024
/** Requests for the state of one order. */
const POLLS_MAX = 12
const POLL_MS_MIN = 1_000
/** Longest pause between two requests for the state of an order. */
const POLL_MS_MAX = 10_000
const ACCOUNT_EXISTS = 200
/** The token is a part of a path, and the edge serves no other (RFC 8555, 8.3). */
const TOKEN = /^[A-Za-z0-9_-]{1,128}$/

/**
 * `host`: a host, or `*.` and a domain. `signal` cuts short what waits for name servers. Throws whatever the authority, or
 * the way to it, found wrong.
 */
export async function orderCertificate(ctx: Context, acme: Acme, host: string, signal?: AbortSignal): Promise<Issued> {
  const is_wildcard = host.startsWith('*.')
  const domain = is_wildcard ? host.slice(2) : host
  const challenge = is_wildcard ? await dnsChallenge(ctx, acme, host, signal) : httpChallenge(ctx, host)
  const client = await createAcmeClient(ctx, acme)
  const fault = await findCaaFault(createDns(ctx.config.dns_servers), host, await caaIdentities(client), signal)
  if (fault !== null) throw new Error(fault)
  await register(client, acme)
  const [key, csr] = await crypto.createCsr(
    { commonName: host, altNames: [host] },
    await crypto.createPrivateEcdsaKey(),
  )
  const chain = await client.auto({
    csr,
    challengePriority: [challenge.type],
    // It would ask the DNS of this machine, and follow what it says.
    skipChallengeVerification: true,
    challengeCreateFn: async (authorization, { type, token }, key_authorization) => {
      if (type !== challenge.type) throw new Error(`The authority offers no proof by ${challenge.type}.`)
      if (authorization.identifier.value !== domain || !TOKEN.test(token))
        throw new Error('The authority asks for a proof of something else.')
      await challenge.publish(token, key_authorization)
    },
    challengeRemoveFn: (_authorization, { token }) => challenge.remove(token),
  })
  const own = new X509Certificate(chain)
  const covered = is_wildcard ? `any.${domain}` : host
  if (own.checkHost(covered) === undefined) throw new Error('The authority certified something else.')
  return { chain, private_key: key.toString(), expire_ms: own.validToDate.getTime() }
}

/** The domains by which CAA records name the authority (RFC 8555, 7.1.1); none where its directory names none. */
async function caaIdentities(client: Client): Promise<string[]> {
  const { http } = client as unknown as { http: { getMetaField: (name: string) => Promise<unknown> } }
  const named = await http.getMetaField('caaIdentities')
  return Array.isArray(named) ? named.filter((name) => typeof name === 'string') : []
}

/**
 * Makes the account, or finds it. The library's own way would send an update to an account that exists, also when there is
 * nothing to change, which some authorities refuse.
 */
async function register(client: Client, { email }: Acme): Promise<void> {
  const account = { termsOfServiceAgreed: true, ...(email !== null && { contact: [`mailto:${email}`] }) }
  const { api } = client as unknown as { api: { createAccount: (data: object) => Promise<{ status: number }> } }
  const { status } = await api.createAccount(account)
  if (status === ACCOUNT_EXISTS && account.contact !== undefined)
    await client.updateAccount({ contact: account.contact })
}

type AcmeCall = { headers?: Record<string, string>; data?: unknown }

async function createAcmeClient(ctx: Context, acme: Acme): Promise<Client> {
  const client = new Client({
    directoryUrl: acme.directory_url,
    accountKey: await accountKey(ctx, acme),
    backoffAttempts: POLLS_MAX,
    backoffMin: POLL_MS_MIN,
    backoffMax: POLL_MS_MAX,
  })
  const rules: FetchRules = {
    schemes: ['https'],
    names: createDns(ctx.config.dns_servers),
    // Where the authority is, is the operator's own word.
    private_networks: parseNetworks(['0.0.0.0/0', '::/0']),
    own_ports: [],
    trust: ctx.trust,
  }
  const request = async (url: string, method: string, { headers = {}, data }: AcmeCall = {}) => {
    const answer = await safeFetch(
      {
        url,
        method: method.toUpperCase() as 'GET' | 'POST' | 'HEAD',
        headers: { 'user-agent': 'Muster', ...headers, 'content-type': 'application/jose+json' },
        ...(data !== undefined && { body: JSON.stringify(data) }),
        timeout_ms: CALL_MS_MAX,
        body_bytes_max: ANSWER_BYTES_MAX,
      },
      rules,
    )
    const text = answer.body.toString()
    const is_json = /^application\/(?:[a-z-]+\+)?json\b/.test(answer.headers['content-type'] ?? '')
    return { status: answer.status, headers: answer.headers, data: is_json && text !== '' ? JSON.parse(text) : text }
  }
  // Its types do not tell of this member, which every call of the library goes through.
  Object.assign((client as unknown as { http: object }).http, { request })
  return client
}

/** One account for the platform, whichever of its processes comes first. */
async function accountKey(ctx: Context, { directory_url }: Acme): Promise<string> {
  const purpose = ACME_ACCOUNT_KEYS.purposeOf(directory_url)
  const made = String(await crypto.createPrivateEcdsaKey())
  await ctx.db
    .insertInto('acme_accounts')
    .values({ directory_url, private_key: ctx.seals.seal(purpose, made, ctx.now()) })
    .onConflict((conflict) => conflict.column('directory_url').doNothing())
    .execute()
  const { private_key } = await ctx.db
    .selectFrom('acme_accounts')
    .select('private_key')
    .where('directory_url', '=', directory_url)
    .executeTakeFirstOrThrow()
  return ctx.seals.open(purpose, private_key)
}
