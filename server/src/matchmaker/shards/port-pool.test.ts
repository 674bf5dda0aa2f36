import assert from 'node:assert'
import { test } from 'node:test'
import fc from 'fast-check'
import { pino } from 'pino'
import type { EdgePort } from '../../journal/changes.ts'
import { createPortPool } from './port-pool.ts'

const log = pino({ level: 'silent' })
const QUARANTINE_MS = 60_000
const wanted = (tcp: number, udp: number) => [
  ...Array.from({ length: tcp }, (_, index) => ({ name: `t${index}`, transport: 'tcp' as const })),
  ...Array.from({ length: udp }, (_, index) => ({ name: `u${index}`, transport: 'udp' as const })),
]
const numbers = (first: number, count: number) =>
  (['tcp', 'udp'] as const).flatMap((transport) =>
    Array.from({ length: count }, (_, index) => ({ transport, port: first + index, nodes: [null] })),
  )
const open = (count: number) => {
  const pool = createPortPool(log)
  pool.open(numbers(26_000, count))
  return pool
}

test('a lobby gets all the ports it wants, each of its transport, or none', () => {
  const pool = open(2)
  assert.deepStrictEqual(pool.choose([], 0, null), [])
  assert.deepStrictEqual(pool.choose(wanted(1, 2), 0, null), [
    { name: 't0', transport: 'tcp', port: 26_000 },
    { name: 'u0', transport: 'udp', port: 26_000 },
    { name: 'u1', transport: 'udp', port: 26_001 },
  ])
  assert.strictEqual(pool.choose(wanted(0, 3), 0, null), null)
  assert.strictEqual(createPortPool(log).choose(wanted(1, 0), 0, null), null)
})

test('two ports that want one number get it, free in both transports and at one edge, or none', () => {
  const pair = [
    { name: 'game', transport: 'tcp' as const },
    { name: 'voice', transport: 'udp' as const, same_number_as: 'game' },
  ]
  const pool = open(2)
  // The single port leaves the number that is free in both.
  pool.take(0, { lobby_id: 'udp', edge_ports: [{ name: 'x', transport: 'udp', port: 26_000 }] })
  const single = pool.choose(wanted(1, 0), 0, null)!
  assert.deepStrictEqual(single, [{ name: 't0', transport: 'tcp', port: 26_000 }])
  const chosen = pool.choose([...pair, ...wanted(1, 0)], 0, null)!
  assert.deepStrictEqual(chosen, [
    { name: 'game', transport: 'tcp', port: 26_001 },
    { name: 't0', transport: 'tcp', port: 26_000 },
    { name: 'voice', transport: 'udp', port: 26_001 },
  ])
  pool.take(1, { lobby_id: 'pair', edge_ports: chosen })
  assert.strictEqual(pool.choose(pair, 0, null), null)
  pool.retire(1, { lobby_id: 'pair', edge_ports: chosen, stop_ms: 1 })
  assert.strictEqual(pool.choose(pair, QUARANTINE_MS, null), null, 'both rest')
  assert.strictEqual(pool.choose(pair, QUARANTINE_MS + 1, null)?.[1]?.port, 26_001)

  const edges = createPortPool(log)
  const at = (transport: 'tcp' | 'udp', port: number, node: string | null) => ({ transport, port, nodes: [node] })
  edges.open([at('tcp', 1, 'a'), at('udp', 1, 'b'), at('tcp', 2, null), at('udp', 2, null), at('tcp', 3, 'a')])
  assert.strictEqual(edges.choose(pair, 0, 'a')?.[1]?.port, 2, 'number 1 is at two edges')
  edges.setElsewhere([{ transport: 'udp', port: 2 }])
  assert.strictEqual(edges.choose(pair, 0, 'a'), null)
})

test('law L5: a port that another lobby has cannot be taken', () => {
  const pool = open(1)
  const edge_ports = pool.choose(wanted(1, 0), 0, null)!
  pool.take(0, { lobby_id: 'a', edge_ports })
  assert.throws(() => pool.take(63, { lobby_id: 'b', edge_ports }), /^Error: L5/)
  pool.undo(0, { lobby_id: 'a', edge_ports })
  pool.take(63, { lobby_id: 'b', edge_ports })
})

test('in whatever order lobbies come and go, no port has two of them, and none is used again within a minute', () => {
  type Live = { lobby_id: string; edge_ports: readonly EdgePort[]; shard: number }
  const command = fc.oneof(
    fc.record({ kind: fc.constant('start' as const), tcp: fc.nat(2), udp: fc.nat(2), shard: fc.nat(3) }),
    fc.record({ kind: fc.constant('stop' as const), which: fc.nat(20) }),
    fc.record({ kind: fc.constant('undo' as const), which: fc.nat(20) }),
    fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(90_000) }),
    fc.record({ kind: fc.constant('open' as const), count: fc.integer({ min: 1, max: 12 }) }),
  )
  fc.assert(
    fc.property(fc.array(command, { maxLength: 200 }), (commands) => {
      const pool = open(6)
      let [now_ms, opened, last] = [1_000_000, 6, 0]
      const live: Live[] = []
      const ended = new Map<string, number>()
      for (const item of commands) {
        if (item.kind === 'wait') now_ms += item.ms
        else if (item.kind === 'open') {
          opened = item.count
          pool.open(numbers(26_000, opened))
        } else if (item.kind === 'start') {
          const edge_ports = pool.choose(wanted(item.tcp, item.udp), now_ms, null)
          const taken = new Set(
            live.flatMap((lobby) => lobby.edge_ports.map((port) => `${port.transport} ${port.port}`)),
          )
          const resting = [...ended].filter(([, ms]) => ms + QUARANTINE_MS > now_ms).map(([key]) => key)
          const used = new Set([...taken, ...resting])
          const free = (transport: string) =>
            Array.from({ length: opened }, (_, index) => `${transport} ${26_000 + index}`).filter(
              (key) => !used.has(key),
            )
          if (edge_ports === null) {
            assert.ok(free('tcp').length < item.tcp || free('udp').length < item.udp, 'refused though there are enough')
            continue
          }
          for (const port of edge_ports) {
            assert.ok(!used.has(`${port.transport} ${port.port}`))
            assert.ok(port.port < 26_000 + opened, 'the edge listens at it')
          }
          const lobby = { lobby_id: String(last++), edge_ports, shard: item.shard }
          pool.take(lobby.shard, lobby)
          live.push(lobby)
        } else {
          const [lobby] = live.splice(item.which, 1)
          if (lobby === undefined) continue
          if (item.kind === 'undo') pool.undo(lobby.shard, lobby)
          else {
            pool.retire(lobby.shard, { ...lobby, stop_ms: now_ms })
            for (const port of lobby.edge_ports) ended.set(`${port.transport} ${port.port}`, now_ms)
          }
        }
      }
    }),
    { numRuns: 300 },
  )
})

test('a lobby gets ports of the edge of its own node, then of the platform, then of any edge', () => {
  const pool = createPortPool(log)
  const at = (port: number, ...nodes: (string | null)[]) => ({ transport: 'tcp' as const, port, nodes })
  pool.open([at(1, 'b'), at(2, null), at(3, 'a'), at(4, 'a', null)])
  const chosen = (node_id: string | null, count: number) =>
    pool.choose(wanted(count, 0), 0, node_id)!.map(({ port }) => port)
  assert.deepStrictEqual(chosen('a', 2), [3, 4])
  assert.deepStrictEqual(chosen('b', 2), [1, 2])
  assert.deepStrictEqual(chosen(null, 3), [2, 4, 1])
})
