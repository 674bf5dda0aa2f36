// Finds the server of DATABASE_URL that accepts writes, and follows it. With one server there is nothing to do.
//
// States: searching -> following -> searching ... -> closed. A search asks all servers at once, and takes the one that accepts
// writes; of two, the one with the later timeline. It is used only when a commit on it has returned. Where commits wait for a
// standby, that proves two things: the server is no fork that its standbys have left, and everything that its readers see is
// on a standby. One connection then asks the server every 2 s. When it does not respond, or refuses writes, the search begins
// again. Connections are cut when another server was found, or the same one after a restart.
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { type ServerUrl, serversOf } from '../text/database-url.ts'
import { type OpenProbe, openProbe, type Probed } from './probe.ts'

/** Between two questions to the primary. */
const WATCH_EVERY_MS = 2_000
/** Between two rounds of a search. */
const SEARCH_PAUSE_MS = 500
/** How long a round waits for other servers once one accepts writes: of two, the later timeline counts. */
const OTHERS_MS_MAX = 500
/** How long a caller waits for a primary. */
const FIND_MS_MAX = 5_000

/** A commit without a response after this time is tried again on a new connection. */
const CANDIDATE_MS_MAX = 10_000

/** A record that holds nothing. Its commit waits for the standbys like any other. */
const COMMIT_SQL = "select pg_logical_emit_message(true, 'muster', '')"

/** None of the servers accepts writes. `code`: PostgreSQL's for a server that does not accept connections at the moment. */
export class NoPrimaryError extends Error {
  readonly code = '57P03'

  constructor(reasons: ReadonlyMap<string, string>) {
    const list = [...reasons].map(([name, reason]) => `${name}: ${reason}`).join('; ')
    super(`no server of DATABASE_URL accepts writes (${list || 'none has responded yet'})`)
    this.name = 'NoPrimaryError'
  }
}

type Cut = (error: Error) => void
/** `committed` resolves with null, or with the reason why nothing was committed for certain. */
type Candidate = OpenProbe & { committed: Promise<Error | null>; since_ms: number }

export class Primary {
  readonly #servers: readonly ServerUrl[]
  readonly #log: Logger | undefined
  readonly #closing = new AbortController()
  #current: OpenProbe | null = null
  #search: Promise<void> | null = null
  /** Connections to the current server. */
  readonly #cuts = new Set<Cut>()
  /** By the name of a server: why it was not taken in the last round. */
  readonly #reasons = new Map<string, string>()
  #is_synchronous: boolean | null = null

  constructor({ url, log }: { url: string; log?: Logger | undefined }) {
    this.#servers = serversOf(url)
    this.#log = log
  }

  /** Null: the URL names one server, which is used as it is. Throws a NoPrimaryError when none is found in time. */
  async find(): Promise<ServerUrl | null> {
    if (this.#servers.length === 1) return null
    if (this.#current !== null && this.#search === null) return this.#current.server
    this.#search ??= this.#searchUntilFound()
    const waiting = new AbortController()
    await Promise.race([
      this.#search,
      delay(FIND_MS_MAX, undefined, { signal: waiting.signal }).catch(() => undefined),
    ]).finally(() => waiting.abort())
    if (this.#current === null || this.#search !== null) throw new NoPrimaryError(this.#reasons)
    return this.#current.server
  }

  /**
   * For a connection to `server`: `cut` is called when the server is not the primary any more, at once if it is not now.
   * Returns a function for the end of the connection.
   */
  join(server: ServerUrl | null, cut: Cut): () => void {
    if (server === null) return () => undefined
    this.#cuts.add(cut)
    if (server !== this.#current?.server) cut(movedFrom(server))
    return () => void this.#cuts.delete(cut)
  }

  /** A connection to this server was refused a write, or the server did not respond. */
  doubt(server: ServerUrl | null, error: unknown): void {
    if (server === null || server !== this.#current?.server || this.#search !== null) return
    if (this.#closing.signal.aborted) return
    this.#log?.warn({ err: error, server: server.name }, 'primary of the database is in doubt; searching')
    this.#search = this.#searchUntilFound()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#current?.close()
    await this.#search
  }

  async #searchUntilFound(): Promise<void> {
    const { signal } = this.#closing
    let candidate: Candidate | null = null
    try {
      while (!signal.aborted) {
        const best = await this.#bestOfRound()
        if (best !== null && (candidate === null || isBetter(best, candidate))) {
          candidate?.close()
          candidate = { ...best, committed: commitOn(best), since_ms: performance.now() }
        } else best?.close()
        const pause = delay(SEARCH_PAUSE_MS, 'pause' as const, { signal }).catch(() => 'pause' as const)
        const outcome = await Promise.race([candidate?.committed ?? pause, pause])
        if (outcome === 'pause') continue
        if (outcome === null) {
          this.#adopt(candidate!)
          candidate = null
          return
        }
        this.#reasons.set(candidate!.server.name, outcome.message)
        candidate!.close()
        candidate = null
        await pause
      }
    } finally {
      candidate?.close()
      this.#search = null
    }
  }

  /** Asks all servers. Returns the one that accepts writes, or null. */
  async #bestOfRound(): Promise<OpenProbe | null> {
    const writable: OpenProbe[] = []
    const first = Promise.withResolvers<void>()
    let is_over = false
    const probes = this.#servers.map(async (server) => {
      try {
        const probe = await openProbe(server)
        const reason = this.#reasonAgainst(probe)
        if (reason !== null) this.#reasons.set(server.name, reason)
        if (reason !== null || is_over) return probe.close()
        writable.push(probe)
        first.resolve()
      } catch (error) {
        this.#reasons.set(server.name, error instanceof Error ? error.message : String(error))
      }
    })
    await Promise.race([Promise.all(probes), first.promise.then(() => delay(OTHERS_MS_MAX))])
    is_over = true
    const [best = null, ...others] = writable.toSorted((a, b) => b.timeline - a.timeline)
    for (const other of others) {
      const names = { server: best!.server.name, other: other.server.name, timeline: best!.timeline }
      this.#log?.error(
        { ...names, other_timeline: other.timeline },
        'two servers accept writes; using the later timeline',
      )
      other.close()
    }
    return best
  }

  #reasonAgainst(probe: Probed): string | null {
    if (probe.is_read_only) return 'it accepts no writes: a standby, or read-only'
    const known = this.#current
    if (known === null) return null
    if (probe.system_id !== known.system_id) return 'it belongs to another cluster'
    return probe.timeline < known.timeline ? `its timeline ${probe.timeline} ended; ${known.timeline} is later` : null
  }

  #adopt(found: OpenProbe): void {
    const before = this.#current
    before?.close()
    this.#current = found
    this.#reasons.clear()
    if (before === null || !isSame(before, found)) {
      const { server, timeline } = found
      this.#log?.info({ server: server.name, timeline }, 'primary of the database found')
      // A connection may be half-open: its server is gone and has not closed it.
      if (before !== null) for (const cut of [...this.#cuts]) cut(movedFrom(before.server))
    }
    this.#noteSynchronous(found)
    void this.#watch(found)
  }

  async #watch(probe: OpenProbe): Promise<void> {
    const { signal } = this.#closing
    while (this.#current === probe) {
      try {
        await delay(WATCH_EVERY_MS, undefined, { signal })
        const now = await probe.again()
        if (now.is_read_only) throw new Error('it accepts no writes any more')
        this.#noteSynchronous(now)
      } catch (error) {
        if (!signal.aborted && this.#current === probe) this.doubt(probe.server, error)
        return
      }
    }
  }

  /** Several servers are for a standby that takes over. What no standby has is lost then. */
  #noteSynchronous({ is_synchronous }: Probed): void {
    if (is_synchronous === this.#is_synchronous) return
    if (!is_synchronous) {
      this.#log?.error(
        'commits do not wait for a standby (synchronous_standby_names is empty): a failover loses acknowledged seats',
      )
    } else if (this.#is_synchronous === false) this.#log?.info('commits wait for a standby again')
    this.#is_synchronous = is_synchronous
  }
}

/** The server that accepts writes, for a connection outside of a pool. */
export async function findPrimaryUrl(url: string): Promise<string> {
  const primary = new Primary({ url })
  try {
    return (await primary.find())?.url ?? url
  } finally {
    await primary.close()
  }
}

/** Null: it has committed. */
function commitOn({ client }: OpenProbe): Promise<Error | null> {
  let is_cancelled = false
  client.on('notice', (notice) => {
    is_cancelled ||= isUnreplicated(notice)
  })
  return client.query(COMMIT_SQL).then(
    () => (is_cancelled ? new Error('its commit was not replicated') : null),
    (error: Error) => error,
  )
}

/**
 * PostgreSQL gave up the wait for a standby, because somebody cancelled it. The transaction is committed on this server alone,
 * and the statement succeeds: the notice is the only sign. The routine's name is the same in every language.
 */
export function isUnreplicated(notice: { routine?: string | undefined }): boolean {
  return notice.routine === 'SyncRepWaitForLSN'
}

function isSame(one: Probed, other: Probed): boolean {
  return one.server === other.server && one.start_ts === other.start_ts && one.timeline === other.timeline
}

/** The same server after a restart, or another one of a later timeline. Otherwise the commit that waits is kept. */
function isBetter(best: Probed, candidate: Candidate): boolean {
  if (best.server !== candidate.server) return best.timeline > candidate.timeline
  return !isSame(best, candidate) || performance.now() - candidate.since_ms > CANDIDATE_MS_MAX
}

function movedFrom({ name }: ServerUrl): Error {
  return Object.assign(new Error(`${name} is not the primary of the database any more`), { code: '57P01' })
}
