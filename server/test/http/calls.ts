// One good call of every operation of the contract, and the request that makes it. An operation that is added to the
// contract fails the tests that go through all of them until it has a row here.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { NO_BODY, type Operation } from '@musterhost/contract'
import { type Answer, type Ask, ask, bearer, JSON_TYPE } from './ask.ts'
import { UNKNOWN_ID } from './steps.ts'
import {
  type CallerName,
  deviceLinkOf,
  noticeTargetOf,
  scheduleOf,
  signInProviderOf,
  statusIncidentOf,
  type World,
} from './world.ts'

export type Call = {
  params?: Record<string, string>
  query?: Record<string, string | readonly string[]>
  body?: unknown
}

/** A name that nothing else has. */
const newName = (): string => `n${randomUUID().replaceAll('-', '').slice(0, 12)}`

/** Groups, logins, identities and devices, and what belongs to no game. */
function peopleCalls(world: World): Record<string, Call> {
  const { game, invite_code } = world
  const { game_id, group_id } = game
  const name = newName()
  return {
    bootstrap: {},
    'tiers.getRegionTiers': {},
    'groups.create': { body: { display_name: name } },
    'groups.listSuggested': {},
    'groups.getSummary': { params: { group_id } },
    'overview.get': {},
    'notices.listTargets': { query: { game_id } },
    'notices.putTarget': { body: noticeTargetOf(game_id) },
    'notices.deleteTarget': { params: { target_id: UNKNOWN_ID } },
    'notices.testTarget': { params: { target_id: UNKNOWN_ID } },
    'notices.listDeliveries': { params: { target_id: world.notice_target_id } },
    'notices.resend': { params: { target_id: world.notice_target_id, notice_id: UNKNOWN_ID } },
    'games.schedules.listSchedules': { params: { game_id } },
    'games.schedules.putSchedule': { params: { game_id }, body: scheduleOf(game) },
    'games.schedules.deleteSchedule': { params: { game_id, schedule_id: UNKNOWN_ID } },
    'games.schedules.runSchedule': { params: { game_id, schedule_id: UNKNOWN_ID } },
    'games.schedules.listScheduleRuns': { params: { game_id, schedule_id: world.schedule_id } },
    'groups.billing.getUsage': { params: { group_id } },
    'groups.listGroupAuditEvents': { params: { group_id } },
    'groups.exportGroupAuditEvents': { params: { group_id }, body: { query_start: 0, query_end: 1 } },
    'admin.listAuditEvents': {},
    'admin.listGroups': {},
    'admin.listUsers': {},
    'admin.listRegions': {},
    'admin.listProcesses': {},
    'admin.listJobs': {},
    'admin.listSettings': {},
    'admin.getBackups': {},
    'admin.getFinds': {},
    'admin.runChecks': {},
    'admin.runBackup': {},
    'admin.listStoredBackups': {},
    'admin.restoreBackup': { body: { name: '2026-11-24T040000Z', folder: '/nonexistent/muster-restored' } },
    'admin.restoreGame': { body: { name: '2026-11-24T040000Z', game: 'arena' } },
    'nodes.list': {},
    'nodes.getUse': {},
    'nodes.drain': { body: { node_id: world.platform.ctx.config.node_id } },
    'nodes.cancelDrain': { body: { node_id: world.platform.ctx.config.node_id } },
    'nodes.remove': { body: { node_id: 'unknown' } },
    'admin.exportAuditEvents': { body: { query_start: 0, query_end: 1 } },
    'groups.validate': { body: { display_name: name } },
    'groups.updateProfile': { params: { group_id }, body: { display_name: name } },
    'groups.validateProfile': { body: { display_name: name } },
    'groups.getQuotas': { params: { group_id } },
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
    'auth.identity.link.completeVerification': { body: { link: 'unknown' } },
    'auth.identity.provider.list': {},
    'auth.identity.provider.start': { params: { provider_name: 'unknown' }, body: {} },
    'auth.identity.provider.complete': { params: { provider_name: 'unknown' }, body: { state: 'unknown' } },
    'auth.identity.passkey.start': {},
    'auth.identity.passkey.complete': { body: assertionBody() },
    'auth.passkeys.list': {},
    'auth.passkeys.start': {},
    'auth.passkeys.add': { body: registrationBody() },
    'auth.passkeys.rename': { params: { passkey_id: UNKNOWN_ID }, body: { name } },
    'auth.passkeys.remove': { params: { passkey_id: UNKNOWN_ID } },
    'auth.confirmation.start': {},
    'auth.confirmation.complete': { body: assertionBody() },
    'admin.removePasskeys': { params: { user_id: UNKNOWN_ID } },
    'signInProviders.list': {},
    'signInProviders.put': { params: { provider_name: 'studio' }, body: signInProviderOf(group_id) },
    'signInProviders.delete': { params: { provider_name: 'unknown' } },
    // Refused at once: the address is not public.
    'signInProviders.check': { body: { issuer: 'https://127.0.0.1/' } },
    'auth.sessions.list': {},
    'auth.sessions.end': { params: { session_id: UNKNOWN_ID } },
    'auth.sessions.endOthers': {},
    'admin.createSignInLink': {},
    'auth.inspect': {},
    'identities.setup': { body: {} },
    'identities.getSelfProfile': {},
    'identities.updateProfile': { body: { display_name: name } },
    'identities.validateProfile': { body: { display_name: name } },
    'devices.links.prepare': {},
    'devices.links.get': { query: { device_link_token: deviceLinkOf(world.platform) } },
    'devices.links.inspect': { query: { device_link_token: deviceLinkOf(world.platform) } },
    'devices.links.refuse': { body: { device_link_token: deviceLinkOf(world.platform) } },
    'devices.links.complete': { body: { device_link_token: deviceLinkOf(world.platform), game_id } },
    'admin.createNodeInvitation': { body: { name } },
    'admin.listNodeInvitations': {},
    'admin.revokeNodeInvitation': { params: { invitation_id: UNKNOWN_ID } },
    'admin.revokeToken': { params: { token_id: UNKNOWN_ID } },
    'groups.delete': { params: { group_id } },
  }
}

const CREDENTIAL = { id: 'AAAA', rawId: 'AAAA', type: 'public-key', clientExtensionResults: {} } as const

/** As a browser sends it, for a challenge that no platform made. */
function assertionBody(): object {
  const response = { clientDataJSON: 'AAAA', authenticatorData: 'AAAA', signature: 'AAAA', userHandle: 'AAAA' }
  return { state: 'unknown', credential: { ...CREDENTIAL, response } }
}

function registrationBody(): object {
  const response = { clientDataJSON: 'AAAA', attestationObject: 'AAAA', transports: ['internal'] }
  return { state: 'unknown', name: 'Laptop', credential: { ...CREDENTIAL, response } }
}

/** Games, and their versions, builds, sites and uploads. */
function gameCalls(world: World): Record<string, Call> {
  const { game, upload_id, spare_cloud_id } = world
  const { game_id, version_id, group_id } = game
  const params = { game_id }
  const name = newName()
  const file = { path: 'a.txt', content_length: 1 }
  return {
    'games.createGame': { body: { display_name: name, name_id: name, developer_group_id: group_id } },
    'games.validateGame': { body: { display_name: name, name_id: name } },
    'games.getGames': {},
    'games.getGameById': { params },
    'games.tokens.createCloudToken': { params },
    'games.tokens.listCloudTokens': { params },
    'games.tokens.revokeCloudToken': { params: { game_id, token_id: spare_cloud_id } },
    'games.versions.createGameVersion': { params, body: { display_name: name, config: {} } },
    'games.versions.validateGameVersion': { params, body: { display_name: name, config: {} } },
    'games.versions.reserveVersionName': { params },
    'games.versions.getGameVersionById': { params: { game_id, version_id } },
    'games.versions.listGameVersions': { params: { game_id } },
    'games.builds.createGameBuild': {
      params,
      body: { display_name: name, image_tag: `${name}:1`, image_file: { path: 'a.tar.gz', content_length: 1 } },
    },
    'games.builds.listGameBuilds': { params },
    'games.cdn.createGameCdnSite': { params, body: { display_name: name, files: [file] } },
    'games.cdn.listGameCdnSites': { params },
    'uploads.completeUpload': { params: { upload_id } },
    'uploads.getUpload': { params: { upload_id }, query: {} },
    'uploads.listStoredContents': {
      params,
      body: { contents: [{ sha256: '0'.repeat(64), content_length: 1 }] },
    },
    'games.gameLogoUploadPrepare': { params, body: file },
    'games.gameLogoUploadComplete': { params: { game_id, upload_id } },
    'games.gameBannerUploadPrepare': { params, body: file },
    'games.gameBannerUploadComplete': { params: { game_id, upload_id } },
    'games.renameGame': { params, body: { display_name: name } },
    'games.versions.renameGameVersion': { params: { game_id, version_id }, body: { display_name: name } },
    'games.builds.renameGameBuild': { params: { game_id, build_id: UNKNOWN_ID }, body: { display_name: name } },
    'games.cdn.renameGameCdnSite': { params: { game_id, site_id: UNKNOWN_ID }, body: { display_name: name } },
    'games.deleteGame': { params },
    'games.versions.deleteGameVersion': { params: { game_id, version_id } },
    'games.builds.deleteGameBuild': { params: { game_id, build_id: UNKNOWN_ID } },
    'games.cdn.deleteGameCdnSite': { params: { game_id, site_id: UNKNOWN_ID } },
  }
}

/** Namespaces, and their tokens, domains and settings. */
function namespaceCalls(world: World): Record<string, Call> {
  const { game, spare_public_id, spare_development_id } = world
  const { game_id, version_id, namespace_id } = game
  const params = { game_id }
  const namespace = { game_id, namespace_id }
  const name = newName()
  return {
    'games.namespaces.listGameNamespaceTokensPublic': { params: namespace },
    'games.namespaces.revokeGameNamespaceTokenPublic': { params: { ...namespace, token_id: spare_public_id } },
    'games.namespaces.createGameNamespaceTokenDevelopment': { params: namespace, body: { hostname: 'localhost' } },
    'games.namespaces.validateGameNamespaceTokenDevelopment': { params: namespace, body: { hostname: 'localhost' } },
    'games.namespaces.listGameNamespaceTokensDevelopment': { params: namespace },
    'games.namespaces.revokeGameNamespaceTokenDevelopment': {
      params: { ...namespace, token_id: spare_development_id },
    },
    'games.namespaces.createGameNamespace': { params, body: { display_name: name, name_id: name, version_id } },
    'games.namespaces.validateGameNamespace': { params, body: { display_name: name, name_id: name } },
    'games.namespaces.getGameNamespaceById': { params: namespace },
    'games.namespaces.updateGameNamespaceVersion': { params: namespace, body: { version_id } },
    'games.namespaces.setRollout': { params: namespace, body: { version_id: world.next_version_id, percent: 1 } },
    'games.namespaces.getRollout': { params: namespace },
    'games.namespaces.endRollout': { params: namespace, body: { outcome: 'rolled_back' } },
    'games.namespaces.updateGameNamespaceExpiry': { params: namespace, body: {} },
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
    'games.secrets.listGameSecrets': { params },
    'games.secrets.setGameSecret': { params: { ...params, name: 'PAYMENT_KEY' }, body: { value: 'a secret' } },
    'games.secrets.removeGameSecret': { params: { ...params, name: 'NO_SUCH_KEY' } },
    'games.status.getStatusPage': { params },
    // An enabled page is measured from time to time.
    'games.status.putStatusPage': { params, body: { is_enabled: false, text: name } },
    'games.status.listStatusIncidents': { params },
    'games.status.createStatusIncident': { params, body: statusIncidentOf() },
    'games.status.updateStatusIncident': {
      params: { ...params, incident_id: world.incident_id },
      body: { state: 'monitoring', text: name },
    },
    'games.status.deleteStatusIncident': { params: { ...params, incident_id: UNKNOWN_ID } },
    'games.namespaces.renameGameNamespace': { params: namespace, body: { display_name: name } },
    'games.namespaces.deleteGameNamespace': { params: namespace },
  }
}

/** What game clients and game servers call. */
function playerCalls(world: World): Record<string, Call> {
  const { seat, mate } = world
  const name = newName()
  const player = { player_token: seat.player.token }
  return {
    'lobbies.find': { body: { game_modes: ['default'] } },
    'lobbies.join': { body: { lobby_id: seat.lobby.lobby_id } },
    'lobbies.create': { body: { game_mode: 'custom' } },
    'lobbies.allocate': {
      body: { namespace_id: world.game.namespace_id, game_mode: 'default', players: [{}] },
    },
    'lobbies.ready': {},
    'lobbies.setClosed': { body: { is_closed: false } },
    'lobbies.setState': { body: { score: 1 } },
    'lobbies.watchOwn': {},
    'lobbies.setPlayers': { body: { player_ids: [] } },
    'lobbies.changeOwn': { body: { keep_ms: 0 } },
    'lobbies.getState': { params: { lobby_id: seat.lobby.lobby_id } },
    'lobbies.list': {},
    'players.connected': { body: player },
    'players.disconnected': { body: player },
    'lobbies.stop': {},
    'players.getStatistics': {},
    'seats.listOwn': { body: player },
    'regions.list': {},
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
    'kv.listDirectories': { query: { namespace_id: world.game.namespace_id } },
    'kv.listKeys': { query: { namespace_id: world.game.namespace_id } },
    'lobbies.result': { body: { teams: [[seat.player.token], [mate.player.token]], ranks: [1, 2] } },
    'ratings.getOwn': {},
    'ratings.getPlayers': { query: { players: seat.player.token } },
    'ratings.list': { query: { namespace_id: world.game.namespace_id, game_mode: 'default' } },
    'ratings.get': {
      params: { identity_id: world.identity_id },
      query: { namespace_id: world.game.namespace_id },
    },
    'ratings.export': { query: { namespace_id: world.game.namespace_id } },
    'ratings.reset': { body: { namespace_id: world.game.namespace_id, game_mode: 'default' } },
  }
}

/** What a game's developers see and do of its lobbies, logs and players. */
function lobbyRecordCalls(world: World): Record<string, Call> {
  const { game, seat } = world
  const { game_id, version_id, namespace_id } = game
  const params = { game_id }
  const namespace = { game_id, namespace_id }
  const lobby = { game_id, lobby_id: seat.lobby.lobby_id }
  return {
    'games.namespaces.analytics.getAnalytics': {
      query: {
        ...{ query_start: '2026-01-01T00:00:00Z', query_end: '2026-01-02T00:00:00Z' },
        ...{ game_ids: game_id, namespace_ids: game.namespace_id, variants: ['player_count', 'lobby_count'] },
      },
    },
    'games.matchmaker.getLobbyLogs': { params: lobby, query: { stream: 'std_out' } },
    'games.matchmaker.getLobbyTimeline': { params: lobby, query: { limit: '50' } },
    'games.matchmaker.getLobbyUsage': { params: lobby, query: { step_ms: '60000' } },
    'games.matchmaker.writeLobbyInput': { params: lobby, body: { text: 'say hello' } },
    'games.matchmaker.exportLobbyLogs': { params: lobby, body: { stream: 'std_err' } },
    'games.playerData.exportPlayerData': { params, body: { address: '203.0.113.7' } },
    'games.playerData.erasePlayerData': { params, body: { address: '203.0.113.7' } },
    'games.playerData.listErasures': { params, query: {} },
    'games.exportGame': { params: { game_id: params.game_id } },
    'games.matchmaker.exportMatchmakerLobbyHistory': { params, body: { query_start: 0, query_end: 1 } },
    'games.namespaces.logs.listNamespaceLobbies': { params: namespace },
    'games.namespaces.analytics.getAnalyticsMatchmakerLive': { params: namespace },
    'games.namespaces.analytics.getAnalyticsMatchmakerFinds': { params: namespace },
    'games.namespaces.logs.getNamespaceLobby': { params: { ...lobby, namespace_id } },
    'logs.explainRay': { params: { ray_id: UNKNOWN_ID } },
    'logs.getRayPerfLogs': { params: { ray_id: UNKNOWN_ID } },
    'logs.listGameRays': { params, query: { operation: 'lobbies.find' } },
    'games.searchGame': { params, query: { text: seat.lobby.lobby_id } },
    'games.matchmaker.deleteMatchmakerLobby': { params: { game_id, lobby_id: UNKNOWN_ID } },
    'games.matchmaker.listMatchmakerLobbyPlayers': { params: lobby },
    'games.matchmaker.deleteMatchmakerLobbyPlayer': { params: { ...lobby, player_id: UNKNOWN_ID } },
    'games.matchmaker.setMatchmakerVersionDraining': {
      params: { ...namespace, version_id },
      body: { is_draining: false },
    },
    'games.matchmaker.checkMatchmakerVersion': {
      params: { ...namespace, version_id },
      body: { lobby_id: UNKNOWN_ID },
    },
    'games.matchmaker.listMatchmakerWaitingRequests': { params: namespace, query: { limit: '10' } },
  }
}

const CALLS_OF_PARTS = [peopleCalls, gameCalls, namespaceCalls, playerCalls, lobbyRecordCalls]

/** A call that is answered 200, or refused for a reason that lies in the thing itself; good for one use. */
export function callOf(world: World, operation: Operation): Call {
  const calls = Object.assign({}, ...CALLS_OF_PARTS.map((callsOf) => callsOf(world))) as Record<string, Call>
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
  const takes_seat = operation.rate_limit === 'seats' && operation.id !== 'lobbies.allocate'
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
