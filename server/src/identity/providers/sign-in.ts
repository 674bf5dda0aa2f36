// A sign-in with a provider, by the authorization code flow with PKCE. `start` makes the secrets of the flow and seals them in a
// cookie, so that nothing is stored for a person who does not come back, and no other browser can complete it. `complete` takes
// the cookie once: the hash of its state is stored until the flow would have expired.
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { ApiError, type BodyOf, type completeProviderSignIn } from '@musterhost/contract'
import {
  authorizationCodeGrantRequest,
  type Client,
  ClientSecretBasic,
  ClientSecretPost,
  calculatePKCECodeChallenge,
  clockSkew,
  clockTolerance,
  None,
  processAuthorizationCodeResponse,
  processUserInfoResponse,
  userInfoRequest,
  validateAuthResponse,
} from 'oauth4webapi'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import type { Context } from '../../context.ts'
import { type Device, openSession, type UserSession } from '../sessions.ts'
import { spendState } from '../spent-sign-ins.ts'
import { userOfAccount } from './accounts.ts'
import { isIncomplete, type PersonClaims, type Rights, rightsOf } from './claims.ts'
import { explainFailure, signInFailure } from './failures.ts'
import { CLOCK_TOLERANCE_S, type Issuer, type Issuers, webUrl } from './issuers.ts'
import { updateMemberships } from './memberships.ts'
import { type Provider, redirectUrl, requireProvider, secretOf } from './rows.ts'

/** From the start to the return: a person may have to find a password and a second factor. */
const FLOW_MS_MAX = 10 * 60_000
const SECRET_BYTES = 32
const PURPOSE = 'sign-in flow'
/** Characters of a subject, as OpenID Connect allows. */
const SUBJECT_LENGTH_MAX = 255
const HOME = '/'
const HOUR_MS = 60 * 60_000

type Flow = {
  provider_id: string
  issuer: string
  state: string
  nonce: string
  verifier: string
  to: string
  expire_ms: number
}
type Returned = BodyOf<typeof completeProviderSignIn>
type Person = { subject: string; sid: string | null; claims: PersonClaims }

/** `cookie`: the sealed flow. Throws SIGN_IN_PROVIDER_NOT_FOUND and SIGN_IN_FAILED. */
export async function start(
  ctx: Context,
  issuers: Issuers,
  { name, to = HOME }: { name: string; to?: string | undefined },
): Promise<{ url: string; cookie: string }> {
  const provider = await requireProvider(ctx.db, name)
  const { as } = await openExplained(issuers, provider)
  const url = webUrl(as.authorization_endpoint)
  if (url === null) throw signInFailure('provider', `${provider.title} has no address to sign in at. Check its issuer.`)
  const { provider_id, issuer, settings } = provider
  const [state, nonce, verifier] = [newSecret(), newSecret(), newSecret()]
  const flow: Flow = { provider_id, issuer, state, nonce, verifier, to, expire_ms: ctx.now() + FLOW_MS_MAX }
  const parameters = {
    response_type: 'code',
    client_id: provider.client_id,
    redirect_uri: redirectUrl(ctx.config, name),
    scope: [...new Set(['openid', ...settings.scopes])].join(' '),
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state,
    nonce,
  }
  for (const [parameter, value] of Object.entries(parameters)) url.searchParams.set(parameter, value)
  return { url: url.href, cookie: ctx.seals.seal(PURPOSE, JSON.stringify(flow), ctx.now()) }
}

/** `cookie`: of `start`. Throws SIGN_IN_PROVIDER_NOT_FOUND and SIGN_IN_FAILED. */
export async function complete(
  ctx: ChangeContext,
  issuers: Issuers,
  { name, cookie, returned, device }: { name: string; cookie: string | undefined; returned: Returned; device: Device },
): Promise<{ session: UserSession; to: string }> {
  const flow = readFlow(ctx, cookie)
  requireState(flow, returned)
  if (!(await spendState(ctx, flow))) {
    throw signInFailure('state', 'This address was used before. It signs in once. Begin again.')
  }
  const provider = await requireProvider(ctx.db, name)
  if (provider.provider_id !== flow.provider_id || provider.issuer !== flow.issuer) {
    throw signInFailure(
      'state',
      'The sign-in began with another provider, or an administrator has changed it. Begin again.',
    )
  }
  const issuer = await openExplained(issuers, provider)
  const person = await exchange(ctx, provider, issuer, flow, returned).catch((error: unknown) => {
    throw explainFailure(error, provider.title)
  })
  const rights = rightsOf(person.claims, provider.settings)
  if (provider.settings.requires_value && !rights.has_value) {
    const claim = provider.settings.groups_claim ?? 'groups'
    const message = `${provider.title} reports no group (${claim}) that may sign in here. Ask an administrator of the platform.`
    throw signInFailure('not_allowed', message)
  }
  return { session: await openFor(ctx, provider, person, rights, device), to: flow.to }
}

async function openExplained(issuers: Issuers, { issuer, title }: Provider): Promise<Issuer> {
  try {
    return await issuers.open(issuer)
  } catch (error) {
    throw explainFailure(error, title)
  }
}

function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url')
}

function readFlow(ctx: Context, cookie: string | undefined): Flow {
  const message =
    'This sign-in did not begin in this browser, or it began more than ten minutes ago, or another one began after it. Begin again.'
  const lost = () => signInFailure('browser', message)
  if (cookie === undefined) throw lost()
  let flow: Flow
  try {
    flow = JSON.parse(ctx.seals.open(PURPOSE, cookie)) as Flow
  } catch {
    throw lost()
  }
  if (flow.expire_ms <= ctx.now()) throw lost()
  return flow
}

function requireState({ state }: Flow, returned: Returned): void {
  const [own, shown] = [Buffer.from(state), Buffer.from(returned.state ?? '')]
  if (own.length === shown.length && timingSafeEqual(own, shown)) return
  throw signInFailure('state', 'The address does not belong to the sign-in that this browser began. Begin again.')
}

/** Exchanges the code, and checks what the provider signed: nonce, issuer, audience, times and signature. */
async function exchange(
  ctx: Context,
  provider: Provider,
  { as, options, verify }: Issuer,
  flow: Flow,
  returned: Returned,
): Promise<Person> {
  const client: Client = {
    client_id: provider.client_id,
    // The libraries read the clock of the process; this is the platform's.
    [clockSkew]: Math.round((ctx.now() - Date.now()) / 1_000),
    [clockTolerance]: CLOCK_TOLERANCE_S,
  }
  const parameters = validateAuthResponse(as, client, new URLSearchParams(returned), flow.state)
  const response = await authorizationCodeGrantRequest(
    as,
    client,
    clientAuthOf(secretOf(ctx, provider), as.token_endpoint_auth_methods_supported),
    parameters,
    redirectUrl(ctx.config, provider.name),
    flow.verifier,
    options,
  )
  const tokens = await processAuthorizationCodeResponse(as, client, response, {
    expectedNonce: flow.nonce,
    requireIdToken: true,
  })
  const signed = await verify(tokens.id_token ?? '', provider.client_id)
  const { sub, sid } = signed
  if (sub === undefined || sub === '' || sub.length > SUBJECT_LENGTH_MAX) {
    throw signInFailure('token', `${provider.title} sent a token without a valid subject. An administrator checks it.`)
  }
  const claims = await withUserInfo(
    provider,
    signed,
    async () => {
      const info = await userInfoRequest(as, client, tokens.access_token, options)
      return processUserInfoResponse(as, client, sub, info)
    },
    as.userinfo_endpoint !== undefined,
  )
  return { subject: sub, sid: typeof sid === 'string' ? sid.slice(0, SUBJECT_LENGTH_MAX) : null, claims }
}

/** PersonClaims of the ID token, with those that the provider reports only to a request. What was signed holds. */
async function withUserInfo(
  { settings }: Provider,
  signed: PersonClaims,
  ask: () => Promise<PersonClaims>,
  has_endpoint: boolean,
): Promise<PersonClaims> {
  if (!has_endpoint || !isIncomplete(signed, settings.groups_claim)) return signed
  return { ...(await ask()), ...signed }
}

/** The method that OpenID Connect has by default, unless the provider names only the other one. */
function clientAuthOf(secret: string | null, methods: readonly string[] = ['client_secret_basic']) {
  if (secret === null) return None()
  const is_post = !methods.includes('client_secret_basic') && methods.includes('client_secret_post')
  return is_post ? ClientSecretPost(secret) : ClientSecretBasic(secret)
}

/** One transaction: the user, the memberships, the session, and their events. */
async function openFor(
  ctx: ChangeContext,
  provider: Provider,
  { subject, sid, claims }: Person,
  { memberships, is_admin }: Rights,
  device: Device,
): Promise<UserSession> {
  const { provider_id, name, settings } = provider
  const { session } = await changes(ctx, {}, async (trx) => {
    // A removal of the provider waits, and then ends this session too.
    await trx
      .selectFrom('sign_in_providers')
      .select('provider_id')
      .where('provider_id', '=', provider_id)
      .forShare()
      .executeTakeFirstOrThrow(() => new ApiError('SIGN_IN_PROVIDER_NOT_FOUND'))
    const { user_id, how } = await userOfAccount(ctx, trx, provider, { subject, claims })
    const also = await updateMemberships(ctx, trx, { user_id, provider }, memberships)
    const session = await openSession(ctx, trx, {
      user_id,
      access_token_id: null,
      device,
      provider: { provider_id, subject, sid, is_admin, lifetime_ms: settings.session_hours * HOUR_MS },
    })
    const { session_id } = session
    const after = {
      provider: name,
      session_id,
      ...(is_admin ? { is_admin } : {}),
      ...(how === 'created' ? { created_user_id: user_id } : {}),
      ...(how === 'linked' ? { linked_user_id: user_id } : {}),
    }
    const actor = { actor_kind: is_admin ? 'admin' : 'user', user_id, token_id: session_id }
    return { before: {}, after, actor, also, session }
  })
  return session
}
