// The running lobbies of one namespace, in memory: read from the tables and the journal after them, and updated by each row
// of the journal. Pure: load-live.ts reads, live-feeds.ts follows.
//
// A subscriber receives what has changed since its last message: each lobby knows when it last changed, and the lobbies that
// stopped last are remembered. So nothing is queued for a slow subscriber; it receives fewer messages.
import type { LiveMessage, LobbySummaryAnalytics } from '@muster/contract'
import { idOfName } from '../../ids.ts'
import type { Change, LobbyRecord } from '../../journal/changes.ts'
import { timestamp } from '../times.ts'

/** The last stopped lobbies of a namespace. A listener that knows less gets a snapshot. */
const STOPPED_MAX = 4_096
/** Messages that are kept, each for all listeners at the same index. */
const ANSWERS_MAX = 64

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
>
type Live = LobbyBasics & {
  is_ready: boolean
  is_closed: boolean
  is_stalled: boolean
  total: number
  registered: number
  /** The seq, and the revision, of its last change. */
  seq: number
  revision: number
}
type Seat = { lobby: Live | undefined; is_connected: boolean }
type Stopped = { lobby_id: string; seq: number; revision: number }
/** As the tables have it. */
export type LoadedLobby = LobbyBasics &
  Pick<Live, 'is_ready' | 'is_closed' | 'is_stalled'> & { seats: ReadonlyMap<string, boolean> }
/** `revision`: what a listener knows; it means nothing in another LiveLobbies. */
export type Told = { message: LiveMessage; revision: number }

export type LiveLobbies = {
  apply(seq: number, changes: readonly Change[]): void
  /** Returns whether that changed anything. */
  deploy(version_id: string): boolean
  /** Grows with each change. */
  revision(): number
  seq(): number
  snapshot(): Told
  /** What has come after a revision of this, or an index of any. */
  since(known: number | string): Told
  heartbeat(): LiveMessage
}

export function createLiveLobbies(seq: number, version_id: string, loaded: readonly LoadedLobby[]): LiveLobbies {
  const lobbies = new Map<string, Live>()
  const seats = new Map<string, Seat>()
  const stopped: Stopped[] = []
  let [now_seq, deployed, revision] = [seq, version_id, 0]
  /** What stopped up to here is not remembered. */
  let forgotten: Omit<Stopped, 'lobby_id'> = { seq, revision: 0 }

  for (const { seats: taken, ...one } of loaded) {
    const lobby: Live = { ...one, total: 0, registered: 0, seq, revision }
    lobbies.set(one.lobby_id, lobby)
    for (const [player_id, is_connected] of taken) seat(player_id, lobby, is_connected)
  }

  function seat(player_id: string, lobby: Live | undefined, is_connected: boolean): void {
    seats.set(player_id, { lobby, is_connected })
    if (lobby === undefined) return
    lobby.total++
    if (is_connected) lobby.registered++
  }

  function setConnected(player_id: string, is_connected: boolean): Live | undefined {
    const taken = seats.get(player_id)
    if (taken === undefined || taken.is_connected === is_connected) return undefined
    taken.is_connected = is_connected
    if (taken.lobby !== undefined) taken.lobby.registered += is_connected ? 1 : -1
    return taken.lobby
  }

  function unseat(player_id: string): Live | undefined {
    const lobby = setConnected(player_id, false) ?? seats.get(player_id)?.lobby
    if (!seats.delete(player_id) || lobby === undefined) return undefined
    lobby.total--
    return lobby
  }

  /** Returns the running lobby that the change is about, if any. */
  function change(told: Change): Live | undefined {
    switch (told.kind) {
      case 'lobby_created': {
        const lobby: Live = {
          ...basicsOf(told.lobby),
          is_ready: false,
          is_closed: false,
          is_stalled: false,
          total: 0,
          registered: 0,
          seq: now_seq,
          revision,
        }
        lobbies.set(lobby.lobby_id, lobby)
        return lobby
      }
      case 'lobby_ready':
        return patch(told.lobby_id, { is_ready: true })
      case 'lobby_closed':
        return patch(told.lobby_id, { is_closed: told.is_closed })
      case 'lobby_stalled':
        return patch(told.lobby_id, { is_stalled: told.is_stalled })
      case 'lobby_stopped':
        if (lobbies.delete(told.lobby_id)) stopped.push({ lobby_id: told.lobby_id, seq: now_seq, revision })
        return undefined
      case 'player_reserved': {
        const lobby = lobbies.get(told.player.lobby_id)
        seat(told.player.player_id, lobby, false)
        return lobby
      }
      case 'player_connected':
        return setConnected(told.player_id, true)
      case 'player_dropped':
        return setConnected(told.player_id, false)
      case 'player_removed':
        return unseat(told.player_id)
      default:
        return undefined
    }
  }

  function patch(lobby_id: string, members: Partial<Live>): Live | undefined {
    const lobby = lobbies.get(lobby_id)
    return lobby === undefined ? undefined : Object.assign(lobby, members)
  }

  /** To those who know the same; of one revision. */
  const answers = new Map<number | string, Told>()
  function remembered(known: number | string, tell: () => Told): Told {
    const answer = answers.get(known) ?? tell()
    if (answers.size < ANSWERS_MAX) answers.set(known, answer)
    return answer
  }

  const index = (): string => `${now_seq}.${deployed}`

  function snapshot(): Told {
    const all = lobbies.values().toArray().map(summaryOf)
    return { message: { kind: 'snapshot', index: index(), lobbies: all }, revision }
  }

  function changes(isNew: (one: Pick<Stopped, 'seq' | 'revision'>) => boolean): Told {
    const changed = lobbies.values().filter(isNew).map(summaryOf).toArray()
    const stopped_lobby_ids = stopped.filter(isNew).map(({ lobby_id }) => lobby_id)
    return { message: { kind: 'changes', index: index(), lobbies: changed, stopped_lobby_ids }, revision }
  }

  function summaryOf(lobby: Live): LobbySummaryAnalytics {
    return {
      lobby_id: lobby.lobby_id,
      lobby_group_id: idOfName(`${lobby.version_id}/${lobby.game_mode}`),
      lobby_group_name_id: lobby.game_mode,
      region_id: idOfName(lobby.region),
      create_ts: timestamp(new Date(lobby.create_ms)),
      is_ready: lobby.is_ready,
      is_idle: lobby.total === 0,
      is_closed: lobby.is_closed,
      is_stalled: lobby.is_stalled,
      is_outdated: lobby.version_id !== deployed,
      max_players_normal: lobby.max_players_normal,
      max_players_direct: lobby.max_players_direct,
      max_players_party: lobby.max_players_party,
      total_player_count: lobby.total,
      registered_player_count: lobby.registered,
    }
  }

  return {
    apply(row_seq, told) {
      now_seq = row_seq
      if (told.length === 0) return
      revision++
      answers.clear()
      for (const one of told) {
        const lobby = change(one)
        if (lobby !== undefined) Object.assign(lobby, { seq: now_seq, revision })
      }
      const surplus = stopped.splice(0, Math.max(0, stopped.length - STOPPED_MAX)).at(-1)
      if (surplus !== undefined) forgotten = surplus
    },
    deploy(next) {
      if (next === deployed) return false
      revision++
      answers.clear()
      for (const lobby of lobbies.values()) {
        if (lobby.version_id === deployed || lobby.version_id === next) lobby.revision = revision
      }
      deployed = next
      return true
    },
    revision: () => revision,
    seq: () => now_seq,
    snapshot: () => remembered('', snapshot),
    since: (known) => remembered(known, () => since(known)),
    heartbeat: () => ({ kind: 'heartbeat', index: index() }),
  }

  function since(known: number | string): Told {
    if (typeof known === 'number') {
      return known < forgotten.revision ? snapshot() : changes((one) => one.revision > known)
    }
    const [known_seq, known_version] = known.split('.')
    const from_seq = Number(known_seq)
    if (known_version !== deployed || from_seq < forgotten.seq || from_seq > now_seq) return snapshot()
    return changes((one) => one.seq > from_seq)
  }
}

function basicsOf(lobby: LobbyBasics): LobbyBasics {
  const { lobby_id, version_id, game_mode, region, create_ms } = lobby
  const { max_players_normal, max_players_direct, max_players_party } = lobby
  return {
    lobby_id,
    version_id,
    game_mode,
    region,
    create_ms,
    max_players_normal,
    max_players_direct,
    max_players_party,
  }
}
