// Servers that speak the protocols of other platforms, started as `muster dev` starts them. There is no platform.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type GameModeConfig, gameModesOf, type ServerProtocol } from '@musterhost/contract'
import { PROTOCOL_SERVERS } from '../../server/test/runner/protocol-servers.ts'
import { until } from '../../server/test/support/until.ts'
import { DevSeats } from '../src/dev/edge/seats.ts'
import { firstModeOf, GameServer, planServer } from '../src/dev/game-server.ts'
import { Guard } from '../src/dev/guard.ts'
import { DevLobby, FIRST_LOBBY, LOBBY_ID, type LobbyBeginning } from '../src/dev/lobby.ts'
import { freePorts } from '../src/dev/local-platform.ts'
import { openDevProtocol } from '../src/dev/protocol/protocol.ts'
import { readProject } from '../src/project/project.ts'
import { renderTemplate, type TemplateName } from '../src/templates/templates.ts'

const NAMESPACE = { namespace_id: '0190163d-8694-739b-aea5-966c26f8ad92', name_id: 'prod', version_id: LOBBY_ID }
const FIND = { method: 'POST', path: '/lobbies/find', query: new URLSearchParams(), is_server: false }

type Known = Record<string, unknown>

/** What `muster dev` joins together, with a server of this protocol in it. */
class World {
  readonly events: string[] = []
  readonly seats: DevSeats
  lobby!: DevLobby
  server!: GameServer
  #port = 0
  #count = 0

  static start(t: TestContext, { name, options }: ServerProtocol): Promise<World> {
    const folder = temporaryFolder(t)
    for (const [file, text] of Object.entries(PROTOCOL_SERVERS)) writeFileSync(join(folder, file), text)
    const docker = { args: ['node', `${name}.mjs`], ports: { game: { protocol: 'http' as const } }, protocol: name }
    const config = { matchmaker: { game_modes: { default: {} }, docker: { ...docker, protocol_options: options } } }
    return World.of(t, folder, gameModesOf(config).get('default')!)
  }

  /** With the server of a template of `muster init`. */
  static template(t: TestContext, name: TemplateName): Promise<World> {
    const folder = temporaryFolder(t)
    for (const [path, text] of renderTemplate(name, 'my-game')) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), text)
    }
    return World.of(t, join(folder, 'server'), firstModeOf(readProject(folder).version))
  }

  static async of(t: TestContext, folder: string, mode: GameModeConfig): Promise<World> {
    const world = new World()
    const [port] = await freePorts(1)
    world.#port = port!
    const place = {
      ...{ api_url: 'http://127.0.0.1:9', token: 'none', game_id: 'game', namespace: NAMESPACE, secrets: {} },
      ...{ host: '127.0.0.1', ports: { game: { listening: port!, public: port! } }, home: join(folder, 'home') },
    }
    const planOf = (beginning: LobbyBeginning) => planServer(mode, folder, place, process.env, beginning)
    const event = (text: string): void => void world.events.push(text)
    world.lobby = new DevLobby({
      ...{ mode, game_id: 'game', event, connectionCount: () => world.seats.connected_count },
      begin: (beginning, reason) => world.server.restart(reason, planOf(beginning)),
    })
    const stop = (): void => void world.server.stop()
    const around = { lobby: world.lobby, seats: world.seats, event, stop, now: () => Date.now() }
    const protocol = await openDevProtocol(mode.protocol!, around)
    const guard = new Guard()
    world.server = new GameServer(planOf(FIRST_LOBBY), guard, {
      ...{ line: event, event, ended: () => void protocol.end() },
      starting: (plan) => {
        world.lobby.onServerStart()
        world.seats.endAll()
        return protocol.serve({ ...plan.lobby, start_ts: Date.now() })
      },
    })
    t.after(async () => {
      await world.server.stop()
      await protocol.end()
      await guard.close()
      world.seats.close()
    })
    await world.server.restart('first')
    return world
  }

  constructor() {
    const event = (text: string): void => void this.events.push(text)
    this.seats = new DevSeats({
      ...{ lobby_id: LOBBY_ID, namespace_id: NAMESPACE.namespace_id, hold_ms: null, has_protocol: true },
      ...{ player_deadline_ms: 3_600_000, event, now: () => Date.now() },
    })
  }

  /** A find has given a seat. Returns the id of its player and its token. */
  seat(): { player_id: string; token: string } {
    const token = `token-${++this.#count}`
    this.seats.give({ token }, '127.0.0.1')
    return { player_id: this.seats.list().at(-1)!.player_id, token }
  }

  /** Waits until the command has printed this line. */
  async shows(line: string): Promise<void> {
    await until(`${line} among ${this.events.join('; ')}`, () => this.events.includes(line))
  }

  /** What the server knows after the call. It is repeated until the server responds and the check returns true. */
  ask(path: string, check: (known: Known) => boolean = () => true): Promise<Known> {
    return until(`the server responds to ${path}`, async () => {
      const response = await fetch(`http://127.0.0.1:${this.#port}${path}`).catch(() => null)
      if (response?.status !== 200) return null
      const known = (await response.json()) as Known
      return check(known) ? known : null
    })
  }

  /** The first message of the server to a page. */
  async firstEvent(query: string, headers: Record<string, string>, t: TestContext): Promise<string> {
    const leaving = new AbortController()
    t.after(() => leaving.abort())
    const url = `http://127.0.0.1:${this.#port}/events${query}`
    const response = await fetch(url, { headers, signal: leaving.signal })
    assert.equal(response.status, 200)
    const { value } = await response.body!.getReader().read()
    return Buffer.from(value!).toString().split('\n')[0]!
  }

  /** The server may end before it responds. */
  call(path: string): void {
    fetch(`http://127.0.0.1:${this.#port}${path}`).catch(() => null)
  }

  connections(): boolean[] {
    return this.seats.list().map(({ is_connected }) => is_connected)
  }

  /** A player comes, another one comes, and the first one leaves. */
  async comeAndGo([one, two]: [string, string]): Promise<void> {
    await this.ask(`/come?id=${one}`)
    await this.ask(`/come?id=${two}`)
    await until('both players are connected', () => this.connections().join() === 'true,true')
    await this.ask(`/go?id=${one}`)
    await until('the seat of the first one is given back', () => this.connections().join() === 'true')
  }
}

test('dev: a server of Agones is allocated by a seat, reports its players, and its shutdown lets a find start it again', async (t) => {
  const world = await World.start(t, { name: 'agones', options: { lists: { players: { capacity: 4 } } } })
  await world.shows('Agones: Ready')
  await world.shows('lobby: ready')
  const ids: [string, string] = [world.seat().player_id, world.seat().player_id]
  await world.shows('Agones: Allocated')
  const { object_meta } = (await world.ask('/')) as { object_meta: { uid: string } }
  assert.equal(object_meta.uid, LOBBY_ID)
  await world.comeAndGo(ids)
  // The platform counts them too.
  const other = JSON.stringify({ game_modes: ['default'], prevent_auto_create_lobby: true })
  await world.lobby.before({ ...FIND, text: other })

  world.call('/shutdown')
  await world.shows('lobby: ended by its server; the next find starts it again')
  assert.equal(world.seats.connected_count, 0)
  await assert.rejects(world.lobby.before({ ...FIND, text: other }), { code: 'MATCHMAKER_NO_AVAILABLE_LOBBIES' })
  await world.lobby.before({ ...FIND, text: JSON.stringify({ game_modes: ['default'] }) })
  await world.shows('server starts (new lobby)')
  await until('the new server is ready', () => world.events.filter((text) => text === 'Agones: Ready').length === 2)
})

test('dev: a server of GSDK gets the players of its session, and a new start is a new session', async (t) => {
  const world = await World.start(t, { name: 'gsdk', options: {} })
  await world.shows('GSDK: StandingBy')
  await world.shows('lobby: ready')
  const one = world.seat().player_id
  const { session } = await world.ask('/', ({ state }) => state === 'Active')
  assert.deepEqual((session as Known).initialPlayers, [one])
  await world.shows('GSDK: Active')
  await world.comeAndGo([one, world.seat().player_id])
  await world.server.restart('again')
  assert.deepEqual(world.seats.list(), [])
  await until('the new server stands by', () => world.events.filter((text) => text === 'GSDK: StandingBy').length === 2)
  assert.equal((await world.ask('/')).state, 'StandingBy')
})

test('dev: a server of GameLift accepts player sessions by player tokens', async (t) => {
  const world = await World.start(t, { name: 'gamelift', options: {} })
  await world.shows('lobby: ready')
  const [one, two] = [world.seat(), world.seat()]
  const { players } = (await world.ask('/')) as { players: { PlayerId: string }[] }
  assert.deepEqual(
    players.map(({ PlayerId }) => PlayerId),
    [one.player_id, two.player_id],
  )
  await world.comeAndGo([one.token, two.token])
  await world.shows('GameLift: GameSessionActive')
  const response = await world.seats.setPlayers(['stranger'])
  assert.deepEqual([response, world.connections()], [['stranger'], []])
})

test('dev: a server of Multiplay reads its file and its allocation', async (t) => {
  const world = await World.start(t, { name: 'multiplay', options: { metadata: { map: 'cliff' } } })
  const { file, events } = (await world.ask('/', (known) => (known.events as Known[]).length > 0)) as {
    file: Known
    events: Known[]
  }
  assert.deepEqual([file.allocatedUUID, file.map], [LOBBY_ID, 'cliff'])
  assert.deepEqual(new Set(events.map(({ AllocationID }) => AllocationID)), new Set([LOBBY_ID]))
  await world.shows('lobby: ready')
  await world.shows('Multiplay: Ready')
})

for (const name of ['agones', 'multiplay', 'gsdk', 'gamelift'] as const) {
  test(`dev: the template ${name} is ready, and a player enters its game`, async (t) => {
    const world = await World.template(t, name)
    await world.shows('lobby: ready')
    const { player_id, token } = world.seat()
    // Where the platform checks the seats it names the player. The server of GameLift accepts the token.
    const message = await world.firstEvent(`?player_token=${token}`, { 'x-player-id': player_id }, t)
    assert.match(message, /^data: \{"id":1\}$/)
    await world.shows('player 1 joined, 1 here')
    if (name === 'gamelift') assert.deepEqual(world.connections(), [true])
  })
}

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'dev-protocol-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
