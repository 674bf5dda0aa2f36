// What a person sees of a start: a line per step with a mark and the time it took, warnings as they come, and the
// addresses. On a terminal the last line shows what is under way; into a file, a pipe or with NO_COLOR there are only
// plain lines, without a single control character.
import { styleText } from 'node:util'
import { withoutControls } from '@muster/contract'

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 80
/** What others wrote is cut here. */
const TEXT_LENGTH_MAX = 400
const NAME_WIDTH = 12
const DETAIL_WIDTH = 44

/** The part of process.stdout that is used here. */
export type TerminalStream = { isTTY?: boolean; columns?: number; write(text: string): boolean }

export type Step = {
  done(detail?: string): void
  /** Shows it as failed; why is the start's error to tell. */
  failed(): void
}

export type Terminal = {
  title(text: string): void
  /** Begins a step: it is under way until it is done or has failed. */
  step(name: string): Step
  /** A remark in the margin: something happened that is not a step. */
  say(text: string): void
  /** Something is wrong. `who` says it; both are shown without their control characters. */
  warn(who: string, text: string): void
  /** Names and values, in two columns, and what else there is to say of one. */
  table(rows: readonly (readonly [name: string, value: string, remark?: string])[]): void
  /** A line as it is. */
  line(text: string): void
}

export function createTerminal(stream: TerminalStream, env: NodeJS.ProcessEnv): Terminal {
  const isLive = stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'
  const colour = (style: 'green' | 'red' | 'yellow' | 'cyan' | 'dim' | 'bold', text: string): string =>
    isLive ? styleText(style, text, { validateStream: false }) : text
  const marks = isLive
    ? {
        done: colour('green', '✓'),
        failed: colour('red', '✗'),
        warning: colour('yellow', '!'),
        remark: colour('dim', '·'),
      }
    : { done: 'ok     ', failed: 'failed ', warning: 'warning', remark: '-      ' }

  const underWay: { name: string; begin_ms: number }[] = []
  let frame = 0
  let timer: NodeJS.Timeout | null = null

  const drawUnderWay = (): void => {
    const names = underWay.map((step) => step.name).join(', ')
    const mark = FRAMES[frame % FRAMES.length] ?? ''
    const width = Math.max(10, (stream.columns || 80) - 6)
    stream.write(`\r\u001b[K  ${colour('cyan', mark)} ${names.slice(0, width)}`)
  }
  const print = (text: string): void => {
    if (!isLive) {
      stream.write(`${text}\n`)
      return
    }
    stream.write(`\r\u001b[K${text}\n`)
    if (underWay.length > 0) drawUnderWay()
  }
  const animate = (): void => {
    if (!isLive) return
    if (underWay.length === 0) {
      if (timer) clearInterval(timer)
      timer = null
      stream.write('\r\u001b[K')
      return
    }
    drawUnderWay()
    timer ??= setInterval(() => {
      frame++
      drawUnderWay()
    }, FRAME_MS).unref()
  }
  const finish = (step: { name: string; begin_ms: number }, mark: string, detail: string): void => {
    const index = underWay.indexOf(step)
    if (index < 0) return
    underWay.splice(index, 1)
    const took = seconds(performance.now() - step.begin_ms)
    const text = `${step.name.padEnd(NAME_WIDTH)} ${detail.padEnd(DETAIL_WIDTH)}`
    print(`  ${mark} ${text} ${colour('dim', took)}`)
    animate()
  }

  return {
    title: (text) => print(`\n  ${colour('bold', text)}\n`),
    step(name) {
      const step = { name, begin_ms: performance.now() }
      underWay.push(step)
      animate()
      return {
        done: (detail = '') => finish(step, marks.done, plain(detail)),
        failed: () => finish(step, marks.failed, ''),
      }
    },
    say: (text) => print(`  ${marks.remark} ${plain(text)}`),
    warn: (who, text) => print(`  ${marks.warning} ${plain(who).padEnd(NAME_WIDTH)} ${plain(text)}`),
    table(rows) {
      print('')
      const width = Math.max(...rows.map(([name]) => name.length)) + 2
      for (const [name, value, remark] of rows) {
        const after = remark === undefined ? '' : `   ${colour('dim', remark)}`
        print(`  ${colour('dim', name.padEnd(width))}${colour('bold', plain(value))}${after}`)
      }
      print('')
    },
    line: print,
  }
}

/** Without control characters: what a game server or a stranger's request put into a log must not drive the terminal. */
function plain(text: string): string {
  const cleaned = withoutControls(text)
  return cleaned.length > TEXT_LENGTH_MAX ? `${cleaned.slice(0, TEXT_LENGTH_MAX)}...` : cleaned
}

/** "0.3 s", or "12 ms" for what is hardly worth a mention. */
function seconds(duration_ms: number): string {
  return duration_ms < 100 ? `${Math.round(duration_ms)} ms` : `${(duration_ms / 1_000).toFixed(1)} s`
}
