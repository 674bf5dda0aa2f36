// One good call of every operation of the contract, and the callers who may try it. An operation that is added to the
// contract fails the tests that go through all of them until it has a row here.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import {
  createCloudToken,
  createGameCdnSite,
  createGameNamespaceTokenDevelopment,
  createGameNamespaceTokenPublic,
  createGroupInvite,
  createParty,
  findLobby,
  type GroupRole,
  kickGroupMember,
  leaveGroup,
  NO_BODY,
  type Operation,
  revokeGameCloudToken,
  setupIdentity,
} from '@muster/contract'
import { sql } from 'kysely'
import type { Platform, TestGame } from '../platform.ts'
import { until } from '../until.ts'
import { type Answer, type Ask, ask, bearer, JSON_TYPE } from './ask.ts'
import { find, LONG_MS, MODES, type Seat, UNKNOWN_ID } from './steps.ts'

export type World = {
  platform: Platform
  game: TestGame
  /** A game of other people's. */
  other: TestGame
  seat: Seat
  other_seat: Seat
  /** Of a site that was prepared and has not arrived. */
  upload_id: string
  /** Ids of tokens that nobody here calls with. */
  spare_cloud_id: string
  spare_public_id: string
  spare_development_id: string
  invite_code: string
  /** The party that the identity leads, and who that is. */
  party_code: string
  identity_id: string
  tokens: Record<CallerName, string | null>
}

export const CALLERS = [
  'none',
  'garbage',
  'forged',
  'expired',
  'revoked',
  'admin',
  'cloud',
  'other_cloud',
  'namespace',
  'other_namespace',
  'lobby',
  'other_lobby',
  'player',
  'development_player',
  'development',
  'identity',
  'other_identity',
  'owner',
  'developer',
  'viewer',
  'stranger',
  'left',
  'kicked',
  'device',
] as const
export type CallerName = (typeof CALLERS)[number]

export type Call = {
  params?: Record<string, string>
  query?: Record<string, string | readonly string[]>
  body?: unknown
}

export async function createWorld(platform: Platform): Promise<World> {
  platform.playServers()
  const { ctx, client } = platform
  const limits = { max_players_per_client: 1_000_000, lobby_count_max: 1_000_000 }
  // Its seats are still good when the last operations have their turn, however slow the machine is.
  const game_modes = { ...MODES, default: { ...MODES.default, player_deadline_ms: LONG_MS } }
  const [game, other] = [
    await platform.game({ matchmaker: { game_modes }, limits }),
    await platform.game({ matchmaker: { game_modes }, limits }),
  ]
  const [seat, other_seat] = [await find(game), await find(other)]
  const params = { game_id: game.game_id }
  const site = await client.call(createGameCdnSite, {
    params,
    body: { display_name: 'Site', files: [{ path: 'index.html', content_length: 1 }] },
  })
  const cloudToken = async (game_id: string) => (await client.call(createCloudToken, { params: { game_id } })).token
  const cloud = await cloudToken(game.game_id)
  const spare = await client.call(createGameNamespaceTokenPublic, {
    params: { ...params, namespace_id: game.namespace_id },
  })
  const developmentToken = () =>
    client.call(createGameNamespaceTokenDevelopment, {
      params: { ...params, namespace_id: game.namespace_id },
      body: { hostname: 'localhost' },
    })
  const [development, spare_development] = [await developmentToken(), await developmentToken()]
  // Before the invite: it ends with the membership of a person who could have seen it.
  const left = await leaverOf(platform, game.group_id)
  const kicked = await kickedOf(platform, game.group_id)
  const invite = await client.call(createGroupInvite, {
    params: { group_id: game.group_id },
    body: { use_count: 256 },
  })
  const revoked = await cloudToken(game.game_id)
  const identity = await identityOf(game)
  const { party } = await platform.as(identity).call(createParty, {})
  const now_ms = ctx.now()
  const idOf = (token: string): string => ctx.keys.verify(token, now_ms).token_id
  await client.call(revokeGameCloudToken, { params: { ...params, token_id: idOf(revoked) } })
  await until('the revocation to be known', () => ctx.revoked.has(idOf(revoked)))
  return {
    platform,
    game,
    other,
    seat,
    other_seat,
    upload_id: site.upload_id,
    spare_cloud_id: idOf(await cloudToken(game.game_id)),
    spare_public_id: idOf(spare.token),
    spare_development_id: idOf(spare_development.token),
    invite_code: invite.code,
    party_code: party.code,
    identity_id: party.leader_identity_id,
    tokens: {
      none: null,
      garbage: 'nonsense',
      forged: `${cloud.slice(0, -6)}AAAAAA`,
      expired: ctx.keys.issue({ kind: 'access', name: 'x' }, { now_ms: now_ms - 120_000, lifetime_ms: 60_000 }),
      revoked,
      admin: platform.token,
      cloud,
      other_cloud: await cloudToken(other.game_id),
      namespace: game.public_token,
      other_namespace: other.public_token,
      lobby: platform.lobbyToken({ lobby_id: seat.lobby.lobby_id, namespace_id: game.namespace_id }),
      other_lobby: platform.lobbyToken({ lobby_id: other_seat.lobby.lobby_id, namespace_id: other.namespace_id }),
      player: seat.player.token,
      development_player: await developmentPlayerOf(platform, development.token),
      development: development.token,
      identity,
      other_identity: await identityOf(other),
      owner: await personOf(platform, game.group_id, 'owner'),
      developer: await personOf(platform, game.group_id, 'developer'),
      viewer: await personOf(platform, game.group_id, 'viewer'),
      stranger: await personOf(platform, other.group_id, 'owner'),
      left,
      kicked,
      device: deviceLinkOf(platform),
    },
  }
}

/** The player that a find with a development token returns. */
async function developmentPlayerOf(platform: Platform, token: string): Promise<string> {
  return (await platform.as(token).call(findLobby, { body: { game_modes: ['default'] } })).player.token
}

export async function identityOf(game: TestGame): Promise<string> {
  return (await game.player.call(setupIdentity, { body: {} })).identity_token
}

/** The user token of a new person, who has logged in and is in the group. */
export async function personOf({ ctx }: Platform, group_id: string, role: GroupRole): Promise<string> {
  const now_ms = ctx.now()
  const [user_id, session_id] = [randomUUID(), randomUUID()]
  const [now, later] = [new Date(now_ms), new Date(now_ms + 86_400_000)]
  await ctx.db
    .insertInto('users')
    .values({ user_id, email: `${user_id}@example.com`, display_name: role })
    .execute()
  await ctx.db
    .insertInto('user_sessions')
    .values({ session_id, user_id, create_ts: now, refresh_ts: now, expire_ts: later })
    .execute()
  await ctx.db.insertInto('group_members').values({ group_id, user_id, role, join_ts: now }).execute()
  return ctx.keys.issue({ kind: 'user', user_id, session_id }, { now_ms, lifetime_ms: 3_600_000 })
}

/** Of a developer who has left the group, with the token that was issued before. */
async function leaverOf(platform: Platform, group_id: string): Promise<string> {
  const token = await personOf(platform, group_id, 'developer')
  await platform.as(token).call(leaveGroup, { params: { group_id } })
  return token
}

/** Of a developer who was kicked, with the token that was issued before. */
async function kickedOf(platform: Platform, group_id: string): Promise<string> {
  const token = await personOf(platform, group_id, 'developer')
  const person = platform.ctx.keys.verify(token, platform.ctx.now())
  assert.ok(person.kind === 'user')
  await platform.client.call(kickGroupMember, { params: { group_id, identity_id: person.user_id } })
  return token
}

function deviceLinkOf({ ctx }: Platform): string {
  const link = { kind: 'device', device_link_id: randomUUID() } as const
  return ctx.keys.issue(link, { now_ms: ctx.now(), lifetime_ms: 3_600_000 })
}

/** A call that is answered 200, or refused for a reason that lies in the thing itself; good for one use. */
export function callOf(world: World, operation: Operation): Call {
  const { game, seat, upload_id, spare_cloud_id, spare_public_id, spare_development_id, invite_code } = world
  const { game_id, version_id, group_id, namespace_id } = game
  const params = { game_id }
  const namespace = { game_id, namespace_id }
  const name = `n${randomUUID().replaceAll('-', '').slice(0, 12)}`
  const file = { path: 'a.txt', content_length: 1 }
  const player = { player_token: seat.player.token }
  const lobby = { game_id, lobby_id: seat.lobby.lobby_id }
  const calls: Record<string, Call> = {
    bootstrap: {},
    'tiers.getRegionTiers': {},
    'groups.create': { body: { display_name: name } },
    'groups.listSuggested': {},
    'groups.getSummary': { params: { group_id } },
    'groups.billing.getUsage': { params: { group_id } },
    'groups.validate': { body: { display_name: name } },
    'groups.updateProfile': { params: { group_id }, body: { display_name: name } },
    'groups.validateProfile': { body: { display_name: name } },
    'groups.getMembers': { params: { group_id } },
    'groups.setMemberRole': { params: { group_id, identity_id: UNKNOWN_ID }, body: { role: 'viewer' } },
    'groups.kickMember': { params: { group_id, identity_id: UNKNOWN_ID } },
    'groups.leave': { params: { group_id } },
    'groups.transferOwnership': { params: { group_id }, body: { new_owner_identity_id: UNKNOWN_ID } },
    'groups.invites.createInvite': { params: { group_id }, body: {} },
    'groups.invites.getInvite': { params: { group_invite_code: invite_code } },
    'groups.invites.consumeInvite': { params: { group_invite_code: invite_code } },
    'auth.identity.email.startVerification': { body: { email: `${name}@example.com` } },
    'auth.identity.email.completeVerification': { body: { verification_id: UNKNOWN_ID, code: 'AAAAAAAA' } },
    'auth.identity.accessToken.completeVerification': { body: { access_token: world.tokens.admin } },
    'auth.tokens.refreshIdentityToken': { body: {} },
    'auth.inspect': {},
    'identities.setup': { body: {} },
    'identities.getSelfProfile': {},
    'identities.updateProfile': { body: { display_name: name } },
    'identities.validateProfile': { body: { display_name: name } },
    'devices.links.prepare': {},
    'devices.links.get': { query: { device_link_token: deviceLinkOf(world.platform) } },
    'devices.links.refuse': { body: { device_link_token: deviceLinkOf(world.platform) } },
    'devices.links.complete': { body: { device_link_token: deviceLinkOf(world.platform), game_id } },
    'games.createGame': { body: { display_name: name, name_id: name, developer_group_id: group_id } },
    'games.validateGame': { body: { display_name: name, name_id: name } },
    'games.getGames': {},
    'games.getGameById': { params },
    'games.tokens.createCloudToken': { params },
    'games.tokens.listCloudTokens': { params },
    'games.tokens.revokeCloudToken': { params: { game_id, token_id: spare_cloud_id } },
    'games.namespaces.listGameNamespaceTokensPublic': { params: namespace },
    'games.namespaces.revokeGameNamespaceTokenPublic': { params: { ...namespace, token_id: spare_public_id } },
    'games.namespaces.createGameNamespaceTokenDevelopment': { params: namespace, body: { hostname: 'localhost' } },
    'games.namespaces.validateGameNamespaceTokenDevelopment': { params: namespace, body: { hostname: 'localhost' } },
    'games.namespaces.listGameNamespaceTokensDevelopment': { params: namespace },
    'games.namespaces.revokeGameNamespaceTokenDevelopment': {
      params: { ...namespace, token_id: spare_development_id },
    },
    'admin.revokeToken': { params: { token_id: UNKNOWN_ID } },
    'games.namespaces.createGameNamespace': { params, body: { display_name: name, name_id: name, version_id } },
    'games.namespaces.validateGameNamespace': { params, body: { display_name: name, name_id: name } },
    'games.namespaces.getGameNamespaceById': { params: namespace },
    'games.namespaces.analytics.getAnalytics': {
      query: {
        ...{ query_start: '2026-01-01T00:00:00Z', query_end: '2026-01-02T00:00:00Z' },
        ...{ game_ids: game_id, namespace_ids: game.namespace_id, variants: ['player_count', 'lobby_count'] },
      },
    },
    'games.namespaces.updateGameNamespaceVersion': { params: namespace, body: { version_id } },
    'games.namespaces.updateGameNamespaceMatchmakerConfig': {
      params: namespace,
      body: { max_players_per_client: 4_294_967_295 },
    },
    'games.namespaces.validateGameNamespaceMatchmakerConfig': { params: namespace, body: { lobby_count_max: 1 } },
    'games.namespaces.createGameNamespaceTokenPublic': { params: namespace },
    'games.namespaces.getGameNamespaceVersionHistoryList': { params: namespace },
    'games.namespaces.setNamespaceCdnAuthType': { params: namespace, body: { auth_type: 'none' } },
    'games.namespaces.updateNamespaceCdnAuthUser': {
      params: namespace,
      body: { user: 'ada', password: `$2b$10$${'a'.repeat(53)}` },
    },
    'games.namespaces.removeNamespaceCdnAuthUser': { params: { ...namespace, user: 'nobody' } },
    'games.namespaces.toggleNamespaceDomainPublicAuth': { params: namespace, body: { enabled: true } },
    'games.namespaces.addNamespaceDomain': { params: namespace, body: { domain: `${name}.example.com` } },
    'games.namespaces.removeNamespaceDomain': { params: { ...namespace, domain: `${name}.example.com` } },
    'games.versions.createGameVersion': { params, body: { display_name: name, config: {} } },
    'games.versions.validateGameVersion': { params, body: { display_name: name, config: {} } },
    'games.versions.reserveVersionName': { params },
    'games.versions.getGameVersionById': { params: { game_id, version_id } },
    'games.builds.createGameBuild': {
      params,
      body: { display_name: name, image_tag: `${name}:1`, image_file: { path: 'a.tar.gz', content_length: 1 } },
    },
    'games.builds.listGameBuilds': { params },
    'games.cdn.createGameCdnSite': { params, body: { display_name: name, files: [file] } },
    'games.cdn.listGameCdnSites': { params },
    'uploads.completeUpload': { params: { upload_id } },
    'games.gameLogoUploadPrepare': { params, body: file },
    'games.gameLogoUploadComplete': { params: { game_id, upload_id } },
    'games.gameBannerUploadPrepare': { params, body: file },
    'games.gameBannerUploadComplete': { params: { game_id, upload_id } },
    'games.renameGame': { params, body: { display_name: name } },
    'games.namespaces.renameGameNamespace': { params: namespace, body: { display_name: name } },
    'games.versions.renameGameVersion': { params: { game_id, version_id }, body: { display_name: name } },
    'games.builds.renameGameBuild': { params: { game_id, build_id: UNKNOWN_ID }, body: { display_name: name } },
    'games.cdn.renameGameCdnSite': { params: { game_id, site_id: UNKNOWN_ID }, body: { display_name: name } },
    'groups.delete': { params: { group_id } },
    'games.deleteGame': { params },
    'games.namespaces.deleteGameNamespace': { params: namespace },
    'games.versions.deleteGameVersion': { params: { game_id, version_id } },
    'games.builds.deleteGameBuild': { params: { game_id, build_id: UNKNOWN_ID } },
    'games.cdn.deleteGameCdnSite': { params: { game_id, site_id: UNKNOWN_ID } },
    'lobbies.find': { body: { game_modes: ['default'] } },
    'lobbies.join': { body: { lobby_id: seat.lobby.lobby_id } },
    'lobbies.create': { body: { game_mode: 'custom' } },
    'lobbies.ready': {},
    'lobbies.setClosed': { body: { is_closed: false } },
    'lobbies.setState': { body: { score: 1 } },
    'lobbies.getState': { params: { lobby_id: seat.lobby.lobby_id } },
    'lobbies.list': {},
    'players.connected': { body: player },
    'players.disconnected': { body: player },
    'players.getStatistics': {},
    'regions.list': {},
    'games.matchmaker.getLobbyLogs': { params: lobby, query: { stream: 'std_out' } },
    'games.matchmaker.exportLobbyLogs': { params: lobby, body: { stream: 'std_err' } },
    'games.matchmaker.exportMatchmakerLobbyHistory': { params, body: { query_start: 0, query_end: 1 } },
    'games.namespaces.logs.listNamespaceLobbies': { params: namespace },
    'games.namespaces.analytics.getAnalyticsMatchmakerLive': { params: namespace },
    'games.namespaces.logs.getNamespaceLobby': { params: { ...lobby, namespace_id } },
    'logs.explainRay': { params: { ray_id: UNKNOWN_ID } },
    'logs.getRayPerfLogs': { params: { ray_id: UNKNOWN_ID } },
    'games.matchmaker.deleteMatchmakerLobby': { params: { game_id, lobby_id: UNKNOWN_ID } },
    'games.matchmaker.listMatchmakerLobbyPlayers': { params: lobby },
    'games.matchmaker.deleteMatchmakerLobbyPlayer': { params: { ...lobby, player_id: UNKNOWN_ID } },
    'games.matchmaker.setMatchmakerVersionDraining': {
      params: { ...namespace, version_id },
      body: { is_draining: false },
    },
    'parties.create': {},
    'parties.getSelf': {},
    'parties.join': { body: { code: world.party_code } },
    'parties.leave': {},
    'parties.setLeader': { body: { identity_id: world.identity_id } },
    'parties.removeMember': { params: { identity_id: UNKNOWN_ID } },
    'identities.events.watch': {},
    'kv.get': { query: { key: 'a/b' } },
    'kv.put': { body: { key: name, value: { score: 1 } } },
    'kv.delete': { query: { key: name } },
    'kv.getBatch': { query: { keys: 'a/b' } },
    'kv.putBatch': { body: { entries: [{ key: name, value: [1] }] } },
    'kv.deleteBatch': { query: { keys: name } },
    'kv.list': { query: { directory: '' } },
  }
  const call = calls[operation.id]
  assert.ok(call, `calls.ts has no row for ${operation.id}`)
  return call
}

/** Those whose token stands for no namespace, and who therefore name it. */
const NAMELESS: readonly CallerName[] = [
  'admin',
  'cloud',
  'other_cloud',
  'owner',
  'developer',
  'viewer',
  'stranger',
  'left',
  'kicked',
]

function naming(call: Call, { body }: Operation, { game: { namespace_id } }: World): Call {
  const part = body === NO_BODY ? 'query' : 'body'
  return { ...call, [part]: { ...(call[part] as object), namespace_id } }
}

/** The same as that caller makes it: a game's backend names the namespace and the client. */
export function callBy(world: World, operation: Operation, caller: CallerName): Call {
  const call = callOf(world, operation)
  if (operation.rate_limit === 'kv') return NAMELESS.includes(caller) ? naming(call, operation, world) : call
  const takes_seat = operation.rate_limit === 'seats'
  if (!takes_seat || (caller !== 'cloud' && caller !== 'other_cloud')) return call
  const words = { namespace_id: world.game.namespace_id, clients: [{ address: '192.0.2.77' }] }
  return { ...call, body: { ...(call.body as object), ...words } }
}

/** Who may make that call. */
export function rightTokenOf({ tokens }: World, { auth }: Operation): string | null {
  const callers = {
    admin: 'admin',
    user: 'owner',
    cloud: 'cloud',
    namespace: 'namespace',
    identity: 'identity',
    lobby: 'lobby',
    development: 'development',
    anyone: 'none',
  } as const
  return tokens[callers[auth[0]!]]
}

export const hasBody = ({ method }: Operation): boolean => method !== 'GET'

export function addressOf({ platform }: World, operation: Operation, call: Call, path = operation.path): string {
  const base = operation.service === 'matchmaker' ? platform.matchmaker_url : platform.api_url
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(call.params?.[name] ?? UNKNOWN_ID))
  const pairs = Object.entries(call.query ?? {}).flatMap(([key, value]) => [value].flat().map((one) => [key, one]))
  const query = new URLSearchParams(pairs).toString()
  return `${base}${filled}${query === '' ? '' : `?${query}`}`
}

/** The call over bare HTTP; what `more` says replaces what the call itself would say. */
export function askFor(
  world: World,
  operation: Operation,
  call: Call,
  token: string | null,
  more: Ask & { path?: string } = {},
): Promise<Answer> {
  const { path, headers, ...rest } = more
  const body = call.body === undefined || !hasBody(operation) ? {} : { body: JSON.stringify(call.body) }
  return ask(addressOf(world, operation, call, path), {
    method: operation.method,
    ...body,
    ...rest,
    headers: {
      ...(token === null ? {} : bearer(token)),
      ...('body' in body || 'body' in rest ? JSON_TYPE : {}),
      ...headers,
    },
  })
}

/**
 * Every row of every table but the lease, which is renewed all the time, rays, which every request may leave, and analytics,
 * which are folded a while after. What was committed is in the tables first.
 */
export async function dump({ ctx }: Platform): Promise<string> {
  await until('the tables to be what the journal says', async () => {
    const { rows } = await sql<{ behind: number }>`
      select count(*)::int as behind from
        (select shard, max(seq) as seq from journal group by shard) as written join shards using (shard)
      where projected_seq < seq`.execute(ctx.db)
    return rows[0]?.behind === 0
  })
  const tables = await sql<{ name: string }>`
    select table_name as name from information_schema.tables
    where table_schema = 'public' and table_name not like 'analytics_%'
      and table_name not in ('journal_readers', 'matchmaker_lease', 'book_time', 'explanations', 'ray_spans') order by 1`.execute(
    ctx.db,
  )
  const parts = tables.rows.map(
    ({ name }) => sql`select ${name} as name, coalesce(json_agg(r order by r), '[]')::text as content
      from (select to_jsonb(t)::text as r from ${sql.table(name)} as t) as rows`,
  )
  const { rows } = await sql`${sql.join(parts, sql` union all `)}`.execute(ctx.db)
  return rows.map((row) => JSON.stringify(row)).join('\n')
}
