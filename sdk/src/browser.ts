// The SDK for browsers: finds a lobby, gets a seat, and returns where to connect. It has no dependencies. The origin of a site
// stands for its namespace, so a game on the platform's CDN needs no key and no setting.
import { MusterError, WAITING } from './error.ts'
import { pause, retrying, type Site, send, siteOf } from './request.ts'
import { type PageStorage, resumeSeat, storedSeat } from './resume.ts'

export { MusterError } from './error.ts'

/** A port of the lobby's server, as players reach it. */
export type Port = {
  /** `hostname:port`; null where the server is reached without the platform's proxy. */
  host: string | null
  hostname: string
  port: number | null
  is_tls: boolean
  /** Ready-to-use URL, `http://` or `https://`. Append a path. See `socketUrl`. */
  url: string
}

/** `expected_ms`: what the request's `latencies_ms` has for this region. */
type SeatRegion = { region_id: string; display_name: string; expected_ms?: number }

/** A reserved seat. Send `player.token` to the lobby server, which consumes it. */
export type Seat = {
  /** `version_id`: the version that the lobby runs. A page of another version can ask the player to reload it. `code`: of `with_code`. */
  lobby: { lobby_id: string; version_id?: string; code?: string; region: SeatRegion }
  ports: Record<string, Port>
  /** `role`: absent: a player. */
  player: { token: string; role?: 'spectator' }
  /** Team of the player, where the game mode has teams. */
  team?: string
}

/** A seat that the player has. `is_connected`: the lobby has not noticed yet that the earlier connection is gone. */
export type OwnSeat = Seat & { is_connected: boolean; expire_ts?: string }

const CAPTCHA_PROVIDERS = ['hcaptcha', 'turnstile'] as const
type CaptchaProvider = (typeof CAPTCHA_PROVIDERS)[number]

/** The response of the captcha widget. Each is valid once. See `ClientOptions.captcha`. */
export type Captcha = Partial<Record<CaptchaProvider, { client_response: string }>>

/** The captcha that the platform requires: the parameters of the provider's widget. */
export type CaptchaRequired = { provider: CaptchaProvider; site_key: string; action?: string }

/** Members of every request for a seat. */
type Admission = {
  /** JSON of at most 16 KiB, sent unchanged to the game's own verification endpoint. */
  verification_data?: unknown
  captcha?: Captcha
  /** For the leader of a party (player.ts): seats for all members, or for none. */
  party?: boolean
}

/** Which lobby to find. */
export type FindRequest = Admission & {
  game_modes: string[]
  /** `spectator`: a seat beside those of players, in a running lobby. */
  role?: 'player' | 'spectator'
  /** Best first. Absent: the one with the least latency in `latencies_ms`, else the nearest. */
  regions?: string[]
  /** Round-trip times to regions, as `measureRegions` of regions.ts returns them. */
  latencies_ms?: Record<string, number>
  /** Refuse instead of starting a lobby when none has room. */
  prevent_auto_create_lobby?: boolean
  tags?: Record<string, string>
  max_players?: number
  /** For the rules of the game mode: those attributes that the page may say. */
  attributes?: Record<string, number | string | string[]>
  /** With `party`: attributes of members by `identity_id`. */
  member_attributes?: Record<string, Record<string, number | string | string[]>>
}

/** What a find waits for, by the rules of its game mode. Members are absent while the lobby of the match starts. */
export type QueueWait = {
  reason: string
  waited_ms?: number
  /** Half of the players of the last hour waited at most this long. Absent while few were matched. */
  usual_wait_ms?: number
  players_waiting?: number
  /** Players who are missing for a match that begins at once. */
  players_missing?: number
  /** Rules that kept others away, the strictest first. */
  refused_by?: { rule: string; candidates: number; limit?: number; widens_in_ms?: number }[]
}

/** `code`: six letters, of a lobby that was created with `with_code`. */
export type JoinWish = Admission & { role?: 'player' | 'spectator' } & ({ lobby_id: string } | { code: string })

/** The lobby that you open. The game mode must let players do that. */
export type CreateWish = Admission & {
  game_mode: string
  /** Absent: the one with the least latency in `latencies_ms`, else the nearest. */
  region?: string
  latencies_ms?: Record<string, number>
  /** A private lobby is joined by its id or code alone. Absent: public, where the game mode allows it. */
  publicity?: 'public' | 'private'
  /** Whether the lobby gets a code, `seat.lobby.code`, with which others join it. */
  with_code?: boolean
  tags?: Record<string, string>
  max_players?: number
  /** JSON of at most 16 KiB, handed to the lobby's server as it is. */
  lobby_config?: unknown
}

export type ClientOptions = {
  /** Where the matchmaker is. Absent: asked of the site's own origin, `/.well-known/muster.json`. */
  matchmaker_url?: string
  /** A namespace's public or development token, for pages that are not served by the platform. */
  token?: string
  /**
   * Shows the player the captcha and answers the provider's response. Called when the platform requires one, at most
   * once a call; the call is then made again with it. What it throws, the call throws. Without it, and when the response
   * is not accepted, the refusal is yours: `CAPTCHA_CAPTCHA_REQUIRED`, `CAPTCHA_CAPTCHA_FAILED`.
   */
  captcha?: (required: CaptchaRequired, options: CallOptions) => Promise<string>
  /** Where the token of the last seat is stored, for `resume`. Absent: sessionStorage, one seat for each tab. Null: nowhere. */
  seat_storage?: PageStorage | null
  /** The version whose lobbies are wanted. Absent: that of this page. Null: any. */
  version_id?: string | null
  /** Called with the deployed version before a call throws `MATCHMAKER_VERSION_REPLACED`: load the page again, once for each. */
  onVersionReplaced?: (version_id: string) => void
}

export type CallOptions = { signal?: AbortSignal }

export type FindOptions = CallOptions & {
  /** Called after a second, and then every few seconds, while no match is complete. */
  onWaiting?: (waiting: QueueWait) => void
  /** How long find waits for a match. Absent: an hour. Then it throws `MATCHMAKER_WAITING`. */
  wait_ms?: number
}

export type Client = {
  /**
   * A seat in a lobby that fits, started if need be: this may take as long as your server needs to start. Where the game
   * mode has rules, find waits for players who fit. Abort it with `signal`. Throws a MusterError, e.g.
   * `MATCHMAKER_NO_AVAILABLE_LOBBIES`.
   */
  find(wish: FindRequest, options?: FindOptions): Promise<Seat>
  /** A seat in this very lobby. Throws a MusterError, e.g. `MATCHMAKER_LOBBY_CODE_INVALID`, `MATCHMAKER_LOBBY_FULL`. */
  join(wish: JoinWish, options?: CallOptions): Promise<Seat>
  /** A new lobby of your own, and the first seat in it. Throws a MusterError, e.g. `MATCHMAKER_CUSTOM_LOBBIES_DISABLED`. */
  create(wish: CreateWish, options?: CallOptions): Promise<Seat>
  /**
   * The seat that this tab got last, or a seat of the identity without a connection. Null: there is none, or it has ended. Takes
   * no seat. Call it once when the page begins: `(await client.resume()) ?? (await client.find(wish))`.
   */
  resume(options?: CallOptions): Promise<OwnSeat | null>
  /** Forgets the last seat of this tab, for a player who leaves on purpose. The lobby's server ends the seat. */
  forget(): void
}

/** Before the first call of `onWaiting`, and between two of them. */
const TOLD_FIRST_MS = 1_000
const TOLD_EVERY_MS = 5_000
const WAIT_MS_MAX = 3_600_000
/** One call waits at most this long. */
const CALL_MS_MAX = 50_000
/** Calls begin at most this often. */
const CALL_MS_MIN = 1_000

/** 128 random bits. A page of a plain http address has no `crypto.randomUUID`. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** A client of the matchmaker. Costs nothing until its first call. */
export function createClient(options: ClientOptions = {}): Client {
  const stored = storedSeat(options.seat_storage)
  let site: Site | undefined

  // One key for all attempts of a call: if an answer gets lost, the repetition gets the same seat, not a second.
  const call = async <T>(path: string, body: object, { signal }: CallOptions, key = randomKey()): Promise<T> => {
    const headers: Record<string, string> = { 'content-type': 'application/json', 'idempotency-key': key }
    if (options.token !== undefined) headers.authorization = `Bearer ${options.token}`
    const request: RequestInit = { method: 'POST', headers }
    if (signal !== undefined) request.signal = signal
    try {
      return (await retrying(async () => {
        site ??= await siteOf(options, signal)
        const { matchmaker_url, version_id } = site
        request.body = JSON.stringify(
          version_id === null || !path.startsWith('lobbies/') ? body : { ...body, version_id },
        )
        return send(`${matchmaker_url}/matchmaker/${path}`, request)
      }, signal)) as T
    } catch (error) {
      if (error instanceof MusterError && error.code === 'MATCHMAKER_VERSION_REPLACED') {
        const { version_id } = error.metadata
        // Otherwise only the lobby of a join is of an earlier version.
        if (version_id !== site?.version_id) options.onVersionReplaced?.(String(version_id))
      }
      throw error
    }
  }

  /** Repeats the call, which keeps its place, until a match is complete. */
  const wait = async (path: string, wish: Admission, findOptions: FindOptions): Promise<Seat> => {
    const { onWaiting, signal } = findOptions
    const key = randomKey()
    const until_ms = performance.now() + (findOptions.wait_ms ?? WAIT_MS_MAX)
    for (let told_ms = TOLD_FIRST_MS; ; told_ms = TOLD_EVERY_MS) {
      const begin_ms = performance.now()
      const left_ms = Math.max(0, Math.round(until_ms - begin_ms))
      const wait_ms = Math.min(left_ms, onWaiting === undefined ? CALL_MS_MAX : told_ms)
      try {
        const is_plain = onWaiting === undefined && findOptions.wait_ms === undefined
        return await call<Seat>(path, is_plain ? wish : { ...wish, wait_ms }, findOptions, key)
      } catch (error) {
        if (!(error instanceof MusterError) || error.code !== WAITING || wait_ms === left_ms) throw error
        onWaiting?.(error.metadata as QueueWait)
        // A platform that stops returns at once.
        await pause(Math.max(0, begin_ms + CALL_MS_MIN - performance.now()), signal)
      }
    }
  }

  const ask = async (action: string, wish: Admission, callOptions: CallOptions = {}): Promise<Seat> => {
    const take: typeof wait = action === 'find' ? wait : call
    const path = `lobbies/${action}`
    try {
      return stored.keep(await take(path, wish, callOptions))
    } catch (error) {
      const required = captchaOf(error)
      if (required === null || options.captcha === undefined) throw error
      const client_response = await options.captcha(required, callOptions)
      const solved = { ...wish, captcha: { [required.provider]: { client_response } } }
      return stored.keep(await take(path, solved, callOptions))
    }
  }

  return {
    find: (wish, callOptions) => ask('find', wish, callOptions),
    join: (wish, callOptions) => ask('join', wish, callOptions),
    create: (wish, callOptions) => ask('create', wish, callOptions),
    resume: (callOptions = {}) =>
      resumeSeat(stored, options.token, (body) => call<{ seats: OwnSeat[] }>('seats/own', body, callOptions)),
    forget: stored.forget,
  }
}

/** The captcha that the refusal asks for; null when it is about something else. */
function captchaOf(error: unknown): CaptchaRequired | null {
  if (!(error instanceof MusterError) || error.code !== 'CAPTCHA_CAPTCHA_REQUIRED') return null
  for (const provider of CAPTCHA_PROVIDERS) {
    const { site_key, action } = (error.metadata[provider] ?? {}) as { site_key?: unknown; action?: unknown }
    if (typeof site_key === 'string') return { provider, site_key, ...(typeof action === 'string' && { action }) }
  }
  return null
}

/**
 * The WebSocket address of a port: `socketUrl(seat.ports.game, '/play', { token: seat.player.token })`.
 * Throws `BAD_ANSWER` when the lobby has no such port.
 */
export function socketUrl(port: Port | undefined, path = '/', query: Record<string, string> = {}): string {
  if (port === undefined) throw new MusterError('BAD_ANSWER', 'The lobby has no such port.')
  const url = new URL(`${port.url.replace(/\/$/, '')}/${path.replace(/^\//, '')}`)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  return url.href
}
