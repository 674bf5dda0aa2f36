// The HTTP calls of Multiplay's local proxy. The paths differ between the SDKs of Unity, Go and Unreal.
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
import { LobbyError, type ProtocolLobby } from '../lobby.ts'
import { parseGoDuration } from './duration.ts'
import { payload, payloadToken } from './payload.ts'
import { serverId } from './server-file.ts'

const HOLD_MS_MAX = 24 * 3_600_000

/** `body` null: 204 without a body. */
type ProxyResponse = { status: 200 | 204; body: object | null }
const NO_CONTENT: ProxyResponse = { status: 204, body: null }

/** What survives a crash of the program that serves the server. */
type Memory = { is_ready: boolean | null; is_closed: boolean; hold_until_ms: number }

export class ProxyCalls {
  readonly #lobby: ProtocolLobby
  readonly #secret: string
  readonly #onState: () => void
  readonly #calls = new CallLine()
  #hold_until_ms = 0
  /** By the last call of the server. The view shows it later. */
  #is_closed = false
  /** Null: the server has reported neither. */
  is_ready: boolean | null = null

  /** `onState`: after `is_ready` has changed. */
  constructor(lobby: ProtocolLobby, secret: string, onState: () => void) {
    this.#lobby = lobby
    this.#secret = secret
    this.#onState = () => {
      lobby.remember(this.#memory())
      onState()
    }
    const { is_ready = null, is_closed = false, hold_until_ms = 0 } = (lobby.remembered ?? {}) as Partial<Memory>
    this.is_ready = is_ready
    this.#is_closed = is_closed
    this.#hold_until_ms = hold_until_ms
  }

  #memory(): Memory {
    return { is_ready: this.is_ready, is_closed: this.#is_closed, hold_until_ms: this.#hold_until_ms }
  }

  async serve(request: HttpRequest, response: HttpResponse): Promise<void> {
    try {
      const { status, body } = await this.#route(request)
      if (body !== null) return sendJson(response, status, body)
      response.statusCode = status
      response.end()
    } catch (error) {
      const status = error instanceof RequestError ? error.status : error instanceof LobbyError ? 409 : 503
      sendJson(response, status, { status, title: 'The call failed.', detail: messageOf(error) })
    }
  }

  close(): void {
    this.#calls.close()
  }

  async #route(request: HttpRequest): Promise<ProxyResponse> {
    const parts = pathParts(request)
    const { lobby_id } = this.#lobby.facts
    const server = String(serverId(lobby_id))
    const call = `${request.method} ${parts.map((part) => named(part, server, lobby_id)).join('/')}`
    switch (call) {
      case 'POST v1/server/{server}/allocation/{allocation}/ready-for-players':
        await this.#ready()
        return { status: 200, body: {} }
      case 'POST v1/server/{server}/unready':
        await this.#unready()
        return { status: 200, body: {} }
      case 'PATCH v1/servers/{server}/allocations/{allocation}':
        return this.#patch(await readJson(request))
      case 'GET v1/servers/{server}/hold':
        return { status: 200, body: this.#hold() }
      case 'POST v1/servers/{server}/hold':
        return this.#setHold(await readJson(request))
      case 'DELETE v1/servers/{server}/hold':
        return this.#endHold()
      case 'POST v1/servers/{server}/reservations':
        return { status: 200, body: this.#reservation() }
      case 'DELETE v1/servers/{server}/reservations':
        return NO_CONTENT
      case 'GET v1/payload/allocations/{allocation}':
      case 'GET payload/{allocation}':
        return { status: 200, body: payload(this.#lobby.facts, this.#lobby.view) }
      case 'GET token':
      case 'GET v4/token':
        return { status: 200, body: { token: this.#token(), error: '' } }
      // The lobby itself is the backfill: find fills every open one.
      case 'POST v2/backfill/{allocation}/approvals':
        return { status: 200, body: {} }
      default:
        throw new RequestError(404, 'No such call. The path has the serverID and the allocatedUUID of server.json.')
    }
  }

  async #patch(body: unknown): Promise<ProxyResponse> {
    const ready = asRecord(body)?.ready
    if (typeof ready !== 'boolean') throw new RequestError(400, 'ready is true or false.')
    await (ready ? this.#ready() : this.#unready())
    return NO_CONTENT
  }

  async #ready(): Promise<void> {
    await this.#calls.run(async () => {
      await this.#lobby.ready()
      if (this.#is_closed || this.#lobby.view.is_closed) await this.#lobby.setClosed(false)
      this.#is_closed = false
    })
    this.#enter(true)
  }

  async #unready(): Promise<void> {
    await this.#calls.run(async () => {
      await this.#lobby.setClosed(true)
      this.#is_closed = true
    })
    this.#enter(false)
  }

  #enter(is_ready: boolean): void {
    this.is_ready = is_ready
    this.#onState()
  }

  async #setHold(body: unknown): Promise<ProxyResponse> {
    const timeout = asRecord(body)?.timeout
    const ms = typeof timeout === 'string' ? parseGoDuration(timeout) : null
    if (ms === null || ms > HOLD_MS_MAX) {
      throw new RequestError(400, 'timeout is a duration of at most 24h. Example: "2m".')
    }
    await this.#calls.run(() => this.#lobby.keep(Math.ceil(ms)))
    this.#hold_until_ms = this.#lobby.now() + ms
    this.#onState()
    return { status: 200, body: this.#hold() }
  }

  async #endHold(): Promise<ProxyResponse> {
    if (this.#hold_until_ms === 0) return NO_CONTENT
    await this.#calls.run(() => this.#lobby.keep(0))
    this.#hold_until_ms = 0
    this.#onState()
    return NO_CONTENT
  }

  #hold(): { expiresAt: number; held: boolean } {
    const held = this.#hold_until_ms > this.#lobby.now()
    return { expiresAt: held ? Math.ceil(this.#hold_until_ms / 1_000) : 0, held }
  }

  /** A lobby is always reserved for its players. */
  #reservation(): object {
    const { facts } = this.#lobby
    const start = new Date(facts.start_ts).toISOString()
    return {
      reservationId: facts.lobby_id,
      buildConfigurationId: 0,
      created: start,
      requested: start,
      fulfilled: start,
      gamePort: facts.ports[0]?.public.port ?? 0,
      ipv4: facts.ports[0]?.public.hostname ?? '',
    }
  }

  #token(): string {
    return payloadToken(this.#lobby.facts, this.#lobby.now(), this.#secret)
  }
}

function named(part: string, server: string, lobby_id: string): string {
  if (part === server) return '{server}'
  return part.toLowerCase() === lobby_id.toLowerCase() ? '{allocation}' : part
}
