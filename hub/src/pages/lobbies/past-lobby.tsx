// How a lobby ended, or that it runs: in words, from its record.
import type { LogsLobbySummary } from '@musterhost/contract'
import { Badge } from '../../parts/notice.tsx'

export type PastLobby = LogsLobbySummary

export const OUTCOMES = ['running', 'ended', 'failed'] as const
type Outcome = (typeof OUTCOMES)[number]

export function outcomeOf({ status }: PastLobby): Outcome {
  if (status.stopped === undefined) return 'running'
  return status.stopped.failed ? 'failed' : 'ended'
}

export function OutcomeBadge({ lobby }: { lobby: PastLobby }) {
  const outcome = outcomeOf(lobby)
  return <Badge tone={outcome === 'failed' ? 'bad' : outcome === 'running' ? 'good' : 'plain'}>{outcome}</Badge>
}

const SIGNALS: Readonly<Record<number, string>> = {
  1: 'SIGHUP',
  2: 'SIGINT',
  3: 'SIGQUIT',
  4: 'SIGILL',
  6: 'SIGABRT',
  7: 'SIGBUS',
  8: 'SIGFPE',
  9: 'SIGKILL',
  11: 'SIGSEGV',
  13: 'SIGPIPE',
  15: 'SIGTERM',
}
const SIGNAL_CODES_FROM = 128

/** How a server ended, where its exit code does not say it. */
const REASONS: Readonly<Record<string, string>> = {
  oom: 'used more memory than its tier has',
  pids: 'started more processes than a lobby may have',
  disk: 'failed, and its disk was full',
  no_such_file: 'the program does not exist',
  not_executable: 'the program cannot be executed on this machine',
  missing_library: 'a library or an interpreter of the program is missing',
  build_damaged: 'the stored build is damaged',
  no_build: 'the build cannot be unpacked',
  no_ports: 'no port was free',
  no_network: 'the lobby got no network of its own, which its fixed ports need',
  not_started: 'the machine could not start it',
  never_ready: 'never ready',
  lost: 'lost: its machine was restarted or is away',
}

/** How a server ended. `reason`: `exit_reason` of the API. */
export function exitText(exit_code: number, reason = ''): string {
  const words = REASONS[reason]
  if (words === undefined) return codeText(exit_code)
  return reason === 'oom' || reason === 'pids' || reason === 'disk' ? `${words}, ${codeText(exit_code)}` : words
}

function codeText(exit_code: number): string {
  if (exit_code === 0) return 'exit code 0'
  if (exit_code === -1) return 'exit code unknown'
  if (exit_code === 127) return 'exit code 127: the program does not exist'
  const signal = SIGNALS[exit_code - SIGNAL_CODES_FROM]
  return signal === undefined ? `exit code ${exit_code}` : `exit code ${exit_code}: ${signal}`
}
