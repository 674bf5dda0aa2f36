// The protocols of other platforms, as the runner sees them: it names each lobby whose server speaks one to the gateway
// (gateway.ts) before the server starts, and reads what the gateway has to say. A runner without such lobbies starts nothing.
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { GameModeConfig, ServerProtocol } from '@musterhost/contract'
import { type Endpoints, type LobbyFacts, loadProtocol, type ProgramAdditions } from '@musterhost/protocols'
import type { Context } from '../../context.ts'
import { createTimerWhileNeeded } from '../../flow/timer-while-needed.ts'
import type { Driver, Handle } from '../drivers/driver.ts'
import type { ServerPorts } from '../environment.ts'
import type { RunNetwork } from '../network/lobby-networks.ts'
import { networkOptions } from '../network/options.ts'
import type { WantedLobby } from '../rows.ts'
import type { Attachment } from './attachments.ts'
import type { GatewayNews } from './gateway.ts'
import { GatewayClient } from './gateway-client.ts'

const LOOPBACK = '127.0.0.1'
const NEWS_EVERY_MS = 5_000

/** What a start of a lobby has that the protocol needs. `home`: its writable folder, as the server sees it. */
export type ProtocolStart = { network: RunNetwork | null; ports: ServerPorts; home: string; token: string }

export class Protocols {
  readonly #ctx: Context
  readonly #driver: Driver
  readonly #address: string
  readonly #client: GatewayClient
  /** Lobbies that the gateway serves and that run. */
  readonly #lobby_ids = new Set<string>()
  readonly #onNews: (news: GatewayNews) => void
  readonly #timer = createTimerWhileNeeded(NEWS_EVERY_MS, () => this.#readNews())
  #reading: Promise<void> = Promise.resolve()

  /** `onNews`: called every few seconds for each lobby. */
  constructor(ctx: Context, driver: Driver, onNews: (news: GatewayNews) => void) {
    this.#ctx = ctx
    this.#driver = driver
    this.#onNews = onNews
    this.#address = networkOptions(ctx.config)?.platform.address ?? LOOPBACK
    this.#client = new GatewayClient(join(ctx.config.data_dir, 'lobbies'), this.#address)
  }

  /** What the server starts with. Its endpoint listens when this resolves. Throws when the gateway cannot be started. */
  async speak(
    lobby: WantedLobby,
    mode: GameModeConfig,
    { name, options }: ServerProtocol,
    start: ProtocolStart,
  ): Promise<ProgramAdditions> {
    const { network } = start
    const protocol = await loadProtocol(name)
    const secret = randomBytes(24).toString('base64url')
    const facts = this.#factsOf(lobby, mode, start)
    const { port } = await this.#client.attach({
      protocol: name,
      options,
      facts,
      api_url: this.#apiUrl(),
      token: start.token,
      has_edge_seats: mode.seat_hold_ms !== null,
      secret,
      address: network?.address ?? null,
      port: 0,
      process: null,
    } satisfies Attachment)
    if (network !== null) await this.#driver.redirect(network, Object.values(protocol.listeners), port)
    const endpoints: Endpoints = Object.fromEntries(
      Object.entries(protocol.listeners).map(([listener, usual]) => {
        return [listener, { host: LOOPBACK, port: network === null ? port : usual }]
      }),
    )
    this.#follow(lobby.lobby_id)
    return protocol.additions(facts, endpoints, options, secret)
  }

  /** The lobby has a process. */
  started({ lobby_id, pid, start_time, boot_id }: Handle): void {
    if (!this.#lobby_ids.has(lobby_id)) return
    this.#client.started(lobby_id, { pid, start_time, boot_id }).catch((error: unknown) => this.#warn(error))
  }

  /** A lobby runs from before. Without effect for one that speaks no protocol. */
  adopt(lobby_id: string): void {
    if (this.#client.isAttached(lobby_id)) this.#follow(lobby_id)
  }

  /** The lobby has ended. */
  ended(lobby_id: string): void {
    this.#lobby_ids.delete(lobby_id)
  }

  /** The gateway goes on. */
  async close(): Promise<void> {
    this.#timer.close()
    await this.#reading
  }

  /** After `close`, when no lobby is left. */
  async end(): Promise<void> {
    await this.#client.end()
  }

  #follow(lobby_id: string): void {
    this.#lobby_ids.add(lobby_id)
    this.#timer.need()
  }

  /** Where lobbies of this machine call the platform. */
  #apiUrl(): string {
    const { internal_host, lobby_api_port } = this.#ctx.config
    const host = networkOptions(this.#ctx.config) === null ? internal_host : this.#address
    return `http://${host}:${lobby_api_port}`
  }

  #factsOf(lobby: WantedLobby, mode: GameModeConfig, { network, ports, home }: ProtocolStart): LobbyFacts {
    return {
      lobby_id: lobby.lobby_id,
      namespace_id: lobby.namespace_id,
      version_id: lobby.version_id,
      game_mode: lobby.game_mode,
      region_id: lobby.region,
      max_players: lobby.max_players_normal,
      config: lobby.lobby_config === null ? null : (JSON.parse(lobby.lobby_config) as unknown),
      tags: lobby.tags,
      host: network?.address ?? LOOPBACK,
      ports: mode.ports.map(({ name, protocol }) => ({ name, protocol, ...ports[name]! })),
      home,
      start_ts: this.#ctx.now(),
    }
  }

  /** Returns whether there are lobbies to read of. */
  #readNews(): boolean {
    if (this.#lobby_ids.size === 0) return false
    this.#reading = this.#reading.then(() => this.#read()).catch((error: unknown) => this.#warn(error))
    return true
  }

  async #read(): Promise<void> {
    await this.#client.ensure()
    for (const news of await this.#client.news()) this.#onNews(news)
  }

  #warn(error: unknown): void {
    this.#ctx.log.warn({ err: error }, 'the gateway of protocols does not respond; trying again')
  }
}
