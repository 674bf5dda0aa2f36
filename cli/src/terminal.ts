// Where a command runs: its environment, what it prints and what it asks. Results go to stdout, everything else to stderr, so
// that the output can be piped. Nothing is asked without a terminal: the error names the flag that replaces the question.
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text as readAll } from 'node:stream/consumers'
import { stripVTControlCharacters, styleText } from 'node:util'
import { EXIT, Failure, INTERRUPTED_EXIT_CODE } from './failure.ts'
import type { Progress, ProgressBars } from './progress.ts'

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow'

export type Terminal = {
  env: Readonly<Record<string, string | undefined>>
  /** The folder where the person typed the command. */
  cwd: string
  /** Whether stdin and stderr are terminals, and neither --ci nor CI is set. */
  is_interactive: boolean
  is_json: boolean
  /** Whether the command goes on when nothing reads its output any more. */
  outlives_output: boolean
  /** Columns of stdout; infinite when it is no terminal. */
  width: number
  /** The wall clock, in milliseconds. */
  now(): number
  /** A result, on stdout. With --json only `json` writes there. */
  print(line: string): void
  /** One object, or one of the JSON lines. Its members are named as in the API. */
  json(value: unknown): void
  /** What happens, on stderr: what and where, progress, addresses. */
  note(line: string): void
  /** Colours for `print`: the text unchanged when stdout is no terminal, or NO_COLOR is set. */
  paint(style: Style, text: string): string
  ask(question: string, flag: string): Promise<string>
  confirm(question: string, flag: string): Promise<boolean>
  /** Reads a secret from standard input. A secret is never an argument. */
  readSecret(what: string): Promise<string>
  progress(title: string, total_bytes: number): Progress
  /** Aborted by the first Ctrl-C. The second ends the program at once. */
  signal: AbortSignal
}

/** The environment of a program of the project, which needs no token of the user. */
export function withoutToken({ MUSTER_TOKEN: _, ...env }: Terminal['env']): Terminal['env'] {
  return env
}

const YES = new Set(['y', 'yes'])

/** `npm run muster` runs in the folder of the checkout, and npm names the folder where the person typed it. */
function callersFolder({ npm_lifecycle_event, INIT_CWD }: NodeJS.ProcessEnv): string {
  return npm_lifecycle_event === 'muster' && INIT_CWD !== undefined ? INIT_CWD : process.cwd()
}

/** The terminal of this process. */
export class ProcessTerminal implements Terminal {
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
  is_json = false
  outlives_output = false
  #is_ci = false
  #interrupt: AbortController | null = null
  #bars: ProgressBars | null = null
  #createBars: ((terminal: ProcessTerminal) => ProgressBars) | null = null

  constructor(env: NodeJS.ProcessEnv) {
    this.env = env
    this.cwd = callersFolder(env)
  }

  /** Called once the options are parsed. */
  async configure(options: { json?: boolean; ci?: boolean }): Promise<void> {
    this.is_json = options.json === true
    this.#is_ci = options.ci === true || !['', '0', 'false'].includes(this.env.CI ?? '')
    const { createProgressBars } = await import('./progress.ts')
    this.#createBars = createProgressBars
  }

  get is_interactive(): boolean {
    return process.stdin.isTTY === true && this.has_bars
  }

  /** Whether stderr is a terminal that shows bars: a person may have redirected stdin only. */
  get has_bars(): boolean {
    return process.stderr.isTTY === true && !this.#is_ci
  }

  get width(): number {
    return process.stdout.isTTY ? process.stdout.columns || Number.POSITIVE_INFINITY : Number.POSITIVE_INFINITY
  }

  get signal(): AbortSignal {
    if (this.#interrupt === null) {
      const interrupt = new AbortController()
      this.#interrupt = interrupt
      process.on('SIGINT', () => {
        if (interrupt.signal.aborted) process.exit(INTERRUPTED_EXIT_CODE)
        // The terminal has shown the key as `^C`, and the next words begin a line.
        if (process.stderr.isTTY === true && this.#bars?.note('') !== true) process.stderr.write('\n')
        interrupt.abort()
      })
    }
    return this.#interrupt.signal
  }

  now(): number {
    return Date.now()
  }

  print(line: string): void {
    if (!this.is_json) process.stdout.write(`${line}\n`)
  }

  json(value: unknown): void {
    process.stdout.write(`${JSON.stringify(value)}\n`)
  }

  note(line: string): void {
    if (this.#bars?.note(line) !== true) process.stderr.write(`${line}\n`)
  }

  paint(style: Style, text: string): string {
    if (process.stdout.isTTY !== true || (this.env.NO_COLOR ?? '') !== '' || this.env.TERM === 'dumb') return text
    return styleText(style, text, { validateStream: false })
  }

  async ask(question: string, flag: string): Promise<string> {
    this.#requirePerson(question, flag)
    return this.#readLine(`${question} `, process.stderr)
  }

  async confirm(question: string, flag: string): Promise<boolean> {
    this.#requirePerson(question, flag)
    return YES.has((await this.#readLine(`${question} [y/N] `, process.stderr)).toLowerCase())
  }

  async readSecret(what: string): Promise<string> {
    if (!process.stdin.isTTY) {
      const secret = (await readAll(process.stdin)).trim()
      if (secret === '')
        throw new Failure(`Standard input is empty: ${what} is expected there.`, { exit_code: EXIT.usage })
      return secret
    }
    const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
    const secret = await this.#readLine(`${what} (not shown): `, silent)
    process.stderr.write('\n')
    if (secret === '') throw new Failure(`${what} is empty.`, { exit_code: EXIT.usage })
    return secret
  }

  progress(title: string, total_bytes: number): Progress {
    if (this.#createBars === null) throw new Error('progress before the options were parsed')
    this.#bars ??= this.#createBars(this)
    return this.#bars.add(title, total_bytes)
  }

  #requirePerson(question: string, flag: string): void {
    if (this.is_interactive) return
    throw new Failure(`Without a terminal nothing is asked: "${question}"`, {
      exit_code: EXIT.usage,
      remedy: `Give the option ${flag}.`,
    })
  }

  async #readLine(question: string, output: NodeJS.WritableStream): Promise<string> {
    const reader = createInterface({ input: process.stdin, output, terminal: true })
    // The reader has turned the echo off. Before that, a secret that is pasted at once would be shown.
    if (output !== process.stderr) process.stderr.write(question)
    const closed = new AbortController()
    // The reader puts the terminal into raw mode, in which Ctrl-C is a character and Ctrl-D ends the input.
    reader.on('SIGINT', () => closed.abort())
    reader.on('close', () => closed.abort())
    try {
      return stripVTControlCharacters(await reader.question(question, { signal: closed.signal })).trim()
    } catch (error) {
      process.stderr.write('\n')
      throw error
    } finally {
      reader.close()
    }
  }
}
