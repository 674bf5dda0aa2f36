// The running lobbies of one namespace, in memory: read from the tables and the journal after them, and updated by each row
// of the journal and by samples of what they use. Pure: load-live.ts reads, live-feeds.ts follows.
//
// A subscriber receives what has changed since its last message: each lobby knows when it last changed, and the lobbies that
// stopped last are remembered. So nothing is queued for a slow subscriber; it receives fewer messages.
import type { LiveMessage, LobbySummaryAnalytics } from '@musterhost/contract'
import { idOfName } from '../../ids.ts'
import type { Change, LobbyRecord } from '../../journal/changes.ts'
import { timestamp } from '../times.ts'

/** Stopped lobbies of a namespace that are remembered. A subscriber that is further behind receives a snapshot. */
const STOPPED_MAX = 4_096
/** Updates that are kept, each for all subscribers at the same index. */
const UPDATES_MAX = 64
/** Difference of two machines' clocks up to which no sample is missed after a lost connection. */
const CLOCKS_MS = 10_000
const MEMORY_STEP_BYTES = 64 * 1024

type LobbyBasics = Pick<
  LobbyRecord,
  | 'lobby_id'
  | 'version_id'
  | 'game_mode'
  | 'region'
  | 'create_ms'
  | 'max_players_normal'
  | 'max_players_direct'
  | 'max_players_party'
  | 'cpu_cores'
  | 'memory_mb'
>
/** What a lobby uses, rounded to what a page shows. */
type Use = { cpu_cores: number; memory_bytes: number }
type Live = LobbyBasics & {
  is_ready: boolean
  is_closed: boolean
  is_stalled: boolean
  total: number
  registered: number
  /** Undefined before the first sample. */
  use: Use | undefined
  /** When `use` last changed. */
  use_ms: number
  /** The seq, and the revision, of its last change. */
  seq: number
  revision: number
}
type Seat = { lobby: Live | undefined; is_connected: boolean }
type Stopped = { lobby_id: string; seq: number; revision: number }
/** A lobby as the tables have it. `seats`: by player, whether the player is connected. */
export type LoadedLobby = LobbyBasics &
  Pick<Live, 'is_ready' | 'is_closed' | 'is_stalled'> & { seats: ReadonlyMap<string, boolean>; use: Use | null }
/** The newest sample of a lobby. */
export type LobbySample = Use & { lobby_id: string }
/** The versions that are not outdated. `rollout_version_id` null: no roll-out is under way. */
export type DeployedVersions = { version_id: string; rollout_version_id: string | null }
/** `revision`: what the subscriber knows after the message; it means nothing in another LiveLobbies. */
export type LiveUpdate = { message: LiveMessage; revision: number }

export class LiveLobbies {
  readonly #lobbies = new Map<string, Live>()
  readonly #seats = new Map<string, Seat>()
  /** The last stopped lobbies, in the order of their end. */
  readonly #stopped: Stopped[] = []
  /** The last stopped lobby that is no longer remembered. */
  #forgotten: Omit<Stopped, 'lobby_id'>
  /** Updates of this revision, by what their subscribers know. */
  readonly #updates = new Map<number | string, LiveUpdate>()
  #seq: number
  #deployed: DeployedVersions
  #revision = 0
  /** When `measure` last changed anything, by the clock of the process. */
  #measured_ms = 0

  constructor(seq: number, deployed: DeployedVersions, loaded: readonly LoadedLobby[]) {
    this.#seq = seq
    this.#deployed = deployed
    this.#forgotten = { seq, revision: 0 }
    for (const { seats, use, ...one } of loaded) {
      const sampled = { use: use === null ? undefined : shownUse(use), use_ms: 0 }
      const lobby: Live = { ...one, ...sampled, total: 0, registered: 0, seq, revision: 0 }
      this.#lobbies.set(one.lobby_id, lobby)
      for (const [player_id, is_connected] of seats) this.#seat(player_id, lobby, is_connected)
    }
  }

  /** Grows with each change. */
  get revision(): number {
    return this.#revision
  }

  get seq(): number {
    return this.#seq
  }

  apply(seq: number, changes: readonly Change[]): void {
    this.#seq = seq
    if (changes.length === 0) return
    this.#revise()
    for (const change of changes) {
      const lobby = this.#change(change)
      if (lobby !== undefined) Object.assign(lobby, { seq, revision: this.#revision })
    }
    const surplus = this.#stopped.splice(0, Math.max(0, this.#stopped.length - STOPPED_MAX)).at(-1)
    if (surplus !== undefined) this.#forgotten = surplus
  }

  /** Returns whether that changed anything. */
  deploy(deployed: DeployedVersions): boolean {
    const before = this.#deployed
    if (textOf(before) === textOf(deployed)) return false
    this.#revise()
    for (const lobby of this.#lobbies.values()) {
      if (isOutdated(lobby, before) !== isOutdated(lobby, deployed)) lobby.revision = this.#revision
    }
    this.#deployed = deployed
    return true
  }

  /** Takes the newest samples. Returns whether that changed what is shown. */
  measure(samples: readonly LobbySample[], now_ms: number): boolean {
    const changed = samples.flatMap(({ lobby_id, ...sample }) => {
      const lobby = this.#lobbies.get(lobby_id)
      const use = shownUse(sample)
      return lobby === undefined || isSameUse(lobby.use, use) ? [] : [{ lobby, use }]
    })
    if (changed.length === 0) return false
    this.#revise()
    this.#measured_ms = now_ms
    for (const { lobby, use } of changed) Object.assign(lobby, { use, use_ms: now_ms, revision: this.#revision })
    return true
  }

  snapshot(): LiveUpdate {
    return this.#shared('', () => this.#snapshot())
  }

  /** The changes after a revision of this object, or after an index of any. */
  since(known: number | string): LiveUpdate {
    return this.#shared(known, () => this.#since(known))
  }

  heartbeat(): LiveMessage {
    return { kind: 'heartbeat', index: this.#index() }
  }

  #revise(): void {
    this.#revision++
    this.#updates.clear()
  }

  #seat(player_id: string, lobby: Live | undefined, is_connected: boolean): void {
    this.#seats.set(player_id, { lobby, is_connected })
    if (lobby === undefined) return
    lobby.total++
    if (is_connected) lobby.registered++
  }

  #setConnected(player_id: string, is_connected: boolean): Live | undefined {
    const seat = this.#seats.get(player_id)
    if (seat === undefined || seat.is_connected === is_connected) return undefined
    seat.is_connected = is_connected
    if (seat.lobby !== undefined) seat.lobby.registered += is_connected ? 1 : -1
    return seat.lobby
  }

  #unseat(player_id: string): Live | undefined {
    const lobby = this.#setConnected(player_id, false) ?? this.#seats.get(player_id)?.lobby
    if (!this.#seats.delete(player_id) || lobby === undefined) return undefined
    lobby.total--
    return lobby
  }

  /** Returns the running lobby that the change is about, if any. */
  #change(change: Change): Live | undefined {
    switch (change.kind) {
      case 'lobby_created':
        return this.#create(change.lobby)
      case 'lobby_ready':
        return this.#patch(change.lobby_id, { is_ready: true })
      case 'lobby_closed':
        return this.#patch(change.lobby_id, { is_closed: change.is_closed })
      case 'lobby_stalled':
        return this.#patch(change.lobby_id, { is_stalled: change.is_stalled })
      case 'lobby_stopped':
        if (this.#lobbies.delete(change.lobby_id)) {
          this.#stopped.push({ lobby_id: change.lobby_id, seq: this.#seq, revision: this.#revision })
        }
        return undefined
      case 'player_reserved': {
        if (change.player.is_spectator) return undefined
        const lobby = this.#lobbies.get(change.player.lobby_id)
        this.#seat(change.player.player_id, lobby, false)
        return lobby
      }
      case 'player_connected':
        return this.#setConnected(change.player_id, true)
      case 'player_dropped':
        return this.#setConnected(change.player_id, false)
      case 'player_removed':
        return this.#unseat(change.player_id)
      default:
        return undefined
    }
  }

  #create(record: LobbyRecord): Live {
    const state = { is_ready: false, is_closed: false, is_stalled: false, total: 0, registered: 0 }
    const lobby: Live = {
      ...basicsOf(record),
      ...state,
      use: undefined,
      use_ms: 0,
      seq: this.#seq,
      revision: this.#revision,
    }
    this.#lobbies.set(lobby.lobby_id, lobby)
    return lobby
  }

  #patch(lobby_id: string, members: Partial<Live>): Live | undefined {
    const lobby = this.#lobbies.get(lobby_id)
    return lobby === undefined ? undefined : Object.assign(lobby, members)
  }

  /** Subscribers that know the same share one update of a revision. */
  #shared(known: number | string, make: () => LiveUpdate): LiveUpdate {
    const update = this.#updates.get(known) ?? make()
    if (this.#updates.size < UPDATES_MAX) this.#updates.set(known, update)
    return update
  }

  #index(): string {
    return `${this.#seq}.${textOf(this.#deployed)}.${this.#measured_ms}`
  }

  #snapshot(): LiveUpdate {
    const lobbies = [...this.#lobbies.values()].map((lobby) => this.#summaryOf(lobby))
    return { message: { kind: 'snapshot', index: this.#index(), lobbies }, revision: this.#revision }
  }

  #since(known: number | string): LiveUpdate {
    if (typeof known === 'number') {
      return known < this.#forgotten.revision ? this.#snapshot() : this.#changes((one) => one.revision > known)
    }
    const [known_seq, known_version, known_ms] = known.split('.')
    const from_seq = Number(known_seq)
    const from_ms = Number(known_ms ?? 0) - CLOCKS_MS
    const is_forgotten = from_seq < this.#forgotten.seq || from_seq > this.#seq
    if (known_version !== textOf(this.#deployed) || is_forgotten) return this.#snapshot()
    return this.#changes((one) => one.seq > from_seq || (one.use_ms ?? 0) > from_ms)
  }

  #changes(isNew: (one: Pick<Stopped, 'seq' | 'revision'> & { use_ms?: number }) => boolean): LiveUpdate {
    const changed = this.#lobbies.values().filter(isNew)
    const lobbies = changed.map((lobby) => this.#summaryOf(lobby)).toArray()
    const stopped_lobby_ids = this.#stopped.filter(isNew).map(({ lobby_id }) => lobby_id)
    const message: LiveMessage = { kind: 'changes', index: this.#index(), lobbies, stopped_lobby_ids }
    return { message, revision: this.#revision }
  }

  #summaryOf(lobby: Live): LobbySummaryAnalytics {
    return {
      lobby_id: lobby.lobby_id,
      lobby_group_id: idOfName(`${lobby.version_id}/${lobby.game_mode}`),
      lobby_group_name_id: lobby.game_mode,
      version_id: lobby.version_id,
      region_id: idOfName(lobby.region),
      create_ts: timestamp(new Date(lobby.create_ms)),
      is_ready: lobby.is_ready,
      is_idle: lobby.total === 0,
      is_closed: lobby.is_closed,
      is_stalled: lobby.is_stalled,
      is_outdated: isOutdated(lobby, this.#deployed),
      max_players_normal: lobby.max_players_normal,
      max_players_direct: lobby.max_players_direct,
      max_players_party: lobby.max_players_party,
      total_player_count: lobby.total,
      registered_player_count: lobby.registered,
      limits: { cpu_cores: lobby.cpu_cores, memory_bytes: lobby.memory_mb * 1024 ** 2 },
      ...(lobby.use === undefined ? {} : { usage: lobby.use }),
    }
  }
}

function isOutdated({ version_id }: Pick<Live, 'version_id'>, deployed: DeployedVersions): boolean {
  return version_id !== deployed.version_id && version_id !== deployed.rollout_version_id
}

/** A part of an index. */
function textOf({ version_id, rollout_version_id }: DeployedVersions): string {
  return rollout_version_id === null ? version_id : `${version_id}+${rollout_version_id}`
}

function basicsOf(lobby: LobbyBasics): LobbyBasics {
  const { lobby_id, version_id, game_mode, region, create_ms } = lobby
  const { max_players_normal, max_players_direct, max_players_party, cpu_cores, memory_mb } = lobby
  return {
    lobby_id,
    version_id,
    game_mode,
    region,
    create_ms,
    max_players_normal,
    max_players_direct,
    max_players_party,
    cpu_cores,
    memory_mb,
  }
}

/** In steps of a hundredth of a core and of 64 KiB: smaller changes are not sent. */
function shownUse({ cpu_cores, memory_bytes }: Use): Use {
  return {
    cpu_cores: Math.round(cpu_cores * 100) / 100,
    memory_bytes: Math.round(memory_bytes / MEMORY_STEP_BYTES) * MEMORY_STEP_BYTES,
  }
}

function isSameUse(one: Use | undefined, other: Use): boolean {
  return one?.cpu_cores === other.cpu_cores && one.memory_bytes === other.memory_bytes
}
