// PlayFab GSDK: a server sends a heartbeat each second and reads from the response what it has to do. A heartbeat is
// responded to at once, from what is known; calls to the platform run behind. Unity waits 30 seconds after one failure.
import { CallLine, messageOf } from '../call-line.ts'
import {
  asRecord,
  type HttpRequest,
  type HttpResponse,
  pathParts,
  RequestError,
  readJson,
  sendJson,
} from '../http-body.ts'
import type { LobbyView, ProtocolLobby } from '../lobby.ts'
import type { Protocol, ProtocolEndpoint } from '../protocol.ts'
import { isSecret } from '../secret.ts'
import { SilenceWatch } from '../silence.ts'
import { gsdkAdditions } from './config.ts'
import { GSDK_STATES, type GsdkState, type Heartbeat, parseHeartbeat, respond } from './heartbeat.ts'

const FIRST_HEARTBEAT_MS_MAX = 60_000
const SILENCE_MS_MAX = 5_000
/** Each waits for the platform for ten seconds; a heartbeat begins the next one. */
const READY_ATTEMPTS_MAX = 10
const LOGGED_IDS_MAX = 10
const LOGGED_TEXT_MAX = 64

export const gsdk: Protocol = {
  listeners: { agent: 56_001 },
  // The secret is the id of the session host. Where lobbies share a network it keeps other servers out.
  additions: (facts, endpoints, options, secret) => gsdkAdditions(facts, endpoints, options, secret),
  open: (lobby, _options, secret) => new GsdkEndpoint(lobby, secret),
}

export class GsdkEndpoint implements ProtocolEndpoint {
  readonly #lobby: ProtocolLobby
  readonly #secret: string
  readonly #calls = new CallLine()
  readonly #silence: SilenceWatch
  #state: GsdkState | null = null
  #drain_ts: number | null = null
  #ready: 'no' | 'called' | 'yes' = 'no'
  #ready_attempts = 0
  #is_stopped = false
  /** The players of the last heartbeat that had them. */
  #reported: { ids: string[]; view: LobbyView } | null = null
  #is_reporting = false
  #is_refused = false

  /** `look_ms`: between two looks for silence. */
  constructor(lobby: ProtocolLobby, secret: string, look_ms?: number) {
    this.#lobby = lobby
    this.#secret = secret
    this.#silence = new SilenceWatch({
      first_ms: FIRST_HEARTBEAT_MS_MAX,
      silence_ms: SILENCE_MS_MAX,
      now: () => lobby.now(),
      look_ms,
      onSilence: (silence_ms, is_first) =>
        lobby.unhealthy(`GSDK: ${is_first ? 'no first' : 'no'} heartbeat for ${silence_ms / 1_000} s.`),
    })
  }

  request(request: HttpRequest, response: HttpResponse): void {
    this.#serve(request).then(
      (body) => sendJson(response, 200, body),
      (error) => sendJson(response, error instanceof RequestError ? error.status : 400, { error: messageOf(error) }),
    )
  }

  /** Looks for silence, as its timer does. */
  look(): void {
    this.#silence.look()
  }

  close(): void {
    this.#silence.close()
    this.#calls.close()
  }

  async #serve(request: HttpRequest): Promise<object> {
    const [version, resource, id = '', action] = pathParts(request)
    const is_known = version === 'v1' && isSecret(id, this.#secret)
    const is_write = request.method === 'POST' || request.method === 'PATCH'
    if (is_known && is_write && resource === 'metrics' && action === 'gsdkinfo')
      return this.#info(await readJson(request))
    if (is_known && is_write && resource === 'sessionHosts' && (action === undefined || action === 'heartbeats')) {
      return this.#heartbeat(parseHeartbeat(await readJson(request)))
    }
    throw new RequestError(404, 'No such call. The path has the sessionHostId of GSDK_CONFIG_FILE.')
  }

  #info(body: unknown): object {
    const { Flavor, Version } = asRecord(body) ?? {}
    const name = [Flavor, Version].filter((text) => typeof text === 'string').join(' ')
    this.#lobby.log(`GSDK: ${name.slice(0, LOGGED_TEXT_MAX)}`)
    return {}
  }

  #heartbeat(heartbeat: Heartbeat): object {
    const { state, is_healthy, player_ids } = heartbeat
    const lobby = this.#lobby
    this.#silence.heard()
    if (this.#state !== null && GSDK_STATES.indexOf(state) < GSDK_STATES.indexOf(this.#state)) {
      throw new RequestError(400, `CurrentGameState goes back from ${this.#state} to ${state}.`)
    }
    this.#state = state
    lobby.report({ state, health_ts: lobby.now(), is_healthy })
    if (state === 'StandingBy' || state === 'Active') this.#callReady()
    if (player_ids !== null) this.#reportPlayers(player_ids)
    const { facts, view } = lobby
    if (view.is_draining) this.#drain_ts ??= lobby.now()
    else this.#drain_ts = null
    if ((state === 'Terminating' || state === 'Terminated') && !view.is_draining) this.#stop()
    return respond(state, facts, view, this.#drain_ts)
  }

  #callReady(): void {
    if (this.#ready !== 'no' || this.#ready_attempts >= READY_ATTEMPTS_MAX) return
    this.#ready = 'called'
    this.#ready_attempts++
    this.#calls
      .run(() => this.#lobby.ready())
      .then(
        () => {
          this.#ready = 'yes'
        },
        (error) => {
          this.#ready = 'no'
          this.#lobby.log(`GSDK: StandingBy was not accepted: ${messageOf(error)}`)
        },
      )
  }

  /**
   * Reports a list that differs from the last one, or a list that has the player of a seat taken since. One report runs at
   * a time: a heartbeat during it changes nothing, and the next one compares again.
   */
  #reportPlayers(ids: string[]): void {
    const { view } = this.#lobby
    if (this.#is_reporting) return
    if (!this.#isChanged(ids, view)) return
    this.#is_reporting = true
    this.#calls
      .run(() => this.#lobby.setPlayers(ids))
      .then(
        ({ unknown }) => {
          this.#reported = { ids, view: this.#lobby.view }
          this.#is_refused = false
          this.#logUnknown(unknown)
        },
        (error) => {
          // The next heartbeat repeats the call. One line is enough for all of them.
          if (!this.#is_refused) this.#lobby.log(`GSDK: CurrentPlayers was not accepted: ${messageOf(error)}`)
          this.#is_refused = true
        },
      )
      .finally(() => {
        this.#is_reporting = false
      })
  }

  #isChanged(ids: readonly string[], view: LobbyView): boolean {
    const reported = this.#reported
    if (reported === null) return ids.length > 0 || view.seats.some(({ is_connected }) => is_connected)
    if (reported.ids.join('\n') !== ids.join('\n')) return true
    if (reported.view === view) return false
    return view.seats.some(({ player_id, is_connected }) => !is_connected && ids.includes(player_id))
  }

  #logUnknown(ids: readonly string[]): void {
    if (ids.length === 0) return
    const shown = ids.slice(0, LOGGED_IDS_MAX).map((id) => JSON.stringify(id))
    this.#lobby.log(`GSDK: ${ids.length} of CurrentPlayers have no seat: ${shown.join(', ')}`)
  }

  /** The server ends without having been asked to. */
  #stop(): void {
    if (this.#is_stopped) return
    this.#is_stopped = true
    this.#calls
      .run(() => this.#lobby.stop())
      .catch((error) => this.#lobby.log(`GSDK: the lobby was not stopped: ${messageOf(error)}`))
  }
}
