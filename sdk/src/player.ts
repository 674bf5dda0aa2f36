// The player in a browser: an identity that the device stores, its party, and events with seats. The first visit creates a
// guest identity; all later calls use it.
import {
  type CallOptions,
  type Client,
  type ClientOptions,
  createClient,
  type QueueWait,
  type Seat,
} from './browser.ts'
import { MusterError } from './error.ts'
import { pause, retrying, send, siteOf } from './request.ts'
import { type PageStorage, pageStorage, storedSeat } from './resume.ts'

export type Identity = { identity_id: string; display_name: string; account_number?: number; is_registered: boolean }

export type Party = {
  party_id: string
  /** Code with which other players join. */
  code: string
  leader_identity_id: string
  members: { identity_id: string; join_ts: string }[]
}

export type PlayerOptions = ClientOptions & {
  /**
   * Where the identity token is stored. Absent: localStorage. Null, and where the browser blocks the storage of a frame: every
   * visit creates a new guest.
   */
  storage?: PageStorage | null
}

/** A client with the identity of this player. With `party: true`, find, join and create request seats for the whole party. */
export type Player = Client & {
  identity: Identity
  createParty(options?: CallOptions): Promise<Party>
  joinParty(code: string, options?: CallOptions): Promise<Party>
  leaveParty(options?: CallOptions): Promise<void>
  setLeader(identity_id: string, options?: CallOptions): Promise<Party>
  removeMember(identity_id: string, options?: CallOptions): Promise<Party>
  /** The player's party. Null: the player is in no party. */
  party(options?: CallOptions): Promise<Party | null>
  /** Calls `onParty` now and after each change, until the signal is aborted. Null: the player is in no party any more. */
  watchParty(onParty: (party: Party | null) => void, options?: CallOptions): Promise<void>
  /** Calls `onSeat` once for each seat that the party leader gets for this player, until the signal is aborted. */
  watchSeats(onSeat: (seat: Seat) => void, options?: WatchOptions): Promise<void>
}

export type WatchOptions = CallOptions & {
  /** Called while a find of the player, or of the leader, waits for a match, when its numbers change. Null: it waits no more. */
  onWaiting?: (waiting: QueueWait | null) => void
}

const STORAGE_KEY = 'muster.identity'
/** Pause after a call failed in spite of its retries. */
const WATCH_PAUSE_MS = 5_000
/** How often a change of the numbers ends a long poll. */
const WAITING_EVERY_S = 3

type Request = { method: string; path: string; body?: unknown }
type Event = {
  event_id: string
  kind: { matchmaker_lobby_join?: Seat; matchmaker_waiting?: QueueWait; matchmaker_wait_ended?: object }
}

/** Throws a MusterError when the platform does not know this page's origin or token. */
export async function openPlayer(options: PlayerOptions = {}, { signal }: CallOptions = {}): Promise<Player> {
  const storage = options.storage === undefined ? pageStorage('localStorage') : options.storage
  const site = await siteOf(options, signal)
  const url = site.matchmaker_url

  const ask = <T>(token: string | undefined, { method, path, body }: Request, callOptions: CallOptions = {}) =>
    retrying(() => {
      const request: RequestInit = { method, headers: {} }
      const headers: Record<string, string> = {}
      if (token !== undefined) headers.authorization = `Bearer ${token}`
      if (body !== undefined) {
        headers['content-type'] = 'application/json'
        request.body = JSON.stringify(body)
      }
      request.headers = headers
      if (callOptions.signal !== undefined) request.signal = callOptions.signal
      return send(`${url}${path}`, request)
    }, callOptions.signal) as Promise<T>

  const kept = storage?.getItem(STORAGE_KEY) ?? null
  const { identity, identity_token: token } = await ask<{ identity: Identity; identity_token: string }>(
    options.token,
    { method: 'POST', path: '/identity/identities', body: kept === null ? {} : { existing_identity_token: kept } },
    signal === undefined ? {} : { signal },
  )
  storage?.setItem(STORAGE_KEY, token)
  const stored = storedSeat(options.seat_storage)

  const post = async (path: string, body: unknown, callOptions?: CallOptions): Promise<Party> =>
    (await ask<{ party: Party }>(token, { method: 'POST', path, body }, callOptions)).party

  const party = async (watch_index: string | null, callOptions?: CallOptions) => {
    const query = watch_index === null ? '' : `?watch_index=${encodeURIComponent(watch_index)}`
    try {
      const request = { method: 'GET', path: `/parties/self${query}` }
      return await ask<{ party: Party; watch: { index: string } }>(token, request, callOptions)
    } catch (error) {
      if (error instanceof MusterError && error.code === 'PARTY_NOT_FOUND') return null
      throw error
    }
  }

  return {
    ...createClient({ ...options, ...site, token }),
    identity,
    createParty: (callOptions) => post('/parties', {}, callOptions),
    joinParty: (code, callOptions) => post('/parties/join', { code }, callOptions),
    leaveParty: async (callOptions) => void (await post('/parties/leave', {}, callOptions)),
    setLeader: (identity_id, callOptions) => post('/parties/leader', { identity_id }, callOptions),
    async removeMember(identity_id, callOptions) {
      const path = `/parties/members/${encodeURIComponent(identity_id)}`
      return (await ask<{ party: Party }>(token, { method: 'DELETE', path }, callOptions)).party
    },
    party: async (callOptions) => (await party(null, callOptions))?.party ?? null,
    async watchParty(onParty, callOptions = {}) {
      let index: string | null = null
      await keepWatching(async () => {
        const found = await party(index, callOptions)
        const before: string | null = index
        index = found?.watch.index ?? null
        if (found === null || index !== before) onParty(found?.party ?? null)
        return found !== null
      }, callOptions.signal)
    },
    async watchSeats(onSeat, callOptions = {}) {
      // The platform delivers an event at least once: known events are skipped.
      const known_ids = new Set<string>()
      const { onWaiting } = callOptions
      const query = new URLSearchParams(onWaiting && { waiting_every_s: `${WAITING_EVERY_S}` })
      await keepWatching(async () => {
        const request = { method: 'GET', path: `/identity/events/live?${query}` }
        const news = await ask<{ events: Event[]; watch: { index: string } }>(token, request, callOptions)
        for (const { event_id, kind } of news.events) {
          if (kind.matchmaker_waiting !== undefined) onWaiting?.(kind.matchmaker_waiting)
          if (kind.matchmaker_wait_ended !== undefined) onWaiting?.(null)
          if (kind.matchmaker_lobby_join === undefined || known_ids.has(event_id)) continue
          known_ids.add(event_id)
          onSeat(stored.keep(kind.matchmaker_lobby_join))
        }
        query.set('watch_index', news.watch.index)
        return true
      }, callOptions.signal)
    },
  }
}

/** Repeats `poll` until it returns false or the signal is aborted. Throws errors that are not temporary. */
async function keepWatching(poll: () => Promise<boolean>, signal: AbortSignal | undefined): Promise<void> {
  while (!signal?.aborted) {
    try {
      if (!(await poll())) return
    } catch (error) {
      if (signal?.aborted) return
      const is_temporary =
        error instanceof MusterError && (error.status === 0 || error.status === 429 || error.status >= 500)
      if (!is_temporary) throw error
      await pause(error.retry_after_ms ?? WATCH_PAUSE_MS, signal).catch(() => {})
    }
  }
}
