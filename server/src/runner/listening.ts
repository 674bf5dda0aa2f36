// Where servers listen that are not ready. A server that never calls ready often listens on the wrong port, and the
// developer cannot see that from the outside. So the sockets of its processes are read every few seconds and stored in its
// row. The error of the request that waited for it shows them.
import type { Context } from '../context.ts'
import { createPoller, type Poller } from '../database/poller.ts'
import type { Listening } from '../database/schema.ts'
import type { Driver } from './drivers/driver.ts'
import type { Run } from './launch.ts'
import { recordListening } from './rows.ts'
import { type ListeningSocket, readListeners, type Transport } from './sockets.ts'

/** After a start. Most servers are ready before. */
const FIRST_CHECK_MS = 2_000
const CHECK_EVERY_MS = 5_000
/** Runs checked at once; the others follow a second later. Bounds the time of one check. */
const RUNS_MAX = 8
/** Sockets of one run that are stored beside those of its own ports. Bounds the row. */
const OTHERS_MAX = 16
/** Addresses whose sockets receive what is sent to 127.0.0.1. */
const REACHES_LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '0.0.0.0', '::', '::ffff:7f00:1'])

export type StartingRun = Pick<Run, 'handle' | 'ports'>
/** `due_ms`: the time of the next check, by performance.now(). `recorded`: the row's current value. */
type Check = { due_ms: number; recorded: string }

/** `starting`: the runs whose server has not called ready. Woken every second. */
export function watchListening(
  ctx: Context,
  driver: Pick<Driver, 'listening'>,
  starting: () => readonly StartingRun[],
): Omit<Poller, 'looking'> {
  let checks = new Map<string, Check>()

  async function checkAll(): Promise<void> {
    const now_ms = performance.now()
    const runs = starting()
    const known = checks
    checks = new Map(
      runs.map(({ handle: { lobby_id } }) => [
        lobby_id,
        known.get(lobby_id) ?? { due_ms: now_ms + FIRST_CHECK_MS, recorded: '' },
      ]),
    )
    const due = runs.filter(({ handle }) => checks.get(handle.lobby_id)!.due_ms <= now_ms)
    for (const run of due.slice(0, RUNS_MAX)) await checkRun(run, checks.get(run.handle.lobby_id)!)
  }

  async function checkRun(run: StartingRun, state: Check): Promise<void> {
    state.due_ms = performance.now() + CHECK_EVERY_MS
    const listening = await listeningOf(run, await driver.listening(run.handle))
    const text = JSON.stringify(listening)
    if (text === state.recorded) return
    await recordListening(ctx, run.handle.lobby_id, listening)
    state.recorded = text
  }

  return createPoller(ctx, { look: checkAll, failure: 'listening sockets of starting servers could not be read' })
}

/** Where the server of a run listens. `sockets`: those of the run; null where the system does not show whose they are. */
export async function listeningOf(
  { handle, ports }: StartingRun,
  sockets: readonly ListeningSocket[] | null,
): Promise<Listening> {
  const wanted = Object.entries(ports).map(([name, { protocol, port }]) => {
    const transport: Transport = protocol === 'udp' ? 'udp' : 'tcp'
    return { name, transport, port }
  })
  const numbersOf = (transport: Transport): number[] =>
    wanted.flatMap((port) => (port.transport === transport ? port.port : []))
  const [tcp, udp] =
    sockets === null
      ? await Promise.all([
          readListeners('tcp', numbersOf('tcp'), handle.pid),
          readListeners('udp', numbersOf('udp'), handle.pid),
        ])
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
    others: others === undefined ? null : [...new Set(others.map(textOf))].sort().slice(0, OTHERS_MAX),
  }
}

function isSame(socket: ListeningSocket, { transport, port }: { transport: Transport; port: number }): boolean {
  return socket.transport === transport && socket.port === port && REACHES_LOOPBACK.has(socket.address)
}

function textOf({ transport, address, port }: ListeningSocket): string {
  return `${transport} ${address.includes(':') ? `[${address}]` : address}:${port}`
}
