// Feeds that are open when the permission of their caller ends: long polls and WebSockets end too, with the refusal
// that a new call would get. Nothing needs to be sent on them for that.
import assert from 'node:assert/strict'
import { subscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'
import { type TestContext, test } from 'node:test'
import {
  ApiError,
  createCloudToken,
  createGameNamespace,
  createGameNamespaceTokenDevelopment,
  createParty,
  deleteGameNamespace,
  deleteMatchmakerLobby,
  getDeviceLink,
  getGroupMembers,
  getKvEntry,
  getLobbyLogs,
  getParty,
  kickGroupMember,
  leaveGroup,
  prepareDeviceLink,
  refreshIdentityToken,
  revokeGameCloudToken,
  revokeToken,
  setGroupMemberRole,
  watchEvents,
} from '@musterhost/contract'
import { type Client, createClient } from '@musterhost/contract/client'
import { WebSocket } from 'ws'
import { startMailServer } from '../identity/mail-server.ts'
import { hub, logIn, say } from '../identity/people.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { LONG_MS } from './steps.ts'
import { identityOf, personOf } from './world.ts'

/** A feed that nobody ends lasts for 30 s at least. On a machine that does nothing else it takes about 0.3 s. */
const ENDED_MS_MAX = 15_000

/** Resolves with the code that it was refused with, or with `answered`. */
type Feed = { name: string; ended: Promise<string> }

/** Long polls that were sent, and those that a role has begun to serve. */
let [polls_sent, polls_begun] = [0, 0]
subscribe('http.server.request.start', (message) => {
  const { request } = message as { request: IncomingMessage }
  if (request.url?.includes('watch_index=')) polls_begun++
})

function poll(name: string, call: Promise<unknown>): Feed {
  polls_sent++
  const refused = (error: unknown): string => {
    if (error instanceof ApiError) return error.code
    throw error
  }
  return { name, ended: call.then(() => 'answered', refused) }
}

function socket(name: string, url: string, query: Record<string, string>): Feed & { opened: Promise<void> } {
  const feed = new WebSocket(`${url.replace('http', 'ws')}?${new URLSearchParams(query)}`)
  const [opened, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()]
  feed.on('message', () => opened.resolve())
  feed.on('open', () => opened.resolve())
  feed.on('error', ended.reject)
  feed.on('close', (code, reason) => ended.resolve(code === 1008 ? String(reason) : `closed with ${code}`))
  return { name, ended: ended.promise, opened: opened.promise }
}

/** What a developer of the game can leave open. */
async function feedsOfDeveloper(platform: Platform, game: TestGame, token: string): Promise<Feed[]> {
  const { game_id, namespace_id } = game
  const { lobby_id } = (await game.find()).lobby
  const client = platform.as(token)
  const logs = getLobbyLogs.path.replace('{game_id}', game_id).replace('{lobby_id}', lobby_id)
  const live = `/cloud/games/${game_id}/namespaces/${namespace_id}/analytics/matchmaker/live`
  const sockets = [
    socket('socket of lobbies', `${platform.api_url}${live}`, { token }),
    socket('socket of a log', `${platform.api_url}${logs}`, { token, stream: 'std_out' }),
  ]
  await Promise.all(sockets.map(({ opened }) => opened))
  const { watch } = await client.call(getKvEntry, { query: { key: 'k', namespace_id } })
  const query = { stream: 'std_out', watch_index: '0.0' } as const
  return [
    ...sockets,
    poll('entry', client.call(getKvEntry, { query: { key: 'k', namespace_id, watch_index: watch.index } })),
    poll('log', client.call(getLobbyLogs, { params: { game_id, lobby_id }, query })),
  ]
}

async function memberFeed({ client }: { client: Client }, group_id: string): Promise<Feed> {
  const params = { group_id }
  const { watch } = await client.call(getGroupMembers, { params })
  return poll('members', client.call(getGroupMembers, { params, query: { watch_index: watch.index } }))
}

/** All of them end, with these codes in their order. */
async function requireEnd(
  t: TestContext,
  { ctx: { pool } }: Platform,
  feeds: readonly Feed[],
  end: () => Promise<unknown>,
  codes: string[],
) {
  // A long poll that comes after the end begins with what is so then, and a viewer's would last.
  await until('the long polls have arrived', () => polls_begun === polls_sent)
  const time = pool.query('select').then(() => 'still open')
  assert.equal(await Promise.race([...feeds.map(({ ended }) => ended), time]), 'still open')
  // The feeds may end before the response to the call that ends them.
  await end()
  const since = performance.now()
  const took: string[] = []
  const found = await Promise.all(
    feeds.map(async ({ name, ended }) => {
      const code = await ended
      const ms = performance.now() - since
      took.push(`${name} ${Math.round(ms)} ms`)
      assert.ok(ms < ENDED_MS_MAX, `${name} lasted ${ms} ms`)
      return code
    }),
  )
  assert.deepEqual(found, codes)
  t.diagnostic(took.join(', '))
}

const userOf = (platform: Platform, token: string): string => {
  const person = platform.ctx.keys.verify(token, platform.ctx.now())
  assert.ok(person.kind === 'user')
  return person.user_id
}

async function start(t: TestContext) {
  const platform = await startPlatform(t)
  platform.playServers()
  const limits = { max_players_per_client: 1_000, lobby_count_max: 1_000 }
  const game_modes = { default: { idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS } }
  return { platform, game: await platform.game({ matchmaker: { game_modes }, limits }) }
}

const UNKNOWN = ['GAME_NOT_FOUND', 'GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND', 'GAME_NOT_FOUND']
const REVOKED = ['TOKEN_REVOKED', 'TOKEN_REVOKED', 'TOKEN_REVOKED', 'TOKEN_REVOKED']

test('the feeds of a member who leaves, is kicked, or loses the right to them, end', async (t) => {
  const { platform, game } = await start(t)
  const { group_id } = game
  const member = async () => {
    const token = await personOf(platform, group_id, 'developer')
    return { token, client: platform.as(token), user_id: userOf(platform, token) }
  }
  const leaver = await member()
  await requireEnd(
    t,
    platform,
    [...(await feedsOfDeveloper(platform, game, leaver.token)), await memberFeed(leaver, group_id)],
    () => leaver.client.call(leaveGroup, { params: { group_id } }),
    [...UNKNOWN, 'GROUP_NOT_FOUND'],
  )
  const kicked = await member()
  const identity_id = kicked.user_id
  await requireEnd(
    t,
    platform,
    [...(await feedsOfDeveloper(platform, game, kicked.token)), await memberFeed(kicked, group_id)],
    () => platform.client.call(kickGroupMember, { params: { group_id, identity_id } }),
    [...UNKNOWN, 'GROUP_NOT_FOUND'],
  )
  // A viewer reads no logs, and everything else as before: its long poll is answered, and the client asks again.
  const lowered = await member()
  const feeds = await feedsOfDeveloper(platform, game, lowered.token)
  const lower = { params: { group_id, identity_id: lowered.user_id }, body: { role: 'viewer' } } as const
  const polls = feeds.filter(({ name }) => name !== 'socket of lobbies')
  const refusal = 'GROUP_INSUFFICIENT_PERMISSIONS'
  await requireEnd(t, platform, polls, () => platform.client.call(setGroupMemberRole, lower), [
    refusal,
    'answered',
    refusal,
  ])
  const lobbies = feeds.find(({ name }) => name === 'socket of lobbies')!
  await requireEnd(t, platform, [lobbies], () => lowered.client.call(leaveGroup, { params: { group_id } }), [
    'GAME_NOT_FOUND',
  ])
})

test('the feeds of a session that has ended, and of a cloud token that was revoked, end', async (t) => {
  const mail = await startMailServer(t)
  const platform = await startPlatform(t, { env: { MUSTER_SMTP_URL: mail.url } })
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: { default: { idle_grace_ms: LONG_MS } } } })
  const { group_id, game_id } = game
  const person = await logIn(platform, mail, 'ada@example.com')
  const { db } = platform.ctx
  const member = { group_id, user_id: person.user_id, role: 'developer', join_ts: new Date() } as const
  await db.insertInto('group_members').values(member).execute()
  const logOut = () => say(platform, refreshIdentityToken, { logout: true }, hub(platform, person.cookie))
  await requireEnd(t, platform, await feedsOfDeveloper(platform, game, person.token), logOut, REVOKED)

  const { token } = await platform.client.call(createCloudToken, { params: { game_id } })
  const { token_id } = platform.ctx.keys.verify(token, platform.ctx.now())
  const revoke = () => platform.client.call(revokeGameCloudToken, { params: { game_id, token_id } })
  await requireEnd(t, platform, await feedsOfDeveloper(platform, game, token), revoke, REVOKED)
})

test('the feeds of a player, and of a program that waits for its link, end with their token', async (t) => {
  const { platform, game } = await start(t)
  const token = await identityOf(game)
  const player = platform.as(token)
  await player.call(createParty, {})
  const party = await player.call(getParty, {})
  const events = await player.call(watchEvents, {})
  const listening = socket('socket of events', `${platform.matchmaker_url}${watchEvents.path}`, {
    identity_token: token,
  })
  await listening.opened
  const feeds = [
    listening,
    poll('events', player.call(watchEvents, { query: { watch_index: events.watch.index } })),
    poll('party', player.call(getParty, { query: { watch_index: party.watch.index } })),
    poll('entry', player.call(getKvEntry, { query: { key: 'k', watch_index: '0' } })),
  ]
  const { token_id } = platform.ctx.keys.verify(token, platform.ctx.now())
  await requireEnd(t, platform, feeds, () => platform.client.call(revokeToken, { params: { token_id } }), REVOKED)

  const anyone = createClient({ url: platform.api_url })
  const { device_link_token, device_link_id } = await anyone.call(prepareDeviceLink, {})
  const link = poll('link', anyone.call(getDeviceLink, { query: { device_link_token, watch_index: 'pending' } }))
  const revoke = () => platform.client.call(revokeToken, { params: { token_id: device_link_id } })
  await requireEnd(t, platform, [link], revoke, ['CLOUD_DEVICE_LINK_INVALID'])
})

test('the feeds of a lobby that has ended, and on a namespace that is deleted, end', async (t) => {
  const { platform, game } = await start(t)
  const { game_id, version_id } = game
  const { lobby_id } = (await game.find()).lobby
  const lobby = platform.as(platform.lobbyToken({ lobby_id, namespace_id: game.namespace_id }))
  const entry = poll('entry', lobby.call(getKvEntry, { query: { key: 'k', watch_index: '0' } }))
  const stop = () => platform.client.call(deleteMatchmakerLobby, { params: { game_id, lobby_id } })
  await requireEnd(t, platform, [entry], stop, ['TOKEN_REVOKED'])

  const body = { display_name: 'Short', name_id: 'short', version_id }
  const { namespace_id } = await platform.client.call(createGameNamespace, { params: { game_id }, body })
  const { token } = await platform.client.call(createGameNamespaceTokenDevelopment, {
    params: { game_id, namespace_id },
    body: { hostname: 'localhost' },
  })
  const query = { key: 'k', watch_index: '0' }
  const live = `/cloud/games/${game_id}/namespaces/${namespace_id}/analytics/matchmaker/live`
  const lobbies = socket('socket of lobbies', `${platform.api_url}${live}`, { token: platform.token })
  // A socket that opens after the end is refused instead of closed.
  await lobbies.opened
  const feeds = [
    poll('by development token', platform.as(token).call(getKvEntry, { query })),
    poll('by the operator', platform.client.call(getKvEntry, { query: { ...query, namespace_id } })),
    lobbies,
  ]
  const remove = () => platform.client.call(deleteGameNamespace, { params: { game_id, namespace_id } })
  await requireEnd(t, platform, feeds, remove, ['NAMESPACE_NOT_FOUND', 'NAMESPACE_NOT_FOUND', 'NAMESPACE_NOT_FOUND'])
})
