// The list of nodes says whether it is whole.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listNodes, NODES_MAX } from '@musterhost/contract'
import { createMuster } from '../../../cli/test/program.ts'
import { newId } from '../../src/ids.ts'
import { startPlatform } from '../platform.ts'

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
