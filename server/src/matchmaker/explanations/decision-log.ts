// The tale of one request for a seat: what was decided and what was waited for, noted while it happens. Every refusal is
// told, within a bound for each namespace, and a few of the seats; all other requests pay for a look at a counter.
import { ApiError, type Attempt, type Explanation, type Wait } from '@muster/contract'
import type { Context } from '../../context.ts'
import type { Book } from '../book/state.ts'
import type { WaitEnd } from '../shards/books.ts'
import { type Decided, explainDecision } from './explain.ts'
import type { Rays } from './store.ts'

const ATTEMPTS_MAX = 8
/** What a body may say of its wish; all else in it is the player's own. */
const WISHED = [
  ...['game_modes', 'game_mode', 'regions', 'region', 'tags', 'max_players', 'prevent_auto_create_lobby'],
  ...['publicity', 'lobby_id', 'party'],
]
const ASKED_LENGTH_MAX = 8_192
/** Of a namespace in one second. */
const SEATS_TOLD_MAX = 1
const REFUSALS_TOLD_MAX = 20
const NAMESPACES_MAX = 10_000

export type DecisionLog = {
  /** To be called in the step that decides, before its changes are made. */
  decided: (book: Book, decided: Decided) => void
  /** What the version asks of a request before it gives a seat. */
  checked: (by: { captcha: boolean; verification: boolean }) => void
  /** The game's endpoint is not asked: it keeps failing. */
  leftAlone: () => void
  waited: (lobby_id: string, end: WaitEnd, since: number) => void
}

/** A request, as it is told of. */
export type Told = { ray_id: string; operation: string; body: object }

/** Who asks, as far as a tale knows him (visitor.ts). */
type Asking = { readonly namespace_id: string; tale: DecisionLog | null }

export type DecisionRecorder = {
  /** Does what the request asks for, with its tale at `visitor.tale`. */
  tell: <T>(request: Told, visitor: Asking, take: () => Promise<T>) => Promise<T>
}

type Budget = { second: number; seats: number; refusals: number }

export function createDecisionRecorder(
  { now, elapsed }: Pick<Context, 'now' | 'elapsed'>,
  rays: Rays,
): DecisionRecorder {
  const budgets = new Map<string, Budget>()

  function budgetOf(namespace_id: string): Budget {
    const second = Math.floor(elapsed() / 1_000)
    let budget = budgets.get(namespace_id)
    if (budget === undefined) {
      if (budgets.size >= NAMESPACES_MAX) budgets.clear()
      budget = { second, seats: 0, refusals: 0 }
      budgets.set(namespace_id, budget)
    } else if (budget.second !== second) Object.assign(budget, { second, seats: 0, refusals: 0 })
    return budget
  }

  async function tell<T>(request: Told, visitor: Asking, take: () => Promise<T>): Promise<T> {
    const budget = budgetOf(visitor.namespace_id)
    const is_sampled = budget.seats++ < SEATS_TOLD_MAX
    const start = performance.now()
    const create_ms = now()
    const attempts: Attempt[] = []
    const waits: Wait[] = []
    let by: { captcha: boolean; verification: boolean } | null = null
    let is_left_alone = false
    const since = (from: number): number => Math.round((performance.now() - from) * 1_000)

    visitor.tale = {
      decided(book, decided) {
        if (!is_sampled && !('refused' in decided.decision)) return
        if (attempts.length >= ATTEMPTS_MAX || budgetOf(visitor.namespace_id).refusals >= REFUSALS_TOLD_MAX) return
        attempts.push({ offset: since(start), ...explainDecision(book, decided) })
      },
      checked(asked) {
        by = asked
      },
      leftAlone() {
        is_left_alone = true
      },
      waited(lobby_id, end, from) {
        if (waits.length < ATTEMPTS_MAX) waits.push({ lobby_id, end, duration: since(from) })
      },
    }

    function keep(code: string | null): void {
      const checks = by === null ? {} : checksOf({ ...by, is_left_alone }, code)
      const told: Omit<
        Explanation,
        'ray_id' | 'create_ts' | 'operation' | 'namespace_id' | 'duration' | 'code' | 'lobbies'
      > = { asked: askedOf(request.body), ...refusedCheck(code), ...checks, attempts, waits }
      const { ray_id, operation } = request
      const { namespace_id } = visitor
      const explanation = JSON.stringify(told)
      rays.keep({ ray_id, namespace_id, operation, create_ms, duration_us: since(start), code, explanation })
    }

    try {
      const answer = await take()
      if (is_sampled) keep(null)
      return answer
    } catch (error) {
      if (budgetOf(visitor.namespace_id).refusals++ < REFUSALS_TOLD_MAX) {
        keep(error instanceof ApiError ? error.code : 'INTERNAL_ERROR')
      }
      throw error
    }
  }

  return { tell }
}

const isCaptcha = (code: string | null): boolean => code?.startsWith('CAPTCHA_') === true
const isVerification = (code: string | null): boolean => code?.startsWith('MATCHMAKER_VERIFICATION_') === true

type Checks = Pick<Explanation, 'captcha' | 'verification'>

/** Captchas are looked at first: one that is refused keeps a request from all that comes after it. */
function refusedCheck(code: string | null): Checks {
  return isCaptcha(code) ? { captcha: 'refused' } : {}
}

function checksOf(
  by: { captcha: boolean; verification: boolean; is_left_alone: boolean },
  code: string | null,
): Checks {
  const captcha = isCaptcha(code) ? 'refused' : by.captcha ? 'passed' : 'none'
  if (!by.verification) return { captcha, verification: 'none' }
  if (isVerification(code)) return { captcha, verification: by.is_left_alone ? 'not_asked' : 'refused' }
  // Refused by the book: whether the game was asked before cannot be told from the code.
  return code === null ? { captcha, verification: 'passed' } : { captcha }
}

function askedOf(body: object): Record<string, unknown> {
  const asked = Object.fromEntries(Object.entries(body).filter(([name]) => WISHED.includes(name)))
  return JSON.stringify(asked).length > ASKED_LENGTH_MAX ? {} : asked
}
