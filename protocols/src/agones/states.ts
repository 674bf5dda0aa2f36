// The states of an Agones game server, and what each change asks of the lobby:
// Scheduled -> Ready <-> Reserved, then Allocated, then Ready again or Shutdown. Shutdown and Unhealthy are final.
// RequestReady is left out: a call has had its effect when it returns.

export type State = 'Scheduled' | 'Ready' | 'Reserved' | 'Allocated' | 'Shutdown' | 'Unhealthy'

/** `seat`: a player has a seat. `unhealthy`: pings are missing. `reserve_end`: the time is over. Others: calls of the server. */
export type StateEvent = 'ready' | 'allocate' | 'reserve' | 'reserve_end' | 'shutdown' | 'seat' | 'unhealthy'

/** `empty`: connected seats are given back. `open`, `close`: whether find may choose the lobby. */
export type Effect = 'ready' | 'open' | 'close' | 'empty' | 'stop'

export type Step = { state: State; effects: readonly Effect[] }

/** A state without an entry for an event stays as it is. */
const STEPS: Record<StateEvent, Partial<Record<State, Step>>> = {
  ready: {
    Scheduled: { state: 'Ready', effects: ['ready'] },
    Reserved: { state: 'Ready', effects: ['open'] },
    Allocated: { state: 'Ready', effects: ['empty', 'open'] },
  },
  allocate: {
    Scheduled: { state: 'Allocated', effects: ['ready'] },
    Ready: { state: 'Allocated', effects: [] },
    Reserved: { state: 'Allocated', effects: ['open'] },
  },
  reserve: {
    // The lobby closes first, so that find cannot choose it between the two.
    Scheduled: { state: 'Reserved', effects: ['close', 'ready'] },
    Ready: { state: 'Reserved', effects: ['close'] },
    Allocated: { state: 'Reserved', effects: ['close', 'empty'] },
  },
  reserve_end: { Reserved: { state: 'Ready', effects: ['open'] } },
  seat: {
    Ready: { state: 'Allocated', effects: [] },
    Reserved: { state: 'Allocated', effects: ['open'] },
  },
  shutdown: fromEach({ state: 'Shutdown', effects: ['stop'] }),
  unhealthy: fromEach({ state: 'Unhealthy', effects: [] }),
}

export function step(from: State, event: StateEvent): Step {
  return STEPS[event][from] ?? { state: from, effects: [] }
}

export function isFinal(state: State): boolean {
  return state === 'Shutdown' || state === 'Unhealthy'
}

function fromEach(to: Step): Partial<Record<State, Step>> {
  return { Scheduled: to, Ready: to, Reserved: to, Allocated: to }
}
