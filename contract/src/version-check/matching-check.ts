// Whether the rules of a game mode fit together: each rule has the members that its kind needs, and a match can have the players
// that it asks for.
import type { ErrorDetail } from '../errors.ts'
import type { GameModeConfig } from '../game-modes.ts'
import { attributesOf, stepCount } from '../matching/rules.ts'
import {
  ATTRIBUTES_MAX,
  MATCH_PLAYERS_MAX,
  type MatchingConfig,
  type RuleConfig,
  STEPS_MAX,
} from '../matching-config.ts'

const KINDS = ['same', 'near', 'share', 'sum', 'ping', 'balance', 'even_teams'] as const
type Kind = (typeof KINDS)[number]

/** The members of each kind, beside its own name, `optional_after_s` and `weight`. */
const MEMBERS: Record<Kind, { needed: readonly (keyof RuleConfig)[]; allowed: readonly (keyof RuleConfig)[] }> = {
  same: { needed: [], allowed: [] },
  near: { needed: ['within'], allowed: ['widen', 'party'] },
  share: { needed: [], allowed: ['at_least', 'widen'] },
  sum: { needed: ['between'], allowed: [] },
  ping: { needed: ['within'], allowed: ['widen'] },
  balance: { needed: ['within'], allowed: ['widen'] },
  even_teams: { needed: [], allowed: ['widen'] },
}
const DEPENDENT = ['within', 'at_least', 'between', 'party', 'widen'] as const

/** `path` is that of `matching`. */
export function checkMatching(
  mode: GameModeConfig,
  matching: MatchingConfig | undefined,
  path: readonly string[],
): ErrorDetail[] {
  if (matching === undefined || mode.matching === null) return []
  const errors = (matching.rules ?? []).flatMap((rule, index) =>
    checkRule(rule, matching, [...path, 'rules', String(index)]),
  )
  errors.push(...checkSize(mode, matching, path), ...checkTeams(matching, path))
  const count = attributesOf(matching).length
  if (count > ATTRIBUTES_MAX) {
    const message = `The rules name ${count} attributes; at most ${ATTRIBUTES_MAX} are possible.`
    errors.push({ path: [...path, 'rules'], reason: 'too_many', message })
  }
  return errors
}

function checkRule(rule: RuleConfig, { teams }: MatchingConfig, path: readonly string[]): ErrorDetail[] {
  const kinds = KINDS.filter((kind) => rule[kind] !== undefined)
  const [kind] = kinds
  if (kind === undefined || kinds.length > 1) {
    const has = kinds.length === 0 ? 'none' : kinds.join(' and ')
    const message = `A rule has exactly one of ${KINDS.join(', ')}. This one has ${has}.`
    return [{ path: [...path], reason: kinds.length === 0 ? 'required' : 'conflicts', message }]
  }
  const { needed, allowed } = MEMBERS[kind]
  const errors: ErrorDetail[] = []
  for (const name of needed) {
    if (rule[name] !== undefined) continue
    errors.push({ path: [...path, name], reason: 'required', message: `A rule with ${kind} needs ${name}.` })
  }
  for (const name of DEPENDENT) {
    if (rule[name] === undefined || needed.includes(name) || allowed.includes(name)) continue
    const message = `${name} has no meaning in a rule with ${kind}. Leave it out.`
    errors.push({ path: [...path, name], reason: 'not_allowed', message })
  }
  if ((kind === 'balance' || kind === 'even_teams') && teams === undefined) {
    const message = `A rule with ${kind} compares teams, and the game mode has no teams. Add teams, or leave the rule out.`
    errors.push({ path: [...path, kind], reason: 'needs_teams', message })
  }
  if (rule.between !== undefined && rule.between[0]! > rule.between[1]!) {
    const message = 'The first number of between is the least sum; it is above the greatest.'
    errors.push({ path: [...path, 'between'], reason: 'too_high', message })
  }
  return errors.concat(checkWidening(kind, rule, path))
}

/** A limit moves towards `to`: up, or down for `share`. */
function checkWidening(kind: Kind, rule: RuleConfig, path: readonly string[]): ErrorDetail[] {
  if (rule.widen === undefined) return []
  const { widen } = rule
  const first = kind === 'share' ? (rule.at_least ?? 1) : kind === 'even_teams' ? rule.even_teams! : (rule.within ?? 0)
  const is_backwards = kind === 'share' ? widen.to > first : widen.to < first
  if (is_backwards) {
    const message = `widen.to would refuse more with time: it is ${widen.to}, and the rule begins with ${first}.`
    return [{ path: [...path, 'widen', 'to'], reason: 'conflicts', message }]
  }
  if (stepCount(first, widen) <= STEPS_MAX) return []
  const message = `The limit reaches ${widen.to} after more than ${STEPS_MAX} steps. Take a greater \`by\`.`
  return [{ path: [...path, 'widen', 'by'], reason: 'too_low', message }]
}

function checkSize(
  { max_players_normal, max_players_party, matching: rules }: GameModeConfig,
  matching: MatchingConfig,
  path: readonly string[],
): ErrorDetail[] {
  const { players_min, players_max } = rules!
  const at = [...path, matching.size === undefined && matching.teams !== undefined ? 'teams' : 'size']
  if (players_max > MATCH_PLAYERS_MAX) {
    const message = `A match has at most ${MATCH_PLAYERS_MAX} players, and this one would have ${players_max}. Set size.`
    return [{ path: at, reason: 'too_high', message }]
  }
  if (players_min > players_max) {
    const message = `A match begins with ${players_max} players, so its minimum cannot be ${players_min}.`
    return [{ path: at, reason: 'too_high', message }]
  }
  const room = Math.min(max_players_normal, max_players_party)
  if (players_max > room) {
    const message = `A match has ${players_max} players, and a lobby of the game mode takes ${room}. Raise max_players, or lower the size.`
    return [{ path: at, reason: 'too_high', message }]
  }
  return []
}

function checkTeams({ teams, size }: MatchingConfig, path: readonly string[]): ErrorDetail[] {
  if (teams === undefined) return []
  const errors: ErrorDetail[] = []
  for (const [index, { name, min, max }] of teams.entries()) {
    const at = [...path, 'teams', String(index)]
    if (min > max) {
      const message = `The team ${name} takes ${max} players, so its minimum cannot be ${min}.`
      errors.push({ path: [...at, 'min'], reason: 'too_high', message })
    }
    if (teams.findIndex((team) => team.name === name) < index) {
      errors.push({ path: [...at, 'name'], reason: 'taken', message: `There are two teams named ${name}.` })
    }
  }
  const room = teams.reduce((sum, { max }) => sum + max, 0)
  if (size !== undefined && size.max > room) {
    const message = `The teams take ${room} players together, so a match cannot have ${size.max}.`
    errors.push({ path: [...path, 'size', 'max'], reason: 'too_high', message })
  }
  return errors
}
