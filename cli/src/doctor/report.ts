// `muster doctor` as lines of text: a finding each, with the remedy of what failed below it.
import type { Examination, Finding } from '@musterhost/server/doctor'

/** A check of another platform may be newer than this command. */
export type ShownFinding = Pick<Finding, 'status' | 'message'> & { check: string; remedy?: string | null }
type Examined = { findings: readonly ShownFinding[]; is_running: boolean; place: string | null }

const MARKS: Record<Finding['status'], string> = { ok: 'ok', warning: 'warn', failed: 'FAIL', skipped: '-' }

/** The report of this machine. */
export function reportLines({ findings, is_running, data_folder }: Examination): string[] {
  return linesOf({ findings, is_running, place: data_folder && `A platform on ${data_folder}` })
}

/** The report of the platform at `url`, which has run the checks itself. */
export function remoteReportLines(url: string, findings: readonly ShownFinding[]): string[] {
  return linesOf({ findings, is_running: true, place: `The platform at ${url}` })
}

/** `place`: null: no check could run. */
function linesOf({ findings, is_running, place }: Examined): string[] {
  const mark_width = Math.max(...Object.values(MARKS).map((mark) => mark.length))
  const check_width = Math.max(...findings.map((finding) => finding.check.length))
  const lines = findings.flatMap(({ check, status, message, remedy }) => {
    const line = `${MARKS[status].padEnd(mark_width)}  ${check.padEnd(check_width)}  ${message}`
    return remedy === null || remedy === undefined
      ? [line]
      : [line, `${''.padEnd(mark_width + check_width + 4)}-> ${remedy}`]
  })
  const failed = findings.filter(({ status }) => status === 'failed').length
  const warnings = findings.filter(({ status }) => status === 'warning').length
  const platform = place ?? 'The settings'
  const verb = place === null ? 'need' : is_running ? 'runs and needs' : 'would need'
  const end =
    failed > 0
      ? `${platform} ${verb} ${failed} ${failed === 1 ? 'remedy' : 'remedies'}.`
      : is_running
        ? `${platform} runs. Nothing failed.`
        : `${platform} can start: muster start`
  return [...lines, '', warnings === 0 ? end : `${end} ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}.`]
}

/** Whether a finding failed, which is the exit code. */
export function hasFailed({ findings }: Pick<Examined, 'findings'>): boolean {
  return findings.some(({ status }) => status === 'failed')
}
