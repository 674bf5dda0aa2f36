// The explanation of a request for a seat as sentences. The command line and the hub show the same ones. This module loads no
// schema, so that a page stays small.
import type { ReportedProtocol } from './cloud/logs.ts'
import { ERROR_HELP } from './error-help.ts'
import type { Attempt, Explanation, MatchWait, Verdict, Wait } from './matchmaker/explanations.ts'
import { reportedText } from './protocol-words.ts'

const US_PER_MS = 1_000
const MS_PER_S = 1_000
/** Durations below this are shown with two digits. */
const SHORT_MS = 10
/** Characters of the end of an id, which differs even between ids of the same moment. */
const SHORT_ID = 8
/** A space at which no line ends. */
const NO_BREAK = '\u00a0'

/** Why a lobby was chosen, or passed over. */
export const VERDICT_TEXTS: Record<Verdict, string> = {
  chosen: 'chosen',
  not_best: 'had room, but another lobby was fuller or older',
  full: 'full',
  nothing_to_watch: 'has no players to watch yet',
  other_tags: 'has other tags than the request',
  stalled: 'its server does not respond',
  closed: 'closed for find',
  not_public: 'not public',
  draining: 'its version is draining',
  other_region: 'in another region',
  other_game_mode: 'of another game mode',
  other_version: 'of another version',
  stopped: 'stopped already',
}

const OUTCOMES: Record<Attempt['outcome'], string> = {
  seated: 'The player got a seat in a running lobby',
  created: 'No open lobby had a place, so a new lobby was started',
  held: 'A seat was held while the game verified the player',
  lost: 'The seat was gone after the verification',
  remembered: 'The request repeated an earlier one, and got the same seat',
  waiting: 'No match was complete, so the request waited',
  refused: 'The request was refused',
}

const WAITS: Record<Wait['end'], string> = {
  ready: 'its server became ready',
  gone: 'the lobby stopped before its server was ready',
  timeout: 'its server was not ready in time',
}

const SEAT_ENDS: Record<string, string> = {
  expired: 'did not connect before the deadline',
  unanswered: 'the seat could not be delivered to the client',
  disconnected: 'disconnected',
  too_long: 'was connected for longer than the version allows',
  lobby_stopped: 'the lobby stopped',
  requested: 'removed by a request',
}

/** Why a player has left a seat. */
export function seatEndText(reason: string): string {
  return SEAT_ENDS[reason] ?? reason.replaceAll('_', ' ')
}

const STOPS: Record<string, string> = {
  idle: 'nobody played in it',
  outdated: 'another version was deployed',
  exited: 'its server ended',
  never_ready: 'its server was not ready in time',
  requested: 'a request stopped it',
  node_lost: 'its node was away for too long',
  node_drained: 'its node was drained',
  node_removed: 'its node was removed',
}

/** Why a lobby was stopped. */
export function lobbyStopText(reason: string): string {
  return STOPS[reason] ?? reason.replaceAll('_', ' ')
}

/** From microseconds: `0.38 ms`, `9.9 ms`, `250 ms`, `1.5 s`. */
export function microsecondsText(us: number): string {
  const ms = us / US_PER_MS
  if (ms >= MS_PER_S) return `${Number((ms / MS_PER_S).toPrecision(3))} s`
  return ms < SHORT_MS ? `${Number(ms.toPrecision(2))} ms` : `${Math.round(ms)} ms`
}

/** What was decided, first; then what an error code means, and what the developer does about it. */
export function explanationSentences(explanation: Explanation): string[] {
  const { code, duration, attempts, captcha, verification, unnamed_proxy, match_wait } = explanation
  const last = attempts.at(-1)
  const sentences = [
    code === undefined
      ? `${last === undefined ? 'The request succeeded' : OUTCOMES[last.outcome]}, after ${microsecondsText(duration)}.`
      : `The request was refused with ${code}, after ${microsecondsText(duration)}.`,
  ]
  if (code !== undefined) {
    const help = Object.hasOwn(ERROR_HELP, code) ? ERROR_HELP[code as keyof typeof ERROR_HELP] : undefined
    if (help !== undefined) sentences.push(withAsked(help.cause, explanation), help.remedy)
  }
  if (unnamed_proxy !== undefined) {
    sentences.push(
      `All players behind the proxy ${unnamed_proxy} count as one client, until its operator names it in MUSTER_TRUSTED_PROXIES.`,
    )
  }
  if (match_wait !== undefined) sentences.push(...matchWaitSentences(match_wait))
  if (captcha === 'passed') sentences.push('The captcha was passed.')
  if (captcha === 'refused') sentences.push('The captcha was refused.')
  if (verification === 'passed') sentences.push('The game verified the player.')
  if (verification === 'refused') sentences.push('The game refused the player.')
  if (verification === 'not_asked') {
    sentences.push('The verification endpoint of the game keeps failing, so it was not called.')
  }
  return sentences
}

/** The queue at the last look, and the rules that kept its players apart. */
function matchWaitSentences({
  waited_ms,
  usual_wait_ms,
  players_waiting,
  players_missing,
  refused_by,
}: MatchWait): string[] {
  const waited = microsecondsText(waited_ms * US_PER_MS)
  const queue = `After ${waited}, ${counted(players_waiting, 'player')} waited, and ${written(players_missing)} were missing.`
  return [
    queue,
    ...(usual_wait_ms === undefined
      ? []
      : [`Half of the last players with a match had waited at most ${microsecondsText(usual_wait_ms * US_PER_MS)}.`]),
    ...refused_by.map(({ rule, candidates, limit, widens_in_ms }) => {
      const at = limit === undefined ? '' : `, at its limit of ${limit}`
      const later = widens_in_ms === undefined ? '' : ` It widens ${microsecondsText(widens_in_ms * US_PER_MS)} later.`
      return `The rule \`${rule}\` refused ${counted(candidates, 'request')}${at}.${later}`
    }),
  ]
}

/** What a rule does to the others of a request that waits. The name of the rule comes before it. */
export function refusingRuleText({ candidates, limit, widens_in_ms }: MatchWait['refused_by'][number]): string {
  const at = limit === undefined ? '' : ` at its limit of ${written(limit)}`
  const later = widens_in_ms === undefined ? '' : `, and widens in ${Math.ceil(widens_in_ms / MS_PER_S)}${NO_BREAK}s`
  return `refuses ${counted(candidates, 'request')}${at}${later}`
}

/** Members of the metadata of an error that the request itself named. */
const ASKED_LISTS = { game_mode: 'game_modes', region: 'regions' } as const

/** Puts the name that the request asked for in the place of `metadata.game_mode` and `metadata.region`. */
function withAsked(text: string, { asked }: Explanation): string {
  return Object.entries(ASKED_LISTS).reduce((sentence, [member, list]) => {
    const names = asked[list]
    // The explanation does not say which of several names is unknown. The response did.
    if (!Array.isArray(names) || names.length !== 1) return sentence
    return sentence.replace(`\`metadata.${member}\``, () => `\`${String(names[0])}\``)
  }, text)
}

/** What was decided at one moment. */
export function attemptTitle(attempt: Attempt, index: number): string {
  const { code, lobby_id, offset, outcome } = attempt
  const lobby = lobby_id === undefined ? '' : ` (lobby ${shortened(lobby_id)})`
  const why = code === undefined ? '' : ` with ${code}`
  return `Decision ${index + 1}, after ${microsecondsText(offset)}: ${OUTCOMES[outcome]}${why}${lobby}.`
}

/** The facts that one decision is based on. The candidates are a table of their own. */
export function attemptSentences(attempt: Attempt): string[] {
  const { candidates, candidates_left_out, failed_starts, limits } = attempt
  const sentences = [
    `The client had ${written(limits.client_players)} of ${counted(limits.client_players_max, 'player')} (${limits.client_limit}).`,
    `The namespace had ${written(limits.lobbies)} of ${counted(limits.lobby_count_max, 'lobby', 'lobbies')} (lobby_count_max).`,
  ]
  if (failed_starts !== undefined && failed_starts.count > 0) {
    const pause = failed_starts.pause === 0 ? '' : ` No lobby is started for ${microsecondsText(failed_starts.pause)}.`
    sentences.push(
      `Before it, ${counted(failed_starts.count, 'start')} of a lobby had failed in a row, last of lobby ${shortened(failed_starts.last_lobby_id)}.${pause}`,
    )
  }
  if (candidates.length === 0) sentences.push('No lobby was considered.')
  if (candidates_left_out > 0) sentences.push(`Candidates left out here: ${candidates_left_out}.`)
  return sentences
}

export function waitSentence({ lobby_id, duration, end }: Wait): string {
  return `The request waited ${microsecondsText(duration)} for lobby ${shortened(lobby_id)}: ${WAITS[end]}.`
}

/** What became of a lobby that was chosen, up to now. */
export function lobbySentences(lobby: Explanation['lobbies'][number]): string[] {
  const { is_ready, stop_reason, exit_reason, exit_code, listening } = lobby
  const sentences = [is_ready ? 'Its server was ready.' : 'Its server was not ready.']
  if (stop_reason === undefined) sentences.push('The lobby has not been stopped.')
  else sentences.push(`The lobby was stopped: ${lobbyStopText(stop_reason)}.`)
  if (exit_reason !== undefined || exit_code !== undefined) {
    const exit = exit_code === undefined ? '' : ` with exit code ${exit_code}`
    sentences.push(`Its server ended${exit}${exit_reason === undefined ? '' : ` (${exit_reason})`}.`)
  }
  if (listening !== undefined) {
    const { open, shut, others = [], remedy } = listening
    if (open.length > 0) sentences.push(`It listens at ${open.join(', ')}.`)
    if (shut.length > 0) sentences.push(`It does not listen at ${shut.join(', ')}.`)
    if (others.length > 0) sentences.push(`It also listens at ${others.join(', ')}, which the version does not name.`)
    if (remedy !== undefined) sentences.push(remedy)
  }
  if (lobby.protocol !== undefined) sentences.push(protocolSentence(lobby.protocol))
  return [...sentences, ...lobby.warnings]
}

function protocolSentence(protocol: ReportedProtocol): string {
  const { health_ts } = protocol
  const health = health_ts === undefined ? '' : `, last health ${health_ts}`
  return `Its server reported to ${reportedText(protocol)}${health}.`
}

function shortened(id: string): string {
  return id.slice(-SHORT_ID)
}

function counted(value: number, noun: string, many = `${noun}s`): string {
  return `${written(value)} ${value === 1 ? noun : many}`
}

function written(value: number): string {
  return value.toLocaleString('en')
}
