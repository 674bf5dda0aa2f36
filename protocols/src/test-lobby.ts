// A lobby in memory for tests of protocols: it records what a protocol does, and tests take and give back its seats.
import type { LobbyFacts, LobbySeat, LobbyView, ProtocolLobby, ProtocolReport } from './lobby.ts'
import { LobbyError } from './lobby.ts'

export const FACTS: LobbyFacts = {
  lobby_id: '0190163d-8694-739b-aea5-966c26f8ad91',
  namespace_id: '0190163d-8694-739b-aea5-966c26f8ad92',
  version_id: '0190163d-8694-739b-aea5-966c26f8ad93',
  game_mode: 'default',
  region_id: 'local',
  max_players: 4,
  config: null,
  tags: {},
  host: '127.0.0.1',
  ports: [
    {
      name: 'game',
      protocol: 'udp',
      listening: 7777,
      public: { hostname: 'play.example.com', port: 20_005, url: 'udp://play.example.com:20005' },
    },
  ],
  home: '/scratch',
  start_ts: 1_790_000_000_000,
}

export class TestLobby implements ProtocolLobby {
  readonly facts: LobbyFacts
  view: LobbyView = { seats: [], is_closed: false, is_draining: false }
  /** The calls in their order. Example: `['ready', 'setClosed true']`. */
  readonly calls: string[] = []
  readonly reports: ProtocolReport[] = []
  readonly lines: string[] = []
  state: unknown = null
  remembered: unknown = null
  clock_ms: number | null = null
  /** When set, each call waits for it: a platform that restarts. */
  held: Promise<void> | null = null
  readonly #listeners = new Set<() => void>()
  /** By player id. */
  readonly #tokens = new Map<string, string>()

  constructor(facts: Partial<LobbyFacts> = {}) {
    this.facts = { ...FACTS, ...facts }
  }

  /** A player takes a seat by find. Its token is `token-<player id>`. */
  seat(player_id: string, more: Partial<LobbySeat> = {}): void {
    this.#tokens.set(`token-${player_id}`, player_id)
    const seat = { player_id, is_connected: false, create_ts: this.now(), ...more }
    this.change({ seats: [...this.view.seats, seat] })
  }

  change(change: Partial<LobbyView>): void {
    this.view = { ...this.view, ...change }
    for (const listener of this.#listeners) listener()
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async ready(): Promise<void> {
    await this.#call('ready')
  }

  async setClosed(is_closed: boolean): Promise<void> {
    await this.#call(`setClosed ${is_closed}`)
    this.change({ is_closed })
  }

  async setState(state: unknown): Promise<void> {
    await this.#call('setState')
    this.state = state
  }

  async setTags(tags: Readonly<Record<string, string>>): Promise<void> {
    await this.#call(`setTags ${JSON.stringify(tags)}`)
  }

  async keep(keep_ms: number): Promise<void> {
    await this.#call(`keep ${keep_ms}`)
  }

  remember(value: unknown): void {
    this.remembered = JSON.parse(JSON.stringify(value)) as unknown
  }

  async connected(player_token: string): Promise<void> {
    await this.#call(`connected ${player_token}`)
    const seat = this.#seatOf(player_token)
    if (seat === undefined) throw new LobbyError('PLAYER_TOKEN_INVALID', 'The player token is not valid.')
    if (seat.is_connected) throw new LobbyError('MATCHMAKER_PLAYER_ALREADY_CONNECTED', 'The player is connected.')
    this.#replace(seat, { ...seat, is_connected: true })
  }

  async disconnected(player_token: string): Promise<void> {
    await this.#call(`disconnected ${player_token}`)
    const seat = this.#seatOf(player_token)
    if (seat !== undefined) this.#replace(seat, null)
  }

  async setPlayers(player_ids: readonly string[]): Promise<{ unknown: string[] }> {
    await this.#call(`setPlayers ${player_ids.join()}`)
    const known = new Set(this.view.seats.map(({ player_id }) => player_id))
    const seats = this.view.seats
      .filter(({ player_id, is_connected }) => player_ids.includes(player_id) || !is_connected)
      .map((seat) => ({ ...seat, is_connected: player_ids.includes(seat.player_id) }))
    this.change({ seats })
    return { unknown: player_ids.filter((id) => !known.has(id)) }
  }

  async stop(): Promise<void> {
    await this.#call('stop')
  }

  report(report: ProtocolReport): void {
    this.reports.push(report)
  }

  unhealthy(reason: string): void {
    this.calls.push(`unhealthy ${reason}`)
  }

  now(): number {
    return this.clock_ms ?? Date.now()
  }

  log(line: string): void {
    this.lines.push(line)
  }

  async #call(name: string): Promise<void> {
    if (this.held !== null) await this.held
    this.calls.push(name)
  }

  #seatOf(token: string): LobbySeat | undefined {
    return this.view.seats.find(({ player_id }) => player_id === this.#tokens.get(token))
  }

  #replace(seat: LobbySeat, by: LobbySeat | null): void {
    this.change({ seats: this.view.seats.flatMap((one) => (one === seat ? (by ?? []) : one)) })
  }
}
