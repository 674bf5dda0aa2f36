// Lobbies that are started ahead of players, as versions configure them (idle_lobbies). A book gets the rule of its namespace:
// how many idle lobbies may stay. It stops the rest; what is missing is started here, a few at a time. Each process does so for
// the shards that it has. The work begins when a version is deployed, when players take a lobby, when one stops, and every RETRY_MS for what could not be started.
//
// When the lobbies of one version, region and game mode end right after their start, pauses follow, each twice as long
// (watch/start-pauses.ts). A lobby that was ready for STEADY_MS ends them.
import { ApiError, type ErrorCode, idleLobbiesIn } from '@musterhost/contract'
import { sql } from 'kysely'
import type { Context } from '../context.ts'
import { newId } from '../ids.ts'
import type { Change } from '../journal/changes.ts'
import { CHANNELS } from '../wire/channels.ts'
import type { LobbyPlan } from './book/commands.ts'
import * as decide from './book/decide.ts'
import { setIdleRules } from './book/evolve.ts'
import { type IdleRules, NO_IDLE_RULES } from './book/idle.ts'
import type { LobbyKey } from './book/open-lobbies.ts'
import { isInScope, type ScheduleScope } from './book/schedule-rules.ts'
import { plansOf } from './seats/lobby-plan.ts'
import type { Books } from './shards/books.ts'
import { ShardMoved } from './shards/shard-moved.ts'
import type { Namespaces } from './watch/namespaces.ts'
import { StartPauses } from './watch/start-pauses.ts'

/** How often the deployed versions are read, in case the notification of a deploy was lost. */
const READ_EVERY_MS = 30_000
/** The pause before a failed start is tried again. */
const RETRY_MS = 1_000
/** Lobbies of one plan that are started in one go: the runner starts no more at a time. */
const STARTS_MAX = 8
/** Namespaces whose versions are read together. */
const NAMESPACES_MAX = 10_000
/** A lobby that ends sooner than this after it was ready counts as a failed start. */
const STEADY_MS = 60_000

/** Refusals that may not be repeated at the next attempt. */
const LATER: ReadonlySet<ErrorCode> = new Set([
  'MATCHMAKER_TOO_MANY_LOBBIES',
  'MATCHMAKER_REGION_FULL',
  'MATCHMAKER_NO_PORTS',
  'API_NOT_AVAILABLE',
])

/** Changes after which fewer lobbies may wait for players. */
const LEAVES_A_GAP: ReadonlySet<Change['kind']> = new Set<Change['kind']>([
  'player_reserved',
  'lobby_stopped',
  'lobby_closed',
  'lobby_stalled',
  'version_draining',
])

type Wanted = Pick<Deployed, 'version_id' | 'rollout_version_id'> & {
  rules: IdleRules
  plans: readonly { plan: LobbyPlan; idle_min: number }[]
}
/** `rollout_version_id` null: no roll-out is under way. */
type Deployed = { namespace_id: string; version_id: string; rollout_version_id: string | null }

/** More idle lobbies than the version wants, of each game mode and region in the scope. */
export type RaisedIdle = ScheduleScope & { count: number }

export type IdleLobbyKeeper = {
  /** By namespace. Replaces what was raised before. */
  raise: (raised: ReadonlyMap<string, readonly RaisedIdle[]>) => void
  close: () => Promise<void>
}

/** Resolves when every book knows what its namespace wants. */
export async function keepIdleLobbies(ctx: Context, books: Books, namespaces: Namespaces): Promise<IdleLobbyKeeper> {
  const starter = new IdleLobbyStarter(ctx, books, namespaces)
  await starter.open()
  return { raise: (raised) => starter.raise(raised), close: () => starter.close() }
}

class IdleLobbyStarter {
  readonly #ctx: Context
  readonly #books: Books
  readonly #namespaces: Namespaces
  readonly #pauses: StartPauses<null>
  /** What each namespace wants. */
  readonly #wanted = new Map<string, Wanted>()
  /** Namespaces that may have fewer idle lobbies than they want. */
  readonly #lacking = new Set<string>()
  /** Namespaces that have got a lobby, and whose version has not been read. */
  readonly #unknown = new Set<string>()
  /** What schedules want beyond that. */
  #raised: ReadonlyMap<string, readonly RaisedIdle[]> = new Map()
  readonly #ends: (() => void)[] = []
  #working: Promise<void> | null = null
  #must_read_all = true
  /** Something has changed since the work under way began. */
  #has_changed = false
  #is_closed = false

  constructor(ctx: Context, books: Books, namespaces: Namespaces) {
    this.#ctx = ctx
    this.#books = books
    this.#namespaces = namespaces
    this.#pauses = new StartPauses<null>(ctx.elapsed, 0)
  }

  async open(): Promise<void> {
    const unsubscribe = this.#ctx.listener.on(CHANNELS.namespaces, () => {
      this.#must_read_all = true
      this.#wake()
    })
    const endCommits = this.#books.onCommits({
      onCommit: (namespace_id, changes) => this.#onCommit(namespace_id, changes),
      onReload: () => {
        for (const namespace_id of this.#wanted.keys()) {
          this.#setRules(namespace_id)
          this.#lacking.add(namespace_id)
        }
        // The shard may have come from another process, with namespaces that are not known here.
        this.#must_read_all = true
      },
    })
    const retrying = setInterval(() => {
      if (this.#must_read_all || this.#lacking.size + this.#unknown.size > 0) this.#wake()
    }, RETRY_MS)
    const reading = setInterval(() => {
      this.#must_read_all = true
    }, READ_EVERY_MS)
    this.#ends.push(
      () => clearInterval(retrying),
      () => clearInterval(reading),
      unsubscribe,
      endCommits,
    )
    this.#wake()
    await this.#working
  }

  raise(raised: ReadonlyMap<string, readonly RaisedIdle[]>): void {
    const before = this.#raised
    this.#raised = raised
    let has_changed = false
    for (const namespace_id of new Set([...before.keys(), ...raised.keys()])) {
      if (JSON.stringify(before.get(namespace_id)) === JSON.stringify(raised.get(namespace_id))) continue
      // Its version is read again.
      this.#wanted.delete(namespace_id)
      has_changed = true
    }
    if (!has_changed) return
    this.#must_read_all = true
    this.#wake()
  }

  async close(): Promise<void> {
    this.#is_closed = true
    for (const end of this.#ends) end()
    await this.#working
  }

  #wake(): void {
    this.#has_changed = true
    if (this.#is_closed || this.#working !== null) return
    this.#working = this.#work().finally(() => {
      this.#working = null
      if (this.#has_changed) this.#wake()
    })
  }

  async #work(): Promise<void> {
    this.#has_changed = false
    try {
      const fresh = [...this.#unknown]
      this.#unknown.clear()
      if (this.#must_read_all) {
        this.#must_read_all = false
        await this.#readAll()
      } else if (fresh.length > 0) await this.#learnAll(await this.#deployedOf(fresh))
    } catch (error) {
      this.#must_read_all = true
      this.#ctx.log.warn({ err: error }, 'the deployed versions could not be read; trying again')
    }
    for (const namespace_id of [...this.#lacking]) {
      if (this.#is_closed) return
      this.#lacking.delete(namespace_id)
      if (!(await this.#fill(namespace_id))) this.#lacking.add(namespace_id)
    }
  }

  #setRules(namespace_id: string): void {
    const book = this.#books.book(namespace_id)
    if (book !== undefined) setIdleRules(book, this.#rulesOf(namespace_id))
  }

  #rulesOf(namespace_id: string): IdleRules {
    return this.#wanted.get(namespace_id)?.rules ?? NO_IDLE_RULES
  }

  /** Reads which versions are deployed where lobbies live, or where idle lobbies are wanted. */
  async #readAll(): Promise<void> {
    const all = await this.#selectDeployed()
      .where((where) =>
        where.or([
          where(
            'namespaces.namespace_id',
            '=',
            sql<string>`any(${[...this.#books.namespaceIds(), ...this.#raised.keys()]})`,
          ),
          sql<boolean>`jsonb_path_exists(versions.config, '$.matchmaker.**.idle_lobbies')`,
          sql<boolean>`jsonb_path_exists(next.config, '$.matchmaker.**.idle_lobbies')`,
        ]),
      )
      .limit(NAMESPACES_MAX)
      .execute()
    const rows = all.filter(({ namespace_id }) => this.#books.has(namespace_id))
    const there = new Set(rows.map(({ namespace_id }) => namespace_id))
    for (const namespace_id of this.#wanted.keys()) if (!there.has(namespace_id)) this.#forget(namespace_id)
    for (const namespace_id of this.#books.namespaceIds()) if (!there.has(namespace_id)) this.#setRules(namespace_id)
    await this.#learnAll(rows)
  }

  #deployedOf(namespace_ids: readonly string[]): Promise<Deployed[]> {
    return this.#selectDeployed().where('namespaces.namespace_id', '=', sql<string>`any(${namespace_ids})`).execute()
  }

  #selectDeployed() {
    return this.#ctx.db
      .selectFrom('namespaces')
      .innerJoin('versions', 'versions.version_id', 'namespaces.version_id')
      .leftJoin('rollouts', (join) =>
        join.onRef('rollouts.namespace_id', '=', 'namespaces.namespace_id').on('rollouts.end_ts', 'is', null),
      )
      .leftJoin('versions as next', 'next.version_id', 'rollouts.version_id')
      .select(['namespaces.namespace_id', 'versions.version_id', 'rollouts.version_id as rollout_version_id'])
  }

  /** A version that cannot be read does not keep the others from being read. */
  async #learnAll(rows: readonly Deployed[]): Promise<void> {
    for (const row of rows) {
      try {
        await this.#learn(row)
      } catch (error) {
        this.#must_read_all = true
        this.#setRules(row.namespace_id)
        this.#ctx.log.error({ err: error, ...row }, 'a version could not be read; trying again')
      }
    }
  }

  async #learn({ namespace_id, version_id, rollout_version_id }: Deployed): Promise<void> {
    const before = this.#wanted.get(namespace_id)
    if (before?.version_id === version_id && before.rollout_version_id === rollout_version_id) {
      this.#setRules(namespace_id)
      return
    }
    this.#forget(namespace_id)
    const plans = await this.#plansOf(namespace_id, version_id)
    if (rollout_version_id !== null) plans.push(...(await this.#plansOf(namespace_id, rollout_version_id)))
    const idle_max = new Map(plans.map((item) => [keyOf(namespace_id, item.plan), item.idle_max]))
    this.#wanted.set(namespace_id, {
      version_id,
      rollout_version_id,
      rules: {
        version_id,
        rollout_version_id: rollout_version_id ?? undefined,
        idle_max: (lobby) => idle_max.get(keyOf(namespace_id, lobby)) ?? 0,
      },
      plans: plans.filter(({ idle_min }) => idle_min > 0),
    })
    this.#setRules(namespace_id)
    this.#lacking.add(namespace_id)
  }

  async #plansOf(
    namespace_id: string,
    version_id: string,
  ): Promise<{ plan: LobbyPlan; idle_min: number; idle_max: number }[]> {
    const game_modes = await this.#namespaces.gameModes(version_id)
    return plansOf(this.#ctx.config, version_id, game_modes.values()).map((plan) => {
      const { min, max } = idleLobbiesIn(game_modes.get(plan.game_mode)!, plan.region)
      const raised = this.#raised.get(namespace_id)?.filter((one) => isInScope(one, plan)) ?? []
      const raised_min = Math.max(0, ...raised.map(({ count }) => count))
      return { plan, idle_min: Math.max(min, raised_min), idle_max: Math.max(max, raised_min) }
    })
  }

  #forget(namespace_id: string): void {
    this.#wanted.delete(namespace_id)
    this.#pauses.forget(`${namespace_id}\n`)
  }

  /** Returns whether nothing is left to be started. */
  async #fill(namespace_id: string): Promise<boolean> {
    let is_done = true
    for (const { plan, idle_min } of this.#wanted.get(namespace_id)?.plans ?? []) {
      if (this.#pauses.remainingMs(keyOf(namespace_id, plan)) > 0) is_done = false
      else if (!(await this.#start(namespace_id, plan, idle_min))) is_done = false
    }
    return is_done
  }

  /** Returns whether as many idle lobbies exist as are wanted. */
  async #start(namespace_id: string, plan: LobbyPlan, idle_min: number): Promise<boolean> {
    for (let count = 0; count < STARTS_MAX; count++) {
      try {
        const { lobby_count_max } = await this.#namespaces.get(namespace_id)
        const request = { plan, idle_min, lobby_count_max }
        const is_started = await this.#books.commit(namespace_id, (book, env) => {
          // The book may be new, and have no rules.
          setIdleRules(book, this.#rulesOf(namespace_id))
          return decide.prepare(book, request, newId(env.now_ms), env)
        })
        if (!is_started) return true
      } catch (error) {
        if (error instanceof ApiError && error.code === 'NAMESPACE_NOT_FOUND') return true
        // The next holder of the shard starts it.
        if (error instanceof ShardMoved) {
          this.#forget(namespace_id)
          return true
        }
        if (error instanceof ApiError && LATER.has(error.code)) return false
        this.#ctx.log.error({ err: error, namespace_id }, 'an idle lobby could not be started; trying again')
        return false
      }
    }
    return false
  }

  /** After a change of its lobbies a namespace is filled again. A failed lobby begins a pause first. */
  #onCommit(namespace_id: string, changes: readonly Change[]): void {
    const plans = this.#wanted.get(namespace_id)?.plans
    if (plans === undefined) {
      // The first lobby of a namespace whose version has not been read.
      if (!changes.some(({ kind }) => kind === 'lobby_created')) return
      this.#unknown.add(namespace_id)
      setImmediate(() => this.#wake())
      return
    }
    let is_lacking = false
    for (const change of changes) {
      if (change.kind === 'lobby_created') this.#setRules(namespace_id)
      if (plans.length === 0) continue
      if (change.kind === 'lobby_stopped') this.#noteEnd(namespace_id, change)
      is_lacking ||= LEAVES_A_GAP.has(change.kind)
    }
    if (!is_lacking) return
    this.#lacking.add(namespace_id)
    setImmediate(() => this.#wake())
  }

  #noteEnd(namespace_id: string, { lobby_id, ms, reason }: Extract<Change, { kind: 'lobby_stopped' }>): void {
    const lobby = this.#books.lobby(namespace_id, lobby_id)
    if (lobby === undefined) return
    const key = keyOf(namespace_id, lobby)
    if (lobby.ready_ms !== null && ms - lobby.ready_ms >= STEADY_MS) {
      this.#pauses.succeeded(key)
      return
    }
    if (reason !== 'exited' && reason !== 'never_ready') return
    // A check of a version before its deploy pauses no idle lobby.
    const wanted = this.#wanted.get(namespace_id)
    if (lobby.version_id !== wanted?.version_id && lobby.version_id !== wanted?.rollout_version_id) return
    const { failure_count, begin_ms, until_ms } = this.#pauses.failed(key, null)
    const pause_ms = until_ms - begin_ms
    const { region, game_mode } = lobby
    this.#ctx.log.warn(
      { namespace_id, lobby_id, region, game_mode, reason, failure_count, pause_ms },
      'a lobby ended right after its start',
    )
  }
}

function keyOf(namespace_id: string, { version_id, region, game_mode }: LobbyKey): string {
  return `${namespace_id}\n${version_id}\n${region}\n${game_mode}`
}
