// `muster swarm`: opens the session, runs the bots and prints the report.
import type { Client } from '@musterhost/contract/client'
import { EXIT, Failure } from '../failure.ts'
import type { GlobalOptions } from '../options.ts'
import { openSession } from '../session.ts'
import { counted } from '../table.ts'
import { withBackend } from '../temporary-token.ts'
import type { Terminal } from '../terminal.ts'
import type { BotSeat } from './bot.ts'
import { DURATION_MS_MAX, type Pattern } from './patterns.ts'
import { isPlayerToken, openRequester } from './requester.ts'
import { Swarm, type SwarmReport } from './swarm.ts'

/** Between two lines of progress. */
const PROGRESS_MS = 1_000

type Options = GlobalOptions & { pattern: Pattern; duration: number; mode: string; path: string; port?: string }

export async function runSwarm(terminal: Terminal, bots: number, options: Options): Promise<void> {
  if (options.duration > DURATION_MS_MAX) {
    throw new Failure('--duration is at most 1h.', { exit_code: EXIT.usage })
  }
  const session = await openSession(terminal, options)
  const { game_id, name_id } = await session.game()
  const { namespace_id, name_id: namespace } = await session.namespace()
  const { url } = session
  const play = async ({ client, token }: { client: Client; token: string }): Promise<SwarmReport> => {
    const target = { game_id, namespace_id, url, token, game_mode: options.mode }
    const { kind, find } = await openRequester(client, target, terminal.signal)
    const who = kind === 'backend' ? 'each with an address of its own' : 'all from the address of this machine'
    terminal.note(
      `${counted(bots, 'bot')} ${bots === 1 ? 'plays' : 'play'} ${name_id} (${namespace}) at ${url}, ${who}: ${options.pattern}`,
    )
    return runBots(terminal, bots, options, find)
  }
  const report = isPlayerToken(session.token)
    ? await play(session)
    : await withBackend(terminal, session, game_id, play)
  if (terminal.is_json) terminal.json(report)
  for (const line of linesOf(report)) terminal.print(line)
}

function runBots(
  terminal: Terminal,
  bots: number,
  { pattern, duration, path, port }: Options,
  find: () => Promise<BotSeat>,
): Promise<SwarmReport> {
  let shown_ms = performance.now()
  return new Swarm({
    bots,
    find,
    pattern,
    duration_ms: duration,
    path,
    port: port ?? null,
    signal: terminal.signal,
    onChange: ({ players, refused }) => {
      if (performance.now() - shown_ms < PROGRESS_MS) return
      shown_ms = performance.now()
      terminal.note(`${counted(players, 'player')}, ${counted(refused, 'refusal')}`)
    },
  }).run()
}

function linesOf(report: SwarmReport): string[] {
  const { players_max, bots, seats, lost, find_ms, connect_ms, limits, first_limit } = report
  const times = (name: string, found: SwarmReport['find_ms']): string[] =>
    found === null ? [] : [`${name}  median ${found.p50} ms, 95 % ${found.p95} ms, longest ${found.max} ms`]
  return [
    `players  ${players_max} of ${bots} at the same time, ${counted(seats, 'seat')}, ${counted(lost, 'connection')} closed by the server`,
    ...times('find   ', find_ms),
    ...times('connect', connect_ms),
    ...limits.map(
      ({ code, message, count, players }) =>
        `refused  ${count} x ${code} from ${counted(players, 'player')} on: ${message}`,
    ),
    first_limit === null
      ? 'No limit was reached.'
      : `The first limit: ${first_limit.code} (${first_limit.message}) ${first_limit.remedy}`,
  ]
}
