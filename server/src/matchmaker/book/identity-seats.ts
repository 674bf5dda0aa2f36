// The seats of a book by identity, for as long as they are remembered. Most identities have one seat, which is kept without a
// set: 40 bytes instead of 180. A seat without an identity costs nothing.
import type { Player } from './lobby.ts'

export class IdentitySeats {
  readonly #seats = new Map<string, Player | Set<Player>>()

  add(player: Player): void {
    const { identity_id } = player
    if (identity_id === null) return
    const before = this.#seats.get(identity_id)
    if (before === undefined) this.#seats.set(identity_id, player)
    else if (before instanceof Set) before.add(player)
    else if (before !== player) this.#seats.set(identity_id, new Set([before, player]))
  }

  remove(player: Player): void {
    const { identity_id } = player
    if (identity_id === null) return
    const before = this.#seats.get(identity_id)
    if (before instanceof Set) {
      before.delete(player)
      const [only] = before
      if (before.size === 1) this.#seats.set(identity_id, only!)
    } else if (before === player) this.#seats.delete(identity_id)
  }

  of(identity_id: string): readonly Player[] {
    const seats = this.#seats.get(identity_id)
    if (seats === undefined) return []
    return seats instanceof Set ? [...seats] : [seats]
  }
}
