import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Placement } from '../../config/regions.ts'
import { Capacity, type NodeState } from './capacity.ts'
import type { LobbyUse } from './room-claims.ts'

const NO_LIMIT = { cpu_cores: null, memory_mb: null }
const UNSTATED = { cpu_cores: false, memory_mb: false }
const WANTED = { region: 'fra', cpu_cores: 1, memory_mb: 100 }

function capacityOf(
  placement: Placement,
  nodes: readonly { name: string; cores: number; state?: NodeState }[],
): Capacity {
  const capacity = new Capacity([{ name: 'fra', capacity: NO_LIMIT, is_stated: UNSTATED, placement }], NO_LIMIT)
  capacity.setNodes(
    nodes.map(({ name, cores, state = 'open' }) => ({
      node_id: name,
      regions: ['fra'],
      limit: { cpu_cores: cores, memory_mb: null },
      state,
    })),
  )
  return capacity
}

function place(capacity: Capacity): string | null | undefined {
  const chosen = capacity.choose(WANTED)
  if (chosen !== null) capacity.take(0, { ...WANTED, ...chosen })
  return chosen?.node_id
}

test('spread fills the node with the smallest used share, and pack the fullest that has room', () => {
  const nodes = [
    { name: 'a', cores: 2 },
    { name: 'b', cores: 4 },
  ]
  const spread = capacityOf('spread', nodes)
  assert.deepEqual(
    Array.from({ length: 7 }, () => place(spread)),
    ['a', 'b', 'b', 'a', 'b', 'b', undefined],
  )
  const pack = capacityOf('pack', nodes)
  assert.deepEqual(
    Array.from({ length: 7 }, () => place(pack)),
    ['a', 'a', 'b', 'b', 'b', 'b', undefined],
  )
})

test('a node that is away gets a lobby only where no node is open; a draining or full one gets none', () => {
  const of = (...states: NodeState[]) =>
    place(
      capacityOf(
        'spread',
        states.map((state, index) => ({ name: 'abc'[index]!, cores: 1, state })),
      ),
    )
  assert.equal(of('away', 'open'), 'b')
  assert.equal(of('away', 'draining'), 'a')
  assert.equal(of('draining', 'disk_full', 'ports_full'), undefined)
})

test('without any node a lobby has none, and the size of this machine limits such lobbies', () => {
  const region = { name: 'fra', capacity: NO_LIMIT, is_stated: UNSTATED, placement: 'spread' } as const
  const capacity = new Capacity([region], { cpu_cores: 1, memory_mb: null })
  assert.deepEqual([place(capacity), place(capacity)], [null, undefined])
})

test('a node with a reservation keeps the lobby while it is open', () => {
  const capacity = capacityOf('spread', [
    { name: 'a', cores: 1 },
    { name: 'b', cores: 1 },
  ])
  capacity.take(0, { ...WANTED, node_id: 'b' })
  assert.deepEqual(capacity.choose(WANTED, 'b'), { node_id: 'b' })
  capacity.setNodes([{ node_id: 'a', regions: ['fra'], limit: { cpu_cores: 1, memory_mb: null }, state: 'open' }])
  assert.deepEqual(capacity.choose(WANTED, 'b'), { node_id: 'a' })
})

test('the lobbies of a node never exceed its room, in random lives', () => {
  const SIZES = [1 / 16, 1 / 3, 1 / 2, 1, 2]
  const step = fc.tuple(fc.nat({ max: 9 }), fc.nat())
  fc.assert(
    fc.property(
      fc.constantFrom<Placement>('spread', 'pack'),
      fc.array(step, { maxLength: 200 }),
      (placement, steps) => {
        const nodes = [
          { name: 'a', cores: 2 },
          { name: 'b', cores: 4 },
          { name: 'c', cores: 3 },
        ]
        const capacity = capacityOf(placement, nodes)
        const lobbies: { shard: number; use: LobbyUse }[] = []
        for (const [kind, choice] of steps) {
          if (kind < 7) {
            const wanted = { ...WANTED, cpu_cores: SIZES[choice % SIZES.length]! }
            const chosen = capacity.choose(wanted)
            const fits = nodes.some(({ name, cores }) => used(lobbies, name) + wanted.cpu_cores <= cores + 1e-6)
            assert.equal(chosen !== null, fits, 'a lobby is refused only when no node has room')
            if (chosen === null) continue
            const use = { ...wanted, ...chosen }
            lobbies.push({ shard: choice % 64, use })
            capacity.take(choice % 64, use)
          } else {
            const [ended] = lobbies.splice(choice % (lobbies.length + 1), 1)
            if (ended !== undefined) capacity.release(ended.shard, ended.use)
          }
          for (const { name, cores } of nodes) {
            assert.ok(used(lobbies, name) <= cores + 1e-6, `the lobbies of ${name} fit`)
            assert.ok(Math.abs(capacity.usedBy(name).cpu_cores - used(lobbies, name)) < 1e-6)
          }
        }
      },
    ),
  )
})

function used(lobbies: readonly { use: LobbyUse }[], node_id: string): number {
  return lobbies.filter(({ use }) => use.node_id === node_id).reduce((sum, { use }) => sum + use.cpu_cores, 0)
}
