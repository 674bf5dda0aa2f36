// One lobby as a protocol sees it. It calls the platform as the lobby's server would, with the lobby's token, and follows its
// seats by one long poll. While the platform restarts, calls are repeated.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  ApiError,
  changeOwnLobby,
  type Operation,
  playerConnected,
  playerDisconnected,
  type ResponseOf,
  setLobbyClosed,
  setLobbyPlayers,
  setLobbyReady,
  setLobbyState,
  stopOwnLobby,
  watchOwnLobby,
} from '@musterhost/contract'
import { type CallInput, type Client, createClient } from '@musterhost/contract/client'
import { send } from '@musterhost/contract/node-send'
import {
  LobbyError,
  type LobbyFacts,
  type LobbyView,
  type ProtocolLobby,
  type ProtocolReport,
} from '@musterhost/protocols/lobby'
import type { Attachment } from './attachments.ts'

/** How long a call is repeated while the platform does not respond. Longer than a restart. */
const CALL_MS_MAX = 10_000
const PAUSE_MS_MIN = 50
const PAUSE_MS_MAX = 1_000
/** How often a report is passed on that says nothing new but a later time. */
const REPORT_EVERY_MS = 30_000
/** Between two writes of what is remembered. A crash loses at most the changes of this time. */
export const REMEMBER_EVERY_MS = 50
/** Lines for the log of the lobby that wait for the runner. Later ones are dropped. */
const LINES_MAX = 100
const TEMPORARY: ReadonlySet<string> = new Set(['API_NOT_AVAILABLE', 'API_RATE_LIMIT', 'INTERNAL_ERROR'])
/** The lobby has ended, as the platform says. */
const ENDED: ReadonlySet<string> = new Set(['MATCHMAKER_LOBBY_STOPPED', 'TOKEN_REVOKED', 'TOKEN_INVALID'])

/** `write`: writes what a later gateway gets as `remembered`. `onEnd`: called once, when the lobby has ended. */
type Surroundings = { remembered: unknown; write: (value: unknown) => void; onEnd: () => void }

export class AttachedLobby implements ProtocolLobby {
  readonly facts: LobbyFacts
  view: LobbyView = { seats: [], is_closed: false, is_draining: false }
  /** The platform did not respond to the last watch. */
  is_unreachable = false
  readonly #client: Client
  readonly #is_ended_when_unhealthy: boolean
  readonly #has_edge_seats: boolean
  readonly #listeners = new Set<() => void>()
  readonly #closing = new AbortController()
  #lines: string[] = []
  #report: ProtocolReport | null = null
  /** The report that was taken last, and when. */
  #taken: { report: ProtocolReport; ms: number } | null = null

  readonly remembered: unknown
  readonly #write: (value: unknown) => void
  #to_write: { value: unknown } | null = null
  #written_ms = Number.NEGATIVE_INFINITY
  #write_timer: NodeJS.Timeout | undefined

  constructor(
    { facts, api_url, token, options, has_edge_seats }: Attachment,
    { remembered, write, onEnd }: Surroundings,
  ) {
    this.facts = facts
    this.remembered = remembered
    this.#write = write
    this.#has_edge_seats = has_edge_seats
    this.#client = createClient({ url: api_url, token, send })
    this.#is_ended_when_unhealthy = options.end_unhealthy ?? false
    void this.#follow(onEnd)
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async ready(): Promise<void> {
    await this.#call(setLobbyReady, {})
  }

  async setClosed(is_closed: boolean): Promise<void> {
    await this.#call(setLobbyClosed, { body: { is_closed } })
  }

  async setState(state: unknown): Promise<void> {
    await this.#call(setLobbyState, { body: state })
  }

  async setTags(tags: Readonly<Record<string, string>>): Promise<void> {
    await this.#call(changeOwnLobby, { body: { tags } })
  }

  async keep(keep_ms: number): Promise<void> {
    await this.#call(changeOwnLobby, { body: { keep_ms } })
  }

  async connected(player_token: string): Promise<void> {
    if (!this.#has_edge_seats) await this.#call(playerConnected, { body: { player_token } })
  }

  async disconnected(player_token: string): Promise<void> {
    if (!this.#has_edge_seats) await this.#call(playerDisconnected, { body: { player_token } })
  }

  async setPlayers(player_ids: readonly string[]): Promise<{ unknown: string[] }> {
    if (this.#has_edge_seats) return { unknown: [] }
    const { unknown_player_ids } = await this.#call(setLobbyPlayers, { body: { player_ids: [...player_ids] } })
    return { unknown: unknown_player_ids }
  }

  async stop(): Promise<void> {
    await this.#call(stopOwnLobby, {})
  }

  remember(value: unknown): void {
    this.#to_write = { value }
    if (this.#write_timer !== undefined) return
    const wait_ms = this.#written_ms + REMEMBER_EVERY_MS - performance.now()
    if (wait_ms <= 0) this.#writeNow()
    else this.#write_timer = setTimeout(() => this.#writeNow(), wait_ms)
  }

  report(report: ProtocolReport): void {
    this.#report = report
  }

  unhealthy(reason: string): void {
    this.log(`The server is not healthy by its protocol: ${reason}`)
    if (!this.#is_ended_when_unhealthy) return
    this.log('The lobby ends, because protocol_options has end_unhealthy.')
    this.stop().catch((error: unknown) => this.log(`The lobby could not be ended: ${String(error)}`))
  }

  now(): number {
    return Date.now()
  }

  log(line: string): void {
    if (this.#lines.length < LINES_MAX) this.#lines.push(line)
  }

  /** The last report, if it says something else than the one that was taken before, or that one is old. */
  takeReport(): ProtocolReport | null {
    const [report, taken] = [this.#report, this.#taken]
    if (report === null) return null
    const is_same = report.state === taken?.report.state && report.is_healthy === taken.report.is_healthy
    const now_ms = performance.now()
    if (is_same && taken !== null && now_ms - taken.ms < REPORT_EVERY_MS) return null
    this.#taken = { report, ms: now_ms }
    return report
  }

  /** Each line is returned once. */
  takeLines(): string[] {
    const lines = this.#lines
    this.#lines = []
    return lines
  }

  close(): void {
    clearTimeout(this.#write_timer)
    this.#closing.abort()
    this.#listeners.clear()
  }

  #writeNow(): void {
    this.#write_timer = undefined
    const waiting = this.#to_write
    if (waiting === null) return
    this.#to_write = null
    this.#written_ms = performance.now()
    try {
      this.#write(waiting.value)
    } catch (error) {
      this.log(`What the server set cannot be kept for a crash of the platform: ${String(error)}`)
    }
  }

  async #call<O extends Operation>(operation: O, input: CallInput<O>): Promise<ResponseOf<O>> {
    const headers = operation.idempotent ? { 'idempotency-key': randomUUID() } : {}
    const until_ms = performance.now() + CALL_MS_MAX
    for (let count = 0; ; count++) {
      try {
        return await this.#client.call(operation, { ...input, headers, signal: this.#closing.signal } as CallInput<O>)
      } catch (error) {
        const pause_ms = Math.min(PAUSE_MS_MAX, PAUSE_MS_MIN * 2 ** count)
        if (!isTemporary(error) || performance.now() + pause_ms >= until_ms) throw lobbyError(error)
        await pause(pause_ms, this.#closing.signal)
      }
    }
  }

  /** Until the lobby has ended. */
  async #follow(onEnd: () => void): Promise<void> {
    const { signal } = this.#closing
    let watch_index: string | undefined
    for (let failures = 0; !signal.aborted; ) {
      try {
        const query = watch_index === undefined ? {} : { watch_index }
        const { watch, is_closed, is_draining, seats } = await this.#client.call(watchOwnLobby, { query, signal })
        failures = 0
        this.is_unreachable = false
        // A platform that is about to stop responds at once.
        if (watch.index === watch_index) await pause(PAUSE_MS_MIN, signal)
        if (watch.index === watch_index) continue
        watch_index = watch.index
        const known = seats.map(({ create_ts, ...seat }) => ({ ...seat, create_ts: Date.parse(create_ts) }))
        this.view = { seats: known, is_closed, is_draining }
        for (const listener of [...this.#listeners]) listener()
      } catch (error) {
        if (signal.aborted) return
        if (error instanceof ApiError && ENDED.has(error.code)) {
          onEnd()
          return
        }
        this.is_unreachable = true
        await pause(Math.min(PAUSE_MS_MAX, PAUSE_MS_MIN * 2 ** failures++), signal)
      }
    }
  }
}

function isTemporary(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof ApiError && TEMPORARY.has(error.code))
}

function lobbyError(error: unknown): LobbyError {
  if (error instanceof ApiError) return new LobbyError(error.code, error.message)
  return new LobbyError('API_NOT_AVAILABLE', 'The platform does not respond.')
}

/** Shorter when the lobby closes. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined)
}
