// Servers of Debian's packages, each deployed by its version config alone: that of docs/any-server.md, or muster.yaml of the
// example. A player with a seat gets the true response of the game through the edge, and a stranger gets none.
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readPage, stepsOf } from '../../server/test/end-to-end/documentation/page.ts'
import { lacking, OPTIONAL_PROGRAMS, type ProgramName } from '../../server/test/run/optional-programs.ts'
import { type Platform, startPlatform } from '../../server/test/support/platform.ts'
import { until } from '../../server/test/support/until.ts'
import {
  armagetronProbe,
  ddnetProbe,
  freecivProbe,
  minetestProbe,
  type OpenProbe,
  openArenaProbe,
  teeworldsProbe,
} from './debian-servers/probes.ts'
import { TeeworldsClient } from './debian-servers/teeworlds-client.ts'
import { type DeployedExample, deployExample, deployFolder } from './example-steps.ts'

const PAGE = 'docs/any-server.md'
const THIS = 'cli/test/debian-servers.long.test.ts'
const STRANGER = '127.0.0.9'
const PLAYER = '127.0.0.1'
/** Maximum number of players of each game mode, except that of Freeciv. */
const MAX_PLAYERS = 16

/** `proved`: as the page says it. `example`: its folder; without it the page has the config. */
type DebianServer = {
  name: string
  program: ProgramName
  example?: string
  probe: OpenProbe
  /** Text of the response, beside the id of the lobby where `is_named`. */
  response?: RegExp
  is_named?: boolean
  players?: number
  proved: string
}

const COUNTED = 'A client connects, and the server counts it'
const SERVERS: readonly DebianServer[] = [
  {
    name: 'Teeworlds',
    program: 'teeworlds-server',
    example: 'teeworlds',
    probe: teeworldsProbe,
    is_named: true,
    players: 1,
    proved: COUNTED,
  },
  {
    name: 'DDNet',
    program: 'ddnet-server',
    probe: ddnetProbe,
    is_named: true,
    players: 1,
    proved: COUNTED,
  },
  {
    name: 'OpenArena',
    program: 'openarena-server',
    probe: openArenaProbe,
    is_named: true,
    players: 0,
    proved: 'Its information: name, map, players and their maximum',
  },
  {
    name: 'Minetest',
    program: 'minetest-server',
    probe: minetestProbe,
    response: /^protocol 4\d$/,
    proved: 'A client gets its id, says its name, and learns how to authenticate',
  },
  {
    name: 'Armagetron',
    program: 'armagetronad-dedicated',
    probe: armagetronProbe,
    is_named: true,
    players: 0,
    proved: 'Its information: name, release, players and their maximum',
  },
  {
    name: 'Freeciv',
    program: 'freeciv-server',
    example: 'freeciv',
    probe: freecivProbe,
    response: /Welcome to the Freeciv version/,
    proved: 'A client joins',
  },
]

test(`servers of Debian's packages play with their version config alone`, async (t) => {
  const programs = SERVERS.map(({ program }) => program)
  if (programs.every((program) => lacking(program) !== null)) return t.skip(lacking(...programs)!)
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge', has_sandboxes: true })
  for (const server of SERVERS) {
    await t.test(`${server.name}: a player with a seat reaches it, and no stranger`, async (server_test) => {
      const missing = lacking(server.program)
      if (missing !== null) return server_test.skip(missing)
      await play(server_test, platform, server)
    })
  }
})

test(`${PAGE} shows these servers, and what is proved`, () => {
  const rows = SERVERS.map(({ name, program, example, proved }) => {
    const config = example === undefined ? 'below' : `[muster.yaml](../examples/${example}/muster.yaml)`
    return `| ${name} | \`${OPTIONAL_PROGRAMS[program].package}\` | ${config} | ${proved} |`
  })
  const page = readPage(PAGE)
  assert.ok(page.includes(`\n${rows.join('\n')}\n\n`), rows.join('\n'))
  const below = SERVERS.filter(({ example }) => example === undefined).map(({ program }) => program)
  assert.deepEqual([...configs().keys()], below)
})

async function play(t: TestContext, platform: Platform, server: DebianServer): Promise<void> {
  const deployed = await deploy(t, platform, server)
  const { lobby, ports } = await deployed.takeSeat()
  const { url } = ports.game!
  const stranger = await server.probe(t, url, STRANGER)
  await stranger.send()

  const player = await server.probe(t, url, PLAYER)
  const { text, players } = await player.ask()
  assert.match(text, server.response ?? /./)
  if (server.is_named) assert.ok(text.includes(lobby.lobby_id), text)
  assert.deepEqual(players, server.players === undefined ? null : { count: server.players, max: MAX_PLAYERS })
  await until('the player to be connected', async () => (await deployed.connected(lobby.lobby_id)) === 1)

  await stranger.send()
  if (server.name === 'Teeworlds') await playBeside(t, deployed, { lobby_id: lobby.lobby_id, url })
  else await player.ask()
  assert.equal(stranger.received(), 0, 'a stranger gets no response')
}

/** A second seat of the same address: another client, which the server sees under another address. */
async function playBeside(
  t: TestContext,
  deployed: DeployedExample,
  { lobby_id, url }: { lobby_id: string; url: string },
): Promise<void> {
  await deployed.takeSeat()
  const second = await TeeworldsClient.open(t, url, PLAYER)
  await second.requestToken()
  await second.connect()
  await second.information(({ clients }) => clients === 2)
  await until('both to be connected', async () => (await deployed.connected(lobby_id)) === 2)
}

function deploy(t: TestContext, platform: Platform, { program, example }: DebianServer): Promise<DeployedExample> {
  if (example !== undefined) return deployExample(t, platform, example)
  const docker = configs().get(program)!
  const head = 'server: { folder: server }\nmatchmaker:'
  const mode = `  game_modes: { default: { max_players: ${MAX_PLAYERS} } }`
  return deployFolder(t, platform, program.replace('-server', '').replace('-dedicated', ''), (folder) => {
    mkdirSync(join(folder, 'server'), { recursive: true })
    writeFileSync(join(folder, 'server/empty'), '')
    writeFileSync(join(folder, 'muster.yaml'), `${head}\n${mode}\n${indented(docker)}\n`)
  })
}

/** The configs of the page, by the program that the first line names. */
function configs(): Map<string, string> {
  const blocks = stepsOf(readPage(PAGE)).flatMap((step) =>
    step.kind === 'block' && step.language === 'yaml' && step.mark === `run by: ${THIS}` ? [step.text] : [],
  )
  return new Map(blocks.map((text) => [/^# (\S+)/.exec(text)?.[1] ?? '', text]))
}

function indented(text: string): string {
  return text.replace(/^(?=.)/gm, '  ')
}
