// `muster matching try`: plays a list of players against rules, by the search of the matchmaker, and prints who met after which wait.
// Free seats of matches that have begun are left out.
import { resolve } from 'node:path'
import { MatchingConfig } from '@musterhost/contract'
import { type PlayedMatch, playMatches } from '@musterhost/contract/matching'
import { createShapeCheck, hasShape } from '@musterhost/contract/schema-check'
import { EXIT, Failure } from '../failure.ts'
import { counted, printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { readJson } from './json-file.ts'
import { TriedPlayers } from './tried-players.ts'

/** Throws a Failure for a file that is wrong. */
export function tryMatching(terminal: Terminal, rules_path: string, { players }: { players: string }): void {
  const matching = matchingIn(readJson(resolve(terminal.cwd, rules_path), rules_path), rules_path)
  const list = readJson(resolve(terminal.cwd, players), players)
  if (!hasShape(TriedPlayers, list)) throw wrongFile(players, createShapeCheck(TriedPlayers)(list))
  const { matches, waiting_count } = playMatches(matching, list)
  const summary = summaryOf(matches, waiting_count)
  if (terminal.is_json) {
    terminal.json({ summary, matches })
    return
  }
  printMatches(terminal, matches)
  const { match_count, player_count, wait_p50_s, wait_p95_s } = summary
  const made = match_count === 1 ? '1 match' : `${match_count} matches`
  terminal.print(`${made} with ${counted(player_count, 'player')}. ${counted(waiting_count, 'player')} left.`)
  if (match_count > 0) terminal.print(`Half of the players waited ${wait_p50_s} s at most, 95 % ${wait_p95_s} s.`)
}

/** The file has the `matching` block of a game mode, alone or as the member that `matching import` prints. */
function matchingIn(value: unknown, shown: string): MatchingConfig {
  const block = typeof value === 'object' && value !== null && 'matching' in value ? value.matching : value
  if (hasShape(MatchingConfig, block)) return block
  throw wrongFile(shown, createShapeCheck(MatchingConfig)(block))
}

function wrongFile(shown: string, faults: readonly { path: readonly string[]; message: string }[]): Failure {
  const details = faults.map(({ path, message }) => ({ path: path.length === 0 ? 'file' : path.join('.'), message }))
  return new Failure(`${shown} does not have the form that docs/matching.md shows.`, { details, exit_code: EXIT.usage })
}

function summaryOf(matches: readonly PlayedMatch[], waiting_count: number) {
  const waits_s = matches.flatMap(({ waits_s: of_match }) => of_match).sort((a, b) => a - b)
  const percentile = (part: number): number => waits_s[Math.max(0, Math.ceil(waits_s.length * part) - 1)] ?? 0
  return {
    match_count: matches.length,
    player_count: matches.reduce((sum, { player_count }) => sum + player_count, 0),
    waiting_count,
    wait_p50_s: percentile(0.5),
    wait_p95_s: percentile(0.95),
  }
}

function printMatches(terminal: Terminal, matches: readonly PlayedMatch[]): void {
  printTable(
    terminal,
    matches,
    [
      { title: 'AT', text: ({ at_s }) => `${at_s} s`, align: 'right' },
      { title: 'PLAYERS', text: ({ player_count }) => String(player_count), align: 'right' },
      { title: 'LONGEST WAIT', text: ({ waits_s }) => `${Math.max(...waits_s)} s`, align: 'right' },
      {
        title: 'GREATEST DIFFERENCE',
        text: ({ differences }) =>
          Object.entries(differences)
            .map(([name, difference]) => `${name} ${difference}`)
            .join(', '),
      },
    ],
    'No match was complete.',
  )
}
