// Finds servers that do not respond, without sending them anything. The process of a server that a signal or a debugger
// stopped shows it. A server in an endless loop or a deadlock shows it at its ports: connections and datagrams wait in the
// kernel, and the server accepts none. All servers are checked together, once a second, and changes are recorded for the
// matchmaker.
//
// The backlog of a port grows until the server takes from it, so a smaller backlog proves that the server runs. A
// connection rarely waits at all: one that waits over TCP_CHECKS checks is enough. Datagrams arrive all the time, and a
// server that reads them once a tick often has a backlog. Only a backlog that keeps growing, and never shrinks, proves that
// the server does not read. Each check is delayed by a random time, so that it does not coincide with a server's ticks.
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '../context.ts'
import { createPoller, type Poller } from '../database/poller.ts'
import type { Driver } from './drivers/driver.ts'
import type { Run } from './launch.ts'
import { recordStalls } from './rows.ts'
import { type Backlog, readListeners, type Transport } from './sockets.ts'

/** Consecutive checks, a second apart, at which connections wait and none is accepted. */
const TCP_CHECKS = 5
/** Checks at which the backlog has grown. For a server that reads this happens by chance for one second in some days. */
const UDP_CHECKS = 8
/** Largest random delay of a check, in milliseconds: longer than the tick of a server. */
export const LATE_MS_MAX = 250
/** Bounds the share of the runner's time: after a check that took 200 ms there is none for two seconds. */
const PAUSE_PER_CHECK = 10

/** Checks after which a port counts as unread. */
const CHECKS_MAX = { tcp: TCP_CHECKS, udp: UDP_CHECKS }
const EMPTY: Backlog = { amount: 0, dropped: 0 }

/** `is_stalled`: as its row says. */
export type StallRun = Pick<Run, 'handle' | 'ports'> & { is_stalled: boolean }

/** One port of a run. `backlog`: at the last check. `idle_checks`: consecutive checks at which the server took nothing. */
export type PortProbe = { backlog: Backlog; idle_checks: number }
export const NEW_PROBE: PortProbe = { backlog: EMPTY, idle_checks: 0 }

/** Woken every second. */
export function watchStalls(
  ctx: Context,
  driver: Pick<Driver, 'isSuspended'>,
  runs: () => readonly StallRun[],
): Omit<Poller, 'running'> {
  let probes = new Map<string, PortProbe>()
  let check_again_ms = 0

  async function check(): Promise<void> {
    if (performance.now() < check_again_ms) return
    await sleep(randomInt(LATE_MS_MAX))
    const began_ms = performance.now()
    const checked = runs()
    const listeners = await readAll(checked)
    const before = probes
    probes = new Map()
    const stalled: StallRun[] = []
    const responding: StallRun[] = []
    for (const run of checked) (isStalled(run, listeners, before) ? stalled : responding).push(run)
    check_again_ms = performance.now() + (performance.now() - began_ms) * PAUSE_PER_CHECK
    await record(stalled, true)
    await record(responding, false)
  }

  /** Probes every port, even after the first unread one. */
  function isStalled(run: StallRun, listeners: AllListeners, before: ReadonlyMap<string, PortProbe>): boolean {
    const unread = transportsOf(run).filter(([transport, port]) => {
      const key = `${run.handle.lobby_id} ${port}`
      const backlog = listenersOf(run, listeners)[transport].get(port) ?? EMPTY
      const probe = nextProbe(transport, backlog, before.get(key) ?? firstProbe(transport, run))
      probes.set(key, probe)
      return isUnread(transport, probe)
    })
    return driver.isSuspended(run.handle) || unread.length > 0
  }

  async function record(checked: readonly StallRun[], is_stalled: boolean): Promise<void> {
    const changed = checked.filter((run) => run.is_stalled !== is_stalled)
    if (changed.length === 0) return
    const lobby_ids = changed.map(({ handle }) => handle.lobby_id)
    await recordStalls(ctx, lobby_ids, is_stalled)
    for (const run of changed) run.is_stalled = is_stalled
    if (is_stalled) ctx.log.warn({ lobby_ids }, 'servers of lobbies do not respond')
    else ctx.log.info({ lobby_ids }, 'servers of lobbies respond again')
  }

  return createPoller(ctx, { run: check, failure: 'servers of lobbies could not be checked' })
}

type Listeners = Readonly<Record<Transport, ReadonlyMap<number, Backlog>>>
/** By lobby id for lobbies with a network of their own; `machine` for all others. */
type AllListeners = { machine: Listeners; own: ReadonlyMap<string, Listeners> }

/** One read of the machine's network, and one of each other network. */
async function readAll(runs: readonly StallRun[]): Promise<AllListeners> {
  const machine = await readNetwork(runs.filter(({ handle }) => handle.network === null))
  const own = new Map<string, Listeners>()
  for (const run of runs) {
    if (run.handle.network !== null) own.set(run.handle.lobby_id, await readNetwork([run], run.handle.pid))
  }
  return { machine, own }
}

async function readNetwork(runs: readonly StallRun[], process?: number): Promise<Listeners> {
  const ports: Record<Transport, number[]> = { tcp: [], udp: [] }
  for (const [transport, port] of runs.flatMap(transportsOf)) ports[transport].push(port)
  const [tcp, udp] = await Promise.all([
    readListeners('tcp', ports.tcp, process),
    readListeners('udp', ports.udp, process),
  ])
  return { tcp, udp }
}

function listenersOf({ handle }: StallRun, { machine, own }: AllListeners): Listeners {
  return own.get(handle.lobby_id) ?? machine
}

function transportsOf({ ports }: StallRun): [Transport, number][] {
  return Object.values(ports).map(({ protocol, port }) => [protocol === 'udp' ? 'udp' : 'tcp', port])
}

/** A stalled run that was taken over stays stalled until its backlog shrinks. */
function firstProbe(transport: Transport, { is_stalled }: StallRun): PortProbe {
  return is_stalled ? { backlog: EMPTY, idle_checks: CHECKS_MAX[transport] } : NEW_PROBE
}

export function isUnread(transport: Transport, { idle_checks }: PortProbe): boolean {
  return idle_checks >= CHECKS_MAX[transport]
}

/** The state of a port after one more check. */
export function nextProbe(transport: Transport, backlog: Backlog, before: PortProbe): PortProbe {
  const { amount, dropped } = backlog
  if (amount === 0 || amount < before.backlog.amount) return { backlog, idle_checks: 0 }
  const is_more = amount > before.backlog.amount || dropped > before.backlog.dropped
  return { backlog, idle_checks: before.idle_checks + (transport === 'tcp' || is_more ? 1 : 0) }
}
