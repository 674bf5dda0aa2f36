// muster dev: the game server of this machine behind the matchmaker of a platform. The page asks the platform for a seat as it
// does in production, with a development token, and gets one in this server.
import {
  createGameNamespaceTokenDevelopment,
  listGameNamespaceTokensDevelopment,
  revokeGameNamespaceTokenDevelopment,
} from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { runBuild } from '../deploy/build.ts'
import { readIgnoreRules } from '../deploy/ignore-rules.ts'
import { createTemporaryToken } from '../deploy/temporary-token.ts'
import { EXIT, Failure, reportError } from '../failure.ts'
import type { GlobalOptions } from '../options.ts'
import { type Project, type ProjectFolder, readProject } from '../project/project.ts'
import { createCommandClient, type Session } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { Bots } from './bots.ts'
import { dockerOf, GameServer, planServer } from './game-server.ts'
import { Guard } from './guard.ts'
import { readKeys } from './keys.ts'
import { findOrStartPlatform, freePorts } from './local-platform.ts'
import { openBrowser } from './open-browser.ts'
import { type Page, servePage } from './page.ts'
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
  const namespace = await session.namespace()
  terminal.note(`Developing ${game.name_id} behind ${namespace.name_id} on ${session.url}`)
  for (const [title, part] of [
    ['server', server_folder],
    ['site', project.site],
  ] as const) {
    if (part?.build) await runBuild(terminal, { title, folder: project.folder, command: part.build })
  }
  const { game_mode, docker } = dockerOf(project.version)
  const names = Object.keys(docker.ports ?? {})
  const numbers = await freePorts(names.length)
  const ports = Object.fromEntries(names.map((name, index) => [name, numbers[index]!]))
  const token = await developmentToken(dev, ports)
  parts.push({ stop: () => token.revoke() })

  const page = await servePage({
    folder: project.site?.folder ?? null,
    platform_url: session.url,
    token: token.token,
    ...{ game_id: game.game_id, namespace_id: namespace.namespace_id, port: options.port ?? 0 },
  })
  parts.push({ stop: () => page.close() })
  const log = { is_shown: true }
  const event = (text: string): void => terminal.note(text)
  const place = { api_url: session.url, token: token.token, namespace, ports }
  const server = new GameServer(planServer(project.version, server_folder.folder, place, terminal.env), guard, {
    line: (text) => log.is_shown && terminal.note(`  ${text}`),
    event,
  })
  parts.push(server)
  const bots = new Bots(createClient({ url: session.url, token: token.token }), game_mode, event)
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
  for (const [name, port] of Object.entries(ports)) terminal.note(`port ${name}: ${options.host}:${port}`)
  if (terminal.is_json) terminal.json({ url: page.url, platform_url: session.url, ...game, ...namespace, ports })
  if (terminal.is_interactive) terminal.note(KEYS)
  terminal.note(project.site === null ? `Matchmaker: ${page.url}/matchmaker` : `Play: ${page.url}/`)
}

/** Revoked at the end. With it a caller can send players to this machine, and to no other. */
async function developmentToken({ terminal, session, project, options }: Dev, ports: Readonly<Record<string, number>>) {
  const params = {
    game_id: (await session.game()).game_id,
    namespace_id: (await session.namespace()).namespace_id,
  }
  const { docker } = dockerOf(project.version)
  const body = {
    hostname: options.host,
    ports: Object.fromEntries(
      Object.entries(ports).map(([name, port]) => [
        name,
        { port, protocol: plainProtocol(docker.ports?.[name]?.protocol) },
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

/** The server on this machine has no certificate. */
function plainProtocol(protocol: string | undefined): 'http' | 'tcp' | 'udp' {
  if (protocol === 'tcp' || protocol === 'tcp_tls') return 'tcp'
  return protocol === 'udp' ? 'udp' : 'http'
}

type Handled = { dev: Dev; page: Page; server: GameServer; bots: Bots; log: { is_shown: boolean } }

function keyHandler({ dev, page, server, bots, log }: Handled): (key: string) => void {
  const { terminal } = dev
  let players = 0
  const shown = (work: Promise<unknown>): void => void work.catch((error: unknown) => terminal.note(textOf(error)))
  const keys: Record<string, () => void> = {
    p: () => shown(openBrowser(terminal, `${page.url}/?player=${++players}`)),
    o: () => shown(openBrowser(terminal, `${page.url}/`)),
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
