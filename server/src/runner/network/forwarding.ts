// Replies from the internet reach a lobby only where the machine forwards what arrives at its uplinks. Where forwarding is
// off, it is switched on for those interfaces, for lobbies only (rules.ts), and off again when the platform is removed.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isGone } from '../../node/procfs.ts'

export class Forwarding {
  readonly #file: string
  #opened: string[]

  /** `folder`: where the names of changed interfaces are kept, for the runner after this one. */
  constructor(folder: string) {
    this.#file = join(folder, 'forwarding.json')
    this.#opened = readNames(this.#file)
  }

  /** The interfaces on which forwarding was switched on. */
  get opened(): readonly string[] {
    return this.#opened
  }

  /** Returns whether `opened` has changed. */
  open(): boolean {
    const closed = uplinks().filter((name) => isClosed(name))
    const added = closed.filter((name) => !this.#opened.includes(name))
    if (added.length > 0) {
      this.#opened = [...this.#opened, ...added]
      writeFileSync(this.#file, JSON.stringify(this.#opened), { mode: 0o600 })
    }
    for (const name of closed) writeFileSync(settingOf(name), '1')
    return added.length > 0
  }

  close(): void {
    for (const name of this.#opened) {
      try {
        writeFileSync(settingOf(name), '0')
      } catch (error) {
        if (!isGone(error)) throw error
      }
    }
    this.#opened = []
    rmSync(this.#file, { force: true })
  }
}

/** The interfaces of default routes. */
function uplinks(): string[] {
  const names = new Set<string>()
  for (const line of readFileSync('/proc/net/route', 'latin1').split('\n').slice(1)) {
    const [name, destination] = line.split('\t')
    if (name !== undefined && destination === '00000000') names.add(name)
  }
  return [...names]
}

const settingOf = (name: string): string => `/proc/sys/net/ipv4/conf/${name}/forwarding`

function isClosed(name: string): boolean {
  return readFileSync(settingOf(name), 'latin1').trim() === '0'
}

function readNames(file: string): string[] {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as string[]
  } catch (error) {
    if (isGone(error)) return []
    throw error
  }
}
