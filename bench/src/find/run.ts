// Finds per second against an equal-sized Fastify POST, with ten and with ten thousand open lobbies; latency at a steady
// rate; and the time to a seat in a lobby that has to be started, against the bare start of the same game server.

import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { findLobby, playerDisconnected, type ResponseOf } from '@muster/contract'
import { archive } from 'arena/build'
import { type Answer, median, postRequest, quantile, runRound, runSteadily, type Target } from '../load.ts'
import { type BenchPlatform, startPlatform } from '../platform.ts'
import { verdict } from '../report.ts'
import { type BenchGame, lobbyClient, newGame, openLobbies } from './games.ts'
import { measureStarts } from './starts.ts'

type Seat = ResponseOf<typeof findLobby>

const ROUNDS = 7
const FINDS_PER_ROUND = 2_000
const CONNECTIONS = 64
const FEW_LOBBIES = 10
const MANY_LOBBIES = 10_000
const SEATS = 256
const STEADY_PER_SECOND = 500
const STEADY_SECONDS = 10
const FREE_AT_ONCE_MAX = 32

export async function run(): Promise<void> {
  const platform = await startPlatform(['api', 'matchmaker', 'edge'])
  try {
    await measureRates(platform)
  } finally {
    await platform.stop()
  }
  await measureStarts()
}

async function measureRates(platform: BenchPlatform): Promise<void> {
  const few = await gameWithLobbies(platform, FEW_LOBBIES)
  const many = await gameWithLobbies(platform, MANY_LOBBIES)
  const sample = await oneSeat(platform, few)
  const peer = await startPeer(sample)
  const peer_target = { port: peer.port, request: postRequest(findLobby.path, {}, { game_modes: ['default'] }) }
  const few_target = findTarget(platform, few)
  const many_target = findTarget(platform, many)

  const rates = { peer: [] as number[], few: [] as number[], many: [] as number[] }
  // The first round warms up and is not counted.
  for (let round = 0; round <= ROUNDS; round++) {
    const results = {
      peer: await rateOf(platform, peer_target, null),
      few: await rateOf(platform, few_target, few),
      many: await rateOf(platform, many_target, many),
    }
    if (round === 0) continue
    for (const name of ['peer', 'few', 'many'] as const) rates[name].push(results[name])
  }
  peer.stop()

  const ratio = (a: number[], b: number[]): number => median(a.map((value, round) => value / b[round]!))
  const rate = (values: number[]): string => `${Math.round(median(values))}/s (${values.map(Math.round).join(' ')})`
  console.log(`\n  Fastify POST of the same size  ${rate(rates.peer)}`)
  console.log(`  find, ${FEW_LOBBIES} open lobbies          ${rate(rates.few)}`)
  console.log(`  find, ${MANY_LOBBIES} open lobbies       ${rate(rates.many)}`)
  verdict('find / Fastify POST', ratio(rates.few, rates.peer), 0.5, 'at least')
  verdict(`find with ${MANY_LOBBIES} / with ${FEW_LOBBIES} lobbies`, ratio(rates.many, rates.few), 0.9, 'at least')

  const steady = await runSteadily(many_target, {
    per_second: STEADY_PER_SECOND,
    seconds: STEADY_SECONDS,
    connections: CONNECTIONS,
  })
  requireSeats(steady.answers)
  const [p50, p99] = [quantile(steady.latencies_ms, 0.5), quantile(steady.latencies_ms, 0.99)]
  console.log(
    `\n  at ${STEADY_PER_SECOND} finds/s for ${STEADY_SECONDS} s: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`,
  )
}

/** No runner runs here, so nothing is started: the build only has to be there. */
async function gameWithLobbies(platform: BenchPlatform, count: number): Promise<BenchGame> {
  const game = await newGame(platform, {
    archive: archive([{ path: 'server', content: Buffer.from('#!/bin/sh\n') }]),
    docker: { args: ['server'], ports: { game: { protocol: 'http' } } },
    matchmaker: {
      max_players: SEATS,
      game_modes: {
        default: { idle_grace_ms: 3_600_000, actions: { create: { enabled: true, enable_public: true } } },
      },
    },
  })
  const started = performance.now()
  await openLobbies(platform, game, count)
  console.log(`  ${count} lobbies opened in ${((performance.now() - started) / 1_000).toFixed(1)} s`)
  return game
}

function findTarget(platform: BenchPlatform, game: BenchGame): Target {
  const headers = { authorization: `Bearer ${game.public_token}` }
  const body = { game_modes: ['default'], prevent_auto_create_lobby: true }
  return { port: Number(new URL(platform.matchmaker_url).port), request: postRequest(findLobby.path, headers, body) }
}

async function rateOf(platform: BenchPlatform, target: Target, game: BenchGame | null): Promise<number> {
  const { per_second, answers } = await runRound(target, { count: FINDS_PER_ROUND, connections: CONNECTIONS })
  if (game !== null) await freeSeats(platform, game, requireSeats(answers))
  else requireSeats(answers)
  return per_second
}

function requireSeats(answers: readonly Answer[]): Seat[] {
  return answers.map(({ status, body }) => {
    if (status !== 200) throw new Error(`a find was refused: ${body}`)
    return JSON.parse(body.toString()) as Seat
  })
}

/** Outside of what is measured: every round begins with the same free seats. */
async function freeSeats(platform: BenchPlatform, game: BenchGame, seats: readonly Seat[]): Promise<void> {
  const left = seats.values()
  const clients = new Map<string, ReturnType<typeof lobbyClient>>()
  const freeSome = async (): Promise<void> => {
    for (const { lobby, player } of left) {
      const client = clients.get(lobby.lobby_id) ?? lobbyClient(platform, { ...lobby, namespace_id: game.namespace_id })
      clients.set(lobby.lobby_id, client)
      await client.call(playerDisconnected, { body: { player_token: player.token } })
    }
  }
  await Promise.all(Array.from({ length: FREE_AT_ONCE_MAX }, freeSome))
}

async function oneSeat(platform: BenchPlatform, game: BenchGame): Promise<Seat> {
  const { answers } = await runRound(findTarget(platform, game), { count: 1, connections: 1 })
  const seats = requireSeats(answers)
  await freeSeats(platform, game, seats)
  return seats[0]!
}

async function startPeer(answer: Seat): Promise<{ port: number; stop: () => void }> {
  const child = fork(fileURLToPath(new URL('./peer.ts', import.meta.url)), [JSON.stringify(answer)])
  const { port } = await new Promise<{ port: number }>((resolve) => child.once('message', resolve as never))
  return { port, stop: () => child.disconnect() }
}
