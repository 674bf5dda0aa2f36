// The operations that are not GET and leave no audit event, each with its reason. Every other one leaves an event when it
// changes something; server/test/cloud/audit.test.ts calls them all.
import type { Operation } from '@musterhost/contract'

const CHECKS = 'It checks a draft and changes nothing.'
const PLAYERS =
  'Players, lobby servers and backends of games call it all the time. Rays, explanations and analytics show what it did.'
const LOOK_UPS = 'It looks contents up and changes nothing.'
const EXPORTS = 'It returns an address to read from and changes nothing.'

export const UNAUDITED: Readonly<Record<string, string>> = {
  'identities.validateProfile': CHECKS,
  'groups.validate': CHECKS,
  'groups.validateProfile': CHECKS,
  'games.validateGame': CHECKS,
  'games.namespaces.validateGameNamespace': CHECKS,
  'games.namespaces.validateGameNamespaceMatchmakerConfig': CHECKS,
  'games.namespaces.validateGameNamespaceTokenDevelopment': CHECKS,
  'games.versions.validateGameVersion': CHECKS,

  'games.matchmaker.checkMatchmakerVersion': 'It starts a lobby without players. The deploy that follows is audited.',

  'uploads.listStoredContents': LOOK_UPS,
  'auth.identity.provider.start':
    'It makes secrets for one browser and stores nothing. The sign-in that follows is audited.',
  'auth.identity.passkey.start': 'It makes a challenge and stores nothing. The log-in that follows is audited.',
  'auth.passkeys.start': 'It makes a challenge and stores nothing. The addition that follows is audited.',
  'auth.confirmation.start': 'It makes a challenge and stores nothing. The confirmation that follows is audited.',
  'signInProviders.check': 'It reads the configuration of an issuer and changes nothing.',
  'admin.runChecks': 'It examines the platform and changes nothing.',

  'games.matchmaker.exportLobbyLogs': EXPORTS,
  'games.matchmaker.exportMatchmakerLobbyHistory': EXPORTS,
  'games.exportGame': EXPORTS,
  'games.playerData.exportPlayerData': EXPORTS,
  'groups.exportGroupAuditEvents': EXPORTS,
  'admin.exportAuditEvents': EXPORTS,

  'devices.links.prepare': 'A link is only its token until a person completes it, and that is audited.',
  'games.versions.reserveVersionName': 'It counts a number up, so that names differ. The new version is audited.',

  'lobbies.find': PLAYERS,
  'lobbies.join': PLAYERS,
  'lobbies.create': PLAYERS,
  'lobbies.allocate': PLAYERS,
  'seats.listOwn': 'It reads seats and changes nothing.',
  'lobbies.ready': PLAYERS,
  'lobbies.setClosed': PLAYERS,
  'lobbies.setState': PLAYERS,
  'lobbies.setPlayers': PLAYERS,
  'lobbies.changeOwn': PLAYERS,
  'lobbies.stop': PLAYERS,
  'players.connected': PLAYERS,
  'players.disconnected': PLAYERS,
  'lobbies.result': PLAYERS,
  'parties.create': PLAYERS,
  'parties.join': PLAYERS,
  'parties.setLeader': PLAYERS,
  'parties.removeMember': PLAYERS,
  'parties.leave': PLAYERS,
  'identities.setup': PLAYERS,
  'kv.put': PLAYERS,
  'kv.delete': PLAYERS,
  'kv.putBatch': PLAYERS,
  'kv.deleteBatch': PLAYERS,
}

export function isAudited({ id, method }: Pick<Operation, 'id' | 'method'>): boolean {
  return method !== 'GET' && !(id in UNAUDITED)
}

/** Whether refusals of the operation are audited: where people manage something, or log in. */
export function areRefusalsAudited({ id, auth, rate_limit }: Pick<Operation, 'id' | 'auth' | 'rate_limit'>): boolean {
  return isLogin({ id }) || (rate_limit !== 'kv' && (auth.includes('admin') || auth.includes('user')))
}

export function isLogin({ id }: Pick<Operation, 'id'>): boolean {
  return id.startsWith('auth.identity.')
}
