// Playing with friends: the leader creates a party, shares its link, and starts the game for all. Every member, the leader too,
// receives the seat as an event.
import type { Seat } from 'musterhost-sdk/browser'
import { openPlayer, type Party, type Player } from 'musterhost-sdk/player'
import { reloadFor } from './reload.ts'
import { createPatience, type SessionEvents } from './session.ts'
import { tab } from './storage.ts'

/** `link`: friends who open it join the party. */
export type PartyView = { link: string; size: number; is_leader: boolean }

export type PartyEvents = Pick<SessionEvents, 'progress' | 'captcha'> & {
  /** Null: this page is in no party any more. */
  changed(party: PartyView | null): void
  /** The leader has started, and this is where. */
  seat(seat: Seat): void
  /** The party is not heard of any more. */
  failed(error: unknown): void
}

export type Membership = {
  /** By the leader: a seat for everybody, or for nobody. Throws a MusterError whose message is for the player. */
  start(): Promise<void>
  leave(): Promise<void>
}

const CODE = 'party'

/** The code that the page's address brings along. */
export const invitation = (): string | null => new URLSearchParams(location.search).get(CODE)

/** Joins the party of the code, or makes one. Throws a MusterError, e.g. PARTY_CODE_INVALID or PARTY_FULL. */
export async function openParty(code: string | null, events: PartyEvents): Promise<Membership> {
  const patience = createPatience(events)
  // A window is a player here, with a party as without: what a device keeps would be one player for all its windows.
  const player = await openPlayer({ storage: tab, captcha: patience.captcha, onVersionReplaced: reloadFor })
  const watching = new AbortController()
  const { signal } = watching
  const fail = (error: unknown): void => {
    watching.abort()
    events.failed(error)
  }
  player.watchSeats(events.seat, { signal }).catch(fail)
  try {
    await enterParty(player, code)
  } catch (error) {
    watching.abort()
    throw error
  }
  player
    .watchParty(
      (party) => {
        if (signal.aborted) return
        if (party === null) watching.abort()
        events.changed(party && viewOf(party, player))
      },
      { signal },
    )
    .catch(fail)
  return {
    async start() {
      await patience.whileFinding(() =>
        player.find({ game_modes: ['default'], party: true }, { onWaiting: patience.onWaiting }),
      )
    },
    async leave() {
      watching.abort()
      events.changed(null)
      await player.leaveParty()
    },
  }
}

/** A page that is loaded again is in its party still. */
async function enterParty(player: Player, code: string | null): Promise<Party> {
  const party = await player.party()
  if (party !== null && (code === null || code === party.code)) return party
  if (party !== null) await player.leaveParty()
  return code === null ? player.createParty() : player.joinParty(code)
}

function viewOf({ code, leader_identity_id, members }: Party, { identity }: Player): PartyView {
  const link = new URL(location.pathname, location.origin)
  link.searchParams.set(CODE, code)
  return { link: link.href, size: members.length, is_leader: leader_identity_id === identity.identity_id }
}
