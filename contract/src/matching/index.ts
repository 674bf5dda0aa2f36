// The search for players who fit together, by the rules of a game mode. Pure: the matchmaker and `muster matching try` share it.
export { type Candidate, isEarlier, type Latencies, type RuleValue, valuesOf } from './candidate.ts'
export {
  type CandidateGroup,
  groupOf,
  REFUSED_BY_REGION,
  REFUSED_BY_SIZE,
  refusal,
  regionsOf,
  withMember,
} from './group.ts'
export { type PlayedMatch, playMatches } from './play.ts'
export {
  type AttributeSource,
  attributesOf,
  type LimitSteps,
  limitAt,
  type MatchRule,
  type MatchRules,
  matchRulesOf,
  nextStep,
  type RuleKind,
  type TeamRule,
} from './rules.ts'
export { CANDIDATES_MAX, findMatch, type Match, type SearchCounts } from './search.ts'
export { type TakenTeams, teamIn } from './teams.ts'
