// Measures honest finds while 64 client addresses occupy what they can: connections, long polls, bodies that never arrive,
// uploads, watches, WebSockets, and requests as often as the rate limits allow. For each attack it prints the latency of
// finds, its ratio to the latency without an attack, and how many finds were refused.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { findLobby } from '@musterhost/contract'
import { gameWithLobbies } from '../find/rounds.ts'
import { postRequest, quantile } from '../load.ts'
import { startPlatform } from '../platform.ts'
import { verdict } from '../report.ts'
import type { Attack, AttackReport } from './attacker.ts'
import { attacksOf, FIND_BODY } from './attacks.ts'
import { findSteadily, type Honest } from './honest.ts'

const CLIENTS = 64
const FINDS_PER_SECOND = 50
const SECONDS = 6
/** Lobbies with room for all players. */
const LOBBIES = 48
/** Until an attack has opened each connection once. */
const RAMP_MS_MAX = 8_000
const RATIO_MAX = 3

export async function run(): Promise<void> {
  const platform = await startPlatform(['api', 'matchmaker', 'edge'], {
    MUSTER_RATE_LIMIT_SEATS: '120',
    MUSTER_RATE_LIMIT_MATCHMAKER: '600',
  })
  try {
    const game = await gameWithLobbies(platform, LOBBIES)
    const port = platform.config.edge_http_port
    const request = postRequest(findLobby.path, { authorization: `Bearer ${game.public_token}` }, JSON.parse(FIND_BODY))
    const find = () => findSteadily({ port, request }, { per_second: FINDS_PER_SECOND, seconds: SECONDS })
    await find()
    const quiet = await find()
    const rows = [row('quiet', quiet, quiet, null)]
    const attacked: Honest[] = []
    for (const { name, attack } of await attacksOf(platform, game, CLIENTS)) {
      const { honest, report } = await findBeside({ port, ...attack }, find)
      attacked.push(honest)
      rows.push(row(name, honest, quiet, report))
    }
    console.log(`\n  ${FINDS_PER_SECOND} finds/s, each over a new connection; attacks from ${CLIENTS} addresses\n`)
    console.log('  | beside | p50 ms | p99 ms | p99 / quiet | refused finds | open connections | responses |')
    console.log('  | --- | ---: | ---: | ---: | ---: | ---: | ---: |')
    for (const one of rows) console.log(`  ${one}`)
    console.log()
    verdict('worst p99 / quiet p99', Math.max(...attacked.map(p99Of)) / p99Of(quiet), RATIO_MAX, 'at most')
    verdict(
      'refused finds',
      [quiet, ...attacked].map(refusedCount).reduce((sum, count) => sum + count),
      0,
      'at most',
    )
  } finally {
    await platform.stop()
  }
}

async function findBeside(
  attack: Attack,
  find: () => Promise<Honest>,
): Promise<{ honest: Honest; report: AttackReport }> {
  const child = fork(fileURLToPath(new URL('./attacker.ts', import.meta.url)))
  let report: AttackReport = { open: 0, responses: 0, opened: 0 }
  child.on('message', (message) => {
    report = message as AttackReport
  })
  child.send(attack)
  const late = performance.now() + RAMP_MS_MAX
  while (report.opened < attack.clients * attack.each && performance.now() < late) await once(child, 'message')
  const honest = await find()
  const exited = once(child, 'exit')
  child.disconnect()
  await exited
  return { honest, report }
}

const p99Of = ({ latencies_ms }: Honest): number => quantile(latencies_ms, 0.99)
const refusedCount = ({ refused }: Honest): number => Object.values(refused).reduce((sum, count) => sum + count, 0)

function row(name: string, honest: Honest, quiet: Honest, report: AttackReport | null): string {
  const [p50, p99] = [quantile(honest.latencies_ms, 0.5), p99Of(honest)]
  const why = refusedCount(honest) === 0 ? '' : ` (${JSON.stringify(honest.refused)})`
  const cells = [name, p50.toFixed(1), p99.toFixed(1), (p99 / p99Of(quiet)).toFixed(2), `${refusedCount(honest)}${why}`]
  return `| ${[...cells, report?.open ?? '', report?.responses ?? ''].join(' | ')} |`
}
