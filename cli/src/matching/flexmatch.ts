// Rule sets of FlexMatch: teams, rules and their expansions. Expressions are recognized by their text, in the forms that its
// guide uses; every other form has no equal.
import {
  type Imported,
  type ImportedMatching,
  isJson,
  isName,
  type Json,
  join,
  type LimitStep,
  Losses,
  listOf,
  type MatchingRule,
  requireSizes,
  wideningOf,
} from './result.ts'

const ATTRIBUTE = '\\.players\\.attributes\\[(\\w+)\\]'
/** Values of all players, one by one. */
const ALL_VALUES = new RegExp(`^(?:flatten\\(teams\\[\\*\\]${ATTRIBUTE}\\)|teams\\[\\*\\]${ATTRIBUTE})$`)
const AVERAGES_OF_TEAMS = new RegExp(`^avg\\(teams\\[\\*\\]${ATTRIBUTE}\\)$`)
const AVERAGE_OF_ALL = new RegExp(`^avg\\(flatten\\(teams\\[\\*\\]${ATTRIBUTE}\\)\\)$`)
const AVERAGE_OF_TEAM = new RegExp(`^avg\\(teams\\[([\\w-]+)\\]${ATTRIBUTE}\\)$`)
const COUNT_OF_TEAM = /^count\(teams\[([\w-]+)\]\.players\)$/
const PARTY: Readonly<Record<string, MatchingRule['party']>> = { min: 'least', max: 'greatest' }
/** The greatest number of a sum: no greatest one. */
const NUMBER_MAX = 1_000_000_000

/** `rule`: of ours. `limit`: the member there that an expansion widens, and the factor between the two limits. */
type Converted = { rule: MatchingRule; limit?: { name: string; factor: number; of: 'within' | 'at_least' } }
type Convert = (
  rule: Json,
  path: string,
  teams: NonNullable<ImportedMatching['teams']>,
  losses: Losses,
) => Converted | null

const CONVERTERS: Readonly<Record<string, Convert>> = {
  comparison: comparisonRule,
  distance: distanceRule,
  batchDistance: batchDistanceRule,
  collection: collectionRule,
  latency: latencyRule,
}
const HINTS: Readonly<Record<string, string>> = {
  compound: 'Conditions that are joined by and, or, not and xor have no equal. All rules hold together.',
  distanceSort: 'An order of candidates has no equal. A rule with a `weight` prefers near values.',
  absoluteSort: 'An order of candidates has no equal. A rule with a `weight` prefers near values.',
}

export function importFlexMatch(file: Json): Imported {
  const losses = new Losses()
  losses.others(file, '', [
    'name',
    'ruleLanguageVersion',
    'playerAttributes',
    'algorithm',
    'teams',
    'rules',
    'expansions',
  ])
  const teams = teamsOf(file, losses)
  const attributes = attributesOf(file, losses)
  loseAlgorithm(file.algorithm, losses)
  const rules = rulesOf(file, teams, losses)
  const matching: ImportedMatching = {
    ...(teams.length === 0 ? {} : { teams }),
    ...(Object.keys(attributes).length === 0 ? {} : { attributes }),
    rules,
  }
  requireSizes(matching, losses)
  return { matching, losses: losses.all }
}

function teamsOf(file: Json, losses: Losses): NonNullable<ImportedMatching['teams']> {
  return listOf(file.teams).flatMap((team, index) => {
    const path = `teams[${index}]`
    if (!isJson(team)) return []
    losses.others(team, path, ['name', 'minPlayers', 'maxPlayers', 'quantity'])
    const { name, minPlayers: min = 0, maxPlayers: max = 0, quantity = 1 } = team as Record<string, unknown>
    if (!isName(name, `${path}.name`, losses)) return []
    if (typeof min !== 'number' || typeof max !== 'number' || typeof quantity !== 'number') {
      losses.add(path, 'The numbers of players are no numbers.')
      return []
    }
    if (quantity === 1) return [{ name, min, max }]
    const count = Math.min(quantity, NUMBER_OF_TEAMS_MAX)
    if (count < quantity) losses.add(`${path}.quantity`, `There are at most ${NUMBER_OF_TEAMS_MAX} teams.`)
    return Array.from({ length: count }, (_, number) => ({ name: `${name}_${number + 1}`, min, max }))
  })
}

/** Copies of a team. */
const NUMBER_OF_TEAMS_MAX = 100

/** An attribute without a default needs no entry: the backend that requests the match says its value, here as there. */
function attributesOf(file: Json, losses: Losses): NonNullable<ImportedMatching['attributes']> {
  const entries = listOf(file.playerAttributes).flatMap((attribute, index) => {
    const path = `playerAttributes[${index}]`
    if (!isJson(attribute)) return []
    losses.others(attribute, path, ['name', 'type', 'default'])
    const { name, type, default: value } = attribute
    if (!isName(name, `${path}.name`, losses)) return []
    if (type === 'string_number_map') {
      losses.add(`${path}.type`, 'A map of numbers has no equal. Use an attribute for each number.')
      return []
    }
    return value === undefined ? [] : [[name, { default: value }] as const]
  })
  return Object.fromEntries(entries)
}

/** What the platform does anyway is no loss. */
function loseAlgorithm(algorithm: unknown, losses: Losses): void {
  if (!isJson(algorithm)) return
  const same: Json = { strategy: 'exhaustiveSearch', expansionAgeSelection: 'newest', backfillPriority: 'high' }
  for (const [name, value] of Object.entries(algorithm)) {
    if (same[name] === value) continue
    losses.add(
      `algorithm.${name}`,
      'A choice of the algorithm has no equal: the one who waits longest is matched first.',
    )
  }
}

function rulesOf(file: Json, teams: NonNullable<ImportedMatching['teams']>, losses: Losses): MatchingRule[] {
  const converted = new Map<string, Converted>()
  const rules: MatchingRule[] = []
  for (const [index, rule] of listOf(file.rules).entries()) {
    const path = `rules[${index}]`
    if (!isJson(rule)) continue
    const type = String(rule.type)
    const convert = Object.hasOwn(CONVERTERS, type) ? CONVERTERS[type] : undefined
    if (convert === undefined) {
      losses.add(path, (Object.hasOwn(HINTS, type) && HINTS[type]) || `A rule of the type ${type} has no equal.`)
      continue
    }
    const made = convert(rule, path, teams, losses)
    if (made === null) continue
    rules.push(made.rule)
    converted.set(String(rule.name), made)
  }
  for (const [index, expansion] of listOf(file.expansions).entries()) {
    if (isJson(expansion)) widen(expansion, `expansions[${index}]`, converted, losses)
  }
  return rules
}

/** `rules[NAME].maxDistance`, with absolute times. */
function widen(expansion: Json, path: string, converted: ReadonlyMap<string, Converted>, losses: Losses): void {
  losses.others(expansion, path, ['target', 'steps'])
  const [, name = '', member] = /^rules\[(.+)\]\.(\w+)$/.exec(String(expansion.target)) ?? []
  const made = converted.get(name)
  if (made?.limit === undefined || made.limit.name !== member) {
    losses.add(`${path}.target`, `An expansion of ${String(expansion.target)} has no equal.`)
    return
  }
  const { factor, of } = made.limit
  const steps = listOf(expansion.steps).flatMap((step): LimitStep[] => {
    if (!isJson(step) || typeof step.waitTimeSeconds !== 'number' || typeof step.value !== 'number') return []
    return [{ at_s: step.waitTimeSeconds, value: step.value * factor }]
  })
  const widening = wideningOf(made.rule[of] ?? 0, steps)
  if (widening === null)
    losses.add(
      `${path}.steps`,
      'Steps of different lengths or heights have no equal. A limit widens by the same each time.',
    )
  else made.rule.widen = widening
}

/** The one text of `measurements`. */
function measured(rule: Json): string {
  const { measurements } = rule
  const texts = Array.isArray(measurements) ? measurements : [measurements]
  return texts.length === 1 ? plain(texts[0]) : ''
}

function plain(text: unknown): string {
  return typeof text === 'string' ? text.replaceAll(/[\s"']/g, '') : ''
}

function attributeIn(pattern: RegExp, text: string): string | null {
  return (
    pattern
      .exec(text)
      ?.slice(1)
      .findLast((part) => part !== undefined) ?? null
  )
}

function comparisonRule(
  rule: Json,
  path: string,
  teams: NonNullable<ImportedMatching['teams']>,
  losses: Losses,
): Converted | null {
  losses.others(rule, path, ['name', 'description', 'type', 'measurements', 'referenceValue', 'operation'])
  const attribute = attributeIn(ALL_VALUES, measured(rule))
  if (rule.operation === '=' && rule.referenceValue === undefined && attribute !== null)
    return { rule: { same: attribute } }
  const [one, other] = [COUNT_OF_TEAM.exec(measured(rule)), COUNT_OF_TEAM.exec(plain(rule.referenceValue))]
  if (rule.operation === '=' && one !== null && other !== null && one[1] !== other[1] && teams.length === 2) {
    return { rule: { even_teams: 0 } }
  }
  losses.add(
    path,
    'A comparison has an equal only as "all players have the same value" and as "two teams have the same size".',
  )
  return null
}

function distanceRule(
  rule: Json,
  path: string,
  teams: NonNullable<ImportedMatching['teams']>,
  losses: Losses,
): Converted | null {
  losses.others(rule, path, ['name', 'description', 'type', 'measurements', 'referenceValue', 'maxDistance'])
  const { maxDistance } = rule
  const [text, reference] = [measured(rule), plain(rule.referenceValue)]
  if (typeof maxDistance === 'number' && teams.length === 2) {
    const limit = (factor: number) => ({ name: 'maxDistance', factor, of: 'within' }) as const
    const balanced = attributeIn(AVERAGES_OF_TEAMS, text)
    // Two averages at most d from the average of all players are at most 2d apart.
    if (balanced !== null && balanced === attributeIn(AVERAGE_OF_ALL, reference)) {
      if (teams[0]!.min !== teams[0]!.max || teams[1]!.min !== teams[1]!.max || teams[0]!.max !== teams[1]!.max) {
        losses.add(
          path,
          'Imported as `balance` within twice the distance, which is the same only for teams of equal size.',
        )
      }
      return { rule: { balance: balanced, within: 2 * maxDistance }, limit: limit(2) }
    }
    const [one, other] = [AVERAGE_OF_TEAM.exec(text), AVERAGE_OF_TEAM.exec(reference)]
    if (one !== null && other !== null && one[1] !== other[1] && one[2] === other[2]) {
      return { rule: { balance: one[2]!, within: maxDistance }, limit: limit(1) }
    }
  }
  losses.add(
    path,
    'A distance has an equal only between the averages of two teams. `near` limits the difference between players.',
  )
  return null
}

function batchDistanceRule(rule: Json, path: string, _teams: unknown, losses: Losses): Converted | null {
  losses.others(rule, path, ['name', 'description', 'type', 'batchAttribute', 'maxDistance', 'partyAggregation'])
  const { batchAttribute, maxDistance } = rule
  if (!isName(batchAttribute, `${path}.batchAttribute`, losses)) return null
  // A batch distance without a number is of texts: they must be equal.
  if (typeof maxDistance !== 'number') return { rule: { same: batchAttribute } }
  const party = PARTY[String(rule.partyAggregation)]
  return {
    rule: { near: batchAttribute, within: maxDistance, ...(party === undefined ? {} : { party }) },
    limit: { name: 'maxDistance', factor: 1, of: 'within' },
  }
}

function collectionRule(rule: Json, path: string, _teams: unknown, losses: Losses): Converted | null {
  losses.others(rule, path, [
    'name',
    'description',
    'type',
    'measurements',
    'referenceValue',
    'operation',
    'minCount',
    'maxCount',
  ])
  const { operation, minCount, maxCount, referenceValue } = rule
  const attribute = attributeIn(ALL_VALUES, measured(rule))
  if (attribute !== null && operation === 'intersection' && maxCount === undefined && referenceValue === undefined) {
    const at_least = typeof minCount === 'number' ? minCount : 1
    return { rule: { share: attribute, at_least }, limit: { name: 'minCount', factor: 1, of: 'at_least' } }
  }
  if (attribute !== null && operation === 'contains' && typeof referenceValue === 'string') {
    if (!isName(referenceValue, join(path, 'referenceValue'), losses)) return null
    const [least, greatest] = [
      typeof minCount === 'number' ? minCount : 0,
      typeof maxCount === 'number' ? maxCount : NUMBER_MAX,
    ]
    losses.add(
      path,
      `Imported as a sum: players send the number attribute \`${referenceValue}\`, 1 or 0, where they sent "${referenceValue}" in \`${attribute}\`.`,
    )
    return { rule: { sum: referenceValue, between: [least, greatest] } }
  }
  losses.add(
    path,
    'A collection has an equal only as an intersection over all players, and as the number of players with a text.',
  )
  return null
}

function latencyRule(rule: Json, path: string, _teams: unknown, losses: Losses): Converted | null {
  losses.others(rule, path, ['name', 'description', 'type', 'maxLatency'])
  if (typeof rule.maxLatency !== 'number') {
    losses.add(path, 'A latency has an equal only with `maxLatency`.')
    return null
  }
  return {
    rule: { ping: 'region', within: rule.maxLatency },
    limit: { name: 'maxLatency', factor: 1, of: 'within' },
  }
}
