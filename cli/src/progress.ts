// Progress of uploads: bars on a terminal, a plain line at each quarter elsewhere.
import { MultiBar, type SingleBar } from 'cli-progress'

export type Progress = {
  advance(bytes: number): void
  /** Ends the bar; `text` replaces it. */
  done(text: string): void
}

export type ProgressBars = {
  add(title: string, total_bytes: number): Progress
  /** Prints a line above the bars. False: there are none on the screen. */
  note(line: string): boolean
}

/** Parts of the whole after which a plain line is printed. */
const PLAIN_STEPS = 4
/** How often the bars are drawn. */
const REDRAWS_PER_S_MAX = 10
const FORMAT = '{title} [{bar}] {percentage}% of {size}'

type ProgressOutput = { has_bars: boolean; note(line: string): void }

export function createProgressBars(output: ProgressOutput): ProgressBars {
  return output.has_bars
    ? new TerminalBars()
    : { add: (title, total) => plainLines(output, title, total), note: () => false }
}

class TerminalBars implements ProgressBars {
  #bars: MultiBar | null = null
  #open = 0
  /** Lines that replace the bars when the last one ends. */
  #texts: string[] = []

  add(title: string, total_bytes: number): Progress {
    this.#bars ??= new MultiBar({
      format: FORMAT,
      fps: REDRAWS_PER_S_MAX,
      stream: process.stderr,
      hideCursor: true,
      clearOnComplete: true,
      stopOnComplete: false,
      emptyOnZero: true,
      gracefulExit: false,
    })
    this.#open++
    const bar: SingleBar = this.#bars.create(total_bytes, 0, { title, size: sizeText(total_bytes) })
    let is_open = true
    return {
      advance: (bytes) => bar.increment(bytes),
      done: (text) => {
        if (!is_open) return
        is_open = false
        this.#end(text)
      },
    }
  }

  note(line: string): boolean {
    if (this.#bars === null) return false
    this.#bars.log(`${line}\n`)
    return true
  }

  #end(text: string): void {
    this.#texts.push(text)
    this.#open--
    if (this.#open > 0) return
    this.#bars?.stop()
    this.#bars = null
    for (const line of this.#texts.splice(0)) process.stderr.write(`${line}\n`)
  }
}

function plainLines(output: ProgressOutput, title: string, total_bytes: number): Progress {
  let sent_bytes = 0
  let steps = 0
  let is_open = true
  return {
    advance(bytes) {
      sent_bytes += bytes
      const now = total_bytes === 0 ? PLAIN_STEPS : Math.floor((sent_bytes / total_bytes) * PLAIN_STEPS)
      if (now <= steps || now >= PLAIN_STEPS) return
      steps = now
      output.note(`${title}: ${Math.round((now / PLAIN_STEPS) * 100)}% of ${sizeText(total_bytes)}`)
    },
    done(text) {
      if (!is_open) return
      is_open = false
      output.note(text)
    },
  }
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const
const UNIT_BYTES = 1024

/** `1.4 MiB`. */
export function sizeText(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= UNIT_BYTES && unit < UNITS.length - 1) {
    value /= UNIT_BYTES
    unit++
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`
}
