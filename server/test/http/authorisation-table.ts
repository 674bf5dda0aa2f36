// Which callers may call which operation, and the error that refuses the others. An operation that is added to the
// contract fails authorisation.test.ts until it has a row here.
import type { ErrorCode } from '@muster/contract'
import { CALLERS, type CallerName } from './world.ts'

/** `in`: let in, and answered 200 unless the thing itself does not allow it. */
export type Cell = 'in' | ErrorCode
/** A person who has left a group, or was kicked, is a stranger to it, whatever tokens they still have. */
export const FORMER = ['left', 'kicked'] as const
type Former = (typeof FORMER)[number]
type Row = Record<Exclude<CallerName, Former>, Cell>

export function cellOf(row: Row, caller: CallerName): Cell {
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
const KV_BROWSERS: Row = { ...GAME, other_cloud: 'NAMESPACE_NOT_FOUND', stranger: 'NAMESPACE_NOT_FOUND' }
const PLAYERS: Row = {
  ...LOBBY,
  other_lobby: 'MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY',
  development: 'PLAYER_TOKEN_INVALID',
}

export const TABLE: Record<string, Row> = {
  bootstrap: ANYONE,
  'tiers.getRegionTiers': ANYONE,
  'auth.identity.email.startVerification': ANYONE,
  'auth.identity.email.completeVerification': ANYONE,
  'auth.identity.accessToken.completeVerification': ANYONE,
  'auth.tokens.refreshIdentityToken': ANYONE,
  'auth.identity.link.completeVerification': ANYONE,
  'auth.sessions.list': PEOPLE,
  'auth.sessions.end': PEOPLE,
  'auth.sessions.endOthers': PEOPLE,
  'admin.createSignInLink': OPERATOR,
  'auth.inspect': { ...PEOPLE, cloud: 'in', other_cloud: 'in' },
  'identities.setup': NAMESPACE,
  'identities.getSelfProfile': { ...PEOPLE, admin: 'API_FORBIDDEN', identity: 'in', other_identity: 'in' },
  'identities.updateProfile': { ...PEOPLE, admin: 'API_FORBIDDEN', identity: 'in', other_identity: 'in' },
  'identities.validateProfile': { ...PEOPLE, identity: 'in', other_identity: 'in' },
  'devices.links.prepare': ANYONE,
  'devices.links.get': ANYONE,
  'devices.links.inspect': PEOPLE,
  'devices.links.refuse': PEOPLE,
  'devices.links.complete': { ...GROUP_DEVELOPERS, stranger: 'GAME_NOT_FOUND' },
  // Access is private here.
  'groups.create': OPERATOR,
  'groups.listSuggested': PEOPLE,
  'overview.get': PEOPLE,
  'groups.billing.getUsage': GROUP,
  'groups.listGroupAuditEvents': GROUP_DEVELOPERS,
  'groups.exportGroupAuditEvents': GROUP_DEVELOPERS,
  'groups.getSummary': GROUP,
  'groups.validate': PEOPLE,
  'groups.updateProfile': GROUP_OWNER,
  'groups.validateProfile': PEOPLE,
  'groups.getQuotas': GROUP,
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
  'admin.listAuditEvents': OPERATOR,
  'admin.exportAuditEvents': OPERATOR,
  'admin.listGroups': OPERATOR,
  'admin.listUsers': OPERATOR,
  'admin.listRegions': OPERATOR,
  'admin.listProcesses': OPERATOR,
  'admin.listJobs': OPERATOR,
  'admin.listSettings': OPERATOR,
  'admin.getBackups': OPERATOR,
  'admin.runChecks': OPERATOR,
  'games.namespaces.createGameNamespace': GAME_DEVELOPERS,
  'games.namespaces.validateGameNamespace': GAME_DEVELOPERS,
  'games.namespaces.getGameNamespaceById': GAME,
  'games.namespaces.analytics.getAnalytics': GAME,
  'games.namespaces.updateGameNamespaceVersion': GAME_DEVELOPERS,
  'games.namespaces.updateGameNamespaceExpiry': GAME_DEVELOPERS,
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
  'games.versions.listGameVersions': GAME,
  'games.builds.createGameBuild': GAME_DEVELOPERS,
  'games.builds.listGameBuilds': GAME,
  'games.cdn.createGameCdnSite': GAME_DEVELOPERS,
  'games.cdn.listGameCdnSites': GAME,
  'uploads.completeUpload': { ...GAME_DEVELOPERS, other_cloud: 'UPLOAD_NOT_FOUND', stranger: 'UPLOAD_NOT_FOUND' },
  'uploads.getUpload': { ...GAME_DEVELOPERS, other_cloud: 'UPLOAD_NOT_FOUND', stranger: 'UPLOAD_NOT_FOUND' },
  'uploads.listStoredContents': GAME_DEVELOPERS,
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
  'games.matchmaker.writeLobbyInput': GAME_DEVELOPERS,
  'games.matchmaker.getLobbyTimeline': GAME,
  'games.matchmaker.getLobbyUsage': GAME,
  'games.matchmaker.exportLobbyLogs': GAME_DEVELOPERS,
  'games.matchmaker.exportMatchmakerLobbyHistory': GAME,
  'games.namespaces.logs.listNamespaceLobbies': GAME,
  'games.namespaces.analytics.getAnalyticsMatchmakerLive': GAME,
  'games.namespaces.analytics.getAnalyticsMatchmakerFinds': GAME_DEVELOPERS,
  'games.namespaces.logs.getNamespaceLobby': GAME_DEVELOPERS,
  // Which callers may read a ray is in http/rays.test.ts and matchmaker/explain.test.ts; here there is no ray.
  'logs.explainRay': { ...PEOPLE, cloud: 'in', other_cloud: 'in' },
  'logs.getRayPerfLogs': { ...PEOPLE, cloud: 'in', other_cloud: 'in' },
  'logs.listGameRays': GAME_DEVELOPERS,
  'games.searchGame': GAME_DEVELOPERS,
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
  'kv.listDirectories': KV_BROWSERS,
  'kv.listKeys': KV_BROWSERS,
}

/** Why a caller with the permission may still get no 200. */
export const IN_THE_WAY: Record<string, ErrorCode> = {
  'games.builds.renameGameBuild': 'BUILD_NOT_FOUND',
  'games.cdn.renameGameCdnSite': 'SITE_NOT_FOUND',
  'auth.sessions.end': 'SESSION_NOT_FOUND',
  'auth.identity.link.completeVerification': 'SIGN_IN_LINK_INVALID',
  'groups.delete': 'IN_USE',
  'games.deleteGame': 'IN_USE',
  'games.namespaces.deleteGameNamespace': 'IN_USE',
  'games.versions.deleteGameVersion': 'IN_USE',
  'games.builds.deleteGameBuild': 'BUILD_NOT_FOUND',
  'games.cdn.deleteGameCdnSite': 'SITE_NOT_FOUND',
  'games.matchmaker.deleteMatchmakerLobby': 'LOBBY_NOT_FOUND',
  'games.matchmaker.exportLobbyLogs': 'MATCHMAKER_LOBBY_NOT_STARTED',
  // The version of the game does not allow input.
  'games.matchmaker.writeLobbyInput': 'LOBBY_INPUT_DISABLED',
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
