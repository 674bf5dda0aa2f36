// What a leading matchmaker works with: the platform's context, and what was opened when it took the leadership. A new
// leadership has a new one.
import type { IpIntelligence } from '../../addresses/ip-intelligence.ts'
import type { RateLimiter } from '../../addresses/rate-limit.ts'
import type { AskProvider, Solved } from '../../captcha/provider.ts'
import type { Context } from '../../context.ts'
import type { SeatTaken } from '../book/commands.ts'
import type { Lobby } from '../book/lobby.ts'
import type { DecisionLogs } from '../explanations/decision-log.ts'
import type { ExplanationStore } from '../explanations/store.ts'
import type { Books } from '../shards/books.ts'
import type { Edges } from '../watch/edge-ports.ts'
import type { FailedStarts } from '../watch/failed-starts.ts'
import type { Namespaces } from '../watch/namespaces.ts'
import type { RunStarts } from '../watch/starts.ts'
import type { DurationCounts } from './find-durations.ts'
import type { RecentWaits } from './matching/recent-waits.ts'
import type { WaitViews } from './matching/wait-views.ts'
import type { RolloutFinds } from './rollout-finds.ts'
import type { AskGame } from './verification/ask-game.ts'

export type MatchmakerContext = Context & {
  books: Books
  namespaces: Namespaces
  ip_intelligence: IpIntelligence
  askProvider: AskProvider
  askGame: AskGame
  run_starts: RunStarts
  failed_starts: FailedStarts
  explanations: ExplanationStore
  decision_logs: DecisionLogs
  /** Counts the finds that got a seat. */
  find_durations: DurationCounts
  /** Counts finds by the versions of a roll-out. */
  rollout_finds: RolloutFinds
  /** Counts the requests that got a match, by their wait. */
  match_waits: DurationCounts
  /** How long players waited for matches by rules. */
  recent_waits: RecentWaits
  /** What requests wait for, for streams that ask. */
  wait_views: WaitViews
  /** Wrong codes of lobbies, by client. */
  wrong_codes: RateLimiter
  /** By namespace and idempotency key. */
  open_requests: Map<string, OpenRequest>
  /** Captchas that are being checked, by request and response. */
  solving: Map<string, Promise<Solved | null>>
  /** Requests that are being verified, by namespace and idempotency key. */
  verifying: Map<string, Verifying>
  /** The response's text around the player token, by lobby; collected with the lobby. */
  seat_texts: WeakMap<Lobby, SeatTexts>
  /** The edges as they are now. */
  edges: () => Edges
}

/** `edges`: those that the texts name. */
export type SeatTexts = { texts: readonly string[]; edges: Edges }

/** The calls under way with one Idempotency-Key: they are one request, and share its seat. */
export type OpenRequest = { call_count: number; is_answered: boolean }

/** `is_new`: this call took the seat; otherwise the book remembered it for the key. */
export type Seat = SeatTaken & { is_new: boolean }

/** A request that is being verified. A repeated call shares its hold, its question and its seat. */
export type Verifying = { seat: Promise<Seat>; callers: Callers }

/** The callers that wait for one verification. `all_gone` is aborted when the last of them hangs up. */
export type Callers = { add: (caller: { hangUpSignal: () => AbortSignal }) => void; all_gone: AbortSignal }
