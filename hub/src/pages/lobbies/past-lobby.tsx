// How a lobby ended, or that it runs: in words, from its record.
import type { LogsLobbySummary } from '@musterhost/contract'
import { Badge } from '../../parts/notice.tsx'

export type PastLobby = LogsLobbySummary

export const OUTCOMES = ['running', 'ended', 'failed'] as const
export type Outcome = (typeof OUTCOMES)[number]

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
  9: 'SIGKILL, for example because the memory was used up',
  11: 'SIGSEGV',
  13: 'SIGPIPE',
  15: 'SIGTERM',
}
const SIGNAL_CODES_FROM = 128

/** Reasons that the code says too. */
const CODE_REASONS: ReadonlySet<string> = new Set(['exit', 'signal', 'no_such_file', 'stopped'])

/** What an exit code means. `reason`: named beside the code where the code does not say it, such as `oom`. */
export function exitText(exit_code: number, reason?: string): string {
  const code = codeText(exit_code)
  return reason === undefined || CODE_REASONS.has(reason) ? code : `${reason}, ${code}`
}

function codeText(exit_code: number): string {
  if (exit_code === 0) return 'exit code 0'
  if (exit_code === -1) return 'exit code unknown'
  if (exit_code === 127) return 'exit code 127: the program does not exist'
  const signal = SIGNALS[exit_code - SIGNAL_CODES_FROM]
  return signal === undefined ? `exit code ${exit_code}` : `exit code ${exit_code}: ${signal}`
}
