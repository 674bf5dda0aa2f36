// The requests of a GameLift server by their Action. Each returns the members of its response, or throws the refusal.
import { randomUUID } from 'node:crypto'
import { CallLine, messageOf } from '../call-line.ts'
import { type JsonRecord, RequestError } from '../http-body.ts'
import type { ProtocolLobby } from '../lobby.ts'
import { describePlayerSessions, gameSessionId } from './game-session.ts'
import { PlayerSessions } from './player-sessions.ts'

const TEXT_LENGTH_MAX = 4_096

export type GameLiftState = 'Connected' | 'ProcessReady' | 'GameSessionActive' | 'ProcessEnding'

/** `activated`: the process is ready for its game session. `heard`: the server has reported its health. */
export type ActionEvents = { activated(): void; heard(): void }

export class GameLiftActions {
  readonly #lobby: ProtocolLobby
  readonly #events: ActionEvents
  readonly #calls = new CallLine()
  readonly #players: PlayerSessions
  #state: GameLiftState = 'Connected'
  #health_ts: number | null = null
  #is_healthy: boolean | null = null
  /** By the last call of the server. The view shows it later. */
  #is_closed = false
  /** The ticket of a backfill that the server has asked for. */
  ticket_id: string | null = null

  constructor(lobby: ProtocolLobby, events: ActionEvents) {
    this.#lobby = lobby
    this.#events = events
    this.#players = new PlayerSessions(lobby, this.#calls)
  }

  async serve(action: string, request: JsonRecord): Promise<JsonRecord> {
    const handler = Object.hasOwn(HANDLERS, action) ? HANDLERS[action] : undefined
    if (handler === undefined) throw new RequestError(400, `No such Action: ${action.slice(0, 64)}.`)
    const session_id = textOf(request, 'GameSessionId') ?? textOf(request, 'GameSessionArn')
    if (session_id !== null && session_id !== gameSessionId(this.#lobby.facts)) {
      throw new RequestError(400, 'GameSessionId is not the one of CreateGameSession.')
    }
    return (await handler(this, request)) ?? {}
  }

  close(): void {
    this.#calls.close()
  }

  activate(): void {
    this.#enter('ProcessReady')
    this.#events.activated()
  }

  heartbeat(request: JsonRecord): void {
    if (typeof request.HealthStatus !== 'boolean') throw new RequestError(400, 'HealthStatus is true or false.')
    this.#health_ts = this.#lobby.now()
    this.#is_healthy = request.HealthStatus
    if (this.#state === 'Connected') this.#state = 'ProcessReady'
    this.#report()
    this.#events.heard()
  }

  async activateGameSession(): Promise<void> {
    await this.#calls.run(() => this.#lobby.ready())
    this.#enter('GameSessionActive')
  }

  accept(request: JsonRecord): Promise<void> {
    return this.#players.accept(requiredText(request, 'PlayerSessionId'))
  }

  remove(request: JsonRecord): Promise<void> {
    return this.#players.remove(requiredText(request, 'PlayerSessionId'))
  }

  async describe(request: JsonRecord): Promise<JsonRecord> {
    const player_session_id = textOf(request, 'PlayerSessionId')
    const known = player_session_id === null ? null : await this.#players.playerOf(player_session_id)
    const asked = textOf(request, 'PlayerId')
    if (player_session_id !== null && (known === null || (asked !== null && asked !== known)))
      return { PlayerSessions: [] }
    const { facts, view } = this.#lobby
    return describePlayerSessions(facts, view.seats, {
      player_id: known ?? asked,
      player_session_id,
      status: textOf(request, 'PlayerSessionStatusFilter'),
      limit: typeof request.Limit === 'number' && request.Limit !== 0 ? request.Limit : null,
      next_token: textOf(request, 'NextToken'),
    })
  }

  async policy(request: JsonRecord): Promise<void> {
    const policy = request.PlayerSessionPolicy
    if (policy !== 'DENY_ALL' && policy !== 'ACCEPT_ALL') {
      throw new RequestError(400, 'PlayerSessionPolicy is DENY_ALL or ACCEPT_ALL.')
    }
    await this.#setClosed(policy === 'DENY_ALL')
  }

  #setClosed(is_closed: boolean): Promise<void> {
    return this.#calls.run(async () => {
      await this.#lobby.setClosed(is_closed)
      this.#is_closed = is_closed
    })
  }

  /** An open lobby is filled by each find: the ticket says that the server wants it open. */
  async startBackfill(request: JsonRecord): Promise<JsonRecord> {
    const ticket_id = textOf(request, 'TicketId') ?? randomUUID()
    if (this.#is_closed || this.#lobby.view.is_closed) await this.#setClosed(false)
    this.ticket_id = ticket_id
    return { TicketId: ticket_id }
  }

  stopBackfill(): void {
    this.ticket_id = null
  }

  /** The response does not wait: the server ends as soon as it has it. */
  terminate(): void {
    this.#enter('ProcessEnding')
    this.#calls
      .run(() => this.#lobby.stop())
      .catch((error) => this.#lobby.log(`GameLift: the lobby was not stopped: ${messageOf(error)}`))
  }

  #enter(state: GameLiftState): void {
    this.#state = state
    this.#report()
  }

  #report(): void {
    this.#lobby.report({ state: this.#state, health_ts: this.#health_ts, is_healthy: this.#is_healthy })
  }
}

type Handler = (
  actions: GameLiftActions,
  request: JsonRecord,
) => JsonRecord | Promise<JsonRecord> | Promise<void> | undefined

const HANDLERS: Record<string, Handler> = {
  ActivateServerProcess: (actions) => void actions.activate(),
  HeartbeatServerProcess: (actions, request) => void actions.heartbeat(request),
  ActivateGameSession: (actions) => actions.activateGameSession(),
  AcceptPlayerSession: (actions, request) => actions.accept(request),
  RemovePlayerSession: (actions, request) => actions.remove(request),
  DescribePlayerSessions: (actions, request) => actions.describe(request),
  UpdatePlayerSessionCreationPolicy: (actions, request) => actions.policy(request),
  StartMatchBackfill: (actions, request) => actions.startBackfill(request),
  StopMatchBackfill: (actions) => void actions.stopBackfill(),
  TerminateServerProcess: (actions) => void actions.terminate(),
  GetComputeCertificate: () => {
    throw new RequestError(
      400,
      'There is no compute certificate here. TLS ends at the proxy, or is set up in the game.',
    )
  },
  GetFleetRoleCredentials: () => {
    throw new RequestError(400, 'There are no fleet role credentials here.')
  },
}

/** Null: absent or empty, which SDKs write for absent. */
function textOf(request: JsonRecord, name: string): string | null {
  const value = request[name]
  if (value === undefined || value === null || value === '') return null
  if (typeof value === 'string' && value.length <= TEXT_LENGTH_MAX) return value
  throw new RequestError(400, `${name} is a text of at most ${TEXT_LENGTH_MAX} characters.`)
}

function requiredText(request: JsonRecord, name: string): string {
  const text = textOf(request, name)
  if (text === null) throw new RequestError(400, `${name} is missing.`)
  return text
}
