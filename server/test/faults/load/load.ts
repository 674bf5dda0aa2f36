// The load: a fixed number of clients, each of which sends one operation after the other. It can be paused, so that no
// operation is under way during the checks.
import { setTimeout as sleep } from 'node:timers/promises'
import type { History } from '../history.ts'
import type { FaultyPlatform } from '../platform.ts'
import type { Random } from '../random.ts'
import { entryWriter } from './entries.ts'
import { developer, manager } from './management.ts'
import { partyPlayers } from './parties.ts'
import { player, type SeatCaller } from './seats.ts'

/** One step of a client: one operation, or a few that belong together. */
export type Step = () => Promise<void>
export type LoadContext = { platform: FaultyPlatform; history: History; random: Random }

const PLAYERS = 6
const ENTRY_WRITERS = 2
/** Between two steps of a client. */
const THINK_MS_MAX = 40

export class Load {
  readonly #steps: { step: Step; random: Random }[]
  #running: Promise<unknown> = Promise.resolve()
  #is_paused = true

  constructor(steps: { step: Step; random: Random }[]) {
    this.#steps = steps
  }

  resume(): void {
    this.#is_paused = false
    this.#running = Promise.all(this.#steps.map(({ step, random }) => this.#run(step, random)))
    // `pause` throws the failure. Until then it must not be an unhandled rejection.
    this.#running.catch(() => {})
  }

  /** Resolves when no operation is under way. Rejects when a client failed in a way that is no outcome. */
  async pause(): Promise<void> {
    this.#is_paused = true
    await this.#running
  }

  /** Ends it without waiting: the run has failed. */
  abandon(): void {
    this.#is_paused = true
  }

  async #run(step: Step, random: Random): Promise<void> {
    while (!this.#is_paused) {
      await step()
      await sleep(random.int(THINK_MS_MAX))
    }
  }
}

/** Every kind of operation. */
export function fullLoad(context: LoadContext): Load {
  const clients = (name: string, count: number, make: (context: LoadContext, number: number) => Step) =>
    Array.from({ length: count }, (_, number) => {
      const random = context.random.fork(`${name} ${number}`)
      return { step: make({ ...context, random }, number), random }
    })
  return new Load([
    ...clients('player', PLAYERS, (own) => player(own)),
    ...clients('party', 1, partyPlayers),
    ...clients('entries', ENTRY_WRITERS, entryWriter),
    ...clients('developer', 1, developer),
    ...clients('manager', 1, manager),
  ])
}

/** Players only, which use these callers in turn. */
export function playerLoad(context: LoadContext, callers: readonly SeatCaller[]): Load {
  return new Load(
    Array.from({ length: PLAYERS }, (_, number) => {
      const random = context.random.fork(`player ${number}`)
      return { step: player({ ...context, random }, callers), random }
    }),
  )
}
