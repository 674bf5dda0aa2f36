// What a find brings for the rules of its game mode: attributes, acceptable regions with their latencies, and a plan of a lobby
// in each.
import {
  ApiError,
  type Attributes,
  type AttributeValue,
  type BodyOf,
  type ErrorDetail,
  type findLobby,
  type GameModeConfig,
  validationError,
} from '@musterhost/contract'
import type { Latencies, MatchRules } from '@musterhost/contract/matching'
import type { Coordinates } from '../../../addresses/ip-intelligence.ts'
import type { LobbyPlan } from '../../book/commands.ts'
import type { LobbyKey } from '../../book/open-lobbies.ts'
import type { NamespaceRecord } from '../../watch/namespaces.ts'
import type { MatchmakerContext } from '../context.ts'
import { planOf, regionsOf, requireRegion, withFailures } from '../lobby-plan.ts'
import { byDistance } from '../nearest.ts'
import type { Requester } from '../requester.ts'

/** How long a call waits for a match. Without a key the rest of its time is for the start of the lobby. */
const WAIT_MS = 50_000
const WAIT_MS_WITHOUT_KEY = 30_000
/** An estimate of a round trip: the way through networks, and the light in the fibre of a route that is not straight. */
const LATENCY_BASE_MS = 10
const KILOMETERS_PER_MS = 50

type FindBody = BodyOf<typeof findLobby>

export type MatchingRequest = {
  game_mode: string
  rules: MatchRules
  plans: readonly LobbyPlan[]
  /** Acceptable regions, the best first. */
  regions: readonly string[]
  latencies: Latencies | null
  /** From the request. The game's verification and stored ratings add theirs. */
  attributes: Attributes
  member_attributes: Readonly<Record<string, Attributes>>
  wait_ms: number
}

/** Null: no game mode of the request has rules. Throws VALIDATION_ERROR. */
export function matchingRequest(
  ctx: MatchmakerContext,
  namespace: NamespaceRecord,
  requester: Requester,
  body: FindBody,
  names: readonly string[],
  keys: readonly LobbyKey[],
  client: Coordinates | null,
): MatchingRequest | null {
  const mode = modeWithRules(namespace, names)
  if (mode === null) {
    if (body.attributes !== undefined || body.member_attributes !== undefined) throw withoutRules(body)
    return null
  }
  const rules = mode.matching!
  if (new Set(names).size > 1) {
    const message = `The game mode ${mode.name} has rules for its matches, so a request names it alone.`
    throw validationError([{ path: ['game_modes'], reason: 'conflicts', message }])
  }
  if (body.max_players !== undefined) {
    const message = `The game mode ${mode.name} has rules for its matches, which say the number of players. Leave max_players out.`
    throw validationError([{ path: ['max_players'], reason: 'not_allowed', message }])
  }
  requireAttributes(rules, body, requester.is_backend)
  const { regions, latencies } = regionsFor(ctx, mode, rules, body, keys, client)
  const ray_id = requester.ray?.ray_id ?? null
  return {
    game_mode: mode.name,
    rules,
    plans: body.prevent_auto_create_lobby
      ? []
      : regions.map((name) =>
          withFailures(ctx, requester, planOf(namespace, mode, requireRegion(ctx.config, name), body, ray_id)),
        ),
    regions,
    latencies,
    attributes: body.attributes ?? {},
    member_attributes: body.member_attributes ?? {},
    wait_ms: body.wait_ms ?? (requester.idempotency_key === null ? WAIT_MS_WITHOUT_KEY : WAIT_MS),
  }
}

/** Faults of attributes at that path. `is_trusted`: the game says them. */
export function checkAttributes(
  rules: MatchRules,
  attributes: Attributes,
  is_trusted: boolean,
  path: readonly string[],
): ErrorDetail[] {
  return Object.entries(attributes).flatMap(([name, value]) => checkAttribute(rules, name, value, is_trusted, path))
}

/** A find without rules pays for this loop only. */
function modeWithRules({ game_modes }: NamespaceRecord, names: readonly string[]): GameModeConfig | null {
  for (const name of names) {
    const mode = game_modes.get(name)!
    if (mode.matching !== null) return mode
  }
  return null
}

function withoutRules({ attributes, member_attributes }: FindBody): ApiError {
  const given = Object.entries({ attributes, member_attributes }).filter(([, value]) => value !== undefined)
  return validationError(
    given.map(([name]) => ({
      path: [name],
      reason: 'not_allowed',
      message: `No game mode of the request has rules for its matches. Leave ${name} out, or add matching to the game mode.`,
    })),
  )
}

function requireAttributes(rules: MatchRules, body: FindBody, is_backend: boolean): void {
  const given: [readonly string[], Attributes][] = [
    [['attributes'], body.attributes ?? {}],
    ...Object.entries(body.member_attributes ?? {}).map(([id, attributes]): [string[], Attributes] => [
      ['member_attributes', id],
      attributes,
    ]),
  ]
  const errors = given.flatMap(([path, attributes]) => checkAttributes(rules, attributes, is_backend, path))
  if (body.member_attributes !== undefined && body.party !== true) {
    const message = 'member_attributes are those of a party. Set party, or leave them out.'
    errors.push({ path: ['member_attributes'], reason: 'not_allowed', message })
  }
  if (errors.length > 0) throw validationError(errors)
}

function checkAttribute(
  { rules, sources }: MatchRules,
  name: string,
  value: AttributeValue,
  is_trusted: boolean,
  at: readonly string[],
): ErrorDetail[] {
  const path = [...at, name]
  const source = sources[name]
  if (source === undefined) {
    const known = Object.keys(sources).join(', ') || 'none'
    const message = `The game mode knows no attribute ${name}. It knows: ${known}.`
    return [{ path, reason: 'not_found', message }]
  }
  if (source === 'rating') {
    const message = `The value of ${name} is the stored rating. Leave it out.`
    return [{ path, reason: 'not_allowed', message }]
  }
  if (source === 'game' && !is_trusted) {
    const message = `A page may not say ${name}: its source is the game. The verification endpoint or the backend says it; or set \`from: player\` in the version config.`
    return [{ path, reason: 'not_allowed', message }]
  }
  const kinds = new Set(rules.flatMap((rule) => ('attribute' in rule && rule.attribute === name ? [rule.kind] : [])))
  const expected = kinds.has('share') ? 'list' : kinds.has('same') ? null : 'number'
  const is_right =
    expected === null || kinds.size === 0 || (expected === 'list' ? Array.isArray(value) : typeof value === 'number')
  if (is_right) return []
  const what = expected === 'list' ? 'a list of texts' : 'a number'
  return [{ path, reason: 'invalid', message: `A rule of the game mode needs ${name} as ${what}.` }]
}

/** With a `ping` rule every region of the game mode is acceptable, unless the request names some. */
function regionsFor(
  ctx: MatchmakerContext,
  mode: GameModeConfig,
  { rules }: MatchRules,
  body: FindBody,
  keys: readonly LobbyKey[],
  client: Coordinates | null,
): Pick<MatchingRequest, 'regions' | 'latencies'> {
  const asked = keys.map(({ region }) => region)
  if (!rules.some(({ kind }) => kind === 'ping')) return { regions: asked, latencies: null }
  const regions = regionsOf(ctx.config, [mode]).filter(({ name }) => body.regions === undefined || asked.includes(name))
  if (regions.length === 0) throw new ApiError('MATCHMAKER_AUTO_CREATE_FAILED')
  const known = byDistance(regions, client).flatMap(({ region: { name }, kilometers }): [string, number][] => {
    const measured_ms = body.latencies_ms?.[name]
    if (measured_ms !== undefined) return [[name, measured_ms]]
    return client === null ? [] : [[name, Math.round(LATENCY_BASE_MS + kilometers / KILOMETERS_PER_MS)]]
  })
  const latencies = Object.fromEntries(known)
  const best_first = regions.map(({ name }) => name).sort((a, b) => (latencies[a] ?? 0) - (latencies[b] ?? 0))
  return { regions: best_first, latencies: known.length === 0 ? null : latencies }
}
