// Measures finds:
//
// - finds per second against an equal-sized Fastify POST, with ten and with ten thousand open lobbies, with a captcha, and
//   in a game that verifies each player (verified.ts)
// - latency at a steady rate
// - the cost of rays (rays.ts)
// - the time to a seat in a lobby that has to start, against the bare start of the same game server

import { fork } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { findLobby } from '@musterhost/contract'
import { median, postRequest, quantile, runRound, runSteadily, type Target } from '../load.ts'
import { type BenchPlatform, startPlatform } from '../platform.ts'
import { verdict } from '../report.ts'
import { clientsTarget, solveCaptchas, startProvider } from './captcha.ts'
import type { BenchGame } from './games.ts'
import type { PeerOrder } from './peer.ts'
import { run as measureRays } from './rays.ts'
import { findTarget, freeSeats, gameWithLobbies, requireSeats, type Seat } from './rounds.ts'
import { measureStarts } from './starts.ts'
import { ASKING_PATH, type Endpoint, startEndpoint } from './verified.ts'

const ROUNDS = 9
const WARM_UP_ROUNDS = 2
const FINDS_PER_ROUND = 2_400
/** Each opens a connection to the endpoint. */
const VERIFIED_PER_ROUND = 600
/** Few connections show the wait for the disk, many show the throughput of the platform. */
const CONNECTIONS = [64, 256] as const
const FEW_LOBBIES = 10
const MANY_LOBBIES = 10_000
/** Longer than the intervals of projection and analytics. */
const SETTLE_MS = 3_000
const STEADY_PER_SECOND = 500
const STEADY_SECONDS = 10

export async function run(): Promise<void> {
  const provider = await startProvider()
  const endpoint = await startEndpoint()
  const settings = { ...provider.settings, ...endpoint.settings }
  const platform = await startPlatform(['api', 'matchmaker', 'edge'], settings)
  try {
    await measureRates(platform, endpoint)
  } finally {
    await platform.stop()
    provider.stop()
    endpoint.stop()
  }
  await measureRays()
  await measureStarts()
}

async function measureRates(platform: BenchPlatform, endpoint: Endpoint): Promise<void> {
  const few = await gameWithLobbies(platform, FEW_LOBBIES)
  const many = await gameWithLobbies(platform, MANY_LOBBIES)
  const guarded = await gameWithLobbies(platform, FEW_LOBBIES, 'captcha')
  const verified = await gameWithLobbies(platform, FEW_LOBBIES, endpoint)
  const answer = await oneSeat(platform, few)
  await oneSeat(platform, verified)
  const { url } = endpoint.action.verification_config!
  const peer = await startPeer({ answer, url, question: endpoint.question(), settings: endpoint.settings })
  const peerTarget = (path: string): Target => {
    return { port: peer.port, request: postRequest(path, {}, { game_modes: ['default'] }) }
  }
  const many_target = findTarget(platform, many)

  const bare = contender('Fastify POST of the same size', peerTarget(findLobby.path), null)
  const with_few = contender(`find, ${FEW_LOBBIES} open lobbies`, findTarget(platform, few), few)
  const with_many = contender(`find, ${MANY_LOBBIES} open lobbies`, many_target, many)
  const behind_captcha = contender('find, behind a captcha', clientsTarget(platform, guarded, false), guarded)
  behind_captcha.is_guarded = true
  const asking = contender('Fastify POST that asks a game', peerTarget(ASKING_PATH), null)
  const with_question = contender('find, verified by the game', findTarget(platform, verified), verified)
  asking.count = with_question.count = VERIFIED_PER_ROUND

  const contenders = [bare, with_few, with_many, behind_captcha, asking, with_question]
  for (const connections of CONNECTIONS) {
    await compare(platform, contenders, connections)
    console.log(`\n  ${connections} connections, ${ROUNDS} rounds: median per second (all)`)
    for (const { name, count, rates } of contenders) {
      const all = rates.map(Math.round).join(' ')
      console.log(`  ${name.padEnd(31)}${String(Math.round(median(rates))).padStart(6)} (${all}), ${count} each`)
    }
    verdict('find / Fastify POST', ratio(with_few, bare), 0.5, 'at least')
    verdict('find behind a captcha / Fastify POST', ratio(behind_captcha, bare), 0.5, 'at least')
    verdict('verified find / Fastify POST that asks the same', ratio(with_question, asking), 0.5, 'at least')
    verdict(`find with ${MANY_LOBBIES} / with ${FEW_LOBBIES} lobbies`, ratio(with_many, with_few), 0.9, 'at least')
  }
  peer.stop()

  const steady = await runSteadily(many_target, {
    per_second: STEADY_PER_SECOND,
    seconds: STEADY_SECONDS,
    connections: CONNECTIONS[0],
  })
  requireSeats(steady.answers)
  const [p50, p99] = [quantile(steady.latencies_ms, 0.5), quantile(steady.latencies_ms, 0.99)]
  console.log(
    `\n  at ${STEADY_PER_SECOND} finds/s for ${STEADY_SECONDS} s: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`,
  )
}

type Contender = {
  name: string
  target: Target
  game: BenchGame | null
  /** Requests of one round. */
  count: number
  is_guarded: boolean
  /** Requests per second of each round that counts. */
  rates: number[]
}

function contender(name: string, target: Target, game: BenchGame | null): Contender {
  return { name, target, game, count: FINDS_PER_ROUND, is_guarded: false, rates: [] }
}

/** Runs round by round. Each round begins with another contender, so that changes of the machine affect all alike. */
async function compare(platform: BenchPlatform, contenders: readonly Contender[], connections: number): Promise<void> {
  for (const one of contenders) one.rates = []
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round++) {
    for (let turn = 0; turn < contenders.length; turn++) {
      const one = contenders[(round + turn) % contenders.length]!
      const rate = await rateOf(platform, one, connections)
      if (round >= WARM_UP_ROUNDS) one.rates.push(rate)
    }
  }
}

function ratio(a: Contender, b: Contender): number {
  return median(a.rates.map((value, round) => value / b.rates[round]!))
}

async function rateOf(
  platform: BenchPlatform,
  { target, game, count, is_guarded }: Contender,
  connections: number,
): Promise<number> {
  if (is_guarded) await freeSeats(platform, game!, requireSeats(await solveCaptchas(platform, game!, connections)))
  const { per_second, answers } = await runRound(target, { count, connections })
  const seats = requireSeats(answers)
  if (game === null) return per_second
  await freeSeats(platform, game, seats)
  // The platform still writes what followed; the next contender would pay for it.
  await delay(SETTLE_MS)
  return per_second
}

async function oneSeat(platform: BenchPlatform, game: BenchGame): Promise<Seat> {
  const { answers } = await runRound(findTarget(platform, game), { count: 1, connections: 1 })
  const seats = requireSeats(answers)
  await freeSeats(platform, game, seats)
  return seats[0]!
}

async function startPeer(order: PeerOrder): Promise<{ port: number; stop: () => void }> {
  const child = fork(fileURLToPath(new URL('./peer.ts', import.meta.url)), [JSON.stringify(order)])
  const { port } = await new Promise<{ port: number }>((resolve) => child.once('message', resolve as never))
  return { port, stop: () => child.disconnect() }
}
