// The output of `muster start` for a person: a line per step with a mark and its duration, warnings, and the addresses. On
// a terminal the last line shows the steps under way. Into a file, a pipe, or with NO_COLOR, it prints plain lines without
// control characters.
import { styleText } from 'node:util'
import { withoutControls } from '@musterhost/contract'

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 80
/** Characters of a text from other programs, which may be of any length. */
const TEXT_LENGTH_MAX = 400
const NAME_WIDTH = 12
const DETAIL_WIDTH = 44

/** The members of process.stdout that are used here. */
export type TerminalStream = { isTTY?: boolean; columns?: number; write(text: string): boolean }

export type Step = {
  done(detail?: string): void
  /** Shows it as failed. The error of the start says why. */
  failed(): void
}

type Style = 'green' | 'red' | 'yellow' | 'cyan' | 'dim' | 'bold'
type StepState = { name: string; begin_ms: number }

export class SupervisorTerminal {
  readonly #stream: TerminalStream
  /** Whether the stream shows colours and a line that changes. */
  readonly #is_live: boolean
  readonly #marks: { done: string; failed: string; warning: string; remark: string }
  readonly #under_way: StepState[] = []
  #frame = 0
  #timer: NodeJS.Timeout | null = null

  constructor(stream: TerminalStream, env: NodeJS.ProcessEnv) {
    this.#stream = stream
    this.#is_live = stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'
    this.#marks = this.#is_live
      ? {
          done: this.#colour('green', '✓'),
          failed: this.#colour('red', '✗'),
          warning: this.#colour('yellow', '!'),
          remark: this.#colour('dim', '·'),
        }
      : { done: 'ok     ', failed: 'failed ', warning: 'warning', remark: '-      ' }
  }

  title(text: string): void {
    this.line(`\n  ${this.#colour('bold', text)}\n`)
  }

  /** Begins a step. It is under way until it is done or has failed. */
  step(name: string): Step {
    const step = { name, begin_ms: performance.now() }
    this.#under_way.push(step)
    this.#animate()
    return {
      done: (detail = '') => this.#finish(step, this.#marks.done, plain(detail)),
      failed: () => this.#finish(step, this.#marks.failed, ''),
    }
  }

  /** Reports an event that is not a step. */
  say(text: string): void {
    this.line(`  ${this.#marks.remark} ${plain(text)}`)
  }

  /** Reports a fault of `who`. Control characters are removed from both. */
  warn(who: string, text: string): void {
    this.line(`  ${this.#marks.warning} ${plain(who).padEnd(NAME_WIDTH)} ${plain(text)}`)
  }

  /** Names and values, in two columns, each with an optional remark. */
  table(rows: readonly (readonly [name: string, value: string, remark?: string])[]): void {
    this.line('')
    const width = Math.max(...rows.map(([name]) => name.length)) + 2
    for (const [name, value, remark] of rows) {
      const after = remark === undefined ? '' : `   ${this.#colour('dim', remark)}`
      this.line(`  ${this.#colour('dim', name.padEnd(width))}${this.#colour('bold', plain(value))}${after}`)
    }
    this.line('')
  }

  /** Prints the text unchanged. */
  line(text: string): void {
    if (!this.#is_live) {
      this.#stream.write(`${text}\n`)
      return
    }
    this.#stream.write(`\r\u001b[K${text}\n`)
    if (this.#under_way.length > 0) this.#drawUnderWay()
  }

  #colour(style: Style, text: string): string {
    return this.#is_live ? styleText(style, text, { validateStream: false }) : text
  }

  #drawUnderWay(): void {
    const names = this.#under_way.map((step) => step.name).join(', ')
    const mark = FRAMES[this.#frame % FRAMES.length] ?? ''
    const width = Math.max(10, (this.#stream.columns || 80) - 6)
    this.#stream.write(`\r\u001b[K  ${this.#colour('cyan', mark)} ${names.slice(0, width)}`)
  }

  #animate(): void {
    if (!this.#is_live) return
    if (this.#under_way.length === 0) {
      if (this.#timer) clearInterval(this.#timer)
      this.#timer = null
      this.#stream.write('\r\u001b[K')
      return
    }
    this.#drawUnderWay()
    this.#timer ??= setInterval(() => {
      this.#frame++
      this.#drawUnderWay()
    }, FRAME_MS).unref()
  }

  #finish(step: StepState, mark: string, detail: string): void {
    const index = this.#under_way.indexOf(step)
    if (index < 0) return
    this.#under_way.splice(index, 1)
    const took = seconds(performance.now() - step.begin_ms)
    const text = `${step.name.padEnd(NAME_WIDTH)} ${detail.padEnd(DETAIL_WIDTH)}`
    this.line(`  ${mark} ${text} ${this.#colour('dim', took)}`)
    this.#animate()
  }
}

/** Without control characters: text that a game server or a client put into a log must not control the terminal. */
function plain(text: string): string {
  const cleaned = withoutControls(text)
  return cleaned.length > TEXT_LENGTH_MAX ? `${cleaned.slice(0, TEXT_LENGTH_MAX)}...` : cleaned
}

/** "0.3 s", or "12 ms" for a short duration. */
function seconds(duration_ms: number): string {
  return duration_ms < 100 ? `${Math.round(duration_ms)} ms` : `${(duration_ms / 1_000).toFixed(1)} s`
}
