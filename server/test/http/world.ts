// Two games of different groups, with a seat, an upload and an invite, and a token of every kind of caller.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import {
  type BodyOf,
  createCloudToken,
  createGameCdnSite,
  createGameNamespaceTokenDevelopment,
  createGameNamespaceTokenPublic,
  createGroupInvite,
  createParty,
  createStatusIncident,
  findLobby,
  type GroupRole,
  kickGroupMember,
  leaveGroup,
  putNoticeTarget,
  putSchedule,
  type putSignInProvider,
  revokeGameCloudToken,
  setupIdentity,
} from '@musterhost/contract'
import type { Platform, TestGame } from '../support/platform.ts'
import type { Seat } from '../support/platform-verbs.ts'
import { until } from '../support/until.ts'
import { LONG_MS, MODES } from './steps.ts'

export type World = {
  platform: Platform
  game: TestGame
  /** A game of other people's. */
  other: TestGame
  seat: Seat
  /** In the same lobby, of a player with an identity. */
  mate: Seat
  other_seat: Seat
  /** A version of the game that is not deployed. */
  next_version_id: string
  /** Of a site that was prepared and has not arrived. */
  upload_id: string
  /** Ids of tokens that nobody here calls with. */
  spare_cloud_id: string
  spare_public_id: string
  spare_development_id: string
  invite_code: string
  /** A target of notices of the game, which is paused. */
  notice_target_id: string
  /** A schedule of the namespace, which is paused. */
  schedule_id: string
  /** An incident of the game. */
  incident_id: string
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

/** It sends nothing. */
export function noticeTargetOf(game_id: string): BodyOf<typeof putNoticeTarget> {
  return { game_id, name: 'team', kind: 'ntfy', topic: 'planted-topic', events: ['players_record'], is_paused: true }
}

/** A provider of sign-ins that no test calls. */
export function signInProviderOf(group_id: string): BodyOf<typeof putSignInProvider> {
  return {
    ...{ title: 'Studio', issuer: 'https://id.example.com', client_id: 'muster', groups_claim: 'groups' },
    rules: [{ value: 'developers', group_id, role: 'developer' }],
  }
}

/** It does nothing. */
export function scheduleOf({ namespace_id }: Pick<TestGame, 'namespace_id'>): BodyOf<typeof putSchedule> {
  const times = { cron: '0 5 * * *', time_zone: 'Europe/Berlin' }
  return { namespace_id, name: 'nightly', kind: 'announce', ...times, text: 'Good night', is_paused: true }
}

export function statusIncidentOf(): BodyOf<typeof createStatusIncident> {
  return { title: 'Slow starts', impact: 'minor', text: 'The cause is searched.' }
}

export async function createWorld(platform: Platform): Promise<World> {
  platform.playServers()
  const { ctx, client } = platform
  const [game, other] = [await gameOf(platform), await gameOf(platform)]
  const [seat, other_seat] = [await game.find(), await other.find()]
  const mate = await platform.as(await identityOf(game)).call(findLobby, { body: { game_modes: ['default'] } })
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
  const target = await client.call(putNoticeTarget, { body: noticeTargetOf(game.game_id) })
  const { schedule } = await client.call(putSchedule, { params, body: scheduleOf(game) })
  const incident = await client.call(createStatusIncident, {
    params: { game_id: game.game_id },
    body: statusIncidentOf(),
  })
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
    mate,
    other_seat,
    next_version_id: await platform.createVersion(game, MODES),
    upload_id: site.upload_id,
    spare_cloud_id: idOf(await cloudToken(game.game_id)),
    spare_public_id: idOf(spare.token),
    spare_development_id: idOf(spare_development.token),
    invite_code: invite.code,
    notice_target_id: target.target_id,
    schedule_id: schedule.schedule_id,
    incident_id: incident.incident_id,
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

/** A game whose seats are still good when the last operations have their turn, however slow the machine is. */
function gameOf(platform: Platform): Promise<TestGame> {
  const limits = { max_players_per_client: 1_000_000, lobby_count_max: 1_000_000 }
  const game_modes = { ...MODES, default: { ...MODES.default, player_deadline_ms: LONG_MS, ratings: {} } }
  return platform.game({ matchmaker: { game_modes }, limits })
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

export function deviceLinkOf({ ctx }: Platform): string {
  const link = { kind: 'device', device_link_id: randomUUID() } as const
  return ctx.keys.issue(link, { now_ms: ctx.now(), lifetime_ms: 3_600_000 })
}
