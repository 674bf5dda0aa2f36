// Two machines of one platform, as network namespaces: between them everything is mutual TLS, and another machine reaches nothing.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { listLobbies } from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import pg from 'pg'
import { shardOf } from '../../src/journal/pages.ts'
import { issueProcessCertificate } from '../../src/process-tls/certificate.ts'
import { createKeys, type Keys, openKeys } from '../../src/tokens/keys.ts'
import { ROLE_PROGRAM } from '../run/built-programs.ts'
import { Cluster, OWN_ADDRESS } from '../support/cluster.ts'
import { createDatabase } from '../support/database.ts'
import { inOwnNetwork } from '../support/own-network.ts'
import { createTestGame, type TestGame } from '../support/platform.ts'
import { outputOf } from '../support/programs.ts'
import { until } from '../support/until.ts'
import { attempt, type Target } from './attempts.ts'

const MATCHMAKER_PORT = 8_081
const EDGE_PORT = 8_000
const GAMES_MAX = 24

type Machine = { address: string; data_dir: string; matchmaker: Target }

inOwnNetwork(import.meta.filename, () => {
  test('requests go from machine to machine over TLS, and a machine without the keys reaches nothing', async (t) => {
    const cluster = await Cluster.open(t, ['one', 'two'])
    const database_url = await createDatabase(t)
    // The test is a machine too. Machine `one` lets it create games.
    const env = { MUSTER_INTERNAL_PLAIN_FROM: `${OWN_ADDRESS}/32`, MUSTER_ROLES: 'api,matchmaker,edge' }
    const one = await startMachine(t, { cluster, name: 'one', database_url, env })
    const two = await startMachine(t, {
      cluster,
      name: 'two',
      database_url,
      keys_of: one,
      env: { MUSTER_ROLES: 'matchmaker' },
    })
    const keys = await openKeys(join(one.data_dir, 'keys'))
    const game = await gameOfTwo(t, one, keys, database_url)

    const asked = createClient({ url: `http://${one.address}:${MATCHMAKER_PORT}`, token: game.public_token })
    assert.deepEqual((await asked.call(listLobbies, {})).lobbies, [])
    await until('the edge to ask the other machine', async () => (await listThroughEdge(one, game)) === 200)

    await t.test('the ports of the other machine serve nothing without the certificate of a caller', async () => {
      assert.equal(await attempt(two.matchmaker, keys, null), '', 'plain')
      assert.equal(await attempt(two.matchmaker, keys, {}), '', 'no certificate')
      const stranger = await issueProcessCertificate(createKeys(), 'edge', Date.now())
      assert.equal(await attempt(two.matchmaker, keys, stranger), '', 'of another platform')
      const api = await issueProcessCertificate(keys, 'api', Date.now())
      assert.equal(await attempt(two.matchmaker, keys, api), '', 'of another role')
      assert.match(
        await attempt(two.matchmaker, keys, await issueProcessCertificate(keys, 'edge', Date.now())),
        /^HTTP\/1\.1 [24]\d\d/,
      )
    })
  })
})

type Options = {
  cluster: Cluster
  name: string
  database_url: string
  keys_of?: Machine
  env: Record<string, string>
}

async function startMachine(t: TestContext, { cluster, name, database_url, keys_of, env }: Options): Promise<Machine> {
  const data_dir = mkdtempSync(join(tmpdir(), 'muster-machine-'))
  t.after(() => rmSync(data_dir, { recursive: true, force: true }))
  if (keys_of !== undefined) cpSync(join(keys_of.data_dir, 'keys'), join(data_dir, 'keys'), { recursive: true })
  const { address } = cluster.machine(name)
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env
  const settings = {
    ...{ PATH, HOME, NODE_COMPILE_CACHE },
    MUSTER_DATA: data_dir,
    MUSTER_NODE: name,
    MUSTER_INTERNAL_HOST: address,
    MUSTER_EDGE_HTTP_PORT: String(EDGE_PORT),
    MUSTER_EDGE_HOST: address,
    MUSTER_METRICS_PORT: '0',
    MUSTER_IP_SEED: 'off',
    DATABASE_URL: database_url,
    ...env,
  }
  const output = outputOf(cluster.run(name, [process.execPath, ROLE_PROGRAM], { env: settings }))
  await until(`machine ${name}`, () => output().includes('"ready"')).catch((error: unknown) => {
    throw new Error(output(), { cause: error })
  })
  return { address, data_dir, matchmaker: { host: address, port: MATCHMAKER_PORT } }
}

/** A game whose namespace is in a shard of machine `two`. */
async function gameOfTwo(t: TestContext, one: Machine, keys: Keys, database_url: string) {
  const database = new pg.Client({ connectionString: database_url })
  await database.connect()
  t.after(() => database.end())
  const shards = await until('a share of machine two', async () => {
    const { rows } = await database.query<{ shard: number }>(
      "select shard from shard_leases join matchmakers using (writer) where is_served and node_id = 'two'",
    )
    return rows.length === 32 ? rows.map(({ shard }) => shard) : null
  })
  const api_url = `http://${one.address}:8080`
  const token = keys.issue({ kind: 'access', name: 'test' }, { now_ms: Date.now(), lifetime_ms: null })
  const as = (bearer: string) => createClient({ url: api_url, token: bearer })
  for (let count = 0; count < GAMES_MAX; count++) {
    const game = await createTestGame({ client: as(token), api_url, as })
    if (shards.includes(shardOf(game.namespace_id))) return game
  }
  throw new Error(`none of ${GAMES_MAX} games is in a shard of machine two`)
}

async function listThroughEdge(one: Machine, { public_token }: TestGame): Promise<number> {
  const call = request({
    ...{ host: one.address, port: EDGE_PORT, path: listLobbies.path, method: listLobbies.method, agent: false },
    headers: { host: 'localhost', authorization: `Bearer ${public_token}` },
  })
  call.end(listLobbies.method === 'POST' ? '{}' : undefined)
  const [response] = (await once(call, 'response')) as [IncomingMessage]
  await text(response)
  return response.statusCode!
}
