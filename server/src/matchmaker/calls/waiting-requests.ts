// The requests of a namespace that wait for a match, for its developers. It costs a find nothing: the tickets are read when
// someone asks, and what each of them waits for is computed one at a time, so that finds run in between.
import { setImmediate } from 'node:timers/promises'
import {
  ApiError,
  type listWaitingRequests,
  type QueryOf,
  type ResponseOf,
  WAITING_REQUESTS_MAX,
  type WaitingGameMode,
  type WaitingRequest,
} from '@musterhost/contract'
import type { MatchRules, RuleValue } from '@musterhost/contract/matching'
import { progressOf } from '../book/matching/find-match.ts'
import type { MatchableTicket } from '../book/matching/queue.ts'
import { countWaiting, oldestWaiting, type WaitingCounts } from '../book/matching/waiting.ts'
import type { MatchmakerContext } from '../seats/context.ts'
import { matchWaitOf, ruleName } from '../seats/matching/match-wait.ts'

const NONE: WaitingCounts = { ticket_count: 0, player_count: 0, away_count: 0, oldest: null }

/** Throws NAMESPACE_NOT_FOUND. */
export async function waitingRequests(
  ctx: MatchmakerContext,
  { game_id, namespace_id }: { game_id: string; namespace_id: string },
  { game_mode, limit = WAITING_REQUESTS_MAX }: QueryOf<typeof listWaitingRequests>,
): Promise<ResponseOf<typeof listWaitingRequests>> {
  const namespace = await ctx.namespaces.get(namespace_id)
  if (namespace.game_id !== game_id) throw new ApiError('NAMESPACE_NOT_FOUND')
  ctx.books.requireHere(namespace_id)
  const rules = new Map<string, MatchRules>()
  for (const { name, matching } of namespace.game_modes.values()) if (matching !== null) rules.set(name, matching)
  if (rules.size === 0 && ctx.books.book(namespace_id) === undefined) return { game_modes: [], requests: [] }
  // As part of a command, so that all that was read is durable.
  const { counts, oldest } = await ctx.books.commit(namespace_id, ({ matching }) => ({
    changes: [],
    result: { counts: countWaiting(matching), oldest: oldestWaiting(matching, game_mode ?? null, limit) },
  }))
  for (const [name, { oldest: one }] of counts) if (one?.terms && !rules.has(name)) rules.set(name, one.terms.rules)
  const game_modes = [...rules]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, of_mode]) => gameModeOf(ctx, namespace_id, name, of_mode, counts.get(name) ?? NONE))
  return { game_modes, requests: await explained(ctx, namespace_id, oldest) }
}

function gameModeOf(
  ctx: MatchmakerContext,
  namespace_id: string,
  game_mode: string,
  { players_min, players_max }: MatchRules,
  { ticket_count, player_count, away_count, oldest }: WaitingCounts,
): WaitingGameMode {
  const now_ms = ctx.books.nowMs()
  const usual_wait_ms = ctx.recent_waits.median(namespace_id, game_mode, now_ms)
  return {
    game_mode,
    requests: ticket_count,
    players: player_count,
    away_requests: away_count,
    ...(oldest !== null && { oldest_wait_ms: Math.max(0, now_ms - oldest.create_ms) }),
    ...(usual_wait_ms !== null && { usual_wait_ms }),
    players_min,
    players_max,
  }
}

/** Leaves out what has ended meanwhile. */
async function explained(
  ctx: MatchmakerContext,
  namespace_id: string,
  tickets: readonly MatchableTicket[],
): Promise<WaitingRequest[]> {
  const requests: WaitingRequest[] = []
  for (const ticket of tickets) {
    const request = requestOf(ctx, namespace_id, ticket)
    if (request !== null) requests.push(request)
    await setImmediate()
  }
  return requests
}

function requestOf(ctx: MatchmakerContext, namespace_id: string, ticket: MatchableTicket): WaitingRequest | null {
  const { player_id, game_mode, create_ms, players, candidate, terms, regions, latencies, tags } = ticket
  const book = ctx.books.book(namespace_id)
  const progress = book === undefined ? null : progressOf(book, player_id, ctx.books.nowMs())
  if (progress === null || terms === null) return null
  const { waited_ms, players_waiting, players_missing, candidates, refused_by } = matchWaitOf(
    terms.rules,
    progress,
    null,
  )
  return {
    player_id,
    game_mode,
    create_ts: new Date(create_ms).toISOString(),
    waited_ms,
    player_count: players.length,
    ...{ players_waiting, players_missing, candidates, refused_by },
    values: valuesOf(terms.rules, candidate.values),
    regions: [...regions],
    ...(latencies !== null && { latencies_ms: { ...latencies } }),
    ...(Object.keys(tags).length > 0 && { tags: { ...tags } }),
  }
}

function valuesOf({ rules }: MatchRules, values: readonly RuleValue[]): WaitingRequest['values'] {
  return values.flatMap((value, index) => {
    if (value === null) return []
    const shown = typeof value === 'object' ? [...value].sort() : value
    return [{ rule: ruleName(rules[index]!), value: shown }]
  })
}
