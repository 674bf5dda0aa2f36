// Keeps this process's row and its share of the shards: a heartbeat, and after each one what has to change. A shard is free,
// opening here, served here, being given away, or elsewhere. The heartbeat never waits for a shard that is opened or given
// away. A process counts as dead when its heartbeat was not renewed for DEAD_MS, by the clock of the process that watches it.
import type { Pool } from 'pg'
import type { Logger } from 'pino'
import type { ProcessNumber } from '../../config/processes.ts'
import type { Listener } from '../../database/listen.ts'
import { newId } from '../../ids.ts'
import { probe, targetOf } from '../../outbound/tcp-probe.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { planOf } from './balance.ts'
import type { Books } from './books.ts'
import { Heartbeats } from './heartbeats.ts'
import * as leases from './lease.ts'
import { PeerWatch } from './peer-watch.ts'

/** Between two heartbeats of a process that is alone. */
const BEAT_ALONE_MS = 1_000
/** Between two heartbeats where another process waits for them. */
const BEAT_MS = 500
/** Between the begin of two searches for requests that wait for the holder of a shard. */
const REFRESH_MS_MIN = 100
/** How long a process that is silent is asked whether it accepts connections. */
const SUSPECT_PROBE_MS_MAX = 200
/** Shards that are read at the same time. */
const OPENING_MAX = 8
/** How long a process that stops gives its shards away. */
const LEAVE_MS_MAX = 5_000
/** After that it still takes requests of processes and edges that do not know yet. */
const LEAVE_GRACE_MS = 500

type ShardLeasesOptions = {
  pool: Pool
  listener: Listener
  log: Logger
  now: () => number
  elapsed: () => number
  node_id: string
  /** Which matchmaker of the node this one is. */
  process: ProcessNumber
  /** Where other nodes reach this process's HTTP. */
  address: string
}

/** Where the books of a shard are. `address`: null: in this process. */
export type ShardOwner = { writer: string; address: string | null }

export class ShardLeases {
  readonly #options: ShardLeasesOptions
  readonly #books: Books
  #writer = ''
  #view: leases.LeaseView = { is_member: false, members: [], holders: [], served: new Set() }
  readonly #heartbeats = new Heartbeats()
  readonly #peers: PeerWatch
  /** Shards with a lease of this process, whose books are in it and count as served. */
  readonly #served = new Set<number>()
  /** Served shards whose leases do not say so yet. */
  readonly #unmarked = new Set<number>()
  /** Shards of this process that another one has had meanwhile. */
  readonly #regained = new Set<number>()
  readonly #opening = new Map<number, Promise<void>>()
  readonly #giving = new Set<number>()
  #is_leaving = false
  #is_closed = false
  #beating: Promise<void> | null = null
  #must_beat_again = false
  #changing: Promise<void> | null = null
  #must_change_again = false
  #timer: NodeJS.Timeout | undefined
  #refresh_timer: NodeJS.Timeout | undefined
  #beat_ms = 0
  #unsubscribe = (): void => {}
  #changed = Promise.withResolvers<void>()
  /** Requests that wait in other processes. */
  readonly #following = new Set<{ writer: string; shard: number; onLost: () => void }>()

  constructor(options: ShardLeasesOptions, books: Books) {
    this.#options = options
    this.#books = books
    this.#writer = newId(options.now())
    this.#peers = new PeerWatch(options.elapsed, (writer) => this.#onEnded(writer))
  }

  /** Whether this process may have shards: the others know it. */
  get is_member(): boolean {
    return this.#view.is_member
  }

  /** Registers, and waits until the shards of this process can be read. Throws when the database cannot be asked. */
  async start(): Promise<void> {
    await this.#register(true)
    await this.#beat()
    await this.#change()
    // Leases that were just taken.
    await Promise.all(this.#opening.values())
    if (this.#is_closed) return
    this.#unsubscribe = this.#options.listener.on(CHANNELS.shard_leases, () => this.wake())
    this.#schedule()
  }

  /** Where the books of the shard are; null: nowhere, or it is not known. */
  ownerOf(shard: number): ShardOwner | null {
    const writer = this.#view.holders[shard] ?? null
    if (writer === this.#writer) {
      const is_here = !this.#giving.has(shard) && this.#books.shards().includes(shard)
      return is_here ? { writer, address: null } : null
    }
    const member = this.#view.members.find((one) => one.writer === writer)
    return member === undefined ? null : { writer: member.writer, address: member.address }
  }

  /** Calls `onLost` when the process does not have the shard any more. Returns a function that ends it. */
  onLost(writer: string, shard: number, onLost: () => void): () => void {
    const following = { writer, shard, onLost }
    this.#following.add(following)
    return () => void this.#following.delete(following)
  }

  /** Addresses of the other processes that live. */
  peers(): string[] {
    return this.#living()
      .filter(({ writer }) => writer !== this.#writer)
      .map(({ address }) => address)
  }

  /** Resolves when the leases have been read again. However many requests wait, they are read every REFRESH_MS_MIN. */
  async refresh(): Promise<void> {
    const { promise } = this.#changed
    const wait_ms = Math.max(0, this.#beat_ms + REFRESH_MS_MIN - this.#options.elapsed())
    this.#refresh_timer ??= setTimeout(() => {
      this.#refresh_timer = undefined
      this.wake()
    }, wait_ms)
    await promise
  }

  /** There may be a change of leases. */
  wake(): void {
    if (this.#is_closed) return
    if (this.#beating !== null) this.#must_beat_again = true
    else void this.#beatAndChange()
  }

  /** Another process has written the shard: this process reads who has the lease. */
  deposed(shard: number): void {
    this.#served.delete(shard)
    this.wake()
  }

  /** Gives all shards to the other processes, where there are any. Requests that wait for a shard go with it. */
  async leave(): Promise<void> {
    this.#is_leaving = true
    const { elapsed } = this.#options
    const until_ms = elapsed() + LEAVE_MS_MAX
    const has_shards = this.#books.shards().length > 0
    while (this.#books.shards().length > 0 && elapsed() < until_ms && !this.#is_closed) {
      this.wake()
      await this.#beating
      if (this.peers().length === 0) return
      await this.#changing
      await Promise.race([this.#changed.promise, pause(BEAT_MS)])
    }
    if (has_shards) await pause(LEAVE_GRACE_MS)
  }

  /** Ends the heartbeat. What is being opened ends with the books, which are to be closed before release(). */
  async close(): Promise<void> {
    this.#is_closed = true
    this.#unsubscribe()
    clearTimeout(this.#timer)
    clearTimeout(this.#refresh_timer)
    this.#peers.close()
    this.#changed.resolve()
    await this.#beating
  }

  /** After the books are closed: the leases are free at once. `served_ms`: until when all of them were served. */
  async release(served_ms: number | null): Promise<void> {
    await this.#changing
    await leases
      .leave(this.#options.pool, this.#writer, served_ms)
      .catch((error: unknown) =>
        this.#options.log.warn({ err: error }, 'leases could not be released; the next process waits until they end'),
      )
  }

  /** The book time until which all shards of this process that count as served are served. */
  servedMs(): number | null {
    return this.#books.servedNow(this.#served)
  }

  #schedule(): void {
    clearTimeout(this.#timer)
    if (this.#is_closed) return
    const pause_ms = this.#view.members.length <= 1 ? BEAT_ALONE_MS : BEAT_MS
    // A process may count as dead before that.
    const dead_ms = (this.#heartbeats.nextDeadMs() ?? 0) - this.#options.elapsed()
    this.#timer = setTimeout(() => this.wake(), dead_ms > 0 ? Math.min(pause_ms, dead_ms) : pause_ms)
  }

  async #beatAndChange(): Promise<void> {
    const { log } = this.#options
    clearTimeout(this.#timer)
    this.#beating = this.#beat().catch((error: unknown) => log.warn({ err: error }, 'a heartbeat failed; trying again'))
    await this.#beating
    this.#beating = null
    for (const { writer, shard, onLost } of this.#following) if (this.#view.holders[shard] !== writer) onLost()
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
    if (this.#is_closed) return
    this.#beginChange()
    if (this.#must_beat_again) {
      this.#must_beat_again = false
      void this.#beatAndChange()
    } else this.#schedule()
  }

  /** What was seen while a change was under way is carried out after it. */
  #beginChange(): void {
    this.#must_change_again = this.#changing !== null
    this.#changing ??= this.#change()
      .catch((error: unknown) =>
        this.#options.log.warn({ err: error }, 'shards could not be taken or given; trying again'),
      )
      .finally(() => {
        this.#changing = null
        if (this.#must_change_again && !this.#is_closed) this.#beginChange()
      })
  }

  async #register(is_restart: boolean): Promise<void> {
    const { pool, node_id, process, address } = this.#options
    const { time } = this.#books
    await leases.register(pool, { writer: this.#writer, node_id, process, address, is_restart }, (reached) =>
      time.begin(reached),
    )
  }

  async #beat(): Promise<void> {
    const { pool, elapsed } = this.#options
    this.#beat_ms = elapsed()
    const served_ms = this.servedMs()
    const marked = [...this.#served].filter((shard) => !this.#unmarked.has(shard))
    this.#view = await leases.beat(pool, {
      writer: this.#writer,
      book_ms: this.#books.nowMs(),
      served_ms,
      is_leaving: this.#is_leaving,
    })
    if (served_ms !== null && this.#view.is_member) this.#books.time.noteServed(served_ms)
    // Another process had the lease since it was marked, and has given it back: the books may not be the last ones.
    for (const shard of marked) if (!this.#view.served.has(shard)) this.#regained.add(shard)
    this.#heartbeats.observe(this.#view.members, elapsed())
    const others = this.#view.members.filter(({ writer }) => writer !== this.#writer)
    // The connection to a process that is about to stop would hold up its end.
    if (!this.#is_closed) this.#peers.follow(others.filter(({ is_leaving }) => !is_leaving))
    for (const member of others) if (this.#heartbeats.isSuspect(member.writer)) void this.#ask(member)
  }

  /** A machine whose process has ended refuses connections to it. A machine that is gone or cut off does not respond. */
  async #ask({ writer, address }: leases.Member): Promise<void> {
    if ((await probe(targetOf(address), SUSPECT_PROBE_MS_MAX)) !== 'refused') return
    this.#heartbeats.refused(writer)
    this.wake()
  }

  #onEnded(writer: string): void {
    this.#options.log.warn({ writer }, 'a matchmaker has ended: its machine refuses connections')
    this.#heartbeats.ended(writer)
    this.wake()
  }

  #living(): leases.Member[] {
    return this.#view.members.filter(({ writer }) => writer === this.#writer || !this.#heartbeats.isDead(writer))
  }

  /** Carries out what the last reading requires of this process. */
  async #change(): Promise<void> {
    const { pool, log } = this.#options
    const view = this.#view
    await this.#dropLost(view)
    if (!view.is_member) return this.#registerAgain()
    const living = this.#living()
    const plan = planOf({
      me: this.#writer,
      eligible: living.filter(({ is_leaving }) => !is_leaving).map(({ writer }) => writer),
      living: new Set(living.map(({ writer }) => writer)),
      holders: view.holders,
    })
    const own = view.holders.flatMap((writer, shard) => (writer === this.#writer ? [shard] : []))
    const seenOf = (writer: string | null): string | null =>
      view.members.find((member) => member.writer === writer)?.seen ?? null
    const wanted = plan.take.map((shard) => {
      const from = view.holders[shard] ?? null
      return { shard, from, seen: seenOf(from) }
    })
    const taken = wanted.length === 0 ? [] : await leases.takeLeases(pool, this.#writer, wanted)
    if (taken.length > 0) {
      log.info({ shard_count: taken.length }, 'took shards that no live process has')
      const holders = this.#view.holders.map((holder, shard) => (taken.includes(shard) ? this.#writer : holder))
      this.#view = { ...this.#view, holders }
    }
    await this.#open([...own, ...taken])
    await this.#mark()
    const dead = view.members.filter((member) => !living.includes(member))
    if (dead.length > 0) await leases.removeDead(pool, dead)
    for (const { shard, to } of plan.give) await this.#give(shard, to)
  }

  /** Ends shards whose lease another process has by now. */
  async #dropLost(view: leases.LeaseView): Promise<void> {
    for (const shard of this.#books.shards()) {
      const is_ours = view.is_member && view.holders[shard] === this.#writer && !this.#regained.has(shard)
      if (is_ours || this.#opening.has(shard) || this.#giving.has(shard)) continue
      this.#options.log.warn({ shard }, 'another process has the lease of this shard')
      this.#served.delete(shard)
      await this.#books.give(shard)
    }
    this.#regained.clear()
  }

  /** The other processes took this one for dead. The next heartbeat has a new name: nothing under the old one holds any more. */
  async #registerAgain(): Promise<void> {
    this.#writer = newId(this.#options.now())
    await this.#register(false)
  }

  async #open(shards: readonly number[]): Promise<void> {
    const fresh = shards.filter(
      (shard) => !this.#served.has(shard) && !this.#opening.has(shard) && !this.#giving.has(shard),
    )
    if (fresh.length === 0) return
    const served = await leases.servedTimes(this.#options.pool, this.#writer, fresh)
    const next = served.entries()
    const openSome = async (): Promise<void> => {
      for (const [shard, served_ms] of next) await this.#books.take(shard, served_ms)
    }
    // Not awaited: a shard that cannot be read must not keep the others from being taken.
    const opened = this.#books
      .takeEmpty(served)
      .then(() => Promise.all(Array.from({ length: OPENING_MAX }, openSome)))
      .then(() => {})
    for (const shard of served.keys()) this.#opening.set(shard, opened)
    void opened.then(() => this.#onOpened([...served.keys()]))
  }

  async #onOpened(shards: readonly number[]): Promise<void> {
    for (const shard of shards) this.#opening.delete(shard)
    for (const shard of shards) {
      if (this.#books.servedNow([shard]) === null) continue
      this.#served.add(shard)
      this.#unmarked.add(shard)
    }
    await this.#mark()
  }

  /** Until a shard is marked, a crash adds more time to its seats. What fails is tried again after the next heartbeat. */
  async #mark(): Promise<void> {
    const { pool, log } = this.#options
    for (const shard of this.#unmarked) if (!this.#served.has(shard)) this.#unmarked.delete(shard)
    const marked = [...this.#unmarked]
    if (marked.length === 0) return
    try {
      await leases.markServed(pool, this.#writer, marked)
      for (const shard of marked) this.#unmarked.delete(shard)
    } catch (error) {
      log.warn({ err: error }, 'shards could not be marked as served; trying again')
    }
  }

  async #give(shard: number, to: string): Promise<void> {
    if (this.#opening.has(shard) || this.#giving.has(shard)) return
    this.#giving.add(shard)
    this.#served.delete(shard)
    try {
      const served_ms = await this.#books.give(shard)
      await leases.giveLease(this.#options.pool, { shard, from: this.#writer, to, served_ms })
      this.#view = { ...this.#view, holders: this.#view.holders.with(shard, to) }
    } finally {
      this.#giving.delete(shard)
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
