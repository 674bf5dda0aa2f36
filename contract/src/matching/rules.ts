// The rules of a game mode in the form in which the search uses them: durations in milliseconds, and each limit as the list of
// its steps.
import type { AttributeValue, MatchingConfig, RuleConfig } from '../matching-config.ts'

/** The limit that holds from each time of waiting on, in order; the first from 0. */
export type LimitSteps = readonly (readonly [after_ms: number, limit: number])[]

type RuleShape =
  | { kind: 'same'; attribute: string }
  | { kind: 'near'; attribute: string; steps: LimitSteps; party: 'average' | 'least' | 'greatest' }
  | { kind: 'share'; attribute: string; steps: LimitSteps }
  | { kind: 'sum'; attribute: string; least: number; most: number }
  | { kind: 'ping'; steps: LimitSteps }
  | { kind: 'balance'; attribute: string; steps: LimitSteps }
  | { kind: 'even_teams'; steps: LimitSteps }

/** `optional_ms`: time of waiting from which the rule refuses nothing; infinity: never. */
export type MatchRule = RuleShape & { optional_ms: number; weight: number }
export type RuleKind = MatchRule['kind']

export type TeamRule = { name: string; min: number; max: number }

export type AttributeSource = 'game' | 'player' | 'rating'

/** `step_times_ms`: the times of waiting at which any limit changes, in order. */
export type MatchRules = {
  players_min: number
  players_max: number
  teams: readonly TeamRule[]
  rules: readonly MatchRule[]
  sources: Readonly<Record<string, AttributeSource>>
  defaults: Readonly<Record<string, AttributeValue>>
  start_after_ms: number
  fills_open_lobbies: boolean
  step_times_ms: readonly number[]
}

/** `max_players`: of the game mode. The config has passed checkMatching(). */
export function matchRulesOf(config: MatchingConfig, max_players: number): MatchRules {
  const teams = config.teams ?? []
  const rules = (config.rules ?? []).map(ruleOf)
  const [least, most] =
    teams.length === 0
      ? [max_players, max_players]
      : [sumOf(teams.map(({ min }) => min)), sumOf(teams.map(({ max }) => max))]
  const start_after_ms = secondsIn(config.start_after_s)
  return {
    players_min: config.size?.min ?? Math.max(1, least),
    players_max: config.size?.max ?? most,
    teams,
    rules,
    sources: Object.fromEntries(
      attributesOf(config).map((name) => [name, config.attributes?.[name]?.from ?? 'game'] as const),
    ),
    defaults: Object.fromEntries(
      Object.entries(config.attributes ?? {}).flatMap(([name, { default: value }]) =>
        value === undefined ? [] : [[name, value] as const],
      ),
    ),
    start_after_ms,
    fills_open_lobbies: config.fill_open_lobbies ?? true,
    step_times_ms: stepTimes(rules, start_after_ms),
  }
}

/** The attributes that a game mode knows: those of its rules, and those that `attributes` names. */
export function attributesOf({ rules = [], attributes = {} }: MatchingConfig): string[] {
  const of_rules = rules.flatMap(({ same, near, share, sum, balance }) => same ?? near ?? share ?? sum ?? balance ?? [])
  return [...new Set([...of_rules, ...Object.keys(attributes)])]
}

/** The limit for players of which the last came `age_ms` ago. */
export function limitAt(steps: LimitSteps, age_ms: number): number {
  let limit = steps[0]![1]
  for (const [after_ms, value] of steps) {
    if (after_ms > age_ms) break
    limit = value
  }
  return limit
}

/** The next time of waiting after `age_ms` at which a limit changes; null: none does. */
export function nextStep({ step_times_ms }: MatchRules, age_ms: number): number | null {
  for (const time_ms of step_times_ms) if (time_ms > age_ms) return time_ms
  return null
}

function ruleOf(rule: RuleConfig): MatchRule {
  return { ...shapeOf(rule), optional_ms: secondsIn(rule.optional_after_s), weight: rule.weight ?? 1 }
}

function shapeOf(rule: RuleConfig): RuleShape {
  const { within = 0, at_least = 1, between = [0, Number.POSITIVE_INFINITY] } = rule
  if (rule.same !== undefined) return { kind: 'same', attribute: rule.same }
  if (rule.near !== undefined) {
    const party = rule.party ?? 'average'
    return { kind: 'near', attribute: rule.near, steps: stepsOf(within, rule.widen, 1), party }
  }
  if (rule.share !== undefined) {
    return { kind: 'share', attribute: rule.share, steps: stepsOf(at_least, rule.widen, -1) }
  }
  if (rule.sum !== undefined) return { kind: 'sum', attribute: rule.sum, least: between[0]!, most: between[1]! }
  if (rule.ping !== undefined) return { kind: 'ping', steps: stepsOf(within, rule.widen, 1) }
  if (rule.balance !== undefined) {
    return { kind: 'balance', attribute: rule.balance, steps: stepsOf(within, rule.widen, 1) }
  }
  return { kind: 'even_teams', steps: stepsOf(rule.even_teams ?? 0, rule.widen, 1) }
}

/** `direction` -1: a lower limit admits more. */
function stepsOf(first: number, widen: RuleConfig['widen'], direction: 1 | -1): LimitSteps {
  const steps: [number, number][] = [[0, first]]
  if (widen === undefined) return steps
  const count = stepCount(first, widen)
  for (let step = 1; step <= count; step++) {
    const limit = first + direction * step * widen.by
    const last = direction === 1 ? Math.min(limit, widen.to) : Math.max(limit, widen.to)
    steps.push([step * widen.every_s * 1_000, last])
  }
  return steps
}

/** How many steps a limit takes to its last one. */
export function stepCount(first: number, { by, to }: NonNullable<RuleConfig['widen']>): number {
  return Math.ceil(Math.abs(to - first) / by)
}

function stepTimes(rules: readonly MatchRule[], start_after_ms: number): number[] {
  const times = new Set([start_after_ms])
  for (const rule of rules) {
    times.add(rule.optional_ms)
    if ('steps' in rule) for (const [after_ms] of rule.steps) times.add(after_ms)
  }
  return [...times].filter((time_ms) => time_ms > 0 && Number.isFinite(time_ms)).sort((a, b) => a - b)
}

function secondsIn(seconds: number | undefined): number {
  return seconds === undefined ? Number.POSITIVE_INFINITY : seconds * 1_000
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}
