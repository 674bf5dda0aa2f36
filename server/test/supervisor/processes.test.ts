// `muster start` with several processes of a role: who plays notices neither their number nor the end of one of them.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { findLobby, listAdminProcesses } from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { SHARD_COUNT } from '../../src/journal/pages.ts'
import { freePorts } from '../support/free-ports.ts'
import { createTestGame, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { freeSettings, startMuster, temporaryFolder } from './started.ts'

type Holder = { roles: { role: string; pid: number }[] }

const MATCHMAKERS = 2
const EDGES = 2
const GAMES = 4

/** Each matchmaker after the first has a port that follows the one for lobbies. */
async function settingsOf(t: TestContext) {
  for (;;) {
    const ports = await freePorts(MATCHMAKERS)
    if (ports.some((port, index) => port !== ports[0]! + index)) continue
    return {
      ...(await freeSettings(temporaryFolder(t))),
      MUSTER_LOBBY_API_PORT: String(ports[0]),
      MUSTER_MATCHMAKER_PROCESSES: String(MATCHMAKERS),
      MUSTER_EDGE_PROCESSES: String(EDGES),
      MUSTER_SANDBOX: 'off',
    }
  }
}

test('several matchmakers and edges of one machine serve every namespace, also after one of each was killed', async (t) => {
  const settings = await settingsOf(t)
  const folder = settings.MUSTER_DATA
  const muster = startMuster(settings)
  await muster.ready
  const pids = (): Record<string, number> => {
    const holder: Holder = JSON.parse(readFileSync(join(folder, 'lock-holder.json'), 'utf8'))
    return Object.fromEntries(holder.roles.map(({ role, pid }) => [role, pid]))
  }
  assert.deepEqual(Object.keys(pids()), ['api', 'matchmaker', 'matchmaker-2', 'runner', 'edge', 'edge-2'])
  const url = `http://localhost:${settings.MUSTER_EDGE_HTTP_PORT}`
  const token = readFileSync(join(folder, 'admin-token'), 'utf8').trim()
  const as = (bearer: string) => createClient({ url, token: bearer })
  const client = as(token)
  const processes = async () => (await client.call(listAdminProcesses, {})).processes
  const areSharesEven = async (): Promise<boolean> => {
    const found = (await processes().catch(() => [])).filter(({ role }) => role === 'matchmaker')
    const share = `It has ${SHARD_COUNT / MATCHMAKERS} of ${SHARD_COUNT} shards.`
    return found.length === MATCHMAKERS && found.every(({ text }) => text === share)
  }
  await until('the shares to be even', areSharesEven)
  const listed = (await processes()).flatMap(({ name, role, node_id }) =>
    role === 'edge' || role === 'matchmaker' ? name.replace(` of ${node_id}`, '') : [],
  )
  assert.deepEqual(listed.sort(), ['edge', 'edge-2', 'matchmaker', 'matchmaker-2'])

  // Enough namespaces that each matchmaker has some.
  const games: TestGame[] = []
  for (let count = 0; count < GAMES; count++) games.push(await createTestGame({ client, api_url: url, as }))
  const findAll = () =>
    Promise.all(games.map(({ player }) => player.call(findLobby, { body: { game_modes: ['default'] } })))
  for (const { lobby } of await findAll()) assert.ok(lobby.lobby_id)

  for (const name of ['matchmaker', 'edge']) {
    const killed = pids()[name]!
    process.kill(killed, 'SIGKILL')
    await until(
      `every namespace to be served without ${name}`,
      async () => (await findAll().catch(() => null)) !== null,
    )
    await until(`${name} to be back`, () => (pids()[name] ?? killed) !== killed)
  }
  await until('the shares to be even again', areSharesEven)
  await findAll()
  if (process.env.RESTARTS !== undefined) {
    const before = Object.values(pids())
    muster.kill('SIGUSR2')
    await until('a planned restart of all', () => Object.values(pids()).every((pid) => !before.includes(pid)))
    await findAll()
  }
  muster.signalGroup('SIGINT')
  assert.deepEqual(await muster.ended, { code: 0, signal: null })
})
