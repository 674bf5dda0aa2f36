// External verification, the story: the place that a request would get is held, the game's own endpoint is asked about
// it, and the hold becomes the seat, if it still can: choose, hold, ask, convert. While the endpoint thinks, nobody else
// gets the place, and it counts in every limit. Refused, failed, late or hung up: the hold is let go.
import { ApiError, type SeatAction } from '@muster/contract'
import type { AddressFacts, IpIntelligence } from '../../../addresses/ip-intelligence.ts'
import { phase } from '../../../observe/ray.ts'
import type { Decision, Env, FreshIds, Held, HoldWish, SeatTaken, SeatWish } from '../../book/commands.ts'
import * as decide from '../../book/decide.ts'
import { dropHolds } from '../../book/evolve.ts'
import { type Hold, SEAT_HOLD_MS } from '../../book/holds.ts'
import type { Book } from '../../book/state.ts'
import type { Books } from '../../shards/books.ts'
import type { GameModes, Namespaces } from '../../watch/namespaces.ts'
import { type CaptchaGate, gated } from '../captcha/captcha.ts'
import { freshIds } from '../fresh-ids.ts'
import type { Requester } from '../requester.ts'
import { whenPortsOpen } from '../wait-for-ports.ts'
import { limited } from '../with-client-limit.ts'
import type { AskGame } from './calls.ts'
import { type RequestWords, verificationPayload } from './payload.ts'

/** A hold whose lobby ends, or closes, is chosen anew. */
const HOLDS_MAX = 3

export type Verification = { asked: HoldWish; words: RequestWords; facts: AddressFacts }

/** `is_new`: this request took it; else it was remembered for the key. */
type Seat = SeatTaken & { is_new: boolean }

/** A request that is verified now; who repeats it meanwhile shares its hold, its question and its seat. */
export type Verifying = { seat: Promise<Seat>; callers: Callers }

type MatchmakerContext = {
  ctx: { now: () => number; elapsed: () => number }
  books: Books
  namespaces: Namespaces
  ip_intelligence: IpIntelligence
  askGame: AskGame
  verifying: Map<string, Verifying>
}

/** The game modes whose endpoint is asked before the action gives a seat. */
export function verifiedModes(modes: GameModes, names: Iterable<string>, action: SeatAction): ReadonlySet<string> {
  const verified = new Set<string>()
  for (const name of names) if (modes.get(name)?.verification[action]) verified.add(name)
  return verified
}

/**
 * The seat, verified. Throws MATCHMAKER_VERIFICATION_FAILED, MATCHMAKER_VERIFICATION_REQUEST_FAILED, and what the book
 * refuses with, before the question or after it.
 */
export function verifiedSeat(
  desk: MatchmakerContext,
  visitor: Requester,
  verification: Verification,
  gate: CaptchaGate | null,
): Promise<Seat> {
  const { seat_key } = verification.asked.wish
  const key = seat_key === null ? null : `${visitor.namespace_id} ${seat_key}`
  const under_way = key === null ? undefined : desk.verifying.get(key)
  // A verification that all its callers have left is about to end.
  if (under_way !== undefined && !under_way.callers.all_gone.aborted) {
    phase(visitor.ray, 'verification')
    under_way.callers.add(visitor)
    return under_way.seat
  }
  const callers = createCallers()
  callers.add(visitor)
  const seat = verify(desk, visitor, verification, gate, callers.all_gone)
  if (key !== null) {
    const verifying = { seat, callers }
    desk.verifying.set(key, verifying)
    const forget = () => {
      if (desk.verifying.get(key) === verifying) desk.verifying.delete(key)
    }
    seat.then(forget, forget)
  }
  return seat
}

/** The callers that wait for one verification. */
type Callers = { add: (visitor: Requester) => void; all_gone: AbortSignal }

function createCallers(): Callers {
  const controller = new AbortController()
  let waiting = 0
  return {
    add({ hangUpSignal }) {
      waiting++
      const leave = (): void => {
        if (--waiting === 0) controller.abort()
      }
      const gone = hangUpSignal()
      if (gone.aborted) leave()
      else gone.addEventListener('abort', leave, { once: true })
    },
    all_gone: controller.signal,
  }
}

async function verify(
  desk: MatchmakerContext,
  visitor: Requester,
  verification: Verification,
  gate: CaptchaGate | null,
  all_gone: AbortSignal,
): Promise<Seat> {
  const { namespace_id } = visitor
  const { asked } = verification
  const deadline_ms = desk.ctx.elapsed() + SEAT_HOLD_MS
  for (let attempt = 0; attempt < HOLDS_MAX; attempt++) {
    const ids = freshIds(asked.wish, desk.ctx.now())
    try {
      const held = await hold(desk, visitor, asked, ids, attempt === 0 ? gate : null)
      if ('seat' in held) return { ...held.seat, is_new: held.seat.player_id === ids.player_id }
      phase(visitor.ray, 'verification')
      await askAbout(desk, visitor, verification, held.hold, ids, { deadline_ms, all_gone })
      phase(visitor.ray, 'choose')
      const seat = await convert(desk, visitor, asked.wish, ids)
      if (seat !== null) return { ...seat, is_new: seat.player_id === ids.player_id }
    } finally {
      const book = desk.books.book(namespace_id)
      if (book !== undefined) dropHolds(book, ids)
    }
  }
  throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
}

/** Chooses, and holds what was chosen. */
async function hold(
  desk: MatchmakerContext,
  visitor: Requester,
  asked: HoldWish,
  ids: FreshIds,
  gate: CaptchaGate | null,
): Promise<Held> {
  const { books } = desk
  const { namespace_id, isGone } = visitor
  const limits = await desk.namespaces.get(namespace_id)
  const take = (book: Book, fresh: FreshIds, env: Env): Decision<Held> => decide.hold(book, asked, fresh, env)
  return whenPortsOpen(books, isGone, (is_first) => {
    const command = gate !== null && is_first ? gated(gate, asked.wish, take) : take
    const within = limited(desk, limits, visitor, asked.wish, command)
    return books.commit(namespace_id, (book, env) => within(book, ids, env))
  })
}

/** The seat of the hold, under the limits as they are by now; null when it has none to become. */
async function convert(
  desk: MatchmakerContext,
  visitor: Requester,
  asked: SeatWish,
  ids: FreshIds,
): Promise<SeatTaken | null> {
  const { books } = desk
  const { namespace_id, isGone } = visitor
  const limits = await desk.namespaces.get(namespace_id)
  const wish = { ...asked, lobby_count_max: limits.lobby_count_max }
  const within = limited(desk, limits, visitor, wish, (book, fresh, env) => decide.seatHeld(book, fresh, wish, env))
  return whenPortsOpen(books, isGone, () => books.commit(namespace_id, (book, env) => within(book, ids, env)))
}

/** Throws when the answer is not a yes, or nobody waits for it any more. */
async function askAbout(
  desk: MatchmakerContext,
  visitor: Requester,
  { words, facts }: Verification,
  hold: Hold,
  ids: FreshIds,
  patience: { deadline_ms: number; all_gone: AbortSignal },
): Promise<void> {
  const { namespace_id, address, user_agent } = visitor
  const modes = await desk.namespaces.gameModes(hold.lobby.version_id)
  const endpoint = modes.get(hold.lobby.game_mode)?.verification[hold.action]
  if (!endpoint) throw new Error(`the game mode ${hold.lobby.game_mode} has lost its verification`)
  const party = desk.books.book(namespace_id)?.heldParty(ids) ?? null
  const others = (party ?? []).slice(1).map((member) => {
    const { coordinates } = desk.ip_intelligence.factsOf(member.address)
    return { address: member.address, user_agent: member.user_agent, coordinates }
  })
  const players = [{ address, user_agent, coordinates: facts.coordinates }, ...others]
  const join_kind = party === null ? 'normal' : 'party'
  const { game_id } = await desk.namespaces.get(namespace_id)
  const body = verificationPayload({ game_id, namespace_id, hold, players, join_kind, words })
  const timeout_ms = patience.deadline_ms - desk.ctx.elapsed()
  const onLeftAlone = () => visitor.tale?.leftAlone()
  await desk.askGame({ namespace_id, endpoint, body, timeout_ms, signal: patience.all_gone, onLeftAlone })
  if (patience.all_gone.aborted) throw new ApiError('MATCHMAKER_VERIFICATION_REQUEST_FAILED')
}
