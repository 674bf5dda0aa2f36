// What was decided about one request for a seat and what it waited for, logged while it happens. Every refusal is kept,
// within a bound for each namespace, and a sample of the seats. All other requests only pay for reading a counter.
import type { Attempt, Explanation, MatchWait, Wait } from '@musterhost/contract'
import type { Context } from '../../context.ts'
import type { Book } from '../book/state.ts'
import type { WaitEnd } from '../shards/seat-waiters.ts'
import { type Decided, explainDecision } from './explain.ts'
import type { ExplanationStore } from './store.ts'

/** Decisions, and waits, of one request. */
const ATTEMPTS_MAX = 8
/** Members of a body that an explanation shows. All others are private to the player. */
const SHOWN_MEMBERS = [
  ...[
    'game_modes',
    'game_mode',
    'regions',
    'region',
    'latencies_ms',
    'tags',
    'max_players',
    'prevent_auto_create_lobby',
  ],
  ...['publicity', 'lobby_id', 'party', 'version_id', 'role'],
]
/** Characters of JSON; a longer body is not shown. */
const ASKED_LENGTH_MAX = 8_192
/** Seats of a namespace that are kept in one second. */
const SAMPLED_SEATS_MAX = 1
/** Refusals of a namespace that are kept in one second. */
const REFUSALS_MAX = 20
/** Beyond it all counts begin anew. */
const NAMESPACES_MAX = 10_000

/** What is logged of the request itself. */
export type LoggedRequest = { ray_id: string; operation: string; body: object; namespace_id: string }

type Budget = { second: number; seats: number; refusals: number }
type RequiredChecks = { captcha: boolean; verification: boolean }

/** Opens a log for each request, and counts how many are kept. */
export class DecisionLogs {
  readonly #clocks: Pick<Context, 'now' | 'elapsed'>
  readonly #store: Pick<ExplanationStore, 'keep'>
  readonly #budgets = new Map<string, Budget>()

  constructor(clocks: Pick<Context, 'now' | 'elapsed'>, store: Pick<ExplanationStore, 'keep'>) {
    this.#clocks = clocks
    this.#store = store
  }

  open(request: LoggedRequest): DecisionLog {
    const is_sampled = this.#budgetOf(request.namespace_id).seats++ < SAMPLED_SEATS_MAX
    return new DecisionLog(request, is_sampled, this.#clocks.now(), this)
  }

  /** Whether the namespace may keep another refusal in this second. */
  mayKeepRefusal(namespace_id: string): boolean {
    return this.#budgetOf(namespace_id).refusals < REFUSALS_MAX
  }

  countRefusal(namespace_id: string): void {
    this.#budgetOf(namespace_id).refusals++
  }

  keep(...[row]: Parameters<ExplanationStore['keep']>): void {
    this.#store.keep(row)
  }

  #budgetOf(namespace_id: string): Budget {
    const second = Math.floor(this.#clocks.elapsed() / 1_000)
    let budget = this.#budgets.get(namespace_id)
    if (budget === undefined) {
      if (this.#budgets.size >= NAMESPACES_MAX) this.#budgets.clear()
      budget = { second, seats: 0, refusals: 0 }
      this.#budgets.set(namespace_id, budget)
    } else if (budget.second !== second) Object.assign(budget, { second, seats: 0, refusals: 0 })
    return budget
  }
}

/** The log of one request. */
export class DecisionLog {
  readonly #request: LoggedRequest
  readonly #is_sampled: boolean
  readonly #create_ms: number
  readonly #logs: DecisionLogs
  readonly #start = performance.now()
  readonly #attempts: Attempt[] = []
  readonly #waits: Wait[] = []
  #match_wait: MatchWait | null = null
  #required: RequiredChecks | null = null
  #is_not_asked = false

  constructor(request: LoggedRequest, is_sampled: boolean, create_ms: number, logs: DecisionLogs) {
    this.#request = request
    this.#is_sampled = is_sampled
    this.#create_ms = create_ms
    this.#logs = logs
  }

  /** To be called in the step that decides, before its changes are applied. */
  record(book: Book, decided: Decided): void {
    if (!this.#is_sampled && !('refused' in decided.decision)) return
    if (this.#attempts.length >= ATTEMPTS_MAX || !this.#logs.mayKeepRefusal(this.#request.namespace_id)) return
    this.#attempts.push({ offset: microsecondsSince(this.#start), ...explainDecision(book, decided) })
  }

  /** What the version requires of the request before it gives a seat. */
  recordChecks(required: RequiredChecks): void {
    this.#required = required
  }

  /** The game's endpoint is not asked, because it keeps failing. */
  recordNotAsked(): void {
    this.#is_not_asked = true
  }

  /** A wait for the lobby to become ready. `since`: its beginning, by performance.now(). */
  recordWait(lobby_id: string, end: WaitEnd, since: number): void {
    if (this.#waits.length < ATTEMPTS_MAX) this.#waits.push({ lobby_id, end, duration: microsecondsSince(since) })
  }

  /** The last check of the queue, for a request that ends without a match. */
  recordMatchWait(match_wait: MatchWait | null): void {
    this.#match_wait = match_wait
  }

  /** The end of the request. `code`: of the error that it gets; null: it gets a seat. */
  end(code: string | null): void {
    if (code === null) {
      if (this.#is_sampled) this.#keep(null)
      return
    }
    const { namespace_id } = this.#request
    const may_keep = this.#logs.mayKeepRefusal(namespace_id)
    this.#logs.countRefusal(namespace_id)
    if (may_keep) this.#keep(code)
  }

  #keep(code: string | null): void {
    const { ray_id, operation, namespace_id, body } = this.#request
    const explanation: Pick<Explanation, 'asked' | 'attempts' | 'waits' | 'match_wait'> & Checks = {
      asked: shownMembers(body),
      ...this.#checksOf(code),
      attempts: this.#attempts,
      waits: this.#waits,
      ...(this.#match_wait !== null && { match_wait: this.#match_wait }),
    }
    this.#logs.keep({
      ray_id,
      namespace_id,
      operation,
      create_ms: this.#create_ms,
      duration_us: microsecondsSince(this.#start),
      code,
      explanation: JSON.stringify(explanation),
    })
  }

  /** Captchas are checked first: a refused captcha keeps a request from everything that comes after it. */
  #checksOf(code: string | null): Checks {
    const is_captcha = code?.startsWith('CAPTCHA_') === true
    if (this.#required === null) return is_captcha ? { captcha: 'refused' } : {}
    const captcha = is_captcha ? 'refused' : this.#required.captcha ? 'passed' : 'none'
    if (!this.#required.verification) return { captcha, verification: 'none' }
    if (code?.startsWith('MATCHMAKER_VERIFICATION_') === true) {
      return { captcha, verification: this.#is_not_asked ? 'not_asked' : 'refused' }
    }
    // After a refusal by the book the code does not say whether the game was asked before.
    return code === null ? { captcha, verification: 'passed' } : { captcha }
  }
}

type Checks = Pick<Explanation, 'captcha' | 'verification'>

function microsecondsSince(start: number): number {
  return Math.round((performance.now() - start) * 1_000)
}

function shownMembers(body: object): Record<string, unknown> {
  const shown = Object.fromEntries(Object.entries(body).filter(([name]) => SHOWN_MEMBERS.includes(name)))
  return JSON.stringify(shown).length > ASKED_LENGTH_MAX ? {} : shown
}
