// Why a request for a seat ended as it did, as sentences.
import { type Explanation, explainRay, getRayPerfLogs } from '@muster/contract'
import type { GlobalOptions } from '../options.ts'
import { openSession } from '../session.ts'
import { printFields, printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { durationText } from '../times.ts'
import { shortIds } from './lobby-ids.ts'

const US_PER_MS = 1000

export async function explain(terminal: Terminal, ray_id: string, options: GlobalOptions): Promise<void> {
  const { client, url } = await openSession(terminal, options)
  terminal.note(`Ray ${ray_id} at ${url}`)
  const { explanation } = await client.call(explainRay, { params: { ray_id } })
  if (terminal.is_json) return terminal.json({ explanation })
  printSummary(terminal, explanation)
  for (const [index, attempt] of explanation.attempts.entries()) printAttempt(terminal, attempt, index)
  for (const wait of explanation.waits) {
    terminal.print(`Waited ${duration(wait.duration)} for the lobby ${wait.lobby_id.slice(-8)}: ${wait.end}.`)
  }
  for (const lobby of explanation.lobbies) printLobby(terminal, lobby)
}

/** How long each service took for a request. */
export async function timings(terminal: Terminal, ray_id: string, options: GlobalOptions): Promise<void> {
  const { client, url } = await openSession(terminal, options)
  terminal.note(`Timings of ray ${ray_id} at ${url}`)
  const response = await client.call(getRayPerfLogs, { params: { ray_id } })
  if (terminal.is_json) return terminal.json(response)
  const rows = response.perf_lists.flatMap((service) => [
    { name: `${service.svc_name} ${service.operation}`, took: duration(service.duration) },
    ...service.spans.map((span) => ({
      name: `  ${span.label}`,
      took: span.finish_ts === undefined ? '-' : durationText(Date.parse(span.finish_ts) - Date.parse(span.start_ts)),
    })),
  ])
  printTable(
    terminal,
    rows,
    [
      { title: 'STEP', text: ({ name }) => name },
      { title: 'TOOK', text: ({ took }) => took, align: 'right' },
    ],
    'No timings were kept.',
  )
}

function printSummary(terminal: Terminal, explanation: Explanation): void {
  const members = Object.entries(explanation).filter(
    ([name, value]) => ['string', 'number', 'boolean'].includes(typeof value) && name !== 'ray_id',
  )
  printFields(terminal, [
    ...members.map(
      ([name, value]) =>
        [name.replaceAll('_', ' '), name === 'duration' ? duration(Number(value)) : String(value)] as const,
    ),
    ['asked for', JSON.stringify(explanation.asked)],
  ])
}

function printAttempt(terminal: Terminal, attempt: Explanation['attempts'][number], index: number): void {
  const { candidates, code, lobby_id, offset, outcome, limits } = attempt
  const what = [outcome, code, lobby_id === undefined ? undefined : `lobby ${lobby_id.slice(-8)}`].filter(Boolean)
  terminal.print('')
  terminal.print(terminal.paint('bold', `Decision ${index + 1}, after ${duration(offset)}: ${what.join(' ')}`))
  terminal.print(
    `  ${limits.client_limit}: ${limits.client_players} of ${limits.client_players_max} players of this client`,
  )
  terminal.print(`  lobby_count_max: ${limits.lobbies} of ${limits.lobby_count_max} lobbies`)
  if (candidates.length === 0) {
    terminal.print('  No lobby was considered.')
    return
  }
  const short = shortIds(candidates.map((candidate) => candidate.lobby_id))
  printTable(
    terminal,
    candidates,
    [
      { title: '  LOBBY', text: (candidate) => `  ${short(candidate.lobby_id)}`, is_whole: true },
      { title: 'MODE', text: ({ game_mode }) => game_mode },
      { title: 'REGION', text: ({ region }) => region },
      {
        title: 'PLAYERS',
        text: ({ player_count, max_players_normal }) => `${player_count}/${max_players_normal}`,
        align: 'right',
      },
      { title: 'VERDICT', text: ({ verdict }) => verdict },
    ],
    '',
  )
  if (attempt.candidates_left_out > 0) terminal.print(`  and ${attempt.candidates_left_out} more`)
}

function printLobby(terminal: Terminal, lobby: Explanation['lobbies'][number]): void {
  terminal.print('')
  printFields(terminal, [
    ['lobby', lobby.lobby_id],
    ['ready', lobby.is_ready ? 'yes' : 'never'],
    ['stopped because', lobby.stop_reason],
    ['server ended', lobby.exit_reason],
    ['exit code', lobby.exit_code === undefined ? undefined : String(lobby.exit_code)],
    ['listens at', lobby.listening?.open.join(', ')],
    ['does not listen at', lobby.listening?.shut.join(', ')],
    ['other sockets', lobby.listening?.others?.join(', ')],
  ])
  for (const warning of lobby.warnings) terminal.print(`  ${warning}`)
  for (const line of lobby.log_lines) terminal.print(`  | ${line}`)
}

function duration(us: number): string {
  return durationText(us / US_PER_MS)
}
