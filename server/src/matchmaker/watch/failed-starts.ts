// Counts starts of lobbies that failed in a row, by namespace, version, region and game mode. Otherwise a broken build
// would start processes as fast as players ask for seats. After three failures a request starts one lobby only; after four,
// pauses begin (start-pauses.ts). Running lobbies are still found. A server that calls ready ends the count.
import type { RunEnd } from '../../database/schema.ts'
import type { Change } from '../../journal/changes.ts'
import type { FailedBefore } from '../book/commands.ts'
import type { LobbyKey } from '../book/open-lobbies.ts'
import type { Books } from '../shards/books.ts'
import { StartPauses } from './start-pauses.ts'

/** Failures in a row after which the version counts as failing. */
const FAILURES_IN_A_ROW = 3

/** Exit reasons for which the build or the server is at fault. All others are faults of the machine or the platform. */
const FAULTS_OF_THE_VERSION: ReadonlySet<string> = new Set([
  ...['exit', 'signal', 'oom', 'pids', 'disk'],
  ...['no_such_file', 'not_executable', 'missing_library', 'no_build', 'build_damaged', 'never_ready'],
])

type LastFailure = RunEnd & { lobby_id: string }

export class FailedStarts {
  readonly #books: Books
  readonly #pauses: StartPauses<LastFailure>
  /** How the runs of lobbies that are being stopped ended, by lobby: the journal does not have it. */
  readonly #ends = new Map<string, RunEnd>()
  readonly close: () => void

  constructor(books: Books) {
    this.#books = books
    this.#pauses = new StartPauses(books.nowMs, FAILURES_IN_A_ROW)
    this.close = books.onCommits({
      onCommit: (namespace_id, changes) => {
        for (const change of changes) this.#take(namespace_id, change)
      },
      onReload() {},
    })
  }

  /** Stops a lobby whose run has ended, by `stop`, and remembers the end meanwhile. */
  async ended(lobby_id: string, end: RunEnd, stop: () => Promise<unknown>): Promise<void> {
    this.#ends.set(lobby_id, end)
    try {
      await stop()
    } finally {
      this.#ends.delete(lobby_id)
    }
  }

  /** The failures in a row before this start; undefined when the last start did not fail. */
  before(namespace_id: string, lobby_key: LobbyKey): FailedBefore | undefined {
    // Every find comes here.
    if (this.#pauses.isEmpty()) return undefined
    const key = keyOf(namespace_id, lobby_key)
    const pause = this.#pauses.get(key)
    if (pause === undefined) return undefined
    return { failure_count: pause.failure_count, pause_ms: this.#pauses.remainingMs(key), ...pause.last }
  }

  /** Whether a request whose lobby failed to start must not start another. */
  isFailing(namespace_id: string, lobby_key: LobbyKey): boolean {
    return (this.#pauses.get(keyOf(namespace_id, lobby_key))?.failure_count ?? 0) >= FAILURES_IN_A_ROW
  }

  #take(namespace_id: string, change: Change): void {
    if (change.kind !== 'lobby_ready' && change.kind !== 'lobby_stopped') return
    const lobby = this.#books.lobby(namespace_id, change.lobby_id)
    if (lobby === undefined) return
    const key = keyOf(namespace_id, lobby)
    if (change.kind === 'lobby_ready') {
      this.#pauses.succeeded(key)
      return
    }
    if (lobby.ready_ms !== null) return
    // A check of a version before its deploy pauses no player.
    if (this.#books.book(namespace_id)?.isOutdated(lobby.version_id)) return
    const { lobby_id, reason } = change
    const end = reason === 'never_ready' ? { exit_reason: reason, exit_code: null } : this.#ends.get(lobby_id)
    if (end === undefined || !FAULTS_OF_THE_VERSION.has(end.exit_reason ?? '')) return
    const pause = this.#pauses.get(key)
    // Lobbies that were started at the same time fail together, which counts as one failure.
    const is_same = pause !== undefined && pause.failure_count > FAILURES_IN_A_ROW && lobby.create_ms < pause.begin_ms
    if (!is_same) this.#pauses.failed(key, { lobby_id, ...end })
  }
}

function keyOf(namespace_id: string, { version_id, region, game_mode }: LobbyKey): string {
  return `${namespace_id}\n${version_id}\n${region}\n${game_mode}`
}
