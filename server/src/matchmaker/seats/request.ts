// A call for a seat, checked against the namespace's current version and made into a request that the book can decide.
// Reads no lobbies, except that a join looks up the game mode of its lobby.
import {
  ApiError,
  type BodyOf,
  type CaptchaConfig,
  type createLobby,
  type findLobby,
  type GameModeConfig,
  type joinLobby,
  type SeatAction,
  validationError,
} from '@musterhost/contract'
import type { AddressFacts, Coordinates } from '../../addresses/ip-intelligence.ts'
import type { Config } from '../../config/config.ts'
import { gameModeId } from '../../ids.ts'
import { isExactNumber } from '../../text/exact-json.ts'
import type {
  AllocateRequest,
  CreateRequest,
  FindRequest,
  JoinRequest,
  LobbyPlan,
  RequestedSeat,
} from '../book/commands.ts'
import type { Tags } from '../book/open-lobbies.ts'
import type { DecisionLog } from '../explanations/decision-log.ts'
import type { GameModes, NamespaceRecord } from '../watch/namespaces.ts'
import type { MatchmakerContext } from './context.ts'
import { joinedLobbyId, newLobbyCode } from './lobby-codes.ts'
import { planOf, regionsOf, requireRegion, runsIn, withFailures } from './lobby-plan.ts'
import { type MatchingRequest, matchingRequest } from './matching/matching-request.ts'
import { bestRegion, latenciesOf, type MeasuredLatencies, type Whereabouts } from './regions.ts'
import { type Requester, seatKeyOf } from './requester.ts'
import { isForSpectator, requireSpectators } from './spectators.ts'
import type { RequestWords } from './verification/payload.ts'
import { type PinnedRecord, pinnedRecord, recordWith, requireOutdatedSeat, requireSameVersion } from './version-pin.ts'

/** A find whose lobby ends while it starts chooses again, within its deadline. */
export const FIND_ATTEMPTS_MAX = 3
/** Tags of one request. */
const TAGS_MAX = 8
/** Longest name of a tag, in UTF-8. */
const TAG_NAME_BYTES_MAX = 128
/** Longest value of a tag, in UTF-8. */
const TAG_VALUE_BYTES_MAX = 512
/** Longest `lobby_config`, as JSON text. */
const LOBBY_CONFIG_BYTES_MAX = 16 * 1024
/** Longest `verification_data`, as JSON text. */
const VERIFICATION_DATA_BYTES_MAX = 16 * 1024
/** Nested levels of `verification_data`. */
const VERIFICATION_DATA_DEPTH_MAX = 32

type FindBody = BodyOf<typeof findLobby>
type JoinBody = BodyOf<typeof joinLobby>
type CreateBody = BodyOf<typeof createLobby>

/** The client's limits. They are added when the decision is made: what is known of an address may change before. */
export type RequestLimits = Pick<RequestedSeat, 'client_players_max' | 'party'>
type WithoutLimits<W extends RequestedSeat> = Omit<W, keyof RequestLimits>

/** What the book is asked. `is_known`: the lobby existed when its game mode was looked up. */
export type RequestedAction =
  | { action: 'find'; request: WithoutLimits<FindRequest>; verified_modes: ReadonlySet<string> }
  | { action: 'join'; request: WithoutLimits<JoinRequest>; is_known: boolean }
  | { action: 'create'; request: WithoutLimits<CreateRequest> }
  | { action: 'allocate'; request: WithoutLimits<AllocateRequest> }

export type SeatRequest = {
  requester: Requester
  log: DecisionLog
  asked: RequestedAction
  with_party: boolean
  /** What the client measured to regions, by their names; null: nothing. */
  latencies_ms: MeasuredLatencies
  /** Lobbies that may be tried. */
  attempts_max: number
  /** Null: the game mode has no rules. */
  matching: MatchingRequest | null
  /** Null: the version has no captcha, or the game's backend asks. */
  captcha: CaptchaConfig | null
  captcha_responses: FindBody['captcha']
  /** What the game's endpoint is asked with; null: no game mode of the request is verified. */
  verification: { words: RequestWords; coordinates: Coordinates | null } | null
}

/** Throws the refusals of find that do not depend on lobbies. */
export async function findRequest(
  ctx: MatchmakerContext,
  requester: Requester,
  log: DecisionLog,
  body: FindBody,
): Promise<SeatRequest> {
  const namespace = await pinnedRecord(ctx, requester, 'find', body)
  const names = resolveGameModes(namespace, body.game_modes)
  requireIdentity(
    requester,
    'find',
    names.map((name) => namespace.game_modes.get(name)),
  )
  const facts = await factsOf(ctx, requester)
  const from = { coordinates: facts.coordinates, latencies_ms: latenciesOf(body) }
  const request = {
    ...keysAndPlan(ctx, namespace, requester, { ...body, game_modes: names }, from),
    ...requestedSeat(namespace, requester, 'find', body),
  }
  requireSmallData(body.verification_data)
  const verified_modes = verifiedModes(namespace.game_modes, names)
  // Neither a spectator nor a find for an earlier version waits for a match.
  const matching =
    namespace.replaced_by === undefined && !request.is_spectator
      ? matchingRequest(ctx, namespace, requester, body, names, request.keys, facts.coordinates)
      : null
  const captcha = requiredCaptcha(namespace, requester)
  if (captcha !== null || verified_modes.size > 0) requireOutdatedSeat(ctx, requester, request, body.party === true)
  return {
    requester,
    log,
    asked: { action: 'find', request, verified_modes },
    with_party: body.party === true,
    latencies_ms: from.latencies_ms,
    attempts_max: FIND_ATTEMPTS_MAX,
    matching,
    captcha,
    captcha_responses: body.captcha,
    verification: verified_modes.size === 0 ? null : { words: body, coordinates: facts.coordinates },
  }
}

/** Throws the refusals of join that do not depend on the lobby's seats. A lobby that does not exist is refused by the book. */
export async function joinRequest(
  ctx: MatchmakerContext,
  requester: Requester,
  log: DecisionLog,
  body: JoinBody,
): Promise<SeatRequest> {
  const { verification_data } = body
  const namespace = await ctx.namespaces.get(requester.namespace_id)
  const lobby_id = joinedLobbyId(ctx, requester, body)
  const lobby = ctx.books.lobby(namespace.namespace_id, lobby_id)
  if (body.version_id !== undefined && lobby) await requireSameVersion(ctx, requester, lobby, body.version_id)
  const mode = lobby && (await ctx.namespaces.gameModes(lobby.version_id)).get(lobby.game_mode)
  requireIdentity(requester, 'join', [mode])
  if (mode?.join_enabled === false) throw new ApiError('MATCHMAKER_JOIN_DISABLED')
  const facts = await factsOf(ctx, requester)
  const of_lobby = (lobby && recordWith(namespace, lobby.version_id)) ?? namespace
  const request = { lobby_id, ...requestedSeat(namespace, requester, 'join', body) }
  if (request.is_spectator) requireSpectators([mode])
  requireSmallData(verification_data)
  return {
    requester,
    log,
    asked: { action: 'join', request, is_known: lobby !== undefined },
    with_party: body.party === true,
    latencies_ms: null,
    attempts_max: 1,
    matching: null,
    captcha: requiredCaptcha(of_lobby, requester),
    captcha_responses: body.captcha,
    verification: mode?.verification.join
      ? { words: { verification_data, role: body.role }, coordinates: facts.coordinates }
      : null,
  }
}

/** Throws the refusals of create that do not depend on lobbies. */
export async function createRequest(
  ctx: MatchmakerContext,
  requester: Requester,
  log: DecisionLog,
  body: CreateBody,
): Promise<SeatRequest> {
  const namespace = await pinnedRecord(ctx, requester, 'create', body)
  const game_mode = resolveGameModes(namespace, [body.game_mode])[0]!
  const mode = namespace.game_modes.get(game_mode)
  requireIdentity(requester, 'create', [mode])
  const facts = await factsOf(ctx, requester)
  const from = { coordinates: facts.coordinates, latencies_ms: latenciesOf(body) }
  const custom = customPlan(ctx.config, namespace, requester, { ...body, game_mode }, from)
  const plan = body.with_code === true ? { ...custom, code: newLobbyCode(ctx, namespace.namespace_id) } : custom
  const request = {
    plan: withFailures(ctx, requester, plan),
    ...requestedSeat(namespace, requester, 'create', body),
  }
  requireSmallData(body.verification_data)
  return {
    requester,
    log,
    asked: { action: 'create', request },
    with_party: body.party === true,
    latencies_ms: from.latencies_ms,
    attempts_max: 1,
    matching: null,
    captcha: requiredCaptcha(namespace, requester),
    captcha_responses: body.captcha,
    verification: mode?.verification.create ? { words: body, coordinates: facts.coordinates } : null,
  }
}

function requiredCaptcha({ captcha }: NamespaceRecord, { is_backend }: Requester): CaptchaConfig | null {
  return is_backend ? null : captcha
}

/** What is known of the player's address. A request that comes before any data were read waits a little for them. */
export async function factsOf({ ip_intelligence }: MatchmakerContext, { client_ip }: Requester): Promise<AddressFacts> {
  await ip_intelligence.opening()
  return ip_intelligence.factsOf(client_ip)
}

/** Throws MATCHMAKER_IDENTITY_REQUIRED, and VALIDATION_ERROR for a spectator's request with a member for players only. */
function requestedSeat(
  { lobby_count_max, replaced_by }: PinnedRecord,
  requester: Requester,
  action: SeatAction,
  body: Pick<FindBody, 'party' | 'role' | 'attributes' | 'member_attributes'>,
): WithoutLimits<RequestedSeat> {
  const { client_key, identity_id } = requester
  const is_spectator = isForSpectator(body)
  const with_party = body.party === true
  if (with_party && identity_id === null) throw new ApiError('MATCHMAKER_IDENTITY_REQUIRED')
  return {
    client_key,
    seat_key: seatKeyOf(requester, action, with_party),
    lobby_count_max,
    identity_id,
    replaced_by,
    is_spectator,
  }
}

/** Game modes are given by name or by id. Returns names; anything that is neither stays as it is. */
export function resolveGameModes(
  { game_id, game_modes }: NamespaceRecord,
  given: readonly string[],
): readonly string[] {
  if (given.every((name) => game_modes.has(name))) return given
  const by_id = new Map([...game_modes.keys()].map((name) => [gameModeId(game_id, name), name]))
  return given.map((name) => (game_modes.has(name) ? name : (by_id.get(name) ?? name)))
}

/**
 * Throws MATCHMAKER_IDENTITY_REQUIRED or MATCHMAKER_REGISTRATION_REQUIRED: the strictest of the game modes decides. A
 * game's backend vouches for its players: no identity is required of it.
 */
function requireIdentity(
  { identity_id, is_backend }: Requester,
  action: SeatAction,
  modes: readonly (GameModeConfig | undefined)[],
): void {
  if (is_backend) return
  const required = new Set(modes.map((mode) => mode?.identity_requirement[action] ?? 'none'))
  if (identity_id === null && (required.has('guest') || required.has('registered'))) {
    throw new ApiError('MATCHMAKER_IDENTITY_REQUIRED')
  }
  // Every identity is a guest's.
  if (required.has('registered')) throw new ApiError('MATCHMAKER_REGISTRATION_REQUIRED')
}

/** The game modes whose endpoint is asked before a find gives a seat. */
function verifiedModes(modes: GameModes, names: readonly string[]): ReadonlySet<string> {
  const verified = new Set<string>()
  for (const name of names) if (modes.get(name)?.verification.find) verified.add(name)
  return verified
}

/** The keys of lobbies that a find may get, and the lobby that may be created for it. */
function keysAndPlan(
  ctx: MatchmakerContext,
  namespace: PinnedRecord,
  requester: Requester,
  body: Omit<FindBody, 'game_modes'> & { game_modes: readonly string[] },
  from: Whereabouts,
): Pick<FindRequest, 'keys' | 'tags' | 'plan'> {
  const { config } = ctx
  if (body.game_modes.length === 0) throw new ApiError('MATCHMAKER_NO_GAME_MODE_PROVIDED')
  const modes = [...new Set(body.game_modes)].map((name) => requireMode(namespace, name))
  for (const mode of modes) {
    if (!mode.find_enabled) throw new ApiError('MATCHMAKER_FIND_DISABLED', { game_mode: mode.name })
    requireDynamicMaxPlayers(mode, body.max_players)
  }
  const is_spectator = body.role === 'spectator'
  if (is_spectator) requireSpectators(modes)
  const tags = checkTags(modes, body.tags)
  const preferred = is_spectator ? regionsOf(config, modes) : undefined
  const regions = body.regions?.map((name) => requireRegion(config, name)) ??
    preferred ?? [bestRegion(config, modes, from)]
  const keys = modes.flatMap((mode) =>
    regions
      .filter((region) => runsIn(mode, region))
      .map((region) => ({ version_id: namespace.version_id, region: region.name, game_mode: mode.name })),
  )
  const first = keys[0]
  if (first === undefined) throw new ApiError('MATCHMAKER_AUTO_CREATE_FAILED')
  if (namespace.replaced_by !== undefined) {
    // Lobbies whose players match by rules are not filled without these. Rules do not choose spectators.
    const isFilled = ({ matching }: GameModeConfig) =>
      namespace.fill_outdated_lobbies && (matching === null || is_spectator)
    return { keys: keys.filter(({ game_mode }) => isFilled(requireMode(namespace, game_mode))), tags, plan: null }
  }
  if (body.prevent_auto_create_lobby || is_spectator) return { keys: keys, tags, plan: null }
  const mode = requireMode(namespace, first.game_mode)
  const ray_id = requester.ray?.ray_id ?? null
  const plan = planOf(namespace, mode, requireRegion(config, first.region), body, ray_id)
  return { keys: keys, tags, plan: withFailures(ctx, requester, plan) }
}

/** The custom lobby that a create asks for. */
function customPlan(
  config: Config,
  namespace: NamespaceRecord,
  { identity_id, ray }: Requester,
  body: CreateBody,
  from: Whereabouts,
): LobbyPlan {
  const mode = requireMode(namespace, body.game_mode)
  if (mode.create === null) throw new ApiError('MATCHMAKER_CUSTOM_LOBBIES_DISABLED')
  const publicity = body.publicity ?? (mode.create.enable_public ? 'public' : 'private')
  if (!(publicity === 'public' ? mode.create.enable_public : mode.create.enable_private)) {
    throw new ApiError(
      'MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID',
      { publicity },
      { message: `The game mode does not allow ${publicity} custom lobbies.` },
    )
  }
  requireDynamicMaxPlayers(mode, body.max_players)
  checkTags([mode], body.tags)
  const lobby_config = lobbyConfigText(body.lobby_config)
  const region = body.region === undefined ? bestRegion(config, [mode], from) : requireRegion(config, body.region)
  if (!runsIn(mode, region)) throw new ApiError('MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE')
  const plan = planOf(namespace, mode, region, body, ray?.ray_id ?? null)
  const creator = {
    creator_identity_id: identity_id,
    creator_lobbies_max: identity_id === null ? null : mode.create.max_lobbies_per_identity,
  }
  return { ...plan, ...creator, publicity, is_custom: true, lobby_config }
}

/** Throws MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID when it is too large. */
export function lobbyConfigText(lobby_config: unknown): string | null {
  const text = lobby_config === undefined ? null : JSON.stringify(lobby_config)
  if (text === null || Buffer.byteLength(text) <= LOBBY_CONFIG_BYTES_MAX) return text
  const message = `lobby_config is larger than ${LOBBY_CONFIG_BYTES_MAX} bytes.`
  throw new ApiError('MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID', { bytes_max: LOBBY_CONFIG_BYTES_MAX }, { message })
}

export function requireMode(namespace: NamespaceRecord, name: string): GameModeConfig {
  const mode = namespace.game_modes.get(name)
  if (mode === undefined) throw new ApiError('MATCHMAKER_GAME_MODE_NOT_FOUND', { game_mode: name })
  return mode
}

export function requireDynamicMaxPlayers(mode: GameModeConfig, max_players: number | undefined): void {
  if (max_players === undefined) return
  if (!mode.allow_dynamic_max_players) throw new ApiError('MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED')
  const allowed = Math.max(mode.max_players_normal, mode.max_players_direct)
  if (max_players > allowed) {
    throw new ApiError('MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID', { max_players, allowed })
  }
}

export function checkTags(modes: readonly GameModeConfig[], tags: Record<string, string> | undefined): Tags {
  const pairs = Object.entries(tags ?? {})
  if (pairs.length === 0) return pairs
  if (pairs.length > TAGS_MAX) throw new ApiError('MATCHMAKER_TOO_MANY_TAGS', { tags_max: TAGS_MAX })
  for (const [name, value] of pairs) {
    if (Buffer.byteLength(name) > TAG_NAME_BYTES_MAX) {
      throw new ApiError('MATCHMAKER_TAG_NAME_TOO_LONG', { bytes_max: TAG_NAME_BYTES_MAX })
    }
    if (Buffer.byteLength(value) > TAG_VALUE_BYTES_MAX) {
      throw new ApiError('MATCHMAKER_TAG_TOO_LONG', { tag: name, bytes_max: TAG_VALUE_BYTES_MAX })
    }
  }
  if (!modes.every((mode) => mode.taggable)) throw new ApiError('MATCHMAKER_TAGS_DISABLED')
  return pairs
}

/** Throws VALIDATION_ERROR when `verification_data` is too large or too deep. Its numbers keep all digits. */
function requireSmallData(verification_data: unknown): void {
  if (verification_data === undefined) return
  const errorOf = (reason: string, message: string) =>
    validationError([{ path: ['verification_data'], reason, message }])
  if (isDeeperThan(VERIFICATION_DATA_DEPTH_MAX, verification_data)) {
    throw errorOf('too_deep', `verification_data is nested deeper than ${VERIFICATION_DATA_DEPTH_MAX}.`)
  }
  if (Buffer.byteLength(JSON.stringify(verification_data)) > VERIFICATION_DATA_BYTES_MAX) {
    throw errorOf('too_long', `verification_data is larger than ${VERIFICATION_DATA_BYTES_MAX} bytes.`)
  }
}

/** A list or an object that contains no other has a depth of 1. */
function isDeeperThan(depth: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null || isExactNumber(value)) return false
  return depth === 0 || Object.values(value).some((member) => isDeeperThan(depth - 1, member))
}
