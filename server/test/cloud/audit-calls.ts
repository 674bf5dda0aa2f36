// A call of every audited operation that succeeds, in an order in which none prevents the next.
import { randomUUID } from 'node:crypto'
import {
  createGame,
  createGameCdnSite,
  createGameNamespace,
  createGameVersion,
  createGroup,
  createNodeInvitation,
  createSignInLink,
  gameBannerUploadPrepare,
  gameLogoUploadPrepare,
  getAdminBackups,
  listNoticeDeliveries,
  listSessions,
} from '@musterhost/contract'
import { mainUrl } from '../../src/config/addresses.ts'
import type { Call } from '../http/calls.ts'

import { noticeTargetOf, personOf, scheduleOf, signInProviderOf, statusIncidentOf, type World } from '../http/world.ts'
import { PNG } from '../support/images.ts'
import { until } from '../support/until.ts'
import { arrives, newBuild, newSite } from './steps.ts'

/** What the calls send that no log may show, beside tokens and codes. */
const [CAPTCHA_SECRET, HEADER_SECRET, GAME_SECRET, LOGIN_CODE, NOTICE_TOPIC, CLIENT_SECRET] = [
  'planted-captcha-secret',
  'planted-header-secret',
  'planted-game-secret',
  'ABCDEFGH',
  'planted-notice-topic',
  'planted-client-secret',
] as const
export const SECRETS = [CAPTCHA_SECRET, HEADER_SECRET, GAME_SECRET, LOGIN_CODE, NOTICE_TOPIC, CLIENT_SECRET]

/** `token`: another caller than the first of the contract. */
export type AuditCall = Call & { token?: string | null; headers?: Record<string, string> }

const ORDER = [
  ...['auth.identity.email.startVerification', 'auth.identity.email.completeVerification'],
  ...['auth.identity.accessToken.completeVerification', 'auth.tokens.refreshIdentityToken'],
  ...['admin.createSignInLink', 'auth.identity.link.completeVerification'],
  ...['admin.createNodeInvitation', 'admin.revokeNodeInvitation'],
  ...['auth.sessions.end', 'auth.sessions.endOthers', 'admin.removePasskeys'],
  ...['signInProviders.put', 'signInProviders.delete', 'admin.runBackup', 'admin.restoreBackup', 'admin.restoreGame'],
  ...['identities.updateProfile', 'devices.links.complete', 'devices.links.refuse', 'admin.revokeToken'],
  ...['groups.create', 'groups.updateProfile', 'groups.invites.createInvite', 'groups.invites.consumeInvite'],
  ...['groups.setMemberRole', 'groups.kickMember', 'groups.transferOwnership', 'groups.leave'],
  ...['games.createGame', 'games.renameGame', 'games.tokens.createCloudToken', 'games.tokens.revokeCloudToken'],
  ...['games.versions.createGameVersion', 'games.versions.renameGameVersion', 'games.versions.deleteGameVersion'],
  ...['games.builds.createGameBuild', 'games.builds.renameGameBuild', 'games.builds.deleteGameBuild'],
  ...['games.cdn.createGameCdnSite', 'games.cdn.renameGameCdnSite', 'games.cdn.deleteGameCdnSite'],
  'uploads.completeUpload',
  ...['games.gameLogoUploadPrepare', 'games.gameLogoUploadComplete'],
  ...['games.gameBannerUploadPrepare', 'games.gameBannerUploadComplete'],
  ...['games.namespaces.createGameNamespace', 'games.namespaces.renameGameNamespace'],
  ...['games.namespaces.updateGameNamespaceVersion', 'games.namespaces.updateGameNamespaceMatchmakerConfig'],
  ...['games.namespaces.setRollout', 'games.namespaces.endRollout'],
  'games.namespaces.updateGameNamespaceExpiry',
  ...['games.namespaces.addNamespaceDomain', 'games.namespaces.removeNamespaceDomain'],
  'games.playerData.erasePlayerData',
  ...['games.secrets.setGameSecret', 'games.secrets.removeGameSecret'],
  ...['games.schedules.putSchedule', 'games.schedules.runSchedule', 'games.schedules.deleteSchedule'],
  ...['games.status.putStatusPage', 'games.status.createStatusIncident'],
  ...['games.status.updateStatusIncident', 'games.status.deleteStatusIncident'],
  ...['notices.putTarget', 'notices.testTarget', 'notices.resend', 'notices.deleteTarget'],
  ...['games.namespaces.createGameNamespaceTokenPublic', 'games.namespaces.revokeGameNamespaceTokenPublic'],
  'games.namespaces.createGameNamespaceTokenDevelopment',
  'games.namespaces.revokeGameNamespaceTokenDevelopment',
  ...['games.namespaces.setNamespaceCdnAuthType', 'games.namespaces.toggleNamespaceDomainPublicAuth'],
  ...['games.namespaces.updateNamespaceCdnAuthUser', 'games.namespaces.removeNamespaceCdnAuthUser'],
  'games.matchmaker.deleteMatchmakerLobbyPlayer',
  ...['games.matchmaker.setMatchmakerVersionDraining', 'games.matchmaker.deleteMatchmakerLobby'],
  'ratings.reset',
  ...['nodes.drain', 'nodes.cancelDrain', 'nodes.remove'],
  ...['games.namespaces.deleteGameNamespace', 'games.deleteGame', 'groups.delete'],
]

const DOMAIN = 'audit.example.com'
const SECRET_NAME = 'AUDITED_KEY'

export async function auditCallsOf(
  world: World,
): Promise<{ order: readonly string[]; callOf: (id: string) => Promise<AuditCall> }> {
  const { platform, game, seat } = world
  const { client } = platform
  const { game_id, group_id, namespace_id, version_id } = game
  const params = { game_id }
  const namespace = { game_id, namespace_id }
  const lobby = { game_id, lobby_id: seat.lobby.lobby_id }
  const memberOf = async (role: 'developer' | 'viewer') => userOf(world, await personOf(platform, group_id, role))
  // One that can be deleted.
  const spare_group = await client.call(createGroup, { body: { display_name: 'Spare' } })
  const spare_body = { display_name: 'Spare', developer_group_id: spare_group.group_id }
  const spare_game = await client.call(createGame, { body: spare_body })
  const display_name = 'Spare'
  const version = await client.call(createGameVersion, { params, body: { display_name, config: {} } })
  const spare_namespace = await client.call(createGameNamespace, {
    params,
    body: { display_name, name_id: 'spare', version_id },
  })
  const calls: Record<string, () => AuditCall | Promise<AuditCall>> = {
    'auth.identity.email.completeVerification': () => loginCall(world),
    'auth.tokens.refreshIdentityToken': () => logoutCall(world),
    'auth.identity.link.completeVerification': async () => {
      const { url } = await world.platform.client.call(createSignInLink, {})
      return { body: { link: new URL(url).searchParams.get('link') } }
    },
    'admin.revokeNodeInvitation': async () => {
      const { invitation_id } = await client.call(createNodeInvitation, { body: {} })
      return { params: { invitation_id } }
    },
    'auth.sessions.end': async () => {
      const token = await personOf(world.platform, group_id, 'viewer')
      const { sessions } = await world.platform.as(token).call(listSessions, {})
      return { params: { session_id: sessions[0]!.session_id }, token }
    },
    'auth.sessions.endOthers': async () => ({ token: await personOf(world.platform, group_id, 'viewer') }),
    'signInProviders.put': () => ({
      params: { provider_name: 'studio' },
      body: { ...signInProviderOf(group_id), client_secret: CLIENT_SECRET },
    }),
    'admin.restoreBackup': () => ({ body: { name: '2026-11-24T040000Z', folder: '/nonexistent/restored' } }),
    'admin.restoreGame': async () => {
      await until('the restore before to end', async () => {
        const { restores } = await client.call(getAdminBackups, {})
        return restores.every(({ end_ts }) => end_ts !== undefined)
      })
      return { body: { name: '2026-11-24T040000Z', game: 'arena' } }
    },
    'signInProviders.delete': () => ({ params: { provider_name: 'studio' } }),
    'groups.setMemberRole': async () => ({
      params: { group_id, identity_id: await memberOf('developer') },
      body: { role: 'viewer' },
    }),
    'groups.kickMember': async () => ({ params: { group_id, identity_id: await memberOf('viewer') } }),
    'groups.transferOwnership': async () => ({
      params: { group_id },
      body: { new_owner_identity_id: userOf(world, world.tokens.developer!) },
    }),
    'groups.leave': () => ({ token: world.tokens.owner }),
    'groups.invites.consumeInvite': () => ({ token: world.tokens.stranger }),
    'groups.delete': () => ({ params: { group_id: spare_group.group_id } }),
    'games.deleteGame': () => ({ params: { game_id: spare_game.game_id } }),
    'games.versions.createGameVersion': async () => ({
      params,
      body: { display_name: 'Secrets', config: configOf(await newBuild(platform, game_id)) },
    }),
    'games.versions.deleteGameVersion': () => ({ params: { game_id, version_id: version.version_id } }),
    'games.builds.renameGameBuild': async () => ({ params: { game_id, build_id: await newBuild(platform, game_id) } }),
    'games.builds.deleteGameBuild': async () => ({ params: { game_id, build_id: await newBuild(platform, game_id) } }),
    'games.cdn.renameGameCdnSite': async () => ({ params: { game_id, site_id: await newSite(platform, game_id) } }),
    'games.cdn.deleteGameCdnSite': async () => ({ params: { game_id, site_id: await newSite(platform, game_id) } }),
    'uploads.completeUpload': async () => ({ params: { upload_id: await arrivedSite(world) } }),
    'games.gameLogoUploadComplete': async () => ({ params: { game_id, upload_id: await arrivedImage(world, 'logo') } }),
    'games.gameBannerUploadComplete': async () => ({
      params: { game_id, upload_id: await arrivedImage(world, 'banner') },
    }),
    'games.namespaces.addNamespaceDomain': () => ({ params: namespace, body: { domain: DOMAIN } }),
    'games.namespaces.removeNamespaceDomain': () => ({ params: { ...namespace, domain: DOMAIN } }),
    'games.secrets.setGameSecret': () => ({
      params: { ...params, name: SECRET_NAME },
      body: { value: GAME_SECRET },
    }),
    'games.schedules.putSchedule': () => ({ params: { game_id }, body: scheduleOf(world.game) }),
    'games.schedules.runSchedule': () => ({ params: { game_id, schedule_id: world.schedule_id } }),
    'games.schedules.deleteSchedule': () => ({ params: { game_id, schedule_id: world.schedule_id } }),
    'games.status.putStatusPage': () => ({ params: { game_id }, body: { is_enabled: true } }),
    'games.status.createStatusIncident': () => ({ params: { game_id }, body: statusIncidentOf() }),
    'games.status.updateStatusIncident': () => ({
      params: { game_id, incident_id: world.incident_id },
      body: { state: 'resolved', text: 'Over' },
    }),
    'games.status.deleteStatusIncident': () => ({ params: { game_id, incident_id: world.incident_id } }),
    'notices.putTarget': () => ({ body: { ...noticeTargetOf(game_id), topic: NOTICE_TOPIC } }),
    // Nothing is sent: without a mail server a mail fails at once.
    'notices.testTarget': async () => {
      await platform.ctx.db.updateTable('notice_targets').set({ kind: 'email' }).execute()
      return { params: { target_id: world.notice_target_id } }
    },
    'notices.resend': async () => {
      const query = { params: { target_id: world.notice_target_id } }
      const { deliveries } = await client.call(listNoticeDeliveries, query)
      return { params: { target_id: world.notice_target_id, notice_id: deliveries[0]!.notice_id } }
    },
    'notices.deleteTarget': () => ({ params: { target_id: world.notice_target_id } }),
    'games.secrets.removeGameSecret': () => ({ params: { ...params, name: SECRET_NAME } }),
    'games.namespaces.deleteGameNamespace': () => ({
      params: { game_id, namespace_id: spare_namespace.namespace_id },
    }),
    'nodes.remove': () => ({ body: { node_id: platform.ctx.config.node_id } }),
    'games.matchmaker.deleteMatchmakerLobby': () => ({ params: lobby }),
    'games.matchmaker.deleteMatchmakerLobbyPlayer': () => ({
      params: { ...lobby, player_id: platform.playerIdOf(seat) },
    }),
  }
  return { order: ORDER, callOf: async (id) => (await calls[id]?.()) ?? {} }
}

function userOf({ platform }: World, token: string): string {
  const person = platform.ctx.keys.verify(token, platform.ctx.now())
  return person.kind === 'user' ? person.user_id : ''
}

function configOf(image_id: string): object {
  const url = 'https://gate.example.org/'
  const verification = { url, headers: { 'x-gate': HEADER_SECRET } }
  return {
    matchmaker: {
      captcha: {
        requests_before_reverify: 10,
        verification_ttl: 240_000,
        hcaptcha: { site_key: 'a', secret_key: CAPTCHA_SECRET },
      },
      docker: { image_id, args: ['node', 'server.js'], ports: { game: { protocol: 'http' } } },
      game_modes: { default: { actions: { find: { enabled: true, verification } } } },
    },
  }
}

/** The right code of a login that has begun. The table has only its hash, so this one is put there. */
async function loginCall({ platform: { ctx } }: World): Promise<AuditCall> {
  const verification_id = randomUUID()
  const code_hash = ctx.keys.mac('email-code', `${verification_id} ${LOGIN_CODE}`)
  const [create_ts, expire_ts] = [new Date(ctx.now()), new Date(ctx.now() + 60_000)]
  const row = { verification_id, email: 'ada@example.com', client: '127.0.0.1', networks: [], code_hash }
  await ctx.db
    .insertInto('email_verifications')
    .values({ ...row, create_ts, expire_ts })
    .execute()
  return { body: { verification_id, code: LOGIN_CODE } }
}

async function logoutCall({ platform }: World): Promise<AuditCall> {
  const origin = mainUrl(platform.ctx.config)
  const login = await fetch(`${platform.api_url}/auth/identity/access-token/complete-verification`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin },
    body: JSON.stringify({ access_token: platform.token }),
  })
  const cookie = login.headers.get('set-cookie')?.split(';')[0] ?? ''
  return { body: { logout: true }, headers: { origin, cookie } }
}

async function arrivedSite({ platform, game: { game_id } }: World): Promise<string> {
  const body = { display_name: 'Site', files: [{ path: 'index.html', content_length: 2 }] }
  const site = await platform.client.call(createGameCdnSite, { params: { game_id }, body })
  await arrives(platform, site.presigned_requests[0]!, 'hi')
  return site.upload_id
}

async function arrivedImage({ platform, game: { game_id } }: World, kind: 'logo' | 'banner'): Promise<string> {
  const prepare = kind === 'logo' ? gameLogoUploadPrepare : gameBannerUploadPrepare
  const body = { path: 'picture.png', content_length: PNG.length }
  const { upload_id, presigned_request } = await platform.client.call(prepare, { params: { game_id }, body })
  await arrives(platform, presigned_request, PNG)
  return upload_id
}
