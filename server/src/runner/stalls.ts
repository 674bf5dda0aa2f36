// Servers that do not answer, found without asking them anything. One that is stopped (by a signal, a debugger) is seen at
// its process. One that is busy for ever, or waits for what never comes, is seen at its ports: whoever comes waits in the
// kernel, and is not let in. Looked at all together, once a second; what has changed is recorded for the matchmaker.
//
// What waits at a port grows until the server takes some of it in, so less than before is a sign of life. A connection is
// seldom seen waiting at all: one that waits over TCP_LOOKS is enough. Datagrams come all the time, and a server that reads
// them at each of its ticks has some waiting whenever one looks: only that there are more at look after look, and never
// less, says that nobody reads. So that this is no accident, looks keep no step with anybody's ticks.
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '../context.ts'
import { createPoller, type Poller } from '../database/poller.ts'
import type { Driver } from './drivers/driver.ts'
import type { Run } from './launch.ts'
import { recordStalls } from './rows.ts'
import { type LongPoll, readListeners, type Transport } from './sockets.ts'

/** Looks that follow one another, a second apart, at which somebody waits and nobody is let in. */
const TCP_LOOKS = 5
/** Looks with more waiting than before. Of a server that answers it is so by chance, for a second in some days. */
const UDP_LOOKS = 8
/** By as much a look is late, or by less: longer than a server's ticks are apart. */
export const LATE_MS_MAX = 250
/** Of the runner's time: after a look that took 200 ms there is none for two seconds. */
const PAUSE_PER_LOOK = 10

const LOOKS_MAX = { tcp: TCP_LOOKS, udp: UDP_LOOKS }
const NOTHING: LongPoll = { amount: 0, dropped: 0 }

/** `is_stalled`: as its row says. */
export type StallRun = Pick<Run, 'handle' | 'ports'> & { is_stalled: boolean }

/** A port of a run: what waited there at the last look, and at how many looks nobody had been let in. */
export type Door = { waiting: LongPoll; looks: number }
export const NEW_DOOR: Door = { waiting: NOTHING, looks: 0 }

/** To be woken every second. */
export function watchStalls(
  ctx: Context,
  driver: Pick<Driver, 'isSuspended'>,
  runs: () => readonly StallRun[],
): Omit<Poller, 'looking'> {
  let doors = new Map<string, Door>()
  let look_again = 0

  async function look(): Promise<void> {
    if (performance.now() < look_again) return
    await sleep(randomInt(LATE_MS_MAX))
    const began = performance.now()
    const looked_at = runs()
    const listeners = await readAll(looked_at)
    const before = doors
    doors = new Map()
    const stalled: StallRun[] = []
    const answering: StallRun[] = []
    for (const run of looked_at) (isStalled(run, listeners, before) ? stalled : answering).push(run)
    look_again = performance.now() + (performance.now() - began) * PAUSE_PER_LOOK
    await record(stalled, true)
    await record(answering, false)
  }

  /** All its ports are looked at, whatever is found at the first. */
  function isStalled(run: StallRun, listeners: Listeners, before: ReadonlyMap<string, Door>): boolean {
    const shut = transportsOf(run).filter(([transport, port]) => {
      const key = `${run.handle.lobby_id} ${port}`
      const waiting = listeners[transport].get(port) ?? NOTHING
      const door = nextDoor(transport, waiting, before.get(key) ?? firstDoor(transport, run))
      doors.set(key, door)
      return isShut(transport, door)
    })
    return driver.isSuspended(run.handle) || shut.length > 0
  }

  async function record(those: readonly StallRun[], is_stalled: boolean): Promise<void> {
    const news = those.filter((run) => run.is_stalled !== is_stalled)
    if (news.length === 0) return
    const lobby_ids = news.map(({ handle }) => handle.lobby_id)
    await recordStalls(ctx, lobby_ids, is_stalled)
    for (const run of news) run.is_stalled = is_stalled
    if (is_stalled) ctx.log.warn({ lobby_ids }, 'servers of lobbies do not answer')
    else ctx.log.info({ lobby_ids }, 'servers of lobbies answer again')
  }

  return createPoller(ctx, { look, failure: 'servers of lobbies could not be looked at' })
}

type Listeners = Readonly<Record<Transport, ReadonlyMap<number, LongPoll>>>

async function readAll(runs: readonly StallRun[]): Promise<Listeners> {
  const ports: Record<Transport, number[]> = { tcp: [], udp: [] }
  for (const [transport, port] of runs.flatMap(transportsOf)) ports[transport].push(port)
  const [tcp, udp] = await Promise.all([readListeners('tcp', ports.tcp), readListeners('udp', ports.udp)])
  return { tcp, udp }
}

function transportsOf({ ports }: StallRun): [Transport, number][] {
  return Object.values(ports).map(({ protocol, port }) => [protocol === 'udp' ? 'udp' : 'tcp', port])
}

/** Of a run that was found again: one that did not answer does so when somebody is let in. */
function firstDoor(transport: Transport, { is_stalled }: StallRun): Door {
  return is_stalled ? { waiting: NOTHING, looks: LOOKS_MAX[transport] } : NEW_DOOR
}

export function isShut(transport: Transport, { looks }: Door): boolean {
  return looks >= LOOKS_MAX[transport]
}

/** After another look. */
export function nextDoor(transport: Transport, waiting: LongPoll, before: Door): Door {
  const { amount, dropped } = waiting
  if (amount === 0 || amount < before.waiting.amount) return { waiting, looks: 0 }
  const is_more = amount > before.waiting.amount || dropped > before.waiting.dropped
  return { waiting, looks: before.looks + (transport === 'tcp' || is_more ? 1 : 0) }
}
