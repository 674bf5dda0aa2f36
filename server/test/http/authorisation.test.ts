import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCloudToken, createGame, type ErrorCode, getGameById, type Operation } from '@muster/contract'
import { OPERATIONS } from '@muster/contract/operations'
import { newBuild, newSite } from '../cloud/steps.ts'
import { startPlatform, type TestGame } from '../platform.ts'
import { type Answer, requireRefusal } from './ask.ts'
import { askFor, CALLERS, type Call, type CallerName, callBy, callOf, createWorld, dump, type World } from './calls.ts'
import { UNKNOWN_ID } from './steps.ts'

/** `in`: let in, and answered 200 unless the thing itself does not allow it. */
type Cell = 'in' | ErrorCode
/** A person who has left a group, or was kicked, is a stranger to it, whatever tokens they still have. */
const FORMER = ['left', 'kicked'] as const
type Former = (typeof FORMER)[number]
type Row = Record<Exclude<CallerName, Former>, Cell>

function cellOf(row: Row, caller: CallerName): Cell {
  return row[(FORMER as readonly string[]).includes(caller) ? 'stranger' : (caller as keyof Row)]
}

const STRANGERS = {
  none: 'API_UNAUTHORIZED',
  garbage: 'TOKEN_INVALID',
  forged: 'TOKEN_INVALID',
  expired: 'TOKEN_EXPIRED',
  revoked: 'TOKEN_REVOKED',
} as const
const NOBODY: Row = {
  ...STRANGERS,
  admin: 'API_FORBIDDEN',
  cloud: 'API_FORBIDDEN',
  other_cloud: 'API_FORBIDDEN',
  namespace: 'API_FORBIDDEN',
  other_namespace: 'API_FORBIDDEN',
  lobby: 'API_FORBIDDEN',
  other_lobby: 'API_FORBIDDEN',
  player: 'API_FORBIDDEN',
  development_player: 'API_FORBIDDEN',
  development: 'API_FORBIDDEN',
  identity: 'API_FORBIDDEN',
  other_identity: 'API_FORBIDDEN',
  owner: 'API_FORBIDDEN',
  developer: 'API_FORBIDDEN',
  viewer: 'API_FORBIDDEN',
  stranger: 'API_FORBIDDEN',
  device: 'API_FORBIDDEN',
}
const ANYONE = Object.fromEntries(CALLERS.map((caller) => [caller, 'in'])) as Row
const OPERATOR: Row = { ...NOBODY, admin: 'in' }
const PEOPLE: Row = { ...OPERATOR, owner: 'in', developer: 'in', viewer: 'in', stranger: 'in' }
const GROUP: Row = { ...PEOPLE, stranger: 'GROUP_NOT_FOUND' }
const GROUP_DEVELOPERS: Row = { ...GROUP, viewer: 'GROUP_INSUFFICIENT_PERMISSIONS' }
const GROUP_OWNER: Row = { ...GROUP_DEVELOPERS, developer: 'GROUP_INSUFFICIENT_PERMISSIONS' }
const GAME: Row = { ...GROUP, cloud: 'in', other_cloud: 'GAME_NOT_FOUND', stranger: 'GAME_NOT_FOUND' }
const GAME_DEVELOPERS: Row = { ...GAME, viewer: 'GROUP_INSUFFICIENT_PERMISSIONS' }
/** On what is the caller's own: a stranger's find finds a lobby, but one of the stranger's own namespace. */
const NAMESPACE: Row = {
  ...NOBODY,
  namespace: 'in',
  other_namespace: 'in',
  development: 'in',
  identity: 'in',
  other_identity: 'in',
}
const IDENTITY: Row = { ...NOBODY, identity: 'in', other_identity: 'in' }
/** A game's backend too. */
const SEAT: Row = { ...NAMESPACE, cloud: 'in', other_cloud: 'NAMESPACE_NOT_FOUND' }
const LOBBY: Row = { ...NOBODY, lobby: 'in', other_lobby: 'in', development: 'in' }
/** Callers with a namespace of their own read and write there. */
const KV_WRITERS: Row = {
  ...GAME_DEVELOPERS,
  other_cloud: 'NAMESPACE_NOT_FOUND',
  stranger: 'NAMESPACE_NOT_FOUND',
  lobby: 'in',
  other_lobby: 'in',
  development: 'in',
}
const KV_READERS: Row = { ...KV_WRITERS, viewer: 'in', identity: 'in', other_identity: 'in' }
const PLAYERS: Row = {
  ...LOBBY,
  other_lobby: 'MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY',
  development: 'PLAYER_TOKEN_INVALID',
}

const TABLE: Record<string, Row> = {
  bootstrap: ANYONE,
  'tiers.getRegionTiers': ANYONE,
  'auth.identity.email.startVerification': ANYONE,
  'auth.identity.email.completeVerification': ANYONE,
  'auth.identity.accessToken.completeVerification': ANYONE,
  'auth.tokens.refreshIdentityToken': ANYONE,
  'auth.inspect': { ...PEOPLE, cloud: 'in', other_cloud: 'in' },
  'identities.setup': NAMESPACE,
  'identities.getSelfProfile': { ...PEOPLE, admin: 'API_FORBIDDEN', identity: 'in', other_identity: 'in' },
  'identities.updateProfile': { ...PEOPLE, admin: 'API_FORBIDDEN', identity: 'in', other_identity: 'in' },
  'identities.validateProfile': { ...PEOPLE, identity: 'in', other_identity: 'in' },
  'devices.links.prepare': ANYONE,
  'devices.links.get': ANYONE,
  'devices.links.refuse': PEOPLE,
  'devices.links.complete': { ...GROUP_DEVELOPERS, stranger: 'GAME_NOT_FOUND' },
  // Access is private here.
  'groups.create': OPERATOR,
  'groups.listSuggested': PEOPLE,
  'groups.billing.getUsage': GROUP,
  'groups.getSummary': GROUP,
  'groups.validate': PEOPLE,
  'groups.updateProfile': GROUP_OWNER,
  'groups.validateProfile': PEOPLE,
  'groups.getMembers': GROUP,
  'groups.setMemberRole': GROUP_OWNER,
  'groups.kickMember': GROUP_OWNER,
  'groups.leave': { ...GROUP, admin: 'API_FORBIDDEN', owner: 'GROUP_OWNER_REQUIRED' },
  'groups.transferOwnership': GROUP_OWNER,
  'groups.invites.createInvite': GROUP_OWNER,
  'groups.invites.getInvite': PEOPLE,
  'groups.invites.consumeInvite': {
    ...NOBODY,
    owner: 'GROUP_ALREADY_MEMBER',
    developer: 'GROUP_ALREADY_MEMBER',
    viewer: 'GROUP_ALREADY_MEMBER',
    stranger: 'in',
  },
  'games.createGame': GROUP_DEVELOPERS,
  'games.validateGame': PEOPLE,
  'games.getGames': { ...GAME, other_cloud: 'in', stranger: 'in' },
  'games.getGameById': GAME,
  'games.tokens.createCloudToken': GAME_DEVELOPERS,
  'games.tokens.listCloudTokens': GAME_DEVELOPERS,
  'games.tokens.revokeCloudToken': GAME_DEVELOPERS,
  'games.namespaces.listGameNamespaceTokensPublic': GAME_DEVELOPERS,
  'games.namespaces.revokeGameNamespaceTokenPublic': GAME_DEVELOPERS,
  'games.namespaces.createGameNamespaceTokenDevelopment': GAME_DEVELOPERS,
  'games.namespaces.validateGameNamespaceTokenDevelopment': GAME_DEVELOPERS,
  'games.namespaces.listGameNamespaceTokensDevelopment': GAME_DEVELOPERS,
  'games.namespaces.revokeGameNamespaceTokenDevelopment': GAME_DEVELOPERS,
  'admin.revokeToken': OPERATOR,
  'games.namespaces.createGameNamespace': GAME_DEVELOPERS,
  'games.namespaces.validateGameNamespace': GAME_DEVELOPERS,
  'games.namespaces.getGameNamespaceById': GAME,
  'games.namespaces.analytics.getAnalytics': GAME,
  'games.namespaces.updateGameNamespaceVersion': GAME_DEVELOPERS,
  'games.namespaces.updateGameNamespaceMatchmakerConfig': GAME_DEVELOPERS,
  'games.namespaces.validateGameNamespaceMatchmakerConfig': GAME_DEVELOPERS,
  'games.namespaces.createGameNamespaceTokenPublic': GAME_DEVELOPERS,
  'games.versions.createGameVersion': GAME_DEVELOPERS,
  'games.versions.validateGameVersion': GAME_DEVELOPERS,
  'games.versions.reserveVersionName': GAME_DEVELOPERS,
  'games.namespaces.getGameNamespaceVersionHistoryList': GAME,
  'games.namespaces.setNamespaceCdnAuthType': GAME_DEVELOPERS,
  'games.namespaces.updateNamespaceCdnAuthUser': GAME_DEVELOPERS,
  'games.namespaces.removeNamespaceCdnAuthUser': GAME_DEVELOPERS,
  'games.namespaces.toggleNamespaceDomainPublicAuth': GAME_DEVELOPERS,
  'games.namespaces.addNamespaceDomain': GAME_DEVELOPERS,
  'games.namespaces.removeNamespaceDomain': GAME_DEVELOPERS,
  'games.versions.getGameVersionById': GAME,
  'games.builds.createGameBuild': GAME_DEVELOPERS,
  'games.builds.listGameBuilds': GAME,
  'games.cdn.createGameCdnSite': GAME_DEVELOPERS,
  'games.cdn.listGameCdnSites': GAME,
  'uploads.completeUpload': { ...GAME_DEVELOPERS, other_cloud: 'UPLOAD_NOT_FOUND', stranger: 'UPLOAD_NOT_FOUND' },
  'games.gameLogoUploadPrepare': GAME_DEVELOPERS,
  'games.gameLogoUploadComplete': GAME_DEVELOPERS,
  'games.gameBannerUploadPrepare': GAME_DEVELOPERS,
  'games.gameBannerUploadComplete': GAME_DEVELOPERS,
  'games.renameGame': GAME_DEVELOPERS,
  'games.namespaces.renameGameNamespace': GAME_DEVELOPERS,
  'games.versions.renameGameVersion': GAME_DEVELOPERS,
  'games.builds.renameGameBuild': GAME_DEVELOPERS,
  'games.cdn.renameGameCdnSite': GAME_DEVELOPERS,
  'groups.delete': GROUP_OWNER,
  'games.deleteGame': { ...GROUP_OWNER, stranger: 'GAME_NOT_FOUND' },
  'games.namespaces.deleteGameNamespace': GAME_DEVELOPERS,
  'games.versions.deleteGameVersion': GAME_DEVELOPERS,
  'games.builds.deleteGameBuild': GAME_DEVELOPERS,
  'games.cdn.deleteGameCdnSite': GAME_DEVELOPERS,
  'lobbies.find': SEAT,
  'lobbies.join': {
    ...SEAT,
    other_namespace: 'MATCHMAKER_LOBBY_NOT_FOUND',
    other_identity: 'MATCHMAKER_LOBBY_NOT_FOUND',
  },
  'lobbies.create': SEAT,
  'lobbies.ready': LOBBY,
  'lobbies.setClosed': LOBBY,
  'lobbies.setState': LOBBY,
  'lobbies.getState': {
    ...NAMESPACE,
    other_namespace: 'MATCHMAKER_LOBBY_NOT_FOUND',
    other_identity: 'MATCHMAKER_LOBBY_NOT_FOUND',
    lobby: 'in',
    other_lobby: 'MATCHMAKER_LOBBY_NOT_FOUND',
  },
  'lobbies.list': NAMESPACE,
  'players.connected': PLAYERS,
  'players.disconnected': PLAYERS,
  'players.getStatistics': NAMESPACE,
  'regions.list': NAMESPACE,
  'games.matchmaker.deleteMatchmakerLobby': GAME_DEVELOPERS,
  'games.matchmaker.listMatchmakerLobbyPlayers': GAME,
  'games.matchmaker.deleteMatchmakerLobbyPlayer': GAME_DEVELOPERS,
  'games.matchmaker.setMatchmakerVersionDraining': GAME_DEVELOPERS,
  'games.matchmaker.getLobbyLogs': GAME_DEVELOPERS,
  'games.matchmaker.exportLobbyLogs': GAME_DEVELOPERS,
  'games.matchmaker.exportMatchmakerLobbyHistory': GAME,
  'games.namespaces.logs.listNamespaceLobbies': GAME,
  'games.namespaces.analytics.getAnalyticsMatchmakerLive': GAME,
  'games.namespaces.logs.getNamespaceLobby': GAME_DEVELOPERS,
  // Which callers may read a ray is in http/rays.test.ts and matchmaker/explain.test.ts; here there is no ray.
  'logs.explainRay': { ...PEOPLE, cloud: 'in', other_cloud: 'in' },
  'logs.getRayPerfLogs': { ...PEOPLE, cloud: 'in', other_cloud: 'in' },
  'parties.create': IDENTITY,
  'parties.getSelf': { ...IDENTITY, other_identity: 'PARTY_NOT_FOUND' },
  'parties.join': { ...IDENTITY, other_identity: 'PARTY_CODE_INVALID' },
  'parties.setLeader': { ...IDENTITY, other_identity: 'PARTY_NOT_FOUND' },
  'parties.removeMember': { ...IDENTITY, other_identity: 'PARTY_NOT_FOUND' },
  'parties.leave': IDENTITY,
  'identities.events.watch': IDENTITY,
  'kv.get': KV_READERS,
  'kv.put': KV_WRITERS,
  'kv.delete': KV_WRITERS,
  'kv.getBatch': KV_READERS,
  'kv.putBatch': KV_WRITERS,
  'kv.deleteBatch': KV_WRITERS,
  'kv.list': KV_READERS,
}

/** Why a caller with the permission may still get no 200. */
const IN_THE_WAY: Record<string, ErrorCode> = {
  'games.builds.renameGameBuild': 'BUILD_NOT_FOUND',
  'games.cdn.renameGameCdnSite': 'SITE_NOT_FOUND',
  'groups.delete': 'IN_USE',
  'games.deleteGame': 'IN_USE',
  'games.namespaces.deleteGameNamespace': 'IN_USE',
  'games.versions.deleteGameVersion': 'IN_USE',
  'games.builds.deleteGameBuild': 'BUILD_NOT_FOUND',
  'games.cdn.deleteGameCdnSite': 'SITE_NOT_FOUND',
  'games.matchmaker.deleteMatchmakerLobby': 'LOBBY_NOT_FOUND',
  'games.matchmaker.exportLobbyLogs': 'MATCHMAKER_LOBBY_NOT_STARTED',
  'logs.explainRay': 'RAY_NOT_FOUND',
  'logs.getRayPerfLogs': 'RAY_NOT_FOUND',
  'uploads.completeUpload': 'UPLOAD_INCOMPLETE',
  'games.gameLogoUploadComplete': 'UPLOAD_NOT_FOUND',
  'games.gameBannerUploadComplete': 'UPLOAD_NOT_FOUND',
  'games.namespaces.removeNamespaceDomain': 'CDN_DOMAIN_NOT_FOUND',
  'groups.setMemberRole': 'GROUP_NOT_MEMBER',
  'groups.kickMember': 'GROUP_NOT_MEMBER',
  'groups.transferOwnership': 'GROUP_NOT_MEMBER',
  'parties.removeMember': 'PARTY_MEMBER_NOT_FOUND',
  // It asks for the hub's Origin.
  'auth.tokens.refreshIdentityToken': 'API_FORBIDDEN',
}
/** A member who has left may do nothing any more. */
const LAST = 'groups.leave'

type CellCall = { operation: Operation; caller: CallerName; cell: Cell; path: string }

function cells(): CellCall[] {
  const leaving = OPERATIONS.filter(({ id }) => id === LAST)
  return [...OPERATIONS.filter(({ id }) => id !== LAST), ...leaving].flatMap((operation) => {
    const row = TABLE[operation.id]
    assert.ok(row, `the table has no row for ${operation.id}`)
    return [operation.path, ...operation.aliases].flatMap((path) =>
      CALLERS.map((caller) => ({ operation, caller, cell: cellOf(row, caller), path })),
    )
  })
}

test('every caller on every operation: the table decides, and who is refused changes nothing', async (t) => {
  const platform = await startPlatform(t)
  const world = await createWorld(platform)
  const all = cells()
  assert.equal(Object.keys(TABLE).length, OPERATIONS.length)

  const before = await dump(platform)
  for (const { operation, caller, cell, path } of all) {
    if (cell === 'in') continue
    const answer = await askFor(world, operation, callBy(world, operation, caller), world.tokens[caller], { path })
    try {
      requireRefusal(answer, cell)
    } catch (error) {
      throw new Error(`${caller} on ${operation.id} at ${path}`, { cause: error })
    }
  }
  assert.equal(await dump(platform), before)

  for (const { operation, caller, cell, path } of all) {
    if (cell !== 'in') continue
    const answer = await askFor(world, operation, callBy(world, operation, caller), world.tokens[caller], { path })
    const otherwise = IN_THE_WAY[operation.id]
    if (otherwise !== undefined) requireRefusal(answer, otherwise)
    else assert.equal(answer.status, 200, `${caller} on ${operation.id} at ${path}: ${answer.text}`)
    assert.match(String(answer.headers['x-ray-id']), /^[0-9a-f-]{36}$/)
  }
})

test('an Authorization header that is no bearer token is refused unchanged', async (t) => {
  const platform = await startPlatform(t)
  const world = await createWorld(platform)
  const admin = platform.token
  const headers = [
    '',
    'Bearer',
    'Bearer ',
    `Basic ${admin}`,
    `Bearer  ${admin}`,
    `Bearer ${admin} x`,
    admin,
    `Bearer ${'x'.repeat(4_000)}`,
  ]
  for (const operation of OPERATIONS) {
    if (operation.auth.includes('anyone')) continue
    for (const authorization of headers) {
      const answer = await askFor(world, operation, callOf(world, operation), null, { headers: { authorization } })
      requireRefusal(answer, 'TOKEN_INVALID')
    }
  }
})

/** The operator may use every group and game; a development token gets the same answer whatever id it names. */
const UNBOUND = ['admin', 'development', 'stranger', ...FORMER]
const BOUND = CALLERS.filter((caller) => !UNBOUND.includes(caller) && !caller.startsWith('other_'))
/** A caller needs both this id and the code of the mail; the id alone reveals nothing. */
const UNBOUND_IDS = new Set(['verification_id'])
/** Who is not in the lobby is out of it already. */
const IDEMPOTENT = new Set(['games.matchmaker.deleteMatchmakerLobbyPlayer player_id'])
/** What a member is, a user is: there is no page of users. */
const NO_SUCH = /_NOT_FOUND$|^GROUP_NOT_MEMBER$/

test('what is not there and what is not yours get one answer', async (t) => {
  const platform = await startPlatform(t)
  const world = await createWorld(platform)
  const { other } = world
  const tokenOf = (token: string | null) => platform.ctx.keys.verify(token ?? '', platform.ctx.now())
  const [stranger, seat] = [tokenOf(world.tokens.stranger), tokenOf(world.other_seat.player.token)]
  assert.ok(stranger.kind === 'user' && seat.kind === 'player')
  const foreign: Record<string, string> = {
    game_id: other.game_id,
    namespace_id: other.namespace_id,
    version_id: other.version_id,
    build_id: await newBuild(platform, other.game_id),
    site_id: await newSite(platform, other.game_id),
    upload_id: await uploadOf(world, other.game_id),
    lobby_id: world.other_seat.lobby.lobby_id,
    player_id: seat.player_id,
    ray_id: await rayOf(world, other),
    developer_group_id: other.group_id,
    group_id: other.group_id,
    identity_id: stranger.user_id,
    new_owner_identity_id: stranger.user_id,
    token_id: tokenOf(world.tokens.other_cloud).token_id,
  }
  for (const { id, params, body } of OPERATIONS) {
    for (const name of [params, body].flatMap(idsOf)) {
      assert.ok(name in foreign || UNBOUND_IDS.has(name), `no foreign ${name} is tried at ${id}`)
    }
  }
  const before = await dump(platform)
  let tried = 0
  for (const operation of OPERATIONS) {
    for (const caller of BOUND.filter((name) => cellOf(TABLE[operation.id]!, name) === 'in')) {
      for (const [name, id] of Object.entries(foreign)) {
        if (await isAsUnknown(world, operation, caller, name, id, Object.values(foreign))) tried++
      }
    }
  }
  assert.ok(tried > 300, String(tried))
  assert.equal(await dump(platform), before)
})

test('what is of another game is not found in this one, though both are of one group', async (t) => {
  const platform = await startPlatform(t)
  const world = await createWorld(platform)
  const { client, ctx } = platform
  const { group_id } = world.game
  const { game_id } = await client.call(createGame, { body: { display_name: 'Two', developer_group_id: group_id } })
  const { game } = await client.call(getGameById, { params: { game_id } })
  const { token } = await client.call(createCloudToken, { params: { game_id } })
  const sibling: Record<string, string> = {
    namespace_id: game.namespaces[0]!.namespace_id,
    version_id: game.versions[0]!.version_id,
    build_id: await newBuild(platform, game_id),
    site_id: await newSite(platform, game_id),
    upload_id: await uploadOf(world, game_id),
    lobby_id: world.other_seat.lobby.lobby_id,
    token_id: ctx.keys.verify(token, ctx.now()).token_id,
  }
  const before = await dump(platform)
  let tried = 0
  for (const operation of OPERATIONS.filter(({ params }) => 'game_id' in params.properties)) {
    for (const caller of ['admin', 'owner', 'developer', 'cloud'] as const) {
      if (TABLE[operation.id]?.[caller] !== 'in') continue
      for (const [name, id] of Object.entries(sibling)) {
        if (await isAsUnknown(world, operation, caller, name, id, Object.values(sibling))) tried++
      }
    }
  }
  assert.ok(tried > 100, String(tried))
  assert.equal(await dump(platform), before)
})

/** Asserts that the id gets the same answer as an id that does not exist; false when the call has no such member. */
async function isAsUnknown(
  world: World,
  operation: Operation,
  caller: CallerName,
  name: string,
  id: string,
  canaries: readonly string[],
): Promise<boolean> {
  const call = callBy(world, operation, caller)
  const [foreign, unknown] = [withId(call, name, id), withId(call, name, UNKNOWN_ID)]
  if (foreign === null || unknown === null) return false
  const token = world.tokens[caller]
  const what = `${caller} on ${operation.id} with ${name}`
  const answer = await askFor(world, operation, foreign, token)
  const told = tell(answer)
  assert.deepEqual(told, tell(await askFor(world, operation, unknown, token)), what)
  if (IDEMPOTENT.has(`${operation.id} ${name}`)) assert.deepEqual(told, { status: 200, did_remove: false }, what)
  else assert.match(String(told.code), NO_SUCH, what)
  const all = `${JSON.stringify(answer.headers)} ${answer.text}`
  for (const canary of [...canaries, world.other.name_id]) assert.ok(!all.includes(canary), `${what} shows ${canary}`)
  return true
}

/** The members of a schema that are ids. */
function idsOf(schema: object): string[] {
  const members = 'properties' in schema ? Object.entries(schema.properties as Record<string, { format?: string }>) : []
  return members.flatMap(([name, { format }]) => (format === 'uuid' ? [name] : []))
}

function tell({ status, text }: Answer): Record<string, unknown> {
  const { ray_id, ...body } = JSON.parse(text) as Record<string, unknown>
  return { status, ...body }
}

/** The call with another id in place of that member, of its path or of its body; null when it has none. */
function withId(call: Call, name: string, id: string): Call | null {
  if (call.params && name in call.params) return { ...call, params: { ...call.params, [name]: id } }
  const { body } = call
  if (typeof body === 'object' && body !== null && name in body) return { ...call, body: { ...body, [name]: id } }
  return null
}

/** Of a refusal in that game: one that is kept. */
async function rayOf(world: World, { public_token }: TestGame): Promise<string> {
  const operation = OPERATIONS.find(({ id }) => id === 'lobbies.find')!
  const { headers } = await askFor(world, operation, { body: { game_modes: ['nothing'] } }, public_token)
  return String(headers['x-ray-id'])
}

async function uploadOf({ platform }: World, game_id: string): Promise<string> {
  const operation = OPERATIONS.find(({ id }) => id === 'games.cdn.createGameCdnSite')!
  const body = { display_name: 'Site', files: [{ path: 'a', content_length: 1 }] }
  const site = await platform.client.call(operation, { params: { game_id }, body } as never)
  return (site as { upload_id: string }).upload_id
}
