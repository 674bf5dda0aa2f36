// Named pipes made ahead. Node cannot make a named pipe; mkfifo(1) can, at the cost of a process. So some are kept ready,
// and a start only renames two.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Pipes made at once: for sixteen lobbies. */
const SPARE_PIPES_MAX = 32
/** Below this count new ones are made. */
const SPARE_PIPES_MIN = 16

export class SparePipes {
  readonly #folder: string
  readonly #ready: string[] = []
  #made = 0
  #filling: ChildProcess | null = null

  /** Throws when pipes cannot be made in the folder. Pipes of an earlier process are removed. */
  constructor(folder: string) {
    this.#folder = folder
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    for (const name of readdirSync(folder)) rmSync(join(folder, name))
    const first = this.#newNames()
    makePipes(first)
    this.#ready.push(...first)
  }

  /** The path of a pipe that the caller moves to its place. */
  take(): string {
    const ready = this.#ready.pop()
    if (ready !== undefined) return ready
    const name = join(this.#folder, String(this.#made++))
    makePipes([name])
    return name
  }

  /** Makes more where few are left. Never waits. */
  refill(): void {
    if (this.#filling !== null || this.#ready.length >= SPARE_PIPES_MIN) return
    const names = this.#newNames()
    this.#filling = spawn('mkfifo', ['-m', '600', ...names], { stdio: 'ignore' })
    this.#filling.on('error', () => {
      this.#filling = null
    })
    this.#filling.on('exit', (code) => {
      this.#filling = null
      if (code === 0) this.#ready.push(...names)
    })
  }

  close(): void {
    this.#filling?.kill()
  }

  #newNames(): string[] {
    const count = SPARE_PIPES_MAX - this.#ready.length
    return Array.from({ length: count }, () => join(this.#folder, String(this.#made++)))
  }
}

function makePipes(paths: readonly string[]): void {
  execFileSync('mkfifo', ['-m', '600', ...paths])
}
