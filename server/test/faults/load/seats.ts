// Players: each requests a seat through the game's backend, sends its token to the lobby's server, plays and leaves. The
// backend names the player's address, so the limits for each client key apply to a few addresses.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  createLobby,
  findLobby,
  joinLobby,
  playerConnected,
  playerDisconnected,
  type ResponseOf,
} from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import type { SeatResult } from '../history.ts'
import type { LoadContext, Step } from './load.ts'
import { repeat } from './repeat.ts'

/** Where a seat is asked for: the edge, or one of several matchmakers. */
export type SeatCaller = Client
type Seat = ResponseOf<typeof findLobby>
type Taken = { seat: SeatResult; server: Client }
type SeatCall = (caller: SeatCaller, key: string, signal: AbortSignal) => Promise<Seat>

const ADDRESSES = Array.from({ length: 24 }, (_, number) => `198.51.100.${number + 1}`)
const PLAY_MS_MAX = 300
/** Lobbies of others that a player joins by id. */
const KNOWN_LOBBIES_MAX = 8

const CREATE_CHANCE = 0.1
const JOIN_CHANCE = 0.15
const REFUSED_CHANCE = 0.04
/** A seat is asked for once more after it was acknowledged, under the same key. */
const AGAIN_CHANCE = 0.1
/** A player never connects, and the seat expires. */
const ABSENT_CHANCE = 0.1
/** Players whose departure the platform may not know; each is reported again. */
const LEAVING_MAX = 32
/** A consumed token is shown once more. */
const SECOND_CONNECT_CHANCE = 0.1

export function player(
  { platform, history, random }: LoadContext,
  callers: readonly SeatCaller[] = [platform.as(platform.game.cloud_token)],
): Step {
  const namespace_id = platform.game.namespaces.prod
  const known_lobbies: string[] = []
  const leaving: Taken[] = []

  const chooseCall = (): SeatCall => {
    const body = { namespace_id, clients: [{ address: random.pick(ADDRESSES) }] }
    const options = (key: string, signal: AbortSignal) => ({ headers: { 'idempotency-key': key }, signal })
    if (random.chance(REFUSED_CHANCE)) {
      return (caller, key, signal) =>
        caller.call(findLobby, { body: { ...body, game_modes: ['nosuchmode'] }, ...options(key, signal) })
    }
    if (random.chance(CREATE_CHANCE)) {
      return (caller, key, signal) =>
        caller.call(createLobby, { body: { ...body, game_mode: 'default' }, ...options(key, signal) })
    }
    if (known_lobbies.length > 0 && random.chance(JOIN_CHANCE)) {
      const lobby_id = random.pick(known_lobbies)
      return (caller, key, signal) => caller.call(joinLobby, { body: { ...body, lobby_id }, ...options(key, signal) })
    }
    return (caller, key, signal) =>
      caller.call(findLobby, { body: { ...body, game_modes: ['default'] }, ...options(key, signal) })
  }

  const takeSeat = async (): Promise<Taken | null> => {
    const key = randomUUID()
    const call = chooseCall()
    const ask = async (signal: AbortSignal) => {
      const answer = await call(random.pick(callers), key, signal)
      return { ...seatOf(platform, answer), server_path: new URL(answer.ports.game!.url).pathname }
    }
    const attempts = await repeat(random, ask)
    history.record('seat', { namespace_id, key, party_size: 1 }, attempts)
    if (attempts.outcome.status !== 'acknowledged') return null
    const { server_path, ...seat } = attempts.outcome.result
    if (random.chance(AGAIN_CHANCE)) {
      const again = await repeat(random, ask)
      if (again.outcome.status === 'acknowledged' && again.outcome.result.token !== seat.token) {
        history.contradiction(`key ${key} got player ${seat.player_id} and then ${again.outcome.result.player_id}`)
      }
    }
    known_lobbies.push(seat.lobby_id)
    if (known_lobbies.length > KNOWN_LOBBIES_MAX) known_lobbies.shift()
    return { seat, server: platform.lobbyServer(server_path) }
  }

  const report = async (kind: 'connect' | 'disconnect', { seat, server }: Taken): Promise<boolean> => {
    const key = randomUUID()
    const operation = kind === 'connect' ? playerConnected : playerDisconnected
    const attempts = await repeat(random, (signal) =>
      server.call(operation, { body: { player_token: seat.token }, headers: { 'idempotency-key': key }, signal }),
    )
    history.record(kind, { player_id: seat.player_id, key }, attempts)
    return attempts.outcome.status === 'acknowledged'
  }

  return async () => {
    const taken = await takeSeat()
    if (taken === null || random.chance(ABSENT_CHANCE)) return
    const is_connected = await report('connect', taken)
    if (is_connected && random.chance(SECOND_CONNECT_CHANCE)) await report('connect', taken)
    await sleep(random.int(PLAY_MS_MAX))
    leaving.push(taken)
    if (leaving.length > LEAVING_MAX) throw new Error(`${LEAVING_MAX} players could not leave`)
    for (const player of leaving.splice(0)) if (!(await report('disconnect', player))) leaving.push(player)
  }
}

/** The subject of a returned token. */
export function seatOf({ keys }: LoadContext['platform'], answer: Seat): SeatResult {
  const { token } = answer.player
  const claims = keys.verify(token, Date.now())
  if (claims.kind !== 'player') throw new Error(`a seat came with a token of the kind ${claims.kind}`)
  return { player_id: claims.player_id, lobby_id: answer.lobby.lobby_id, token }
}
