// What a client makes of the reports of `checkMatchmakerVersion`, which starts a lobby of a version before a namespace is switched to
// it: the lines of the log that are new, and when the client gives up. `muster deploy` and the hub do the same.
import type { checkMatchmakerVersion } from './matchmaker/lobby-admin.ts'
import type { ResponseOf } from './operation.ts'

/** A server that listens, or that writes nothing, is given up this long after its start. */
export const GIVE_UP_MS = 30_000
/** The remedy of a server that was given up, beside its correction. */
export const SLOW_SERVER_REMEDY = 'A server that takes longer to start says so by ready_deadline_ms of its game mode.'
/** How the platform's own line in the log begins that says what a report's message says. */
const REPORT_LINE = '[muster] The server is not ready: '

type Report = ResponseOf<typeof checkMatchmakerVersion>

/** The log without the platform's own line that says what the message of the report says. */
export function withoutReportLines(log_lines: readonly string[]): string[] {
  return log_lines.filter((line) => !line.startsWith(REPORT_LINE))
}

export class CheckWatch {
  readonly #has_deadline: boolean
  #last_line: string | null = null
  #alive_ms: number | null = null

  /** `has_deadline`: the version says how long its server may take, and the platform ends a server that takes longer. */
  constructor(has_deadline: boolean) {
    this.#has_deadline = has_deadline
  }

  /** The lines after the last report that was read. */
  newLinesOf(log_lines: readonly string[]): string[] {
    const known = this.#last_line === null ? 0 : log_lines.lastIndexOf(this.#last_line) + 1
    return withoutReportLines(log_lines.slice(known))
  }

  /** `now_ms`: of a monotonic clock. `is_over`: the client ends the lobby, and leaves the namespace as it is. */
  read(report: Report, now_ms: number): { new_lines: string[]; is_over: boolean } {
    const new_lines = this.newLinesOf(report.log_lines)
    this.#last_line = new_lines.at(-1) ?? this.#last_line
    return { new_lines, is_over: this.#isOver(report, new_lines.length > 0, now_ms) }
  }

  /** An image is pulled before the process starts. After that, lines in the log mean that the server still loads. */
  #isOver({ is_started, is_listening }: Report, has_written: boolean, now_ms: number): boolean {
    if (!is_started || this.#has_deadline) return false
    if (this.#alive_ms === null || (has_written && !is_listening)) this.#alive_ms = now_ms
    return now_ms - this.#alive_ms >= GIVE_UP_MS
  }
}
