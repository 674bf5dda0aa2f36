// Allocate: a backend asks for a new lobby with a seat for each of its players. The seats are one decision and one row of the
// journal. They belong together like those of a party: the first player leads.
import { ApiError, type allocateLobby, type BodyOf, type ResponseOf, validationError } from '@musterhost/contract'
import { canonicalAddress, clientKey } from '../../addresses/client-ip.ts'
import { type Prepared, prepare, preparedText } from '../../text/json-text.ts'
import type { AllocatedPlayer, LobbyPlan } from '../book/commands.ts'
import type { Player } from '../book/lobby.ts'
import { changeOwn } from '../book/own-lobby.ts'
import type { DecisionLog } from '../explanations/decision-log.ts'
import { playerTokenFor, seatAnswer } from './answer.ts'
import type { MatchmakerContext, Seat } from './context.ts'
import { newLobbyCode } from './lobby-codes.ts'
import { planOf, requireRegion, runsIn, withFailures } from './lobby-plan.ts'
import { bestRegion } from './regions.ts'
import {
  checkTags,
  FIND_ATTEMPTS_MAX,
  factsOf,
  lobbyConfigText,
  requireDynamicMaxPlayers,
  requireMode,
  resolveGameModes,
  type SeatRequest,
} from './request.ts'
import { addressFault, type Requester, type SeatCall } from './requester.ts'
import { recordOfClient } from './version-pin.ts'

type Body = BodyOf<typeof allocateLobby>
type Answer = ResponseOf<typeof allocateLobby>
type SeatText = Answer & { lobby: { player?: unknown }; player?: unknown }

/** The call with the player whose address chooses the region. Throws VALIDATION_ERROR for an address that is none. */
export function callOfFirstPlayer<C extends SeatCall<Body>>(
  call: C,
): C & { body: Body & { clients: [{ address: string }] } } {
  const faults = call.body.players.flatMap(({ address }, index) =>
    address === undefined || canonicalAddress(address) !== null
      ? []
      : [addressFault(['players', String(index), 'address'])],
  )
  if (faults.length > 0) throw validationError(faults)
  const address = call.body.players.find((player) => player.address !== undefined)?.address ?? call.client_ip
  return { ...call, body: { ...call.body, clients: [{ address }] } }
}

/** Throws the refusals of allocate that do not depend on lobbies. */
export async function allocateRequest(
  ctx: MatchmakerContext,
  requester: Requester,
  log: DecisionLog,
  body: Body,
): Promise<SeatRequest> {
  const { client_key, idempotency_key } = requester
  const namespace = recordOfClient(await ctx.namespaces.get(requester.namespace_id), client_key)
  const mode = requireMode(namespace, resolveGameModes(namespace, [body.game_mode])[0]!)
  requireDynamicMaxPlayers(mode, body.max_players)
  checkTags([mode], body.tags)
  const { coordinates } = await factsOf(ctx, requester)
  const region =
    body.region === undefined
      ? bestRegion(ctx.config, [mode], { coordinates, latencies_ms: null })
      : requireRegion(ctx.config, body.region)
  if (!runsIn(mode, region)) throw new ApiError('MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE')
  const plan: LobbyPlan = {
    ...planOf(namespace, mode, region, body, requester.ray?.ray_id ?? null),
    publicity: body.publicity ?? 'private',
    is_custom: true,
    lobby_config: lobbyConfigText(body.lobby_config),
    code: body.with_code === true ? newLobbyCode(ctx, namespace.namespace_id) : null,
  }
  requireSeats(body.max_players ?? seatsOf(plan), body.players.length)
  const request = {
    plan: withFailures(ctx, requester, plan),
    players: body.players.map(allocatedPlayer),
    client_key,
    seat_key: idempotency_key === null ? null : `allocate ${idempotency_key}`,
    lobby_count_max: namespace.lobby_count_max,
    identity_id: null,
    is_spectator: false,
  }
  return {
    requester,
    log,
    asked: { action: 'allocate', request },
    with_party: true,
    latencies_ms: null,
    attempts_max: FIND_ATTEMPTS_MAX,
    matching: null,
    captcha: null,
    captcha_responses: undefined,
    verification: null,
  }
}

function seatsOf({ max_players_normal, max_players_direct, max_players_party }: LobbyPlan): number {
  return Math.max(max_players_normal, max_players_direct, max_players_party)
}

function requireSeats(seats: number, count: number): void {
  if (count <= seats) return
  const message = `players has ${count} players, and the lobby has ${seats} seats.`
  throw validationError([{ path: ['players'], reason: 'too_many', message }])
}

function allocatedPlayer({ address, identity_id }: Body['players'][number]): AllocatedPlayer {
  const client_ip = address === undefined ? null : canonicalAddress(address)
  return { client_ip, client_key: client_ip === null ? null : clientKey(client_ip), identity_id: identity_id ?? null }
}

/** With `keep_ms` the lobby is kept from now on, when it is ready. After a hang-up there is no answer, so it is not kept. */
export function allocationAnswerFor({ keep_ms }: Body) {
  return async (ctx: MatchmakerContext, request: SeatRequest, seat: Seat): Promise<Prepared<Answer>> => {
    if (keep_ms !== undefined) {
      const { lobby_id } = seat
      const { namespace_id } = request.requester
      await ctx.books.commit(namespace_id, (book, { now_ms }) => changeOwn(book, { lobby_id, keep_ms }, now_ms))
    }
    return allocationAnswer(ctx, request, seat)
  }
}

/** The lobby as in the seat of its first player, and the tokens of all players. */
async function allocationAnswer(
  ctx: MatchmakerContext,
  { requester: { namespace_id }, asked }: SeatRequest,
  seat: Seat,
): Promise<Prepared<Answer>> {
  const text = preparedText(await seatAnswer(ctx, namespace_id, seat))!
  const { lobby: seated, ports } = JSON.parse(text) as SeatText
  const { player: _player, ...lobby } = seated
  const count = 'players' in asked.request ? asked.request.players.length : 0
  const players = seatsWith(ctx, namespace_id, seat, count).map((player) => {
    const { player_id, identity_id } = player
    const token = playerTokenFor(ctx, namespace_id, player)
    return { player_id, ...(identity_id !== null && { identity_id }), token }
  })
  return prepare<Answer>(JSON.stringify({ lobby, ports, players }))
}

/** The seats of the allocation in their order. Players who have left are not in the lobby any more, but remembered. */
function seatsWith(
  ctx: MatchmakerContext,
  namespace_id: string,
  { lobby_id, player_id }: Seat,
  count: number,
): Player[] {
  const book = ctx.books.book(namespace_id)
  const together = (players: Iterable<Player> = []): Player[] =>
    [...players].filter(({ leader_player_id }) => leader_player_id === player_id)
  const present = together(book?.lobbies.get(lobby_id)?.players.values())
  const seats = present.length === count ? present : together(book?.players.values())
  return seats.sort((a, b) => (a.player_id < b.player_id ? -1 : 1))
}
