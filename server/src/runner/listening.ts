// Where servers listen that are not ready. A server that never calls ready often listens on the wrong port, and the
// developer cannot see that from the outside. So the sockets of its processes are read every few seconds and stored in its
// row. The error of the request that waited for it shows them, and the lobby's log says what to change.
import type { Context } from '../context.ts'
import { createPoller, type Poller } from '../database/poller.ts'
import type { Listening } from '../database/schema.ts'
import type { Driver } from './drivers/driver.ts'
import type { Run } from './launch.ts'
import { listeningAdvice, listeningNote, type WantedPort } from './listening-advice.ts'
import type { Reachability } from './reachability.ts'
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
const TAKES_IPV4: ReadonlySet<string> = new Set(['127.0.0.1', '0.0.0.0', '::ffff:7f00:1', '::ffff:0:0'])
/** A socket there takes IPv4 too, unless its server has ruled that out. */
const BOTH_FAMILIES = '::'
/** Lines of the log of one lobby that say why its server is not ready. */
const NOTES_MAX = 3

export type StartingRun = Pick<Run, 'handle' | 'ports' | 'ready_check'>
/** `due_ms`: the time of the next check, by performance.now(). `recorded`: the row's current value. `notes`: in its log. */
type Check = { due_ms: number; recorded: string; checks: number; notes: string[] }

/** `starting`: the runs whose server has not called ready. Woken every second. */
export function watchListening(
  ctx: Context,
  driver: Pick<Driver, 'listening' | 'note'>,
  reach: Reachability,
  starting: () => readonly StartingRun[],
): Omit<Poller, 'running'> {
  let checks = new Map<string, Check>()

  async function checkAll(): Promise<void> {
    const now_ms = performance.now()
    const runs = starting()
    const known = checks
    checks = new Map(
      runs.map(({ handle: { lobby_id } }) => [
        lobby_id,
        known.get(lobby_id) ?? { due_ms: now_ms + FIRST_CHECK_MS, recorded: '', checks: 0, notes: [] },
      ]),
    )
    const due = runs.filter(({ handle }) => checks.get(handle.lobby_id)!.due_ms <= now_ms)
    for (const run of due.slice(0, RUNS_MAX)) await checkRun(run, checks.get(run.handle.lobby_id)!)
  }

  async function checkRun(run: StartingRun, state: Check): Promise<void> {
    state.due_ms = performance.now() + CHECK_EVERY_MS
    const listening = await listeningOf(run, await driver.listening(run.handle), reach)
    noteOnce(run, listening, state)
    const text = JSON.stringify(listening)
    if (text === state.recorded) return
    await recordListening(ctx, run.handle.lobby_id, listening)
    state.recorded = text
  }

  /** The log may have no room. */
  function noteOnce(run: StartingRun, listening: Listening, state: Check): void {
    const text = listeningNote(listening, wantedPorts(run), run.ready_check, state.checks++ === 0)
    if (text === null || state.notes.includes(text) || state.notes.length >= NOTES_MAX) return
    state.notes.push(text)
    try {
      driver.note(run.handle.lobby_id, text)
    } catch (error) {
      ctx.log.warn({ err: error, lobby_id: run.handle.lobby_id }, "a line could not be written into a lobby's log")
    }
  }

  return createPoller(ctx, { run: checkAll, failure: 'listening sockets of starting servers could not be read' })
}

/** Where the server of a run listens. `sockets`: those of the run; null where the system does not show whose they are. */
export async function listeningOf(
  run: StartingRun,
  sockets: readonly ListeningSocket[] | null,
  reach: Reachability,
): Promise<Listening> {
  const { handle, ports, ready_check } = run
  const wanted = wantedPorts(run)
  const numbersOf = (transport: Transport): number[] =>
    wanted.flatMap((port) => (port.transport === transport ? port.port : []))
  const [tcp, udp] =
    sockets === null
      ? await Promise.all([
          readListeners('tcp', numbersOf('tcp'), handle.pid),
          readListeners('udp', numbersOf('udp'), handle.pid),
        ])
      : [null, null]
  const isOpen = async ({ name, transport, port }: WantedPort): Promise<boolean> => {
    const at = sockets?.filter((socket) => socket.transport === transport && socket.port === port)
    const is_certain = at?.some(({ address }) => TAKES_IPV4.has(address)) ?? false
    const is_there = at === undefined ? (transport === 'tcp' ? tcp : udp)!.has(port) : is_certain || at.some(isOfBoth)
    const { hostname } = ports[name]!
    return (
      is_there && reach.isReached(handle, { name, transport, hostname, port, is_certain }, ready_check === 'listening')
    )
  }
  const open = new Set<WantedPort>()
  for (const port of wanted) if (await isOpen(port)) open.add(port)
  const others = sockets?.filter((socket) => ![...open].some((port) => isServed(socket, port))) ?? null
  const shut = wanted.filter((port) => !open.has(port))
  const remedy = others === null ? null : listeningAdvice(shut[0], others, handle.network !== null)
  return {
    open: [...open].map(({ name }) => name),
    shut: shut.map(({ name }) => name),
    others: others === null ? null : [...new Set(others.map(textOf))].sort().slice(0, OTHERS_MAX),
    ...(remedy !== null && { remedy }),
  }
}

function wantedPorts({ ports }: Pick<StartingRun, 'ports'>): WantedPort[] {
  return Object.entries(ports).map(([name, { protocol, port }], index) => {
    return { name, protocol, port, transport: protocol === 'udp' ? 'udp' : 'tcp', is_first: index === 0 }
  })
}

const isOfBoth = ({ address }: ListeningSocket): boolean => address === BOTH_FAMILIES

/** Whether the socket is one of those at which this port is reached. */
function isServed(socket: ListeningSocket, { transport, port }: WantedPort): boolean {
  if (socket.transport !== transport || socket.port !== port) return false
  return isOfBoth(socket) || TAKES_IPV4.has(socket.address)
}

function textOf({ transport, address, port }: ListeningSocket): string {
  return `${transport} ${address.includes(':') ? `[${address}]` : address}:${port}`
}
