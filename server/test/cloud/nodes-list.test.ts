// The list of nodes says whether it is whole.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { getNodeUse, listNodes, NODE_USE_NODES_MAX, NODES_MAX } from '@musterhost/contract'
import { createMuster } from '../../../cli/test/program.ts'
import { storeNodeUse } from '../../src/cloud/nodes/node-use.ts'
import { newId } from '../../src/ids.ts'
import { startPlatform } from '../support/platform.ts'

test('a node whose runner is silent is away, though its edge reports; a removed one is taken back as it came', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { ctx, client } = platform
  const { pool } = ctx
  const report = (node_id: string, seconds_ago: number) =>
    pool.query(
      `insert into runners (runner_id, regions, disk_free_bytes, ts)
       values ($1, '{local}', 1e12, now() - make_interval(secs => $2))`,
      [node_id, seconds_ago],
    )
  await report('silent', 15)
  await report('loud', 0)
  for (const node_id of ['silent', 'loud']) {
    await pool.query('insert into edges (edge_id, node_id) values ($1, $2)', [newId(ctx.now()), node_id])
  }
  const { nodes } = await client.call(listNodes, {})
  const states = Object.fromEntries(nodes.map(({ node_id, state }) => [node_id, state]))
  assert.equal(states.silent, 'away')
  assert.equal(states.loud, 'open')

  const muster = createMuster(t, { MUSTER_URL: platform.api_url, MUSTER_TOKEN: platform.token })
  const own = await muster.run(['nodes', 'remove', 'silent', '--yes'])
  assert.match(own.stderr, /muster nodes drain silent --cancel/)
  const back = await muster.run(['nodes', 'drain', 'silent', '--cancel'])
  assert.equal(back.code, 0, back.stderr)
  await pool.query(
    `with node as (insert into nodes (node_id) values ('loud') returning node_id)
     insert into node_links (node_id, key_hash, certificate_expire_ts, version)
     select node_id, 'hash', now() + interval '1 hour', '1' from node`,
  )
  const joined = await muster.run(['nodes', 'remove', 'loud', '--yes'])
  assert.match(joined.stderr, /muster nodes invite --name loud/)
  assert.doesNotMatch(joined.stderr, /--cancel/)
})

test('a list of nodes is complete up to the most that one response has, and says so when there are more', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { ctx, client } = platform
  const { nodes: own } = await client.call(listNodes, {})
  const add = (from: number, count: number) =>
    ctx.pool.query(
      `insert into nodes (node_id) select 'node-' || lpad(n::text, 4, '0') from generate_series($1::integer, $2::integer) as n`,
      [from, from + count - 1],
    )
  const room = NODES_MAX - own.length
  await add(0, room)
  const full = await client.call(listNodes, {})
  assert.equal(full.nodes.length, NODES_MAX)
  assert.equal(full.is_complete, true)

  await add(room, 1)
  const cut = await client.call(listNodes, {})
  assert.equal(cut.nodes.length, NODES_MAX)
  assert.equal(cut.is_complete, false)
  const names = cut.nodes.map(({ node_id }) => node_id)
  assert.deepEqual(names, names.toSorted())
  assert.ok(!names.includes(`node-${String(room).padStart(4, '0')}`))

  const muster = createMuster(t, { MUSTER_URL: platform.api_url, MUSTER_TOKEN: platform.token })
  const shown = await muster.run(['nodes'])
  assert.equal(shown.code, 0, shown.stderr)
  assert.match(shown.stdout + shown.stderr, /There are more nodes: these are the first 1000 by name\./)
  const printed = (await muster.json(['nodes'])) as { is_complete: boolean }
  assert.equal(printed.is_complete, false)

  await ctx.pool.query('delete from nodes where node_id = $1', ['node-0000'])
  assert.equal((await client.call(listNodes, {})).is_complete, true)
  assert.doesNotMatch((await muster.run(['nodes'])).stderr, /There are more nodes/)
})

test('what machines used is kept by the minute for a week, and returned in at most 240 points a machine', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { ctx, client } = platform
  const report = (node_id: string, cpu_cores: number | null, memory_mb: number | null) =>
    ctx.pool.query(
      `insert into runners (runner_id, regions, disk_free_bytes, used_cpu_cores, used_memory_mb, machine_cpu_cores, machine_memory_mb)
       values ($1, '{local}', 1e12, $2, $3, 8, 16000)
       on conflict (runner_id) do update set ts = now(), used_cpu_cores = $2, used_memory_mb = $3`,
      [node_id, cpu_cores, memory_mb],
    )
  const useOf = async (node_id: string, hours?: number) =>
    (await client.call(getNodeUse, { query: { hours } })).nodes.find((node) => node.node_id === node_id)

  await report('silent', null, null)
  await report('fra-1', 2, 4_000)
  await storeNodeUse(ctx)
  // Another process of the api.
  await storeNodeUse(ctx)
  const minute_ms = ctx.now() - (ctx.now() % 60_000)
  const size = { node_id: 'fra-1', cpu_cores_max: 8, memory_mb_max: 16_000 }
  assert.deepEqual(await useOf('fra-1', 1), { ...size, cpu_cores: [2], memory_mb: [4_000], ts: [minute_ms] })
  assert.equal(await useOf('silent'), undefined, 'nothing is known of it')

  platform.advance(60_000)
  await report('fra-1', 3, 5_000)
  await storeNodeUse(ctx)
  assert.deepEqual((await useOf('fra-1', 1))?.cpu_cores, [2, 3])
  // A point is the mean of six minutes for a whole day, and of 42 for a week.
  const day = (await useOf('fra-1'))!
  assert.equal(
    day.ts.every((ts) => ts % 360_000 === 0),
    true,
  )
  assert.ok(day.cpu_cores.every((cores) => cores >= 2 && cores <= 3))

  await ctx.pool.query(
    `insert into node_use select 'old', to_timestamp($1::float8) + n * interval '1 minute', 1, 1, 1, 1
     from generate_series(0, 7 * 1440 - 1) as n`,
    [minute_ms / 1_000 - 7 * 86_400],
  )
  assert.ok((await useOf('old', 168))!.ts.length <= 241)
  platform.advance(60 * 60_000)
  await storeNodeUse(ctx)
  const { rows } = await ctx.pool.query<{ oldest: Date }>(
    "select min(ts) as oldest from node_use where node_id = 'old'",
  )
  assert.ok(rows[0]!.oldest.getTime() >= ctx.now() - 7 * 86_400_000)

  await ctx.pool.query(
    `insert into node_use select 'many-' || n, to_timestamp($1::float8), 1, 1, 1, 1 from generate_series(1, $2) as n`,
    [ctx.now() / 1_000, NODE_USE_NODES_MAX],
  )
  const cut = await client.call(getNodeUse, {})
  assert.equal(cut.nodes.length, NODE_USE_NODES_MAX)
  assert.equal(cut.is_complete, false)
})
