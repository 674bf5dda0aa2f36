// The laws L1 to L4 are checked in evolve.ts, where a change becomes true. L5 (a port has one lobby) is checked in
// shards/port-pool.ts.
import type { Lobby } from './lobby.ts'

/** A change would break a law of the platform: a fault in this program. The change has not been made. */
export class BrokenLaw extends Error {
  readonly facts: Readonly<Record<string, unknown>>
  constructor(law: string, facts: Readonly<Record<string, unknown>>) {
    super(law)
    this.name = 'BrokenLaw'
    this.facts = facts
  }
}

/** Throws BrokenLaw with the facts of `about`, a lobby, a player or plain values, unless the condition holds. */
export function requireLaw(condition: boolean, law: string, about: object): void {
  if (condition) return
  const { players, spectators, ...facts } = about as Partial<Lobby>
  throw new BrokenLaw(law, players === undefined ? facts : { ...facts, players: [...players.keys()] })
}
