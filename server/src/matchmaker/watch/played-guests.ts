// Records which guests have played: a guest that has taken a seat is kept like a player, an unused one is deleted after a
// day (retention.ts). The seats of a few seconds are one statement. A crash may lose the last of them; they are recorded
// with the next seat or visit of the guest.
import type { Context } from '../../context.ts'
import { watchEvery } from '../../database/poller.ts'
import type { Books } from '../shards/books.ts'

const NOTE_EVERY_MS = 5_000
/** Guests that wait to be recorded. */
const GUESTS_MAX = 100_000

const NOTE_SQL = `
  update identities set seen_ts = greatest($2::timestamptz, create_ts + interval '1 millisecond')
  where identity_id = any($1) and (seen_ts = create_ts or seen_ts < $2::timestamptz - interval '1 day')`

export type PlayedGuests = { close: () => Promise<void> }

/** Closing records what is left. */
export function notePlayedGuests(ctx: Context, books: Books): PlayedGuests {
  let guests = new Set<string>()

  async function note(): Promise<void> {
    if (guests.size === 0) return
    const noted = guests
    guests = new Set()
    try {
      await ctx.pool.query({ name: 'played-guests', text: NOTE_SQL, values: [[...noted], new Date(ctx.now())] })
    } catch (error) {
      for (const identity_id of noted) if (guests.size < GUESTS_MAX) guests.add(identity_id)
      throw error
    }
  }

  const stopHearing = books.onCommits({
    onCommit(_namespace_id, changes) {
      for (const change of changes) {
        if (change.kind !== 'player_reserved' || change.player.identity_id === null) continue
        if (guests.size < GUESTS_MAX) guests.add(change.player.identity_id)
      }
    },
    onReload() {},
  })
  const notes = watchEvery(ctx, NOTE_EVERY_MS, {
    run: note,
    failure: 'guests who play could not be recorded; trying again',
  })
  return {
    async close() {
      stopHearing()
      notes.wake()
      await notes.close()
    },
  }
}
