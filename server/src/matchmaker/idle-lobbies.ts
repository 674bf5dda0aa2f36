// Lobbies that run ahead of players, as versions want them (idle_lobbies): what a namespace wants is told to its book,
// which keeps so many and stops the rest; what is missing is started here, a few at a time. Looked at when a version is
// deployed, when players took a lobby or one stopped, and every RETRY_MS for what could not be started.
//
// A place whose lobbies end at once is given a pause, twice as long each time (watch/start-pauses.ts), until one has run for
// STEADY_MS.
import { ApiError, type ErrorCode, idleLobbiesIn } from '@muster/contract'
import { sql } from 'kysely'
import type { Context } from '../context.ts'
import { newId } from '../ids.ts'
import type { Change } from '../journal/changes.ts'
import type { LobbyPlan } from './book/commands.ts'
import * as decide from './book/decide.ts'
import { setIdleRules } from './book/evolve.ts'
import { type IdleRules, NO_IDLE_RULES } from './book/idle.ts'
import type { LobbyKey } from './book/open-lobbies.ts'
import { plansOf } from './seats/request.ts'
import type { Books } from './shards/books.ts'
import type { Namespaces } from './watch/namespaces.ts'
import { StartPauses } from './watch/start-pauses.ts'

/** How often the versions of namespaces are read, in case the word of a deploy was lost. */
const LOOK_EVERY_MS = 30_000
/** What could not be started is tried again after this. */
const RETRY_MS = 1_000
/** Of a place, in one go: the runner starts no more at once than that. */
const STARTS_MAX = 8
/** Namespaces that are looked at together. */
const NAMESPACES_MAX = 10_000
/** Lobbies that ended sooner than this after they were ready count as failed. */
const STEADY_MS = 60_000

/** Refusals that may be none the next time. */
const LATER: ReadonlySet<ErrorCode> = new Set([
  'MATCHMAKER_TOO_MANY_LOBBIES',
  'MATCHMAKER_REGION_FULL',
  'MATCHMAKER_NO_PORTS',
  'API_NOT_AVAILABLE',
])

/** After these a place may have fewer lobbies that wait for players. */
const LEAVES_A_GAP: ReadonlySet<Change['kind']> = new Set<Change['kind']>([
  'player_reserved',
  'lobby_stopped',
  'lobby_closed',
  'lobby_stalled',
  'version_draining',
])

type Wanted = { version_id: string; rules: IdleRules; plans: readonly { plan: LobbyPlan; idle_min: number }[] }
type Deployed = { namespace_id: string; version_id: string }

export type IdleLobbies = { close: () => Promise<void> }

/** Resolves when every book knows what its namespace wants. */
export async function keepIdleLobbies(ctx: Context, books: Books, namespaces: Namespaces): Promise<IdleLobbies> {
  const wanted = new Map<string, Wanted>()
  const pauses = new StartPauses<null>(ctx.elapsed, 0)
  const lacking = new Set<string>()
  /** Namespaces that have got a lobby and were not known to have any. */
  const unknown = new Set<string>()
  let working: Promise<void> | null = null
  let must_look = true
  /** Something has changed since the work under way began. */
  let again = false
  let is_closed = false

  const keyOf = (namespace_id: string, { version_id, region, game_mode }: LobbyKey): string =>
    `${namespace_id}\n${version_id}\n${region}\n${game_mode}`

  function tell(namespace_id: string): void {
    const book = books.book(namespace_id)
    if (book !== undefined) setIdleRules(book, wanted.get(namespace_id)?.rules ?? NO_IDLE_RULES)
  }

  /** Reads which versions are deployed where lobbies live, or are wanted. */
  async function lookAtAll(): Promise<void> {
    const rows = await deployed()
      .where((where) =>
        where.or([
          where('namespace_id', '=', sql<string>`any(${books.namespaceIds()})`),
          sql<boolean>`jsonb_path_exists(config, '$.matchmaker.**.idle_lobbies')`,
        ]),
      )
      .limit(NAMESPACES_MAX)
      .execute()
    const there = new Set(rows.map(({ namespace_id }) => namespace_id))
    for (const namespace_id of wanted.keys()) if (!there.has(namespace_id)) forget(namespace_id)
    for (const namespace_id of books.namespaceIds()) if (!there.has(namespace_id)) tell(namespace_id)
    await learnAll(rows)
  }

  async function lookAt(namespace_ids: readonly string[]): Promise<void> {
    const rows = await deployed().where('namespace_id', '=', sql<string>`any(${namespace_ids})`).execute()
    await learnAll(rows)
  }

  /** Whatever is wrong with the version of one, the others must not suffer. */
  async function learnAll(rows: readonly Deployed[]): Promise<void> {
    for (const row of rows) {
      try {
        await learn(row)
      } catch (error) {
        must_look = true
        tell(row.namespace_id)
        ctx.log.error({ err: error, ...row }, 'a version could not be read; trying again')
      }
    }
  }

  const deployed = () =>
    ctx.db
      .selectFrom('namespaces')
      .innerJoin('versions', 'versions.version_id', 'namespaces.version_id')
      .select(['namespace_id', 'versions.version_id'])

  function forget(namespace_id: string): void {
    wanted.delete(namespace_id)
    pauses.forget(`${namespace_id}\n`)
  }

  async function learn({ namespace_id, version_id }: Deployed): Promise<void> {
    if (wanted.get(namespace_id)?.version_id === version_id) {
      tell(namespace_id)
      return
    }
    forget(namespace_id)
    const game_modes = await namespaces.gameModes(version_id)
    const places = plansOf(ctx.config, version_id, game_modes.values()).map((plan) => {
      const { min, max } = idleLobbiesIn(game_modes.get(plan.game_mode)!, plan.region)
      return { plan, idle_min: min, idle_max: max }
    })
    const idle_max = new Map(places.map((place) => [keyOf(namespace_id, place.plan), place.idle_max]))
    wanted.set(namespace_id, {
      version_id,
      rules: { version_id, idle_max: (place) => idle_max.get(keyOf(namespace_id, place)) ?? 0 },
      plans: places.filter(({ idle_min }) => idle_min > 0),
    })
    tell(namespace_id)
    lacking.add(namespace_id)
  }

  async function work(): Promise<void> {
    again = false
    try {
      const fresh = [...unknown]
      unknown.clear()
      if (must_look) {
        must_look = false
        await lookAtAll()
      } else if (fresh.length > 0) await lookAt(fresh)
    } catch (error) {
      must_look = true
      ctx.log.warn({ err: error }, 'which versions are deployed could not be read; trying again')
    }
    for (const namespace_id of [...lacking]) {
      if (is_closed) return
      lacking.delete(namespace_id)
      if (!(await fill(namespace_id))) lacking.add(namespace_id)
    }
  }

  /** Answers whether nothing is left to be done. */
  async function fill(namespace_id: string): Promise<boolean> {
    let is_done = true
    for (const { plan, idle_min } of wanted.get(namespace_id)?.plans ?? []) {
      if (pauses.remainingMs(keyOf(namespace_id, plan)) > 0) is_done = false
      else if (!(await start(namespace_id, plan, idle_min))) is_done = false
    }
    return is_done
  }

  /** Answers whether as many stand idle as are wanted. */
  async function start(namespace_id: string, plan: LobbyPlan, idle_min: number): Promise<boolean> {
    for (let count = 0; count < STARTS_MAX; count++) {
      try {
        const { lobby_count_max } = await namespaces.get(namespace_id)
        const wish = { plan, idle_min, lobby_count_max }
        const is_started = await books.commit(namespace_id, (book, env) => {
          // It may be a new book, which knows of nothing.
          setIdleRules(book, wanted.get(namespace_id)?.rules ?? NO_IDLE_RULES)
          return decide.prepare(book, wish, newId(env.now_ms), env)
        })
        if (!is_started) return true
      } catch (error) {
        if (error instanceof ApiError && error.code === 'NAMESPACE_NOT_FOUND') return true
        if (error instanceof ApiError && LATER.has(error.code)) return false
        ctx.log.error({ err: error, namespace_id }, 'an idle lobby could not be started; trying again')
        return false
      }
    }
    return false
  }

  function wake(): void {
    again = true
    if (is_closed || working !== null) return
    working = work().finally(() => {
      working = null
      if (again) wake()
    })
  }

  /** A place is looked at again when its lobbies change; one whose lobby failed is given a pause first. */
  function onCommit(namespace_id: string, changes: readonly Change[]): void {
    const plans = wanted.get(namespace_id)?.plans
    if (plans === undefined) {
      // The first lobby of a namespace that was not known to have any.
      if (!changes.some(({ kind }) => kind === 'lobby_created')) return
      unknown.add(namespace_id)
      setImmediate(wake)
      return
    }
    let is_lacking = false
    for (const change of changes) {
      if (change.kind === 'lobby_created') tell(namespace_id)
      if (plans.length === 0) continue
      if (change.kind === 'lobby_stopped') noteEnd(namespace_id, change)
      is_lacking ||= LEAVES_A_GAP.has(change.kind)
    }
    if (!is_lacking) return
    lacking.add(namespace_id)
    setImmediate(wake)
  }

  function noteEnd(namespace_id: string, { lobby_id, ms, reason }: Extract<Change, { kind: 'lobby_stopped' }>): void {
    const lobby = books.lobby(namespace_id, lobby_id)
    if (lobby === undefined) return
    const key = keyOf(namespace_id, lobby)
    if (lobby.ready_ms !== null && ms - lobby.ready_ms >= STEADY_MS) {
      pauses.succeeded(key)
      return
    }
    if (reason !== 'exited' && reason !== 'never_ready') return
    const { failure_count, begin_ms, until_ms } = pauses.failed(key, null)
    const pause_ms = until_ms - begin_ms
    const { region, game_mode } = lobby
    ctx.log.warn(
      { namespace_id, lobby_id, region, game_mode, reason, failure_count, pause_ms },
      'a lobby ended at once',
    )
  }

  const unsubscribe = ctx.listener.on('namespaces', () => {
    must_look = true
    wake()
  })
  const endCommits = books.onCommits({
    onCommit,
    onReload() {
      for (const namespace_id of wanted.keys()) {
        tell(namespace_id)
        lacking.add(namespace_id)
      }
    },
  })
  const retrying = setInterval(() => {
    if (must_look || lacking.size + unknown.size > 0) wake()
  }, RETRY_MS)
  const looking = setInterval(() => {
    must_look = true
  }, LOOK_EVERY_MS)
  wake()
  await working

  return {
    async close() {
      is_closed = true
      clearInterval(retrying)
      clearInterval(looking)
      unsubscribe()
      endCommits()
      await working
    },
  }
}
