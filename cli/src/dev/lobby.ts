// The one lobby of `muster dev`: what its server reports about it, and which requests for seats it fits. A request that needs
// another lobby begins this one again, as the platform would start a new lobby, while nobody plays in it.
import {
  ApiError,
  type BodyOf,
  type createLobby,
  type findLobby,
  type GameModeConfig,
  type joinLobby,
  type listLobbies,
  type ResponseOf,
} from '@musterhost/contract'
import { gameModeId } from '@musterhost/contract/name-ids'

/** The lobby and the region of a development token. */
export const LOBBY_ID = '00000000-0000-0000-0000-000000000000'
export const REGION = { id: 'dev-lcl', name: 'Local' } as const
/** Characters of a state that are printed. */
const STATE_SHOWN_MAX = 200

/** What a new lobby begins with. `lobby_config`: JSON text. */
export type LobbyBeginning = {
  tags: Readonly<Record<string, string>>
  lobby_config: string | null
  max_players: number | null
}

/** A call about lobbies or players. `path`: after `/matchmaker` or `/v1`. `text`: of the body. `is_server`: of the lobby's server. */
export type LobbyCall = { method: string; path: string; query: URLSearchParams; text: string; is_server: boolean }

export const FIRST_LOBBY: LobbyBeginning = { tags: {}, lobby_config: null, max_players: null }

type LobbyOptions = {
  mode: GameModeConfig
  game_id: string
  /** Players that the edge of this command has admitted. */
  connectionCount: () => number
  /** Starts the server again. */
  begin: (beginning: LobbyBeginning, reason: string) => Promise<void>
  event: (text: string) => void
}

type NewLobby = Pick<BodyOf<typeof findLobby>, 'tags' | 'max_players'>

export class DevLobby {
  readonly #options: LobbyOptions
  #beginning = FIRST_LOBBY
  #is_private = false
  #is_closed = false
  /** JSON text. */
  #state = 'null'
  /** Tokens of players whose connection the server has reported. */
  readonly #connected = new Set<string>()
  readonly #listeners = new Set<() => void>()
  /** Its server has ended the lobby. */
  #is_stopped = false

  constructor(options: LobbyOptions) {
    this.#options = options
  }

  /** The server starts again: its state and its players are gone. */
  onServerStart(): void {
    this.#is_closed = false
    this.#is_stopped = false
    this.#state = 'null'
    this.#connected.clear()
    this.#changed()
  }

  /** The server ends the lobby. The next find starts it again, as the platform would start another one. */
  onServerStop(): void {
    if (this.#is_stopped) return
    this.#is_stopped = true
    this.#connected.clear()
    this.#options.event('lobby: ended by its server; the next find starts it again')
  }

  get is_closed(): boolean {
    return this.#is_closed
  }

  /** Calls the listener when the lobby is closed or opened. Returns a function that ends it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  ready(): void {
    this.#options.event('lobby: ready')
  }

  setClosed(is_closed: boolean): void {
    this.#is_closed = is_closed
    this.#options.event(`lobby: ${is_closed ? 'closed' : 'open'}`)
    this.#changed()
  }

  /** `state`: JSON text. */
  setState(state: string): void {
    this.#state = state
    const is_long = state.length > STATE_SHOWN_MAX
    this.#options.event(`lobby: state ${state.slice(0, STATE_SHOWN_MAX)}${is_long ? '...' : ''}`)
  }

  /** Called before the platform gets a call. Throws the refusal that the platform would send for this lobby. */
  async before(call: LobbyCall): Promise<void> {
    if (call.is_server || call.method !== 'POST') return
    if (call.path === '/lobbies/find') await this.#find(parsed(call.text))
    else if (call.path === '/lobbies/create') await this.#create(parsed(call.text))
    else if (call.path === '/lobbies/join') this.#join(parsed(call.text))
  }

  /** Called when the platform has accepted a call. Returns the body that the caller gets; undefined: that of the platform. */
  after({ method, path, query, text, is_server }: LobbyCall, response: string): string | undefined {
    if (method === 'GET' && path === `/lobbies/${LOBBY_ID}/state`) return this.#state
    if (path === '/lobbies/list') {
      return JSON.stringify(this.#listed(parsed(response), query.get('include_state') === 'true'))
    }
    if (is_server) this.#onReport(`${method} ${path}`, text)
    return undefined
  }

  #onReport(report: string, text: string): void {
    const { event } = this.#options
    if (report === 'POST /lobbies/ready') this.ready()
    else if (report === 'PUT /lobbies/closed') this.setClosed(parsed<{ is_closed: boolean }>(text).is_closed)
    else if (report === 'PUT /lobbies/state') this.setState(text === '' ? 'null' : text)
    else if (report === 'POST /players/connected') {
      this.#connected.add(parsed<{ player_token: string }>(text).player_token)
      event(`lobby: a player connected (${this.#connected.size} now)`)
    } else if (report === 'POST /players/disconnected') {
      this.#connected.delete(parsed<{ player_token: string }>(text).player_token)
      event(`lobby: a player left (${this.#connected.size} now)`)
    }
  }

  async #find(body: Partial<BodyOf<typeof findLobby>>): Promise<void> {
    const { mode } = this.#options
    // Another game mode, or a body that the platform refuses.
    if (body.game_modes?.includes(mode.name) !== true) return
    if (!mode.find_enabled) throw new ApiError('MATCHMAKER_FIND_DISABLED', { game_mode: mode.name })
    this.#requireAllowed(body)
    const { tags } = this.#beginning
    const has_tags = Object.entries(body.tags ?? {}).every(([name, value]) => tags[name] === value)
    if (has_tags && !this.#is_closed && !this.#is_private && !this.#is_stopped) return
    if (body.prevent_auto_create_lobby === true) throw new ApiError('MATCHMAKER_NO_AVAILABLE_LOBBIES')
    const why = this.#is_stopped
      ? 'has ended'
      : this.#is_closed
        ? 'is closed'
        : this.#is_private
          ? 'is private'
          : 'has other tags'
    await this.#beginAgain(body, null, false, why)
  }

  async #create(body: Partial<BodyOf<typeof createLobby>>): Promise<void> {
    const { mode } = this.#options
    if (body.game_mode !== mode.name) return
    if (mode.create === null) throw new ApiError('MATCHMAKER_CUSTOM_LOBBIES_DISABLED')
    this.#requireAllowed(body)
    const publicity = body.publicity ?? (mode.create.enable_public ? 'public' : 'private')
    if (!(publicity === 'public' ? mode.create.enable_public : mode.create.enable_private)) {
      const message = `The game mode does not allow ${publicity} custom lobbies.`
      throw new ApiError('MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID', { publicity }, { message })
    }
    const lobby_config = body.lobby_config === undefined ? null : JSON.stringify(body.lobby_config)
    await this.#beginAgain(body, lobby_config, publicity === 'private', 'is another one')
  }

  #join({ lobby_id }: Partial<BodyOf<typeof joinLobby>>): void {
    if (!this.#options.mode.join_enabled) throw new ApiError('MATCHMAKER_JOIN_DISABLED')
    if (lobby_id !== undefined && lobby_id !== LOBBY_ID) throw new ApiError('MATCHMAKER_LOBBY_NOT_FOUND')
  }

  #requireAllowed({ tags, max_players }: NewLobby): void {
    const { mode } = this.#options
    if (Object.keys(tags ?? {}).length > 0 && !mode.taggable) throw new ApiError('MATCHMAKER_TAGS_DISABLED')
    if (max_players === undefined) return
    if (!mode.allow_dynamic_max_players) throw new ApiError('MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED')
    const allowed = Math.max(mode.max_players_normal, mode.max_players_direct)
    if (max_players > allowed) throw new ApiError('MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID', { max_players, allowed })
  }

  /** `why`: how this lobby differs from the one that is asked for. */
  async #beginAgain(asked: NewLobby, lobby_config: string | null, is_private: boolean, why: string): Promise<void> {
    if (this.#connected.size + this.#options.connectionCount() > 0) {
      const message = `muster dev has one lobby. It ${why}, and players are in it. The key r starts it again.`
      this.#options.event(`a request for another lobby was refused: this one ${why}, and players are in it`)
      throw new ApiError('MATCHMAKER_NO_AVAILABLE_LOBBIES', {}, { message })
    }
    const { tags = {}, max_players = null } = asked
    this.#beginning = { tags, lobby_config, max_players }
    this.#is_private = is_private
    const names = Object.entries(tags).map(([name, value]) => `${name}: ${value}`)
    await this.#options.begin(
      this.#beginning,
      names.length === 0 ? 'new lobby' : `new lobby with tags ${names.join(', ')}`,
    )
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener()
  }

  /** The game mode of muster.yaml: the platform has only those of the version that is deployed. */
  #listed(list: ResponseOf<typeof listLobbies>, include_state: boolean): ResponseOf<typeof listLobbies> {
    const { mode, game_id } = this.#options
    const names = { game_mode_id: gameModeId(game_id, mode.name), game_mode_name_id: mode.name }
    const { max_players } = this.#beginning
    const lobby = {
      region_id: REGION.id,
      ...names,
      lobby_id: LOBBY_ID,
      max_players_normal: max_players ?? mode.max_players_normal,
      max_players_direct: max_players ?? mode.max_players_direct,
      max_players_party: mode.max_players_party,
      total_player_count: this.#connected.size + this.#options.connectionCount(),
      ...(include_state && { state: JSON.parse(this.#state) as unknown }),
    }
    const is_listed = mode.listable && !this.#is_private
    return { ...list, game_modes: [names], lobbies: is_listed ? [lobby] : [] }
  }
}

/** The text of a call whose body the platform checks: an object, or nothing. */
function parsed<T>(text: string): T {
  try {
    return (JSON.parse(text) ?? {}) as T
  } catch {
    return {} as T
  }
}
