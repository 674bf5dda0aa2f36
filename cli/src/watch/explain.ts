// Why a request for a seat ended as it did, as sentences.
import { type Explanation, explainRay, getRayPerfLogs } from '@musterhost/contract'
import {
  attemptSentences,
  attemptTitle,
  explanationSentences,
  lobbySentences,
  microsecondsText,
  VERDICT_TEXTS,
  waitSentence,
} from '@musterhost/contract/explanation-words'
import type { GlobalOptions } from '../options.ts'
import { openSession } from '../session.ts'
import { printFields, printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { durationText } from '../times.ts'
import { shortIds } from './lobby-ids.ts'

export async function explain(terminal: Terminal, ray_id: string, options: GlobalOptions): Promise<void> {
  const { client, url } = await openSession(terminal, options)
  terminal.note(`Ray ${ray_id} at ${url}`)
  const { explanation } = await client.call(explainRay, { params: { ray_id } })
  if (terminal.is_json) return terminal.json({ explanation })
  for (const sentence of explanationSentences(explanation)) terminal.print(sentence)
  printFields(terminal, [
    ['operation', explanation.operation],
    ['arrived', explanation.create_ts],
    ['asked for', JSON.stringify(explanation.asked)],
  ])
  for (const [index, attempt] of explanation.attempts.entries()) printAttempt(terminal, attempt, index)
  for (const wait of explanation.waits) terminal.print(waitSentence(wait))
  for (const lobby of explanation.lobbies) printLobby(terminal, lobby)
}

/** How long each service took for a request. */
export async function timings(terminal: Terminal, ray_id: string, options: GlobalOptions): Promise<void> {
  const { client, url } = await openSession(terminal, options)
  terminal.note(`Timings of ray ${ray_id} at ${url}`)
  const response = await client.call(getRayPerfLogs, { params: { ray_id } })
  if (terminal.is_json) return terminal.json(response)
  const rows = response.perf_lists.flatMap((service) => [
    { name: `${service.svc_name} ${service.operation}`, took: microsecondsText(service.duration) },
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

function printAttempt(terminal: Terminal, attempt: Explanation['attempts'][number], index: number): void {
  const { candidates } = attempt
  terminal.print('')
  terminal.print(terminal.paint('bold', attemptTitle(attempt, index)))
  for (const sentence of attemptSentences(attempt)) terminal.print(`  ${sentence}`)
  if (candidates.length === 0) return
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
      { title: 'VERDICT', text: ({ verdict }) => VERDICT_TEXTS[verdict] },
    ],
    '',
  )
}

function printLobby(terminal: Terminal, lobby: Explanation['lobbies'][number]): void {
  terminal.print('')
  terminal.print(terminal.paint('bold', `Lobby ${lobby.lobby_id}`))
  for (const sentence of lobbySentences(lobby)) terminal.print(`  ${sentence}`)
  for (const line of lobby.log_lines) terminal.print(`  | ${line}`)
}
