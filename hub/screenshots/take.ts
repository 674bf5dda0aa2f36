// `npm run screenshots`: takes a picture of every page of the hub, light and dark, wide and as a phone shows it, into the
// folder screenshots/. The four of the README are copied to docs/. It runs as a test does, on a real platform with a game that
// is played.
import { copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import {
  createGroupInvite,
  createNodeInvitation,
  playerConnected,
  prepareDeviceLink,
  putKvEntry,
  renameGame,
  renameGameVersion,
  setGameSecret,
  updateGameNamespaceVersion,
  updateGroupProfile,
} from '@musterhost/contract'
import { newBuild, newSite } from '../../server/test/cloud/steps.ts'
import { LONG_MS } from '../../server/test/http/steps.ts'
import { LEAST_SERVER } from '../../server/test/support/builds.ts'
import type { TestGame } from '../../server/test/support/platform.ts'
import { failureOf } from '../../server/test/support/refusal.ts'
import { type OpenHub, openHub, openView, PHONE, signInAsAdmin, WIDE } from '../test/steps.ts'
import { pagesOf, settle } from '../test/sweep-steps.ts'

const FOLDER = join(import.meta.dirname, '../../screenshots')
const DOCS = join(import.meta.dirname, '../../docs')
const LOOKS = [
  { name: 'wide-light', viewport: WIDE, colorScheme: 'light' },
  { name: 'wide-dark', viewport: WIDE, colorScheme: 'dark' },
  { name: 'phone-light', viewport: PHONE, colorScheme: 'light' },
  { name: 'phone-dark', viewport: PHONE, colorScheme: 'dark' },
] as const
/** Pages of the README, by their address. */
const README: Readonly<Record<string, string>> = {
  '/': 'hub-home.png',
  '/games/$game_id/namespaces/$namespace_id/lobbies': 'hub-lobbies.png',
  '/games/$game_id/namespaces/$namespace_id/lobbies/$lobby_id': 'hub-lobby.png',
  '/games/$game_id/namespaces/$namespace_id/matchmaker': 'hub-matchmaker.png',
}

const ENV = { MUSTER_RAYS_PER_SECOND: '100', MUSTER_NODE: 'fra-1', MUSTER_CAPACITY_CORES: '8' }
const MODE = { idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS, taggable: true }
const GAME_MODES = { duel: { ...MODE, max_players: 2 }, arena: { ...MODE, max_players: 8 } }
const PLAYERS = 17
const DRAW_MS = 500
/** It prints lines with colours, as servers do. */
const SERVER = `${LEAST_SERVER}
console.log('\\u001b[32mlistening\\u001b[0m')
let round = 0
setInterval(() => {
  console.log('round ' + ++round + ': 3 shards, leader Ada')
  if (round % 5 === 0) console.error('\\u001b[33mwarning\\u001b[0m tick took 21 ms')
}, 700)
`

test('every page has its picture', async (t) => {
  const hub = await openHub(t, { roles: 'api,matchmaker,runner,edge', env: ENV })
  if (hub === null) return
  const ids = await playedGame(hub)
  for (const { name, ...look } of LOOKS) {
    mkdirSync(join(FOLDER, name), { recursive: true })
    const view = await openView(hub, look)
    await signInAsAdmin(hub, view)
    for (const { pattern, path } of pagesOf({ ids })) {
      await view.page.goto(hub.url + path)
      await settle(view.page)
      // Charts are drawn once their module has loaded.
      await view.page.waitForTimeout(DRAW_MS)
      const file = join(FOLDER, name, `${nameOf(pattern)}.png`)
      await view.page.screenshot({ path: file })
      const picture = README[pattern]
      if (picture !== undefined && name === 'wide-light') copyFileSync(file, join(DOCS, picture))
    }
    await view.context.close()
  }
})

function nameOf(pattern: string): string {
  return pattern === '/' ? 'home' : pattern.slice(1).replaceAll('/', '-').replaceAll('$', '')
}

/** A game in which several lobbies are played, one request was refused, and versions were deployed. */
async function playedGame(hub: OpenHub): Promise<Record<string, string>> {
  const { client } = hub.platform
  const docker = { ports: { game: { protocol: 'http' as const } } }
  const limits = { max_players_per_client: 1_000 }
  const game = await hub.platform.game({
    matchmaker: { game_modes: GAME_MODES },
    files: { 'server.mjs': SERVER },
    docker,
    limits,
  })
  const { game_id, group_id, namespace_id } = game
  const params = { game_id, namespace_id }
  await client.call(updateGroupProfile, { params: { group_id }, body: { display_name: 'Harbour Games' } })
  await client.call(renameGame, { params, body: { display_name: 'Shards' } })
  const version_id = await hub.platform.deploy(game, { ...GAME_MODES, ranked: { ...MODE, max_players: 4 } })
  await client.call(renameGameVersion, { params: { game_id, version_id }, body: { display_name: '1.1.0' } })
  const body = { version_id: game.version_id, message: 'Back to the modes of yesterday' }
  await client.call(updateGameNamespaceVersion, { params, body })
  await newBuild(hub.platform, game_id)
  await newSite(hub.platform, game_id)
  for (const key of ['players/ada', 'players/grace', 'rounds/1']) {
    await client.call(putKvEntry, { body: { namespace_id, key, value: { points: key.length } } })
  }
  const secret_namespaces = [
    ['PAYMENT_KEY', {}],
    ['PAYMENT_KEY', { namespace_id }],
    ['LEADERBOARD_URL', {}],
  ] as const
  for (const [name, scope] of secret_namespaces) {
    await client.call(setGameSecret, { params: { game_id, name }, body: { value: 'of the pictures', ...scope } })
  }
  const played = await play(hub, game)
  const { code } = await client.call(createGroupInvite, { params: { group_id }, body: {} })
  await client.call(createNodeInvitation, { body: { name: 'attic' } })
  const { device_link_token } = await client.call(prepareDeviceLink, { body: { name: 'ada-laptop' } })
  return { group_id, game_id, namespace_id, version_id, code, device_link_token, ...played }
}

async function play({ platform }: OpenHub, game: TestGame): Promise<Record<string, string>> {
  const seats = []
  for (let player = 0; player < PLAYERS; player++) {
    const mode = player % 3 === 0 ? 'duel' : 'arena'
    seats.push(await game.find({ game_modes: [mode] }))
  }
  for (const seat of seats.slice(0, -3)) {
    const server = platform.serverOf(game, seat.lobby.lobby_id)
    await server.call(playerConnected, { body: { player_token: seat.player.token } })
  }
  const refused = await failureOf(game.find({ game_modes: ['chess'] }))
  await platform.ctx.recorder.flush()
  const [, seat] = seats
  return {
    lobby_id: seat?.lobby.lobby_id ?? '',
    ray_id: refused.ray_id ?? '',
    player_id: seat === undefined ? '' : platform.playerIdOf(seat),
  }
}
