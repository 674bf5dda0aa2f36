// One certificate by ACME (RFC 8555), proven over HTTP by our own edge. The protocol is acme-client's; its calls are ours,
// so that they have a deadline, a bound and the authorities of the settings, whatever the environment says.
import { X509Certificate } from 'node:crypto'
import { Client, crypto } from 'acme-client'
import type { Config } from '../../config.ts'
import type { Context } from '../../context.ts'
import { parseNetworks } from '../../net/public-address.ts'
import { createNames } from '../../net/resolve.ts'
import { type FetchRules, safeFetch } from '../../net/safe-fetch.ts'
import { ACME_ACCOUNT_KEYS } from '../../tokens/sealed-columns.ts'

type Acme = NonNullable<Config['acme']>
export type Issued = { chain: string; private_key: string; expire_ms: number }

const CALL_MS_MAX = 15_000
const ANSWER_BYTES_MAX = 256 * 1024
/** How often, and how patiently, an order is asked whether it is done. */
const POLLS_MAX = 12
const POLL_MS_MIN = 1_000
const POLL_MS_MAX = 10_000
const CHALLENGE_MS_MAX = 60 * 60_000
/** The token is a part of a path, and the edge answers no other (RFC 8555, 8.3). */
const TOKEN = /^[A-Za-z0-9_-]{1,128}$/

/** Throws whatever the authority, or the way to it, found wrong. */
export async function orderCertificate(ctx: Context, acme: Acme, host: string): Promise<Issued> {
  const client = await createAcmeClient(ctx, acme)
  const [key, csr] = await crypto.createCsr(
    { commonName: host, altNames: [host] },
    await crypto.createPrivateEcdsaKey(),
  )
  const chain = await client.auto({
    csr,
    ...(acme.email !== null && { email: acme.email }),
    termsOfServiceAgreed: true,
    challengePriority: ['http-01'],
    // It would ask the DNS of this machine, and follow what it says.
    skipChallengeVerification: true,
    challengeCreateFn: async (authorization, challenge, key_authorization) => {
      if (challenge.type !== 'http-01') throw new Error('The authority offers no proof over HTTP.')
      if (authorization.identifier.value !== host || !TOKEN.test(challenge.token))
        throw new Error('The authority asks for a proof of something else.')
      const now = ctx.now()
      await ctx.db.deleteFrom('acme_challenges').where('expire_ts', '<', new Date(now)).execute()
      const expire_ts = new Date(now + CHALLENGE_MS_MAX)
      await ctx.db
        .insertInto('acme_challenges')
        .values({ token: challenge.token, host, key_authorization, expire_ts })
        .onConflict((conflict) => conflict.column('token').doUpdateSet({ host, key_authorization, expire_ts }))
        .execute()
    },
    challengeRemoveFn: async (_authorization, challenge) => {
      await ctx.db.deleteFrom('acme_challenges').where('token', '=', challenge.token).execute()
    },
  })
  const own = new X509Certificate(chain)
  if (own.checkHost(host) === undefined) throw new Error('The authority certified something else.')
  return { chain, private_key: key.toString(), expire_ms: own.validToDate.getTime() }
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
    names: createNames(ctx.config.dns_servers),
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
