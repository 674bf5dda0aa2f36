// Where servers listen that are not ready. A server that never calls ready often listens at a port of its own choice,
// and the developer cannot see that from the outside. So the processes of such a run are looked at now and then, and what
// was found is in its row when the request that waits for it gives up.
import type { Context } from '../context.ts'
import { createPoller, type Poller } from '../database/poller.ts'
import type { Listening } from '../database/schema.ts'
import type { Driver } from './drivers/driver.ts'
import type { Run } from './launch.ts'
import { recordListening } from './rows.ts'
import { type ListeningSocket, readListeners, type Transport } from './sockets.ts'

/** Most servers are ready by then. */
const FIRST_LOOK_MS = 2_000
const LOOK_EVERY_MS = 5_000
/** Runs that one look takes; the others follow. */
const RUNS_MAX = 8
const OTHERS_MAX = 16
/** Addresses by which a socket gets what is sent to 127.0.0.1. */
const REACHES_LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '0.0.0.0', '::', '::ffff:7f00:1'])

export type StartingRun = Pick<Run, 'handle' | 'ports'>
/** When a run is looked at next, by performance.now(), and what was recorded last. */
type Look = { due_ms: number; recorded: string }

/** `starting`: the runs whose server has not called ready. To be woken every second. */
export function watchListening(
  ctx: Context,
  driver: Pick<Driver, 'listening'>,
  starting: () => readonly StartingRun[],
): Omit<Poller, 'looking'> {
  let looks = new Map<string, Look>()

  async function look(): Promise<void> {
    const now_ms = performance.now()
    const runs = starting()
    const known = looks
    looks = new Map(
      runs.map(({ handle: { lobby_id } }) => [
        lobby_id,
        known.get(lobby_id) ?? { due_ms: now_ms + FIRST_LOOK_MS, recorded: '' },
      ]),
    )
    const due = runs.filter(({ handle }) => looks.get(handle.lobby_id)!.due_ms <= now_ms)
    for (const run of due.slice(0, RUNS_MAX)) await lookAt(run, looks.get(run.handle.lobby_id)!)
  }

  async function lookAt(run: StartingRun, state: Look): Promise<void> {
    state.due_ms = performance.now() + LOOK_EVERY_MS
    const listening = await listeningOf(run, await driver.listening(run.handle))
    const text = JSON.stringify(listening)
    if (text === state.recorded) return
    await recordListening(ctx, run.handle.lobby_id, listening)
    state.recorded = text
  }

  return createPoller(ctx, { look, failure: 'it could not be seen where servers that start listen' })
}

/** `sockets`: those of the run; null where nobody knows. */
async function listeningOf({ ports }: StartingRun, sockets: readonly ListeningSocket[] | null): Promise<Listening> {
  const wanted = Object.entries(ports).map(([name, { protocol, port }]) => {
    const transport: Transport = protocol === 'udp' ? 'udp' : 'tcp'
    return { name, transport, port }
  })
  const numbersOf = (transport: Transport): number[] =>
    wanted.flatMap((port) => (port.transport === transport ? port.port : []))
  const [tcp, udp] =
    sockets === null
      ? await Promise.all([readListeners('tcp', numbersOf('tcp')), readListeners('udp', numbersOf('udp'))])
      : [null, null]
  const isOpen = ({ transport, port }: { transport: Transport; port: number }): boolean =>
    sockets === null
      ? (transport === 'tcp' ? tcp : udp)!.has(port)
      : sockets.some((socket) => isSame(socket, { transport, port }))
  const others = sockets?.filter((socket) => !wanted.some((port) => isSame(socket, port)))
  const names = (some: typeof wanted): string[] => some.map(({ name }) => name)
  return {
    open: names(wanted.filter(isOpen)),
    shut: names(wanted.filter((port) => !isOpen(port))),
    others: others === undefined ? null : [...new Set(others.map(shown))].sort().slice(0, OTHERS_MAX),
  }
}

function isSame(socket: ListeningSocket, { transport, port }: { transport: Transport; port: number }): boolean {
  return socket.transport === transport && socket.port === port && REACHES_LOOPBACK.has(socket.address)
}

function shown({ transport, address, port }: ListeningSocket): string {
  return `${transport} ${address.includes(':') ? `[${address}]` : address}:${port}`
}
