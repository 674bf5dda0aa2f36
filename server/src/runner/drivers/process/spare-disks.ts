// Files with an empty file system, made ahead of the starts that take them. All have the size that was taken last: most
// lobbies of a machine have the same tier.
import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isGone } from '../../../node/procfs.ts'

/** Files kept ready. As many lobbies start at once without waiting for one. */
const SPARE_MAX = 4
const REFILL_DELAY_MS = 250

export class SpareDisks {
  readonly #folder: string
  readonly #make: (path: string, bytes: number) => Promise<void>
  /** Paths of files of `#bytes`. */
  #ready: string[] = []
  #bytes: number | null = null
  #made = 0
  #timer: NodeJS.Timeout | null = null
  #refilling: Promise<void> = Promise.resolve()
  #is_closed = false

  /** `folder` is emptied. `make` makes a file. */
  constructor(folder: string, make: (path: string, bytes: number) => Promise<void>) {
    this.#folder = folder
    this.#make = make
    rmSync(folder, { recursive: true, force: true })
  }

  /** Moves a ready file of this size to `path`. False: none is ready, and the caller makes one. */
  take(bytes: number, path: string): boolean {
    this.#timer ??= setTimeout(() => this.#refill(), REFILL_DELAY_MS).unref()
    if (bytes !== this.#bytes) this.#empty(bytes)
    const ready = this.#ready.shift()
    if (ready === undefined) return false
    try {
      renameSync(ready, path)
      return true
    } catch (error) {
      if (isGone(error)) return false
      throw error
    }
  }

  async close(): Promise<void> {
    this.#is_closed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.#refilling
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #empty(bytes: number): void {
    for (const path of this.#ready.splice(0)) rmSync(path, { force: true })
    this.#bytes = bytes
  }

  #refill(): void {
    this.#timer = null
    this.#refilling = this.#refilling.then(() => this.#fill()).catch(() => undefined)
  }

  /** A failure, such as a full disk, leaves fewer files: a start then makes its own, and reports why it cannot. */
  async #fill(): Promise<void> {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    const bytes = this.#bytes
    while (bytes !== null && bytes === this.#bytes && this.#ready.length < SPARE_MAX && !this.#is_closed) {
      const path = join(this.#folder, String(this.#made++))
      await this.#make(path, bytes)
      if (bytes === this.#bytes) this.#ready.push(path)
      else rmSync(path, { force: true })
    }
  }
}
