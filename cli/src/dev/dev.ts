// muster dev: the game server of this machine behind the matchmaker of a platform. The page asks the platform for a seat as it
// does in production, with a development token, and gets one in this server.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createGameNamespaceTokenDevelopment,
  type GameModeConfig,
  getGameNamespaceById,
  listGameNamespaceTokensDevelopment,
  revokeGameNamespaceTokenDevelopment,
} from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { runBuild } from '../deploy/build.ts'
import { readIgnoreRules } from '../deploy/ignore-rules.ts'
import { EXIT, Failure, reportError } from '../failure.ts'
import { openBrowser } from '../open-browser.ts'
import type { GlobalOptions } from '../options.ts'
import { type Project, type ProjectFolder, readProject } from '../project/project.ts'
import { createCommandClient, type Session } from '../session.ts'
import { createTemporaryToken } from '../temporary-token.ts'
import type { Terminal } from '../terminal.ts'
import { Bots } from './bots.ts'
import { hasPlayerAddresses, openDevEdge, type PortNumbers } from './edge/edge.ts'
import { clientKeyOf } from './edge/port.ts'
import { firstModeOf, GameServer, makesTerminals, plainProtocol, planServer, type ServerPlan } from './game-server.ts'
import { Guard } from './guard.ts'
import { readKeys } from './keys.ts'
import { DevLobby, FIRST_LOBBY, LOBBY_ID, type LobbyBeginning } from './lobby.ts'
import { findOrStartPlatform, freePorts } from './local-platform.ts'
import { type ServedPage, servePage } from './page.ts'
import type { DevProtocol, DevProtocolAround } from './protocol/protocol.ts'
import { readSecretsFile, saySecrets } from './secrets.ts'
import { watchFolder } from './watch.ts'
import { whenEnded } from './when-ended.ts'

export type DevOptions = GlobalOptions & { port?: number; host: string }

/** What was started, ended in the reverse order. */
type Part = { stop(): Promise<void> | void }

type Dev = {
  terminal: Terminal
  session: Session
  project: Project
  server_folder: ProjectFolder
  options: DevOptions
  guard: Guard
  parts: Part[]
}

const KEYS = 'p new player, b bot, l logs, o open, r restart, q end'

/** Runs until Ctrl-C, q or a signal. */
export async function runDev(terminal: Terminal, options: DevOptions): Promise<void> {
  const project = readProject(terminal.cwd)
  const { server: server_folder } = project
  if (server_folder === null) {
    throw new Failure('muster dev runs a game server, and muster.yaml has none.', {
      exit_code: EXIT.usage,
      remedy: 'Add `server` and `matchmaker`. A page alone needs no platform: deploy it with muster deploy.',
    })
  }
  if ('image' in server_folder) {
    throw new Failure('muster dev runs a program of this machine, and server.image is a container image.', {
      exit_code: EXIT.usage,
      remedy: 'Deploy it: muster deploy --preview. Or start the server by hand from a folder.',
    })
  }
  const guard = new Guard()
  const parts: Part[] = [{ stop: () => guard.close() }]
  const ended = whenEnded(terminal)
  try {
    const platform = await findOrStartPlatform(terminal, options, project, guard)
    parts.push(platform)
    await startParts({ terminal, session: platform.session, project, server_folder, options, guard, parts }, ended.end)
    await ended.promise
    terminal.note('ending what was started')
  } finally {
    for (const part of parts.toReversed()) {
      try {
        await part.stop()
      } catch (error) {
        // The others are ended too.
        process.exitCode = EXIT.failed
        terminal.note(`not ended: ${textOf(error)}`)
      }
    }
  }
}

async function startParts(dev: Dev, end: () => void): Promise<void> {
  const { terminal, session, project, server_folder, options, guard, parts } = dev
  const game = await session.game()
  const { namespace_id } = await session.namespace()
  const { namespace } = await session.client.call(getGameNamespaceById, {
    params: { game_id: game.game_id, namespace_id },
  })
  terminal.note(`Developing ${game.name_id} behind ${namespace.name_id} on ${session.url}`)
  for (const [title, part] of [
    ['server', server_folder],
    ['site', project.site],
  ] as const) {
    if (part?.build) await runBuild(terminal, { title, folder: project.folder, command: part.build })
  }
  const mode = firstModeOf(project.version)
  sayDifferences(terminal, mode)
  const secrets = readSecretsFile(project.folder)
  await saySecrets(terminal, session.client, { game_id: game.game_id, namespace_id }, secrets)
  const ports = await portsOf(mode)
  const token = await developmentToken(dev, mode, ports)
  parts.push({ stop: () => token.revoke() })

  const event = (text: string): void => terminal.note(text)
  const { host } = options
  const edge = await openDevEdge({
    mode,
    numbers: ports,
    host,
    lobby_id: LOBBY_ID,
    namespace_id,
    event,
    now: () => terminal.now(),
  })
  parts.push({ stop: () => edge.close() })
  const lobby = new DevLobby({
    ...{ mode, event, game_id: game.game_id },
    connectionCount: () => edge.seats.connected_count,
    begin: (beginning, reason) => server.restart(reason, planOf(beginning)),
  })
  const page = await servePage({
    folder: project.site?.folder ?? null,
    cdn: project.version.cdn,
    platform_url: session.url,
    token: token.token,
    onSeat: (player, address) => edge.seats.give(player, clientKeyOf(address)),
    ...{ game_id: game.game_id, namespace_id, port: options.port ?? 0, lobby },
  })
  parts.push({ stop: () => page.close() })
  const log = { is_shown: true }
  const home = await mkdtemp(join(tmpdir(), 'muster-dev-'))
  parts.push({ stop: () => rm(home, { recursive: true, force: true }) })
  const of_lobby = { namespace, ports, home: join(home, 'home'), host, game_id: game.game_id, secrets }
  // The calls of the server pass through the page server, which shows them to the lobby.
  const place = { api_url: page.lobby_url, token: token.token, ...of_lobby }
  const planOf = (beginning: LobbyBeginning): ServerPlan =>
    planServer(mode, server_folder.folder, place, terminal.env, beginning)
  const stop = (): void =>
    void server
      .stop()
      .then(() => protocol?.end())
      .catch((error: unknown) => event(textOf(error)))
  const protocol = await openProtocol(mode, { ...{ lobby, event, stop }, seats: edge.seats, now: () => terminal.now() })
  parts.push({ stop: () => protocol?.end() })
  const server = new GameServer(planOf(FIRST_LOBBY), guard, {
    line: (text) => log.is_shown && terminal.note(`  ${text}`),
    starting: async (plan) => {
      lobby.onServerStart()
      if (protocol !== null) edge.seats.endAll()
      return (await protocol?.serve({ ...plan.lobby, start_ts: terminal.now() })) ?? { env: {}, files: [] }
    },
    ended: () => void protocol?.end(),
    event,
  })
  parts.push(server)
  const bots = new Bots(createClient({ url: page.url, token: token.token }), mode.name, event)
  parts.push({ stop: () => bots.close() })
  await server.restart('first')
  parts.push({
    stop: watchFolder(
      server_folder.folder,
      readIgnoreRules(server_folder.folder, server_folder.ignore),
      (path) => void server.restart(`${path} changed`),
      (error) => event(`changes are not noticed any more: ${error.message}`),
    ),
  })
  if (terminal.is_interactive) parts.push({ stop: readKeys(keyHandler({ dev, page, server, bots, log }), end) })
  const public_ports = Object.fromEntries(Object.entries(ports).map(([name, number]) => [name, number.public]))
  for (const [name, port] of Object.entries(public_ports)) terminal.note(`port ${name}: ${host}:${port}`)
  if (terminal.is_json) {
    const { name_id } = namespace
    terminal.json({ url: page.url, platform_url: session.url, ...game, namespace_id, name_id, ports: public_ports })
  }
  if (terminal.is_interactive) terminal.note(KEYS)
  terminal.note(project.site === null ? `Matchmaker: ${page.url}/matchmaker` : `Play: ${page.url}/`)
}

/** Null: the server speaks no protocol, and none is loaded. */
async function openProtocol({ protocol }: GameModeConfig, around: DevProtocolAround): Promise<DevProtocol | null> {
  if (protocol === null) return null
  const { openDevProtocol } = await import('./protocol/protocol.ts')
  return openDevProtocol(protocol, around)
}

/** Revoked at the end. With it a caller can send players to this machine, and to no other. */
async function developmentToken({ terminal, session, options }: Dev, mode: GameModeConfig, ports: PortNumbers) {
  const params = {
    game_id: (await session.game()).game_id,
    namespace_id: (await session.namespace()).namespace_id,
  }
  const body = {
    hostname: options.host,
    ports: Object.fromEntries(
      mode.ports.map(({ name, protocol, port_range }) => [
        name,
        {
          ...(port_range === null ? { port: ports[name]!.public } : { port_range }),
          protocol: plainProtocol(protocol),
        },
      ]),
    ),
  }
  // Ctrl-C has aborted the signal of the session by the time at which the token is revoked.
  const cleaning = createCommandClient(session.url, session.token, new AbortController().signal)
  terminal.signal.throwIfAborted()
  return createTemporaryToken({
    create: () => session.client.call(createGameNamespaceTokenDevelopment, { params, body }),
    list: () => session.client.call(listGameNamespaceTokensDevelopment, { params }),
    revoke: (token_id) => cleaning.call(revokeGameNamespaceTokenDevelopment, { params: { ...params, token_id } }),
  })
}

/**
 * The server listens at the number that muster.yaml names for a port, or at a free one. Players connect to another one, at
 * which the edge of this command listens. A range has neither.
 */
async function portsOf({ ports }: GameModeConfig): Promise<PortNumbers> {
  const numbered = ports.filter(({ port_range }) => port_range === null)
  const free = await freePorts(2 * numbered.length)
  const numbers = new Map(
    numbered.map(({ name, port }, index) => [
      name,
      { listening: port ?? free[2 * index]!, public: free[2 * index + 1]! },
    ]),
  )
  for (const { name, same_number_as } of numbered) {
    const other = same_number_as === null ? undefined : numbers.get(same_number_as)
    if (other !== undefined) numbers.get(name)!.public = other.public
  }
  return Object.fromEntries(numbers)
}

/** What only the platform does. */
function sayDifferences(terminal: Terminal, { ports, terminal: writes_to_terminal }: GameModeConfig): void {
  if (writes_to_terminal && !makesTerminals(terminal.env)) {
    terminal.note(
      'terminal: true makes a terminal with script of util-linux. This machine has none: the server gets a pipe.',
    )
  }
  if (ports.some(({ admission }) => admission?.has_addresses) && !hasPlayerAddresses()) {
    terminal.note('player_addresses: this system has one loopback address, so all players come from it.')
  }
}

type Handled = { dev: Dev; page: ServedPage; server: GameServer; bots: Bots; log: { is_shown: boolean } }

function keyHandler({ dev, page, server, bots, log }: Handled): (key: string) => void {
  const { terminal } = dev
  let players = 0
  const shown = (work: Promise<unknown>): void => void work.catch((error: unknown) => terminal.note(textOf(error)))
  const open = (url: string): void => {
    terminal.note(`open ${url}`)
    shown(openBrowser(terminal, url))
  }
  const keys: Record<string, () => void> = {
    p: () => open(`${page.url}/?player=${++players}`),
    o: () => open(`${page.url}/`),
    b: () => shown(bots.add()),
    r: () => shown(server.restart('key r')),
    l: () => {
      log.is_shown = !log.is_shown
      terminal.note(log.is_shown ? 'logs are shown' : 'logs are hidden')
    },
  }
  return (key) => keys[key]?.()
}

function textOf(error: unknown): string {
  return reportError(error)?.text ?? String(error)
}
