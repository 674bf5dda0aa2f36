// The SDK for lobby servers: reads the lobby's environment, and reports readiness, players and state. It has no dependencies. It
// uses node:http, because the first `fetch` of a process takes tens of milliseconds, for which players would wait.
import { randomUUID } from 'node:crypto'
import { Agent, type ClientRequest, type RequestOptions, request as requestHttp } from 'node:http'
import { errorOf, isTemporary, MusterError, retryDelay } from './error.ts'

export { MusterError } from './error.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export type LobbyOptions = {
  /** Absent: process.env. */
  environment?: Environment
  /** Receives the line that says that this process is not a lobby of the platform. Absent: standard error. */
  log?: (line: string) => void
  /** How long calls are retried, except `disconnected`. Absent: 10 s, longer than a restart of the platform. */
  retrying_ms_max?: number
}

/** How the rules of the game mode brought the player here. */
export type ConnectedPlayer = {
  role?: 'spectator'
  team?: string
  attributes?: Record<string, number | string | string[]>
}

/** The lobby of this process. Every call may throw a MusterError. */
export type Lobby = {
  /** False when the process was started by hand. Then every call succeeds and does nothing. */
  is_hosted: boolean
  id: string
  game_mode: string
  namespace_id: string
  region_id: string
  /** Maximum number of players when a player comes by find. */
  max_players: number
  /** `lobby_config` of the creator of a custom lobby. Null for every other lobby. */
  config: unknown
  tags: Readonly<Record<string, string>>
  /** Where to listen for the port of this name. Throws `NOT_A_LOBBY` when the version has no such port. */
  port(name: string): number
  /** Call it as soon as the server listens: the players of a new lobby wait for it. */
  ready(): Promise<void>
  /**
   * Consumes a player token. Handle nothing of the player before it resolves; when it throws, close the connection. `team`
   * and `attributes`: from the rules of the game mode, where it has any. A `role` of
   * `spectator` is a seat beside those of players: show the game, and ignore what it sends.
   */
  connected(playerToken: string): Promise<ConnectedPlayer>
  /**
   * Returns the seat. Call it once for every player that `connected` admitted. With `hold_ms` (at most 300,000) the seat is
   * kept for this time, and `connected` accepts the same token again. The call is retried for an hour, because a seat that is
   * not returned stays taken.
   */
  disconnected(playerToken: string, options?: { hold_ms?: number }): Promise<void>
  /** Find leaves out a closed lobby. Its players stay. */
  setClosed(isClosed: boolean): Promise<void>
  /** State that lists of lobbies show: any JSON. */
  setState(state: unknown): Promise<void>
  /**
   * Reports how a match ended: players by their tokens, and the place of each team. The game mode needs `ratings` in its
   * config. A lobby that plays several matches gives each a `match_id`. The call is retried, and a match is rated once.
   */
  reportResult(result: MatchResult): Promise<void>
}

/** `ranks`: the place of each team; 1 is the best, and equal places are a draw. */
export type MatchResult = { teams: string[][]; ranks: number[]; match_id?: string }

/** How a call is retried while the platform cannot be reached or is temporarily unavailable. */
type RetryPolicy = {
  ms_max: number
  attempts_max: number
  pause_ms_max: number
  /** Whether the next attempt keeps an otherwise idle process running. */
  holds_process: boolean
}

/** Longer than a restart of the matchmaker, which takes a second or two: it must not disconnect players. */
const CALL_RETRIES: RetryPolicy = { ms_max: 10_000, attempts_max: 32, pause_ms_max: 1_000, holds_process: true }
/**
 * No player waits for this call, so it may outlast the restart of a machine. When the lobby ends, the platform frees its
 * seats anyway.
 */
const SEAT_RETURN_RETRIES: RetryPolicy = {
  ms_max: 60 * 60_000,
  attempts_max: 1_000,
  pause_ms_max: 5_000,
  holds_process: false,
}
/** For one attempt. */
const RESPONSE_MS_MAX = 10_000
/** Longest response of the platform that is read. */
const RESPONSE_BYTES_MAX = 65_536
/** Connections to the platform at once. */
const CONNECTIONS_MAX = 8

/** Reads the lobby's environment. Call it once, at the start. */
export function openLobby(options: LobbyOptions = {}): Lobby {
  const environment = options.environment ?? process.env
  const is_hosted = environment.PLATFORM_TOKEN !== undefined && environment.PLATFORM_API_URL !== undefined
  if (!is_hosted) {
    const log = options.log ?? ((line: string) => process.stderr.write(`${line}\n`))
    log('muster: not started by the platform (no PLATFORM_TOKEN): every player is let in, nothing is reported.')
  }
  const caller = is_hosted ? createCaller(environment.PLATFORM_API_URL!, environment.PLATFORM_TOKEN!) : null
  const retries = { ...CALL_RETRIES, ...(options.retrying_ms_max !== undefined && { ms_max: options.retrying_ms_max }) }
  const call = async (method: string, path: string, body: unknown) => caller?.call(method, path, body, retries)

  return {
    is_hosted,
    id: environment.PLATFORM_LOBBY_ID ?? '00000000-0000-0000-0000-000000000000',
    game_mode: environment.PLATFORM_GAME_MODE_NAME ?? 'default',
    namespace_id: environment.PLATFORM_NAMESPACE_ID ?? '00000000-0000-0000-0000-000000000000',
    region_id: environment.PLATFORM_REGION_ID ?? 'local',
    max_players: Number(environment.PLATFORM_MAX_PLAYERS_NORMAL ?? 32),
    config: JSON.parse(environment.PLATFORM_LOBBY_CONFIG ?? 'null'),
    tags: JSON.parse(environment.PLATFORM_LOBBY_TAGS ?? '{}') as Record<string, string>,
    port(name) {
      const variable = `PORT_${name.toUpperCase().replaceAll('-', '_')}`
      const port = Number(environment[variable])
      if (Number.isInteger(port) && port > 0) return port
      throw new MusterError('NOT_A_LOBBY', `${variable} is not set: the version has no port named ${name}.`)
    },
    ready: async () => void (await call('POST', '/matchmaker/lobbies/ready', {})),
    connected: async (player_token) =>
      ((await call('POST', '/matchmaker/players/connected', { player_token })) ?? {}) as ConnectedPlayer,
    async disconnected(player_token, options) {
      await caller?.call('POST', '/matchmaker/players/disconnected', { player_token, ...options }, SEAT_RETURN_RETRIES)
    },
    setClosed: async (is_closed) => void (await call('PUT', '/matchmaker/lobbies/closed', { is_closed })),
    setState: async (state) => void (await call('PUT', '/matchmaker/lobbies/state', state ?? null)),
    reportResult: async (result) => void (await call('POST', '/matchmaker/lobbies/result', result)),
  }
}

type Caller = { call(method: string, path: string, body: unknown, retries: RetryPolicy): Promise<unknown> }

/** All calls share one keep-alive pool. Each call has an idempotency key, which its retries repeat. */
function createCaller(address: string, token: string): Caller {
  const url = new URL(address)
  const prefix = url.pathname.replace(/\/$/, '')
  const transport = transportOf(url)
  return {
    async call(method, path, body, { ms_max, attempts_max, pause_ms_max, holds_process }) {
      const text = JSON.stringify(body)
      const headers = {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
        'idempotency-key': randomUUID(),
      }
      const until_ms = performance.now() + ms_max
      for (let count = 0; ; count++) {
        try {
          return await send(await transport, { method, path: `${prefix}${path}`, headers }, text, until_ms)
        } catch (error) {
          if (!(error instanceof MusterError) || !isTemporary(error) || count + 1 >= attempts_max) throw error
          const delay_ms = retryDelay(error, count, pause_ms_max)
          if (performance.now() + delay_ms >= until_ms) throw error
          await new Promise((resolve) => {
            const timer = setTimeout(resolve, delay_ms)
            if (!holds_process) timer.unref()
          })
        }
      }
    },
  }
}

type Transport = (options: RequestOptions) => ClientRequest

/** Loads node:https only for an https URL. Idle connections do not keep the process alive. */
function transportOf(url: URL): Transport | Promise<Transport> {
  const pool = { keepAlive: true, maxSockets: CONNECTIONS_MAX }
  const target = { hostname: url.hostname.replace(/^\[|\]$/g, ''), ...(url.port === '' ? {} : { port: url.port }) }
  if (url.protocol === 'https:') {
    return import('node:https').then((https) => {
      const agent = new https.Agent(pool)
      return (options) => https.request({ ...target, agent, ...options })
    })
  }
  const agent = new Agent(pool)
  return (options) => requestHttp({ ...target, agent, ...options })
}

function send(transport: Transport, options: RequestOptions, text: string, until_ms: number): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const fail = (reason: string) =>
      reject(new MusterError('CONNECTION_FAILED', `No answer from the platform: ${reason}.`))
    const request = transport(options)
    // A platform that neither responds nor closes the connection must not block a player forever.
    const timer = setTimeout(
      () => request.destroy(new Error('it took too long')),
      Math.min(RESPONSE_MS_MAX, Math.max(1, until_ms - performance.now())),
    )
    request.on('error', (error) => fail(error.message))
    request.on('close', () => {
      clearTimeout(timer)
      fail('the connection closed')
    })
    request.on('response', (response) => {
      let received = ''
      response.setEncoding('utf8')
      response.on('data', (part: string) => {
        received += part
        if (received.length > RESPONSE_BYTES_MAX) request.destroy(new Error('it was too large'))
      })
      response.on('error', (error) => fail(error.message))
      response.on('end', () => {
        const status = response.statusCode ?? 0
        if (status >= 200 && status < 300) resolve(parse(received))
        else reject(errorOf(status, parse(received), response.headers['retry-after']))
      })
    })
    request.end(text)
  })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null // The page of a proxy: errorOf reports that it is not a response of the platform.
  }
}
