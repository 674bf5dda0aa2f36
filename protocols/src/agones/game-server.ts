// One lobby as an Agones game server: its state, health, metadata, counters and lists, and what they do to the lobby.
import { isDeepStrictEqual } from 'node:util'
import type { Message } from '@bufbuild/protobuf'
import type { LobbySeat, ProtocolLobby } from '../lobby.ts'
import type { ProtocolOptions } from '../protocol.ts'
import { CallError, callErrorOf } from './call-error.ts'
import { addValue, type Counter, type List, removeValue, updateCounter, updateList } from './counts.ts'
import { HEALTH_RULES, type Health, type HealthRules, isUnhealthy, look, ping, startHealth } from './health.ts'
import { LaterWrites } from './later-writes.ts'
import { type Memory, memoryOf, partsOf } from './memory.ts'
import { type Entries, withAnnotation, withLabel } from './metadata.ts'
import { createObject, type ObjectParts, PLAYERS_LIST, type Players, stateOf } from './object.ts'
import { countersOf, listsOf, metadataOf } from './start-parts.ts'
import { type Effect, isFinal, type State, type StateEvent, step } from './states.ts'
import { Watchers } from './watchers.ts'

/** Bytes of labels, annotations, counters and lists together, as JSON: what the lobby's state can hold. */
const STATE_BYTES_MAX = 16 * 1024
/** Calls that wait for the platform. */
const WAITING_CALLS_MAX = 64
const HEALTH_REPORT_INTERVAL_MS = 1000
const RESERVE_SECONDS_MAX = 10 * 365 * 24 * 3600
const PLAYERS_MAX = 1000
const PLAYER_ID_LENGTH_MAX = 2048
/** The end of a reservation is tried again after this time, so many times. */
const REOPEN_RETRY_MS = 5000
const REOPEN_ATTEMPTS_MAX = 60
/** Node's timers have a maximum. A longer wait takes several. */
const TIMER_MS_MAX = 24 * 3600 * 1000
const UNKNOWN_IDS_LOGGED_MAX = 5

export class GameServer {
  readonly #lobby: ProtocolLobby
  readonly #rules: HealthRules
  readonly #watchers = new Watchers<Message>()
  readonly #later: LaterWrites
  /** The counter or list that says how much room there is; null: none does. */
  readonly #room: string | null
  readonly #forget: () => void
  #parts: ObjectParts
  #health: Health
  #health_reported_ts = Number.NEGATIVE_INFINITY
  /** When a reservation ends; null: never. */
  #reserve_end_ts: number | null = null
  #reopen_attempts = 0
  #timer: NodeJS.Timeout | undefined
  /** Calls to the platform follow each other. */
  #last: Promise<unknown> = Promise.resolve()
  #waiting_calls = 0
  #is_seat_waiting = false
  /** Find leaves out the lobby because of a reservation. */
  #has_closed = false
  /** The server allocated itself, so the platform does not end it while it is empty. */
  #is_kept = false
  /** Find leaves out the lobby because there is no room. */
  #is_full = false
  /** Seats that were given back, which the view can still have for a moment. */
  #given_back: ReadonlySet<string> = new Set()
  #is_closed = false

  constructor(lobby: ProtocolLobby, options: ProtocolOptions, rules: HealthRules = HEALTH_RULES) {
    this.#lobby = lobby
    this.#rules = rules
    this.#later = new LaterWrites(lobby, { arrangeRoom: () => this.#arrangeRoom(), onDue: () => this.#arm() })
    this.#room = options.room ?? null
    this.#health = startHealth(rules, lobby.facts.start_ts)
    this.#parts = {
      state: 'Scheduled',
      version: 1,
      ...metadataOf(lobby.facts.config),
      counters: countersOf(options, lobby.facts.config),
      lists: listsOf(options, lobby.facts.config),
      players: null,
      is_draining: lobby.view.is_draining,
    }
    if (lobby.remembered !== null) this.#restore(lobby.remembered as Memory)
    this.#forget = lobby.onChange(() => this.#viewChanged())
    this.#report()
    this.#arm()
  }

  get state(): State {
    return this.#parts.state
  }

  object(): Message {
    return createObject(this.#lobby.facts, this.#rules, this.#parts)
  }

  watch(signal: AbortSignal): AsyncGenerator<Message> {
    return this.#watchers.watch(this.object(), signal)
  }

  /** The same refusal for every way in. */
  refusalOf(error: unknown): CallError {
    return callErrorOf(error, (line) => this.#lobby.log(line))
  }

  close(): void {
    this.#is_closed = true
    clearTimeout(this.#timer)
    this.#forget()
    this.#watchers.close()
  }

  ready(): Promise<void> {
    return this.#apply('ready')
  }

  allocate(): Promise<void> {
    return this.#apply('allocate')
  }

  shutdown(): Promise<void> {
    return this.#apply('shutdown')
  }

  /** `seconds`: 0 reserves until the next call. */
  async reserve(seconds: bigint): Promise<void> {
    if (seconds < 0n || seconds > RESERVE_SECONDS_MAX)
      throw new CallError('INVALID_ARGUMENT', `seconds must be in [0,${RESERVE_SECONDS_MAX}]; found: ${seconds}`)
    await this.#apply('reserve', Number(seconds) * 1000)
  }

  ping(): void {
    if (isFinal(this.state)) return
    const now = this.#lobby.now()
    this.#health = ping(this.#health, now)
    if (now - this.#health_reported_ts < HEALTH_REPORT_INTERVAL_MS) return
    this.#health_reported_ts = now
    this.#report()
  }

  setLabel(key: string, value: string): void {
    this.#save({ labels: withLabel(this.#parts.labels, key, value) })
  }

  setAnnotation(key: string, value: string): void {
    this.#save({ annotations: withAnnotation(this.#parts.annotations, key, value) })
  }

  counter(name: string): Counter {
    return declared(this.#parts.counters, name, 'counter')
  }

  updateCounter(name: string, change: Parameters<typeof updateCounter>[1]): Counter {
    const counter = updateCounter(this.counter(name), change)
    this.#save({ counters: new Map(this.#parts.counters).set(name, counter) })
    return counter
  }

  list(name: string): List {
    return declared(this.#parts.lists, name, 'list')
  }

  updateList(name: string, update: Parameters<typeof updateList>[1], mask: readonly string[]): Promise<List> {
    return this.#changeList(name, (list) => updateList(list, update, mask))
  }

  addValue(name: string, value: string): Promise<List> {
    return this.#changeList(name, (list) => addValue(list, value))
  }

  removeValue(name: string, value: string): Promise<List> {
    return this.#changeList(name, (list) => removeValue(list, value))
  }

  /** Players of player tracking, which is apart from the list of players. The one of both that changed last counts. */
  players(): Players {
    return this.#parts.players ?? { ids: [], capacity: BigInt(this.#lobby.facts.max_players) }
  }

  setPlayerCapacity(capacity: bigint): void {
    if (capacity < 0n || capacity > PLAYERS_MAX)
      throw new CallError('OUT_OF_RANGE', `count must be in [0,${PLAYERS_MAX}]; found: ${capacity}`)
    this.#change({ players: { ...this.players(), capacity } })
  }

  /** Returns false when the player was in the game already. */
  connectPlayer(player_id: string): Promise<boolean> {
    return this.#serial(async () => {
      const players = this.players()
      if (player_id === '' || player_id.length > PLAYER_ID_LENGTH_MAX)
        throw new CallError('INVALID_ARGUMENT', `playerID must have 1 to ${PLAYER_ID_LENGTH_MAX} characters`)
      if (players.ids.includes(player_id)) return false
      if (players.ids.length >= players.capacity)
        throw new CallError('OUT_OF_RANGE', `the server is full: its capacity is ${players.capacity}`)
      await this.#setPlayers({ ...players, ids: [...players.ids, player_id] })
      return true
    })
  }

  /** Returns false when the player was not in the game. */
  disconnectPlayer(player_id: string): Promise<boolean> {
    return this.#serial(async () => {
      const players = this.players()
      if (!players.ids.includes(player_id)) return false
      await this.#setPlayers({ ...players, ids: players.ids.filter((id) => id !== player_id) })
      return true
    })
  }

  /** The pings of the time before are not known, so the first look comes later. */
  #restore(memory: Memory): void {
    this.#parts = { ...this.#parts, ...partsOf(memory) }
    this.#health = startHealth(this.#rules, this.#lobby.now())
    this.#reserve_end_ts = memory.reserve_end_ts
    this.#has_closed = memory.has_closed
    this.#is_kept = memory.is_kept
    this.#is_full = this.#isFull()
    this.#later.keep(this.#is_kept)
    if (this.#room !== null) this.#later.saveRoom()
  }

  async #setPlayers(players: Players): Promise<void> {
    await this.#tellPlayers(players.ids)
    this.#change({ players })
  }

  /** The list of players changes only when the platform has its players. */
  async #changeList(name: string, change: (list: List) => List): Promise<List> {
    this.list(name)
    if (name !== PLAYERS_LIST) return this.#saveList(name, change(this.list(name)))
    return await this.#serial(async () => {
      const before = this.list(name)
      const list = change(before)
      if (!isDeepStrictEqual(before.values, list.values)) await this.#tellPlayers(list.values)
      // The saved state leaves this list out.
      this.#change({ lists: new Map(this.#parts.lists).set(name, list) })
      return list
    })
  }

  #saveList(name: string, list: List): List {
    this.#save({ lists: new Map(this.#parts.lists).set(name, list) })
    return list
  }

  async #tellPlayers(player_ids: readonly string[]): Promise<void> {
    const { unknown } = await this.#lobby.setPlayers(player_ids)
    if (unknown.length === 0) return
    const some = unknown.slice(0, UNKNOWN_IDS_LOGGED_MAX).map((id) => JSON.stringify(id.slice(0, 64)))
    this.#lobby.log(`agones: ${unknown.length} players without a seat in this lobby: ${some.join(', ')}`)
  }

  #apply(event: StateEvent, reserve_ms = 0): Promise<void> {
    return this.#serial(async () => {
      const { state, effects } = step(this.state, event)
      for (const effect of effects) await this.#perform(effect)
      // A reservation that failed halfway has closed the lobby.
      if (this.#has_closed && (state === 'Ready' || state === 'Allocated')) await this.#perform('open')
      // Pings can be missed meanwhile.
      if (isFinal(this.state)) return
      if (event === 'allocate') this.#is_kept = true
      if (event === 'reserve') this.#reserve_end_ts = reserve_ms === 0 ? null : this.#lobby.now() + reserve_ms
      const is_taken = event === 'seat' && state === 'Allocated' && this.state !== 'Allocated'
      this.#enter(state, event === 'allocate' || is_taken ? this.#allocationNote() : {})
    })
  }

  #enter(state: State, note: { annotations?: Entries } = {}): void {
    if (state !== 'Reserved') this.#reserve_end_ts = null
    const has_left = this.state === 'Allocated' && (state === 'Ready' || state === 'Reserved')
    if (state !== 'Allocated') this.#is_kept = false
    if (has_left) this.#later.release()
    else if (!isFinal(state)) this.#later.keep(this.#is_kept)
    this.#reopen_attempts = 0
    const is_new = state !== this.state
    if (note.annotations !== undefined) this.#save({ state, ...note })
    else if (is_new) this.#change({ state })
    if (is_new) this.#report()
    this.#considerSeats()
    this.#arm()
  }

  async #perform(effect: Effect): Promise<void> {
    const lobby = this.#lobby
    if (effect === 'ready') await lobby.ready()
    else if (effect === 'stop') await lobby.stop()
    else if (effect === 'empty') {
      this.#given_back = new Set(lobby.view.seats.filter(({ is_connected }) => is_connected).map(seatKey))
      await lobby.setPlayers([])
    } else {
      if (effect === 'close') this.#has_closed = true
      await lobby.setClosed(effect === 'close' || this.#isFull())
      if (effect === 'open') this.#has_closed = false
    }
  }

  /** A server that has filled its state is allocated without the note. */
  #allocationNote(): { annotations?: Entries } {
    const allocated = new Date(this.#lobby.now()).toISOString()
    const annotations: Entries = { ...this.#parts.annotations, 'agones.dev/last-allocated': allocated }
    return stateBytes({ ...this.#parts, annotations }) <= STATE_BYTES_MAX ? { annotations } : {}
  }

  #viewChanged(): void {
    const { is_draining } = this.#lobby.view
    if (is_draining !== this.#parts.is_draining) this.#change({ is_draining })
    this.#considerSeats()
  }

  /** A seat of a player allocates a server that waits for players. */
  #considerSeats(): void {
    const is_waiting = this.state === 'Ready' || this.state === 'Reserved'
    if (!is_waiting || this.#is_seat_waiting || !this.#hasPlayer()) return
    this.#is_seat_waiting = true
    this.#apply('seat')
      .catch((error: unknown) => this.#lobby.log(`agones: Allocated was not entered: ${this.refusalOf(error).message}`))
      .finally(() => {
        this.#is_seat_waiting = false
      })
  }

  #hasPlayer(): boolean {
    return this.#lobby.view.seats.some((seat) => seat.role !== 'spectator' && !this.#given_back.has(seatKey(seat)))
  }

  #save(change: Partial<ObjectParts>): void {
    this.#requireRoom(change)
    this.#change(change)
    this.#later.saveState(stateOf(this.#parts))
    if (change.labels !== undefined) this.#later.saveLabels(change.labels)
  }

  #requireRoom(change: Partial<ObjectParts>): void {
    if (stateBytes({ ...this.#parts, ...change }) > STATE_BYTES_MAX)
      throw new CallError(
        'RESOURCE_EXHAUSTED',
        `labels, annotations, counters and lists together have at most ${STATE_BYTES_MAX} bytes`,
      )
  }

  #change(change: Partial<ObjectParts>): void {
    this.#parts = { ...this.#parts, ...change, version: this.#parts.version + 1 }
    this.#remember()
    if (this.#isFull() !== this.#is_full) {
      this.#is_full = !this.#is_full
      this.#later.saveRoom()
    }
    if (this.#watchers.count > 0) this.#watchers.send(this.object())
  }

  #isFull(): boolean {
    if (this.#room === null) return false
    const counter = this.#parts.counters.get(this.#room)
    if (counter !== undefined) return counter.count >= counter.capacity
    const list = this.#parts.lists.get(this.#room)
    return list !== undefined && list.values.length >= list.capacity
  }

  /** As it is when its turn comes. */
  async #arrangeRoom(): Promise<void> {
    await this.#serial(() => this.#lobby.setClosed(this.#has_closed || this.#isFull()))
  }

  #remember(): void {
    const rest = { reserve_end_ts: this.#reserve_end_ts, has_closed: this.#has_closed, is_kept: this.#is_kept }
    this.#lobby.remember(memoryOf(this.#parts, rest))
  }

  #report(): void {
    const { ping_ts, misses } = this.#health
    const is_healthy = this.state === 'Unhealthy' ? false : ping_ts === null ? null : misses === 0
    this.#lobby.report({ state: this.state, health_ts: ping_ts, is_healthy })
  }

  #serial<T>(work: () => Promise<T>): Promise<T> {
    if (this.#waiting_calls >= WAITING_CALLS_MAX)
      return Promise.reject(new CallError('RESOURCE_EXHAUSTED', 'too many calls wait for the platform'))
    this.#waiting_calls++
    const result = this.#last.then(work).finally(() => {
      this.#waiting_calls--
    })
    this.#last = result.catch(() => undefined)
    return result
  }

  /** One timer: for the next look, the end of the reservation, and the next write of the state. */
  #arm(): void {
    clearTimeout(this.#timer)
    if (this.#is_closed) return
    const looks = isFinal(this.state) ? [] : [this.#health.look_ts]
    const due = [...looks, this.#reserve_end_ts, this.#later.due_ts].filter((ts) => ts !== null)
    if (due.length === 0) return
    const wait_ms = Math.min(Math.max(Math.min(...due) - this.#lobby.now(), 1), TIMER_MS_MAX)
    this.#timer = setTimeout(() => this.#due(), wait_ms).unref()
  }

  #due(): void {
    const now = this.#lobby.now()
    this.#later.run()
    this.#look(now)
    if (this.#reserve_end_ts !== null && now >= this.#reserve_end_ts) this.#endReservation(now)
    this.#arm()
  }

  #look(now: number): void {
    if (isFinal(this.state)) return
    const was_missing = this.#health.misses > 0
    this.#health = look(this.#rules, this.#health, now)
    if (!isUnhealthy(this.#rules, this.#health)) {
      if (!was_missing && this.#health.misses > 0) this.#report()
      return
    }
    this.#enter(step(this.state, 'unhealthy').state)
    this.#lobby.unhealthy(`The server sent no health ping ${this.#rules.failure_threshold} times in a row.`)
  }

  #endReservation(now: number): void {
    this.#reserve_end_ts = now + REOPEN_RETRY_MS
    this.#reopen_attempts++
    if (this.#reopen_attempts >= REOPEN_ATTEMPTS_MAX) this.#reserve_end_ts = null
    this.#apply('reserve_end').catch((error: unknown) =>
      this.#lobby.log(`agones: the reservation has ended, but Ready was not entered: ${this.refusalOf(error).message}`),
    )
  }
}

function seatKey({ player_id, create_ts }: LobbySeat): string {
  return `${create_ts} ${player_id}`
}

function stateBytes(parts: ObjectParts): number {
  return Buffer.byteLength(JSON.stringify(stateOf(parts)))
}

function declared<T>(all: ReadonlyMap<string, T>, name: string, kind: string): T {
  const one = all.get(name)
  if (one === undefined)
    throw new CallError('NOT_FOUND', `${kind} not found: ${name.slice(0, 64)}; declare it in the version config`)
  return one
}
