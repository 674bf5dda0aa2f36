// The runner's part of the ray of a request that started a lobby: its row, its process, until its server listens, and
// until the matchmaker has heard that it is ready. Whether it listens is read from the kernel's own list, once for all
// that are looked for: a server must not see connections that are no player's. Nothing waits for any of this.
import { readFileSync } from 'node:fs'
import type { Context } from '../context.ts'
import { phase, type Ray } from '../observe/ray.ts'
import type { Run } from './launch.ts'
import type { WantedLobby } from './rows.ts'
import { readListeners } from './sockets.ts'

const FOLLOWED_MAX = 256
const LOOK_EVERY_MS = 10
const LOOKS_MAX = 3_000
/** How many sockets there are: told in microseconds, where the list of them takes the kernel milliseconds. */
const COUNTS = ['/proc/net/sockstat', '/proc/net/sockstat6']
/** Of the runner's time, while a start is looked at: a list that took a millisecond is not read again for ten. */
const PAUSE_PER_READ = 10

export type StartRays = {
  /** Null: no request started it, or no rays are kept. */
  open: (lobby: Pick<WantedLobby, 'ray_id' | 'namespace_id'>) => Ray | null
  /** Its process is there; null: it never was. */
  started: (ray: Ray | null, run: Run | null) => void
  /** The run has ended. */
  ended: (lobby_id: string, reason: string) => void
  close: () => void
}

/** `looks_left`: 0 when it is not looked for any more. */
type Followed = { ray: Ray; numbers: readonly number[]; listens: boolean; looks_left: number }

export function createStartRays({ recorder, listener }: Pick<Context, 'recorder' | 'listener'>): StartRays {
  const followed = new Map<string, Followed>()
  /** Servers that were ready before we knew that their process is there. */
  const early = new Set<string>()
  let timer: NodeJS.Timeout | null = null
  let seen_counts = ''
  let read_again = 0
  const unsubscribe = listener.on('lobby_ready', (lobby_id) => {
    if (followed.has(lobby_id)) finish(lobby_id, null)
    else if (early.add(lobby_id).size > FOLLOWED_MAX) early.delete(early.values().next().value!)
  })

  function finish(lobby_id: string, code: string | null): void {
    const start = followed.get(lobby_id)
    early.delete(lobby_id)
    if (start === undefined) return
    followed.delete(lobby_id)
    // It listened before it said that it is ready, a moment that was not seen.
    if (code === null && !start.listens) phase(start.ray, 'ready')
    recorder.end(start.ray, code)
  }

  function lookSoon(): void {
    timer ??= setTimeout(() => {
      look()
        .catch(() => stopLooking())
        .finally(() => {
          timer = null
          if (looked().length > 0) lookSoon()
        })
    }, LOOK_EVERY_MS)
  }

  const looked = (): Followed[] =>
    [...followed.values()].filter(({ listens, looks_left }) => !listens && looks_left > 0)

  /** Other systems have no such list. */
  function stopLooking(): void {
    for (const start of followed.values()) start.looks_left = 0
  }

  async function look(): Promise<void> {
    for (const start of looked()) start.looks_left--
    const counts = COUNTS.map(readCount).join(' ')
    const began = performance.now()
    if (counts === seen_counts || began < read_again) return
    seen_counts = counts
    const numbers = looked().flatMap((start) => start.numbers)
    const listeners = await readListeners('tcp', numbers)
    read_again = performance.now() + (performance.now() - began) * PAUSE_PER_READ
    for (const start of looked()) {
      start.listens = start.numbers.some((number) => listeners.has(number))
      if (start.listens) phase(start.ray, 'ready')
    }
  }

  return {
    open({ ray_id, namespace_id }) {
      if (ray_id === null) return null
      const ray = recorder.open('runner', ray_id, performance.now(), 'row')
      if (ray === null) return null
      return Object.assign(ray, {
        operation: 'lobby.start',
        owner: { kind: 'namespace', id: namespace_id },
        is_wanted: true,
      })
    },
    started(ray, run) {
      if (ray === null) return
      if (run === null) {
        // Another runner has it, where there is no row of ours.
        if (ray.labels.length > 1) recorder.end(ray, 'not_started')
        return
      }
      if (followed.size >= FOLLOWED_MAX) return
      const ports = Object.values(run.ports).filter(({ protocol }) => protocol !== 'udp')
      phase(ray, 'listen')
      const numbers = ports.map(({ port }) => port)
      followed.set(run.handle.lobby_id, { ray, numbers, listens: false, looks_left: LOOKS_MAX })
      // It may listen already.
      seen_counts = ''
      if (early.has(run.handle.lobby_id)) finish(run.handle.lobby_id, null)
      else if (ports.length > 0) lookSoon()
    },
    ended: finish,
    close() {
      unsubscribe()
      followed.clear()
      if (timer !== null) clearTimeout(timer)
    },
  }
}

/** Of the protocol's sockets that are in use; a listener is one. */
function readCount(path: string): string {
  return /^TCP6?: inuse \d+/m.exec(readFileSync(path, 'latin1'))?.[0] ?? ''
}
