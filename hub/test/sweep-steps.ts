// A platform with two groups, and every page of the hub with the address that it has there.
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import {
  createGroupInvite,
  createNodeInvitation,
  listGameRays,
  playerConnected,
  prepareDeviceLink,
  putKvEntry,
  renameGame,
  renameGameBuild,
  renameGameCdnSite,
  renameGameNamespace,
  renameGameVersion,
  setGameSecret,
  setLobbyState,
  updateGameNamespaceVersion,
  updateGroupProfile,
  updateProfile,
} from '@musterhost/contract'
import type { Page } from 'playwright-core'
import { newBuild, newSite } from '../../server/test/cloud/steps.ts'
import { LONG_MS } from '../../server/test/http/steps.ts'
import { startMailServer } from '../../server/test/identity/mail-server.ts'
import { logIn, type Person } from '../../server/test/identity/people.ts'
import { LEAST_SERVER } from '../../server/test/support/builds.ts'
import type { TestGame } from '../../server/test/support/platform.ts'
import { failureOf } from '../../server/test/support/refusal.ts'
import { until } from '../../server/test/support/until.ts'
import { gamePages } from '../src/pages/game/pages.ts'
import { groupPages } from '../src/pages/group/pages.ts'
import { namespacePages } from '../src/pages/namespace/pages.ts'
import { topPages } from '../src/pages/pages.ts'
import { platformPages } from '../src/pages/platform/pages.ts'
import type { PageEntry } from '../src/shell/page-entry.ts'
import { joined } from './people.ts'
import { type OpenHub, openHub } from './steps.ts'

/** Text that would be an element with this attribute if a page took it for markup. */
export const MARK = 'data-m'
export const marked = (what: string): string => `<i ${MARK}>${what}`
/** The records whose text is markup. Each is shown by some page. */
export const MARKED = ['game', 'group', 'namespace', 'version', 'message', 'build', 'site', 'person'].concat(
  ...['tag', 'log', 'key', 'value'],
)

const GAME_MODES = {
  default: { idle_grace_ms: LONG_MS, max_players: 4, player_deadline_ms: LONG_MS, taggable: true },
}
const LIMITS = { max_players_per_client: 1_000, lobby_count_max: 1 }
const SERVER = `console.log(${JSON.stringify(marked('log'))})\n${LEAST_SERVER}`

const FRAMES: readonly (readonly [path: string, pages: readonly PageEntry[]])[] = [
  ['', topPages],
  ['/games/$game_id', gamePages],
  ['/games/$game_id/namespaces/$namespace_id', namespacePages],
  ['/groups/$group_id', groupPages],
  ['/platform', platformPages],
]
/** What follows the path of a page, so that it shows records. */
const QUERIES: Readonly<Record<string, string>> = { '/games/$game_id/search': '?text=$player_id' }
/** Text that a page shows once its records are loaded. Other pages are loaded when nothing says that it loads. */
const SHOWN: Readonly<Record<string, string>> = {
  '/': 'Last deploys',
  '/games/$game_id/rays': 'MATCHMAKER_TOO_MANY_LOBBIES',
  '/games/$game_id/rays/$ray_id': 'lobby_count_max',
  '/games/$game_id/search': 'connected',
  '/games/$game_id/builds': marked('build'),
  '/games/$game_id/sites': marked('site'),
  '/games/$game_id/secrets': 'PAYMENT_KEY',
  '/games/$game_id/namespaces/$namespace_id': marked('message'),
  '/games/$game_id/namespaces/$namespace_id/kv': marked('key'),
  '/games/$game_id/namespaces/$namespace_id/lobbies/$lobby_id': marked('log'),
  '/groups/$group_id': marked('person'),
  '/platform/nodes': 'attic',
}

export type SweptHub = OpenHub & {
  game: TestGame
  /** A game of the other group. */
  other: TestGame
  ids: Readonly<Record<string, string>>
  viewer: Person
  stranger: Person
}

/** `shown`: text that the page shows once it is loaded. */
export type SweptPage = { pattern: string; path: string; shown: string | undefined }

/** Null without Chromium. */
export async function openSweptHub(t: TestContext): Promise<SweptHub | null> {
  const mail = await startMailServer(t)
  const env = { MUSTER_SMTP_URL: mail.url, MUSTER_ACCESS: 'public', MUSTER_RAYS_PER_SECOND: '100' }
  const hub = await openHub(t, { roles: 'api,matchmaker,runner,edge', env })
  if (hub === null) return null
  const { platform } = hub
  const docker = { ports: { game: { protocol: 'http' as const } } }
  const game = await platform.game({
    matchmaker: { game_modes: GAME_MODES },
    files: { 'server.mjs': SERVER },
    limits: LIMITS,
    docker,
  })
  const other = await platform.game({ matchmaker: { game_modes: GAME_MODES } })
  await platform.deploy(other, { ...GAME_MODES, duel: GAME_MODES.default })
  await nameAll(hub, game)
  const played = await playOne(hub, game)
  const { client } = platform
  const { group_id } = game
  const { code } = await client.call(createGroupInvite, { params: { group_id }, body: {} })
  await client.call(createNodeInvitation, { body: { name: 'attic' } })
  const { device_link_token } = await client.call(prepareDeviceLink, { body: { name: 'ada-laptop' } })
  const viewer = await joined(platform, mail, { group_id, role: 'viewer', email: 'viewer@example.com' })
  await viewer.client.call(updateProfile, { body: { display_name: marked('person') } })
  const stranger = await logIn(platform, mail, 'stranger@example.com')
  const { game_id, namespace_id, version_id } = game
  return {
    ...{ ...hub, game, other, viewer, stranger },
    ids: { group_id, game_id, namespace_id, version_id, code, device_link_token, ...played },
  }
}

/** Gives every record of the game a name that is markup. */
async function nameAll({ platform }: OpenHub, game: TestGame): Promise<void> {
  const { client } = platform
  const { game_id, group_id, namespace_id } = game
  const params = { game_id, namespace_id }
  const named = (what: string) => ({ display_name: marked(what) })
  await client.call(updateGroupProfile, { params: { group_id }, body: named('group') })
  await client.call(renameGame, { params, body: named('game') })
  await client.call(renameGameNamespace, { params, body: named('namespace') })
  const version_id = await platform.deploy(game, { ...GAME_MODES, ranked: GAME_MODES.default })
  await client.call(renameGameVersion, { params: { game_id, version_id }, body: named('version') })
  const body = { version_id: game.version_id, message: marked('message') }
  await client.call(updateGameNamespaceVersion, { params, body })
  const build_id = await newBuild(platform, game_id)
  await client.call(renameGameBuild, { params: { game_id, build_id }, body: named('build') })
  const site_id = await newSite(platform, game_id)
  await client.call(renameGameCdnSite, { params: { game_id, site_id }, body: named('site') })
  const entry = { namespace_id, key: marked('key'), value: { text: marked('value') } }
  await client.call(putKvEntry, { body: entry })
  await client.call(setGameSecret, { params: { game_id, name: 'PAYMENT_KEY' }, body: { value: 'planted' } })
}

/** One player is connected to a lobby, and one request was refused. */
async function playOne({ platform }: OpenHub, game: TestGame): Promise<Record<string, string>> {
  const { game_id } = game
  const seat = await game.find({ tags: { map: 'dune' } })
  const { lobby_id } = seat.lobby
  const server = platform.serverOf(game, lobby_id)
  await server.call(playerConnected, { body: { player_token: seat.player.token } })
  await server.call(setLobbyState, { body: { text: marked('state') } })
  const { ray_id } = await failureOf(game.find({ tags: { map: marked('tag') } }))
  await until('the refused request is stored', async () => {
    await platform.ctx.recorder.flush()
    const { rays } = await platform.client.call(listGameRays, { params: { game_id }, query: { code: 'any' } })
    return rays.some((ray) => ray.ray_id === ray_id && ray.has_explanation)
  })
  return { lobby_id, ray_id: ray_id ?? '', player_id: platform.playerIdOf(seat) }
}

/** Every page that the hub has. A parameter without a value fails: a new one gets its record in `openSweptHub`. */
export function pagesOf({ ids }: Pick<SweptHub, 'ids'>): SweptPage[] {
  const withIds = (address: string): string =>
    address.replaceAll(/\$(\w+)/g, (_, name: string) => {
      const id = ids[name]
      assert.ok(id, `The sweep has no record for ${name} of ${address}.`)
      return id
    })
  return FRAMES.flatMap(([frame, entries]) =>
    entries.map(({ path }) => {
      const pattern = frame === '' || path !== '/' ? frame + path : frame
      return { pattern, path: withIds(pattern + (QUERIES[pattern] ?? '')), shown: SHOWN[pattern] }
    }),
  )
}

/** Waits until a page has its title and nothing loads. */
export async function settle(page: Page, shown?: string): Promise<void> {
  await page.waitForFunction(() => {
    const statuses = [...document.querySelectorAll('main [role=status]')]
    const has_title = document.querySelector('main h1') !== null
    return has_title && !statuses.some((status) => status.textContent?.trim().endsWith('…'))
  })
  if (shown !== undefined) await page.getByText(shown).first().waitFor()
}
