// The protocol of the leases in random orders of steps, on a real database: heartbeats, shards taken, read, written and handed over,
// processes that are killed, suspended (no step for a while) or whose clocks jump. Safety does not depend on who counts as dead:
// a process that has lost a shard never commits to it, and everything acknowledged is in the journal, in order.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Pool } from 'pg'
import { connect } from '../../src/database/connect.ts'
import { newId } from '../../src/ids.ts'
import { decodePage, encodePage, SHARD_COUNT } from '../../src/journal/pages.ts'
import { planOf } from '../../src/matchmaker/shards/balance.ts'
import { append, takeOver } from '../../src/matchmaker/shards/fence.ts'
import { DEAD_MS, Heartbeats } from '../../src/matchmaker/shards/heartbeats.ts'
import * as leases from '../../src/matchmaker/shards/lease.ts'
import { silent } from '../database/harness.ts'
import { createDatabase } from '../support/database.ts'

const RUNS = Number(process.env.ROUNDS ?? 10)
const STEPS = { minLength: 40, maxLength: 60 }
const PROCESSES = 3
/** Shards that are written. All are taken and given. */
const WRITTEN = [0, 22]
/** Looks of all processes after which nothing changes any more. */
const SETTLING_LOOKS = 10
const BEAT_MS = 500

const KINDS = [
  ...(['beat', 'change', 'hand over', 'read', 'look', 'look', 'write', 'write', 'kill', 'refused', 'ended'] as const),
] as const
const step = fc.record({
  kind: fc.constantFrom(...KINDS),
  process: fc.nat(PROCESSES - 1),
  /** Time that passes for all, and a jump of the clock of this process. */
  ms: fc.nat(900),
  jump_ms: fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(10_000) }),
})
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

/** Written by anybody, by shard. */
type Written = { writer: string; acknowledged: string[] }

class World {
  readonly pool: Pool
  elapsed_ms = 0
  count = 0
  readonly written = new Map<number, Written>(WRITTEN.map((shard) => [shard, { writer: '', acknowledged: [] }]))

  constructor(pool: Pool) {
    this.pool = pool
  }

  newName(): string {
    return newId(++this.count)
  }
}

/** What shard-leases.ts and shard.ts do, a step at a time, with the same statements and the same decisions. */
class Process {
  readonly #world: World
  readonly #node_id: string
  #writer = ''
  #view: leases.LeaseView = { is_member: false, members: [], holders: [], served: new Set() }
  #heartbeats = new Heartbeats()
  #clock_ms = 0
  /** Shards that it has read, with the last row that it knows and the name under which it writes. */
  readonly #open = new Map<number, { seq: number; writer: string }>()
  /** Shards that it has closed, each with the process that gets it. */
  readonly #giving = new Map<number, string>()

  constructor(world: World, node_id: string) {
    this.#world = world
    this.#node_id = node_id
  }

  jump(ms: number): void {
    this.#clock_ms += ms
  }

  /** It is killed, and starts again. */
  async restart(): Promise<void> {
    this.#forget()
    await this.#register(true)
  }

  async beat(): Promise<void> {
    if (this.#writer === '') await this.#register(true)
    const of = { writer: this.#writer, book_ms: 1, served_ms: 1, is_leaving: false }
    this.#view = await leases.beat(this.#world.pool, of)
    this.#heartbeats.observe(this.#view.members, this.#world.elapsed_ms + this.#clock_ms)
    if (this.#view.is_member) return
    this.#forget()
    await this.#register(false)
  }

  /** Its machine refuses connections to another process: whether it has ended or not, nothing is lost. */
  refused(number: number, kind: 'refused' | 'ended'): void {
    const other = this.#view.members[number]
    if (other !== undefined && other.writer !== this.#writer) this.#heartbeats[kind](other.writer)
  }

  async change(): Promise<void> {
    const { members, holders, is_member } = this.#view
    if (!is_member) return
    for (const shard of this.#open.keys()) if (holders[shard] !== this.#writer) this.#open.delete(shard)
    const living = members.filter(({ writer }) => writer === this.#writer || !this.#heartbeats.isDead(writer))
    const writers = living.map(({ writer }) => writer)
    const plan = planOf({ me: this.#writer, eligible: writers, living: new Set(writers), holders })
    const wanted = plan.take.map((shard) => {
      const from = holders[shard] ?? null
      return { shard, from, seen: members.find(({ writer }) => writer === from)?.seen ?? null }
    })
    if (wanted.length > 0) await leases.takeLeases(this.#world.pool, this.#writer, wanted)
    await leases.removeDead(
      this.#world.pool,
      members.filter((member) => !living.includes(member)),
    )
    for (const { shard, to } of plan.give) {
      this.#open.delete(shard)
      this.#giving.set(shard, to)
    }
  }

  async handOver(): Promise<void> {
    for (const [shard, to] of this.#giving) {
      await leases.giveLease(this.#world.pool, { shard, from: this.#writer, to, served_ms: 1 })
    }
    this.#giving.clear()
  }

  /** Reads a shard whose lease it has had at its last look, however long ago that was. */
  async read(shard: number): Promise<void> {
    const is_own = this.#view.is_member && this.#view.holders[shard] === this.#writer
    if (!is_own || this.#open.has(shard) || this.#giving.has(shard)) return
    const writer = this.#world.newName()
    const takeover = await takeOver(this.#world.pool, shard, writer, { now_ms: 1, served_ms: 1 }, null)
    assert.ok(takeover !== null)
    this.#open.set(shard, { seq: takeover.seq, writer })
    this.#world.written.get(shard)!.writer = writer
  }

  /** Appends, if it believes that it may. */
  async write(shard: number): Promise<void> {
    const open = this.#open.get(shard)
    if (open === undefined) return
    const { writer, acknowledged } = this.#world.written.get(shard)!
    const name = this.#world.newName()
    const payload = encodePage({ format: 1, ms: 1, entries: [{ namespace_id: name, changes: [] }] })
    const row = { shard, seq: open.seq + 1, writer: open.writer, payload }
    const { kind } = await append(this.#world.pool, row)
    assert.equal(
      kind,
      open.writer === writer ? 'committed' : 'deposed',
      `shard ${shard}: its last writer alone commits`,
    )
    if (kind === 'committed') {
      open.seq++
      acknowledged.push(name)
    } else this.#open.delete(shard)
  }

  /** Whether it believes that it has the shard, and may acknowledge. */
  isSure(shard: number): boolean {
    return this.#open.has(shard)
  }

  #forget(): void {
    this.#writer = ''
    this.#view = { is_member: false, members: [], holders: [], served: new Set() }
    this.#heartbeats = new Heartbeats()
    this.#open.clear()
    this.#giving.clear()
  }

  async #register(is_restart: boolean): Promise<void> {
    this.#writer = this.#world.newName()
    const of_node = { node_id: this.#node_id, process: { number: 0, count: 1 } }
    const holder = { writer: this.#writer, ...of_node, address: '127.0.0.1:1', is_restart }
    await leases.register(this.#world.pool, holder, () => 1)
  }
}

async function carryOut(world: World, processes: readonly Process[], { kind, process, ms, jump_ms }: Step) {
  const one = processes[process]!
  world.elapsed_ms += ms
  one.jump(jump_ms)
  if (kind === 'beat' || kind === 'look') await one.beat()
  if (kind === 'change' || kind === 'look') await one.change()
  if (kind === 'hand over') await one.handOver()
  for (const shard of WRITTEN) {
    if (kind === 'read' || kind === 'look') await one.read(shard)
    // All that believe that they may write.
    if (kind === 'write') for (const any of processes) await any.write(shard)
  }
  if (kind === 'kill') await one.restart()
  if (kind === 'refused' || kind === 'ended') one.refused(ms % PROCESSES, kind)
}

/** Everything acknowledged is in the journal, in order, and nothing else beside the rows of takeovers. */
async function checkJournal({ pool, written }: World): Promise<void> {
  for (const [shard, { acknowledged }] of written) {
    const { rows } = await pool.query<{ seq: number; payload: Buffer }>(
      'select seq, payload from journal where shard = $1 order by seq',
      [shard],
    )
    assert.deepEqual(
      rows.map(({ seq }) => seq),
      rows.map((_, index) => index + 1),
    )
    const names = rows.flatMap(({ payload }) => decodePage(payload).entries.map(({ namespace_id }) => namespace_id))
    assert.deepEqual(names, acknowledged)
  }
}

/** All processes look regularly again: each shard gets one holder, which reads and writes it. */
async function settle(world: World, processes: readonly Process[]): Promise<void> {
  for (let look = 0; look < SETTLING_LOOKS; look++) {
    world.elapsed_ms += BEAT_MS
    for (const process of processes) {
      await process.beat()
      await process.change()
      await process.handOver()
    }
  }
  for (const process of processes) await process.beat()
  for (const shard of WRITTEN) {
    for (const process of processes) await process.read(shard)
    for (const process of processes) await process.write(shard)
    assert.equal(
      processes.filter((process) => process.isSure(shard)).length,
      1,
      `one process is sure of shard ${shard}`,
    )
  }
  const { rows } = await world.pool.query<{ count: number }>(
    'select count(*)::integer as count from shard_leases join matchmakers using (writer) group by writer',
  )
  const counts = rows.map(({ count }) => count).sort()
  assert.deepEqual(counts, [21, 21, 22])
  assert.equal(SHARD_COUNT, 64)
}

test('in every order of steps, only the last holder of a shard commits, and all that was acknowledged stays', async (t) => {
  assert.ok(SETTLING_LOOKS * BEAT_MS > 2 * DEAD_MS)
  let [write_count, run_count] = [0, 0]
  await fc.assert(
    fc.asyncProperty(fc.array(step, STEPS), async (steps) => {
      const { pool, close } = connect({ url: await createDatabase(t), application_name: 'leases', log: silent })
      try {
        const world = new World(pool)
        const processes = Array.from({ length: PROCESSES }, (_, number) => new Process(world, `node-${number}`))
        for (const one of steps) await carryOut(world, processes, one)
        await settle(world, processes)
        await checkJournal(world)
        run_count++
        for (const { acknowledged } of world.written.values()) write_count += acknowledged.length
      } finally {
        await close()
      }
    }),
    { numRuns: RUNS, seed: 98 },
  )
  t.diagnostic(`${run_count} runs, ${write_count} rows acknowledged`)
})
