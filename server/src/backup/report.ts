// The result of `muster verify`: what was checked and what was found, as JSON for programs and as lines for people. A
// finding is an error. A remark may be right, and only a person can judge it.

/** Findings and remarks of one check that are printed. */
const LINES_SHOWN_MAX = 20
const NAME_WIDTH = 12

export type BackupCheck = {
  name: string
  /** What was checked, in a few words with numbers. */
  looked_at: string
  findings: string[]
  remarks: string[]
}

export type Report = {
  /** What the checks are about: a backup or a data folder, and of which moment. */
  subject: string
  checks: BackupCheck[]
  is_sound: boolean
}

export function reportOf(subject: string, checks: BackupCheck[]): Report {
  return { subject, checks, is_sound: checks.every(({ findings }) => findings.length === 0) }
}

export function reportLines(report: Report): string[] {
  const lines = [report.subject, '']
  for (const { name, looked_at, findings, remarks } of report.checks) {
    lines.push(`  ${findings.length === 0 ? 'ok   ' : 'WRONG'}  ${name.padEnd(NAME_WIDTH)} ${looked_at}`)
    lines.push(...shown('!', findings), ...shown('-', remarks))
  }
  const wrong = report.checks.reduce((sum, { findings }) => sum + findings.length, 0)
  return [
    ...lines,
    '',
    wrong === 0 ? 'Nothing is wrong.' : `${counted(wrong, 'thing')} ${wrong === 1 ? 'is' : 'are'} wrong.`,
  ]
}

function shown(mark: string, texts: readonly string[]): string[] {
  const lines = texts.slice(0, LINES_SHOWN_MAX).map((text) => `         ${mark} ${text}`)
  const rest = texts.length - lines.length
  return rest === 0 ? lines : [...lines, `         ${mark} and ${rest} more; --json names them`]
}

/** "1 file", "2 files", "1,203 files". */
export function counted(count: number, what: string, many = `${what}s`): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? what : many}`
}

/** "48.1 MB", in powers of ten. */
export function inMegabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toLocaleString('en-US', { maximumFractionDigits: 1 })} MB`
}
