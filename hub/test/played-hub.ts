// A game that has been played, and a person of its group: for the tests of the pages that explain what happened.
import type { TestContext } from 'node:test'
import { type ApiError, type GroupRole, listGameRays, playerConnected } from '@musterhost/contract'
import { LONG_MS } from '../../server/test/http/steps.ts'
import { startMailServer } from '../../server/test/identity/mail-server.ts'
import { logIn } from '../../server/test/identity/people.ts'
import type { TestGame } from '../../server/test/support/platform.ts'
import type { Seat } from '../../server/test/support/platform-verbs.ts'
import { until } from '../../server/test/support/until.ts'
import { type OpenHub, openHub, openView, useSession, type View } from './steps.ts'

export type PlayedHub = OpenHub & {
  game: TestGame
  seat: Seat
  player_id: string
  refused_ray_id: string
  /** The view of a new person with this role in the group of the game. */
  viewAs: (role: GroupRole) => Promise<View>
}

const MODES = {
  default: { idle_grace_ms: LONG_MS, max_players: 4, player_deadline_ms: LONG_MS, ratings: {} },
  ranked: { idle_grace_ms: LONG_MS, max_players: 2, player_deadline_ms: LONG_MS, taggable: true },
  duel: {
    max_players: 2,
    matching: {
      size: { min: 2, max: 2 },
      attributes: { skill: { from: 'player' as const } },
      rules: [{ near: 'skill', within: 100 }],
    },
  },
}
const LIMITS = { max_players_per_client: 1_000, lobby_count_max: 2 }

/** One player is connected, one has a seat, and one request was refused. Null without Chromium. */
export async function openPlayedHub(t: TestContext): Promise<PlayedHub | null> {
  const mail = await startMailServer(t)
  const hub = await openHub(t, { env: { MUSTER_SMTP_URL: mail.url, MUSTER_RAYS_PER_SECOND: '100' } })
  if (hub === null) return null
  const { platform } = hub
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES }, limits: LIMITS })
  const seat = await game.find()
  const server = platform.serverOf(game, seat.lobby.lobby_id)
  await server.call(playerConnected, { body: { player_token: seat.player.token } })
  await game.find({ game_modes: ['ranked'], tags: { map: 'dune' } })
  const refused_ray_id = await game.find({ game_modes: ['ranked'], tags: { map: '<b>hill</b>' } }).then(
    () => '',
    (error: ApiError) => error.ray_id ?? '',
  )
  const { game_id } = game
  await until('the requests are stored', async () => {
    await platform.ctx.recorder.flush()
    const { rays } = await platform.client.call(listGameRays, { params: { game_id }, query: { limit: 100 } })
    const explained = rays.filter(({ has_explanation }) => has_explanation)
    return explained.some(({ ray_id }) => ray_id === refused_ray_id) && explained.length >= 2
  })
  let people = 0
  async function viewAs(role: GroupRole): Promise<View> {
    const { user_id, cookie } = await logIn(platform, mail, `person-${++people}@example.com`)
    const join_ts = new Date(platform.ctx.now())
    await platform.ctx.db
      .insertInto('group_members')
      .values({ group_id: game.group_id, user_id, role, join_ts })
      .execute()
    const view = await openView(hub!)
    // biome-ignore lint/correctness/useHookAtTopLevel: it is no hook, but gives a view its cookie.
    await useSession(hub!, view, cookie)
    return view
  }
  return { ...hub, game, seat, player_id: platform.playerIdOf(seat), refused_ray_id, viewAs }
}
