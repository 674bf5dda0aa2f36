// Plays an hour of traffic in three games on the real platform, with a clock that stands still between the steps. The script
// records the result: which lobbies existed, from when to when, and which players were in them.
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import {
  createLobby,
  createParty,
  deleteMatchmakerLobby,
  findLobby,
  joinParty,
  playerConnected,
  playerDisconnected,
  setLobbyClosed,
  setLobbyReady,
  setupIdentity,
  watchEvents,
} from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { createDatabase } from '../support/database.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import type { GameModes, Seat } from '../support/platform-verbs.ts'
import { until } from '../support/until.ts'

/** In the middle of an hour, of a day and of a week. */
export const HOUR_START_MS = Date.parse('2026-03-11T13:00:00Z')
const MINUTE_MS = 60_000
const SEED = 20_260_311

export type Lobby = {
  lobby_id: string
  game: TestGame
  region: string
  game_mode: string
  is_custom: boolean
  created: number
  ready: number | null
  /** From when to when; null: it still is. */
  closed: [number, number | null][]
  stopped: number | null
  failed: boolean
  exit_code: number | null
}
export type Player = {
  lobby: Lobby
  token: string
  reserved: number
  connections: [number, number | null][]
  left: number | null
}
export type Hour = {
  platform: Platform
  games: TestGame[]
  lobbies: Lobby[]
  players: Player[]
  database_url: string
  /** Another life of the platform, at the same time of the clock. */
  restart: () => Promise<Platform>
}

const REGIONS = ['eu', 'us']
const MODES: GameModes = {
  duel: { max_players: 2, idle_grace_ms: 90_000, regions: { eu: {}, us: {} } },
  royale: {
    max_players: 8,
    idle_grace_ms: 3_600_000,
    ready_deadline_ms: 40_000,
    regions: { eu: {}, us: {} },
    actions: { create: { enabled: true, enable_public: true } },
  },
}

/** A lobby is there before anybody asks for it. */
const AHEAD: GameModes = {
  crew: {
    max_players: 4,
    idle_grace_ms: 3_600_000,
    idle_lobbies: { min: 1, max: 1 },
    regions: { eu: {} },
  },
}

export async function playHour(t: TestContext): Promise<Hour> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-hour-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'muster.toml')
  const region = (name: string) =>
    `[[regions]]\nname = "${name}"\ndisplay_name = "${name}"\nlatitude = 1\nlongitude = 1\n`
  await writeFile(file, REGIONS.map(region).join(''))
  const database_url = await createDatabase(t)
  const data_dir = await mkdtemp(join(tmpdir(), 'muster-hour-'))
  t.after(() => rm(data_dir, { recursive: true, force: true }))
  const options = { database_url, data_dir, env: { MUSTER_CONFIG: file } }
  const platform = await startPlatform(t, { ...options, held_ms: HOUR_START_MS })
  const limits = { max_players_per_client: 1_000, lobby_count_max: 1_000 }
  const games = [
    await platform.game({ matchmaker: { game_modes: MODES }, limits }),
    await platform.game({ matchmaker: { game_modes: { duel: MODES.duel! } }, limits }),
    await platform.game({ matchmaker: { game_modes: AHEAD }, limits }),
  ]
  const script = createScript(platform)
  await playSpecials(script, games as [TestGame, TestGame, TestGame])
  await playRandomly(script, games[0]!)
  const { lobbies, players } = script
  const restart = () => startPlatform(t, { ...options, held_ms: platform.ctx.now() })
  return { platform, games, lobbies, players, database_url, restart }
}

type Script = ReturnType<typeof createScript>

function createScript(platform: Platform) {
  const { ctx } = platform
  const lobbies: Lobby[] = []
  const players: Player[] = []
  /** Requests for seats that wait for a lobby to be ready. */
  const waiting = new Map<Lobby, { player: Player; seat: Promise<Seat> }>()
  const now = (): number => ctx.now()

  function enter(lobby: Lobby, token: string): Player {
    const player = { lobby, token, reserved: now(), connections: [], left: null }
    players.push(player)
    return player
  }

  /** Everybody is out from now on. */
  function end(lobby: Lobby): void {
    for (const player of players) if (player.lobby === lobby && player.left === null) leaveNow(player)
    const last = lobby.closed.at(-1)
    if (last?.[1] === null) last[1] = now()
    lobby.stopped = now()
  }

  function leaveNow(player: Player): void {
    player.left = now()
    const last = player.connections.at(-1)
    if (last?.[1] === null) last[1] = now()
  }

  /** A lobby that is created now, and that the script does not know yet. */
  async function opened(game: TestGame, game_mode: string, region: string, is_custom: boolean): Promise<Lobby> {
    const lobby_id = await until('the lobby to be created', async () => {
      const rows = await ctx.db
        .selectFrom('lobbies')
        .where('namespace_id', '=', game.namespace_id)
        .where('ready_ts', 'is', null)
        .where('stop_ts', 'is', null)
        .select('lobby_id')
        .execute()
      return rows.find((row) => lobbies.every((lobby) => lobby.lobby_id !== row.lobby_id))?.lobby_id
    })
    const lobby: Lobby = {
      ...{ lobby_id, game, region, game_mode, is_custom, created: now(), ready: null },
      ...{ closed: [], stopped: null, failed: false, exit_code: null },
    }
    lobbies.push(lobby)
    return lobby
  }

  return {
    lobbies,
    players,
    insideOf: (lobby: Lobby) => players.filter((player) => player.lobby === lobby && player.left === null),
    /** To this time of the hour. */
    go(minute: number, second = 0): void {
      const ms = HOUR_START_MS + minute * MINUTE_MS + second * 1_000 - now()
      assert.ok(ms >= 0, 'time runs forward')
      platform.advance(ms)
    },
    /** A seat in a lobby that is there. */
    async find(game: TestGame, game_mode: string, region: string): Promise<Player> {
      const seat = await game.player.call(findLobby, { body: { game_modes: [game_mode], regions: [region] } })
      return enter(lobbies.find(({ lobby_id }) => lobby_id === seat.lobby.lobby_id)!, seat.player.token)
    },
    /** A seat in a lobby that is opened for it, and is not ready yet. */
    async open(game: TestGame, game_mode: string, region: string, is_custom = false): Promise<Lobby> {
      const seat = is_custom
        ? game.player.call(createLobby, { body: { game_mode, region } })
        : game.player.call(findLobby, { body: { game_modes: [game_mode], regions: [region] } })
      seat.catch(() => {})
      const lobby = await opened(game, game_mode, region, is_custom)
      waiting.set(lobby, { player: enter(lobby, ''), seat })
      return lobby
    },
    /** By the platform, ahead of who may come. */
    expectOpened: (game: TestGame, game_mode: string, region: string) => opened(game, game_mode, region, false),
    /** Seats of a party, its leader's first, in a lobby that is there. */
    async findTogether(game: TestGame, game_mode: string, region: string, size: number): Promise<Player[]> {
      const clients: Client[] = []
      for (let number = 0; number < size; number++) {
        const { identity_token } = await game.player.call(setupIdentity, { body: {} })
        clients.push(platform.as(identity_token))
      }
      const [leader, ...others] = clients as [Client, ...Client[]]
      const { party } = await leader.call(createParty, {})
      for (const client of others) await client.call(joinParty, { body: { code: party.code } })
      const body = { game_modes: [game_mode], regions: [region], party: true }
      const seat = await leader.call(findLobby, { body })
      const lobby = lobbies.find(({ lobby_id }) => lobby_id === seat.lobby.lobby_id)!
      const seated = [enter(lobby, seat.player.token)]
      for (const client of others) {
        const { events } = await client.call(watchEvents, {})
        seated.push(enter(lobby, events[0]!.kind.matchmaker_lobby_join!.player.token))
      }
      return seated
    },
    async ready(lobby: Lobby): Promise<void> {
      await platform.serverOf(lobby.game, lobby.lobby_id).call(setLobbyReady, {})
      lobby.ready = now()
    },
    /** Returns the players who waited for it. */
    async readyFor(lobby: Lobby): Promise<Player> {
      await this.ready(lobby)
      const { player, seat } = waiting.get(lobby)!
      player.token = (await seat).player.token
      return player
    },
    async connect(player: Player): Promise<void> {
      const { lobby, token } = player
      await platform.serverOf(lobby.game, lobby.lobby_id).call(playerConnected, { body: { player_token: token } })
      player.connections.push([now(), null])
    },
    /** `hold_ms`: how long the seat is kept. */
    async disconnect(player: Player, hold_ms = 0): Promise<void> {
      const { lobby, token } = player
      const body = { player_token: token, hold_ms }
      await platform.serverOf(lobby.game, lobby.lobby_id).call(playerDisconnected, { body })
      if (hold_ms === 0) leaveNow(player)
      else player.connections.at(-1)![1] = now()
    },
    async setClosed(lobby: Lobby, is_closed: boolean): Promise<void> {
      await platform.serverOf(lobby.game, lobby.lobby_id).call(setLobbyClosed, { body: { is_closed } })
      if (is_closed) lobby.closed.push([now(), null])
      else lobby.closed.at(-1)![1] = now()
    },
    /** By a developer. */
    async stop(lobby: Lobby): Promise<void> {
      const params = { game_id: lobby.game.game_id, lobby_id: lobby.lobby_id }
      await platform.client.call(deleteMatchmakerLobby, { params })
      end(lobby)
    },
    /** Its process exits. */
    async exit(lobby: Lobby, exit_code: number | null, exit_reason: string, failed: boolean): Promise<void> {
      await platform.endRun(lobby.lobby_id, { exit_code, exit_reason })
      await isStopped(platform, lobby, 'exited')
      end(lobby)
      lobby.failed = failed
      lobby.exit_code = exit_code
    },
    /** Time ends it. */
    async expectStop(lobby: Lobby, reason: 'idle' | 'never_ready'): Promise<void> {
      await isStopped(platform, lobby, reason)
      end(lobby)
      lobby.failed = reason === 'never_ready'
    },
    /** The player's deadline passes. */
    async expectRemoved(player: Player): Promise<void> {
      const { player_id } = ctx.keys.verify(player.token, now()) as unknown as { player_id: string }
      await until('the player to be removed', async () => {
        const rows = ctx.db.selectFrom('players').where('player_id', '=', player_id).where('remove_ts', 'is not', null)
        return (await rows.select('player_id').execute()).length > 0
      })
      leaveNow(player)
    },
    /** The process of a lobby that is stopped already. */
    async endProcess(lobby: Lobby, exit_code: number): Promise<void> {
      await platform.endRun(lobby.lobby_id, { exit_code, exit_reason: 'stopped' })
      lobby.exit_code = exit_code
    },
  }
}

async function isStopped({ ctx }: Platform, { lobby_id }: Lobby, reason: string): Promise<void> {
  const stop_reason = await until('the lobby to be stopped', async () => {
    const query = ctx.db.selectFrom('lobbies').where('lobby_id', '=', lobby_id).select('stop_reason')
    return (await query.executeTakeFirst())?.stop_reason
  })
  assert.equal(stop_reason, reason)
}

/** Every kind of event that is counted, at different times. */
async function playSpecials(script: Script, [first, second, third]: [TestGame, TestGame, TestGame]): Promise<void> {
  const { go } = script
  const ahead = await script.expectOpened(third, 'crew', 'eu')
  go(0, 4)
  await script.ready(ahead)
  go(0, 10)
  const duel = await script.open(first, 'duel', 'eu')
  go(0, 17)
  const ann = await script.readyFor(duel)
  go(0, 20)
  await script.connect(ann)
  const ben = await script.find(first, 'duel', 'eu')
  go(1, 5)
  await script.connect(ben)
  const royale = await script.open(first, 'royale', 'us', true)
  go(1, 25)
  const cleo = await script.readyFor(royale)
  await script.setClosed(royale, true)
  go(2, 1)
  // The seat is kept, and the player is back.
  await script.disconnect(ben, 120_000)
  go(2, 41)
  await script.connect(ben)
  await script.setClosed(royale, false)
  const other = await script.open(second, 'duel', 'us')
  go(2, 50)
  const dan = await script.readyFor(other)
  await script.connect(dan)
  // Never connected: the time of the player is over, and that of the lobby's server.
  const failing = await script.open(first, 'royale', 'eu', true)
  go(3, 35)
  await script.expectStop(failing, 'never_ready')
  await script.expectRemoved(cleo)
  go(3, 50)
  await script.endProcess(failing, 137)
  go(4, 10)
  await script.disconnect(ann)
  await script.disconnect(ben)
  go(5, 45)
  await script.expectStop(duel, 'idle')
  // Its end is unknown.
  const closed = await script.open(second, 'duel', 'eu')
  go(5, 46)
  await script.connect(await script.readyFor(closed))
  await script.setClosed(closed, true)
  go(6, 30)
  await script.exit(closed, null, 'lost', true)
  await script.exit(other, 0, 'exit', false)
  go(7, 30)
  const crashed = await script.open(first, 'duel', 'us')
  go(7, 42)
  await script.connect(await script.readyFor(crashed))
  go(9, 42)
  await script.exit(crashed, 134, 'signal', true)
  // It has not even become ready.
  const broken = await script.open(first, 'royale', 'us', true)
  go(9, 43)
  await script.exit(broken, 1, 'exit', true)
  go(10, 0)
  await script.stop(royale)
  go(10, 15)
  await script.endProcess(royale, 143)
  // They come together. The next player finds a waiting lobby again.
  go(10, 20)
  const [leader, member, late] = await script.findTogether(third, 'crew', 'eu', 3)
  const spare = await script.expectOpened(third, 'crew', 'eu')
  go(10, 31)
  await script.connect(leader!)
  await script.ready(spare)
  go(10, 50)
  await script.connect(member!)
  go(11, 10)
  await script.disconnect(member!)
  go(12, 21)
  await script.expectRemoved(late!)
}

/** After twenty quiet minutes: who comes, plays and leaves as chance has it. */
async function playRandomly(script: Script, game: TestGame): Promise<void> {
  const chance = createChance(SEED)
  const live = () => script.lobbies.filter(({ game: of, stopped }) => of === game && stopped === null)
  for (let step = 0; step < 120; step++) {
    script.go(30, step * 14 + Math.floor(chance() * 10))
    const ready = live().filter((lobby) => lobby.ready !== null)
    const lobby = ready[Math.floor(chance() * ready.length)]
    const inside = live().flatMap(script.insideOf)
    const player = inside[Math.floor(chance() * inside.length)]
    const choice = chance()
    const unready = live().find((one) => one.ready === null)
    if (unready !== undefined) await script.connect(await script.readyFor(unready))
    else if (choice < 0.35 || lobby === undefined || player === undefined) {
      const region = REGIONS[Math.floor(chance() * REGIONS.length)]!
      const has_room = ready.some((one) => one.region === region && isOpen(one) && script.insideOf(one).length < 8)
      if (has_room) await script.connect(await script.find(game, 'royale', region))
      else await script.open(game, 'royale', region)
    } else if (choice < 0.65) await script.disconnect(player)
    else if (choice < 0.75) {
      const exit_code = Math.floor(chance() * 3)
      await script.exit(lobby, exit_code, 'exit', exit_code !== 0)
    } else if (choice < 0.85) await script.setClosed(lobby, isOpen(lobby))
    else if (choice < 0.9) {
      await script.stop(lobby)
      await script.endProcess(lobby, 143)
    }
  }
  // No player waits, so the platform may stop without an effect.
  for (const lobby of live()) if (lobby.ready === null) await script.readyFor(lobby)
}

function isOpen({ closed }: Lobby): boolean {
  return closed.at(-1)?.[1] !== null
}

/** Numbers below 1, the same in every run (mulberry32). */
function createChance(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
