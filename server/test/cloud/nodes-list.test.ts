// The list of nodes says whether it is whole.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listNodes, NODES_MAX } from '@musterhost/contract'
import { createMuster } from '../../../cli/test/program.ts'
import { startPlatform } from '../platform.ts'

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
