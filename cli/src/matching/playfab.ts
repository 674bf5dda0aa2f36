// Matchmaking queues of PlayFab, in both forms that its pages have: one list `Rules` whose entries have a `Type`, and a list for
// each type.
import {
  type Imported,
  type ImportedMatching,
  isJson,
  isName,
  type Json,
  type LimitStep,
  Losses,
  listOf,
  type MatchingRule,
  requireSizes,
  wideningOf,
} from './result.ts'

type Placed = { type: string; rule: Json; path: string }
/** `of`: the member that an expansion changes. `overrides`: the list of its values in a custom expansion. */
type Converted = { rule: MatchingRule; of?: 'within' | 'at_least' | 'even_teams'; overrides?: string }
type Kind = { members: readonly string[]; convert: (rule: Json, attribute: string) => Converted | null }

/** Lists of one type of rule, and rules that a queue has once. */
const LISTS: Readonly<Record<string, string>> = {
  StringEqualityRules: 'StringEqualityRule',
  DifferenceRules: 'DifferenceRule',
  SetIntersectionRules: 'SetIntersectionRule',
  MatchTotalRules: 'MatchTotalRule',
  TeamDifferenceRules: 'TeamDifferenceRule',
  RegionSelectionRule: 'RegionSelectionRule',
  TeamSizeBalanceRule: 'TeamSizeBalanceRule',
  TeamTicketSizeSimilarityRule: 'TeamTicketSizeSimilarityRule',
}
const OF_ATTRIBUTE = ['Attribute', 'AttributeNotSpecifiedBehavior', 'DefaultAttributeValue']
const OF_ALL = ['Name', 'Type', 'Weight', 'SecondsUntilOptional']
const EXPANSIONS = ['LinearExpansion', 'CustomExpansion']
const PARTY: Readonly<Record<string, MatchingRule['party']>> = { Min: 'least', Max: 'greatest' }

const KINDS: Readonly<Record<string, Kind>> = {
  StringEqualityRule: { members: OF_ATTRIBUTE, convert: (_, same) => ({ rule: { same } }) },
  DifferenceRule: {
    members: [...OF_ATTRIBUTE, ...EXPANSIONS, 'Difference', 'MergeFunction'],
    convert: ({ Difference, MergeFunction }, near) => {
      const party = PARTY[String(MergeFunction)]
      if (typeof Difference !== 'number') return null
      const rule = { near, within: Difference, ...(party === undefined ? {} : { party }) }
      return { rule, of: 'within', overrides: 'DifferenceOverrides' }
    },
  },
  SetIntersectionRule: {
    members: [...OF_ATTRIBUTE, ...EXPANSIONS, 'MinIntersectionSize'],
    convert: ({ MinIntersectionSize: at_least }, share) =>
      typeof at_least === 'number'
        ? { rule: { share, at_least }, of: 'at_least', overrides: 'MinIntersectionSizeOverrides' }
        : null,
  },
  MatchTotalRule: {
    members: [...OF_ATTRIBUTE, 'Min', 'Max'],
    convert: ({ Min, Max }, sum) =>
      typeof Min === 'number' && typeof Max === 'number' ? { rule: { sum, between: [Min, Max] } } : null,
  },
  TeamDifferenceRule: {
    members: [...OF_ATTRIBUTE, ...EXPANSIONS, 'Difference'],
    convert: ({ Difference: within }, balance) =>
      typeof within === 'number' ? { rule: { balance, within }, of: 'within', overrides: 'DifferenceOverrides' } : null,
  },
  RegionSelectionRule: {
    members: [...EXPANSIONS, 'MaxLatency', 'Path'],
    convert: ({ MaxLatency: within }) =>
      typeof within === 'number'
        ? { rule: { ping: 'region', within }, of: 'within', overrides: 'MaxLatencyOverrides' }
        : null,
  },
  TeamSizeBalanceRule: {
    members: [...EXPANSIONS, 'Difference'],
    convert: ({ Difference: even_teams }) =>
      typeof even_teams === 'number'
        ? { rule: { even_teams }, of: 'even_teams', overrides: 'DifferenceOverrides' }
        : null,
  },
}
/** What a queue says about other things than who plays together. */
const OF_QUEUE = ['Name', 'MinMatchSize', 'MaxMatchSize', 'Rules', 'Teams', ...Object.keys(LISTS)]

export function importPlayFab(file: Json): Imported {
  const losses = new Losses()
  const queue = isJson(file.MatchmakingQueue) ? file.MatchmakingQueue : file
  losses.others(queue, '', OF_QUEUE)
  const attributes: NonNullable<ImportedMatching['attributes']> = {}
  const rules = placedRules(queue).flatMap((placed) => ruleOf(placed, attributes, losses) ?? [])
  const teams = teamsOf(queue, losses)
  const { MinMatchSize: min, MaxMatchSize: max } = queue
  const matching: ImportedMatching = {
    ...(typeof min === 'number' && typeof max === 'number' ? { size: { min, max } } : {}),
    ...(teams.length === 0 ? {} : { teams }),
    ...(Object.keys(attributes).length === 0 ? {} : { attributes }),
    rules,
  }
  requireSizes(matching, losses)
  return { matching, losses: losses.all }
}

function placedRules(queue: Json): Placed[] {
  const listed = listOf(queue.Rules).flatMap((rule, index): Placed[] =>
    isJson(rule) ? [{ type: String(rule.Type), rule, path: `Rules[${index}]` }] : [],
  )
  const typed = Object.entries(LISTS).flatMap(([name, type]): Placed[] => {
    const value = queue[name]
    if (isJson(value)) return [{ type, rule: value, path: name }]
    return listOf(value).flatMap((rule, index) => (isJson(rule) ? [{ type, rule, path: `${name}[${index}]` }] : []))
  })
  return [...listed, ...typed]
}

function teamsOf(queue: Json, losses: Losses): NonNullable<ImportedMatching['teams']> {
  return listOf(queue.Teams).flatMap((team, index) => {
    const path = `Teams[${index}]`
    if (!isJson(team)) return []
    losses.others(team, path, ['Name', 'MinTeamSize', 'MaxTeamSize'])
    const { Name: name, MinTeamSize: min, MaxTeamSize: max } = team
    if (!isName(name, `${path}.Name`, losses)) return []
    if (typeof min === 'number' && typeof max === 'number') return [{ name, min, max }]
    losses.add(path, 'The sizes of the team are no numbers.')
    return []
  })
}

function ruleOf(
  { type, rule, path }: Placed,
  attributes: NonNullable<ImportedMatching['attributes']>,
  losses: Losses,
): MatchingRule | null {
  const kind = Object.hasOwn(KINDS, type) ? KINDS[type] : undefined
  if (kind === undefined) {
    losses.add(path, `A ${type} has no equal.`)
    return null
  }
  losses.others(rule, path, [...OF_ALL, ...kind.members])
  const has_attribute = kind.members.includes('Attribute')
  const name = has_attribute && isJson(rule.Attribute) ? rule.Attribute.Path : ''
  if (has_attribute && !isName(name, `${path}.Attribute.Path`, losses)) return null
  const made = kind.convert(rule, String(name))
  if (made === null) {
    losses.add(path, `The ${type} lacks a number that it needs.`)
    return null
  }
  if (has_attribute) noteAttribute(rule, String(name), attributes)
  widen(rule, path, made, losses)
  const { Weight: weight, SecondsUntilOptional: optional_after_s } = rule
  return {
    ...made.rule,
    ...(typeof optional_after_s === 'number' ? { optional_after_s } : {}),
    ...(typeof weight === 'number' && weight !== 1 ? { weight } : {}),
  }
}

/** An attribute of the user comes with the ticket, so its player may say it. That of a player entity is the game's own. */
function noteAttribute(rule: Json, name: string, attributes: NonNullable<ImportedMatching['attributes']>): void {
  const is_of_player = isJson(rule.Attribute) && rule.Attribute.Source === 'User'
  const { AttributeNotSpecifiedBehavior: behavior, DefaultAttributeValue: value } = rule
  const has_default = behavior !== 'MatchAny' && value !== undefined && value !== null
  if (!is_of_player && !has_default) return
  attributes[name] = {
    ...attributes[name],
    ...(is_of_player ? { from: 'player' as const } : {}),
    ...(has_default ? { default: value } : {}),
  }
}

function widen(rule: Json, path: string, { rule: made, of, overrides = '' }: Converted, losses: Losses): void {
  if (of === undefined) return
  const first = made[of] ?? 0
  const { LinearExpansion: linear, CustomExpansion: custom } = rule
  if (isJson(linear)) {
    const { Delta: by, Limit: to, SecondsBetweenExpansions: every_s } = linear
    losses.others(linear, `${path}.LinearExpansion`, ['Delta', 'Limit', 'SecondsBetweenExpansions'])
    if (typeof by === 'number' && typeof to === 'number' && typeof every_s === 'number' && Number.isInteger(every_s)) {
      made.widen = { every_s, by, to }
    } else {
      losses.add(`${path}.LinearExpansion`, 'An expansion needs Delta, Limit and whole SecondsBetweenExpansions.')
    }
  }
  if (!isJson(custom)) return
  losses.others(custom, `${path}.CustomExpansion`, [overrides, 'SecondsBetweenExpansions'])
  const seconds = custom.SecondsBetweenExpansions
  const values = listOf(custom[overrides]).map((entry) => (isJson(entry) ? entry.Value : entry))
  const isNumbers = values.every((value) => typeof value === 'number') && typeof seconds === 'number'
  const steps = isNumbers
    ? values.map((value, index): LimitStep => ({ at_s: (index + 1) * Number(seconds), value: Number(value) }))
    : []
  const widening = wideningOf(first, steps)
  if (widening === null)
    losses.add(
      `${path}.CustomExpansion`,
      'Values that change by different steps, or that switch the rule off, have no equal.',
    )
  else made.widen = widening
}
