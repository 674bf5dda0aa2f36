// Measures honest finds while 64 client addresses occupy what they can: connections, long polls, bodies that never arrive,
// uploads, watches, WebSockets, and requests as often as the rate limits allow. Then all of them hang up at once. For each
// attack and its end it prints the latency of finds, its ratio to the latency without an attack, and how many finds were refused.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { findLobby } from '@musterhost/contract'
import { gameWithLobbies } from '../find/rounds.ts'
import { median, postRequest, quantile } from '../load.ts'
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
const SETTLE_MS = 2_000
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
    const quiets: Honest[] = []
    const attacked: { name: string; honest: Honest; report: AttackReport | null }[] = []
    for (const { name, attack } of await attacksOf(platform, game, CLIENTS)) {
      quiets.push(await find())
      const { beside, at_its_end, report } = await findBeside({ port, ...attack }, find)
      attacked.push({ name, honest: beside, report }, { name: `end of ${name}`, honest: at_its_end, report: null })
      // The next quiet series must not pay for what this attack has left.
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
    }
    // One stall of the machine would make the p99 of one quiet series several times what it is.
    const quiet_ms = median(quiets.map(p99Of))
    const rows = [
      ...quiets.map((quiet, index) => row(`quiet, ${index + 1}`, quiet, quiet_ms, null)),
      ...attacked.map(({ name, honest, report }) => row(name, honest, quiet_ms, report)),
    ]
    console.log(`\n  ${FINDS_PER_SECOND} finds/s, each over a new connection; attacks from ${CLIENTS} addresses\n`)
    console.log('  | beside | p50 ms | p99 ms | p99 / quiet | refused finds | open connections | responses |')
    console.log('  | --- | ---: | ---: | ---: | ---: | ---: | ---: |')
    for (const one of rows) console.log(`  ${one}`)
    console.log()
    const beside = attacked.map(({ honest }) => honest)
    verdict('worst p99 / median quiet p99', Math.max(...beside.map(p99Of)) / quiet_ms, RATIO_MAX, 'at most')
    verdict(
      'refused finds',
      [...quiets, ...beside].map(refusedCount).reduce((sum, count) => sum + count),
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
): Promise<{ beside: Honest; at_its_end: Honest; report: AttackReport }> {
  const child = fork(fileURLToPath(new URL('./attacker.ts', import.meta.url)))
  let report: AttackReport = { open: 0, responses: 0, opened: 0 }
  child.on('message', (message) => {
    report = message as AttackReport
  })
  child.send(attack)
  const late = performance.now() + RAMP_MS_MAX
  const wanted = attack.clients * attack.each
  while (report.opened < wanted && performance.now() < late) await once(child, 'message')
  if (report.opened < wanted) throw new Error(`the attack opened ${report.opened} of ${wanted} connections in its ramp`)
  const beside = await find()
  const exited = once(child, 'exit')
  child.disconnect()
  const at_its_end = await find()
  await exited
  return { beside, at_its_end, report }
}

const p99Of = ({ latencies_ms }: Honest): number => quantile(latencies_ms, 0.99)
const refusedCount = ({ refused }: Honest): number => Object.values(refused).reduce((sum, count) => sum + count, 0)

function row(name: string, honest: Honest, quiet_ms: number, report: AttackReport | null): string {
  const [p50, p99] = [quantile(honest.latencies_ms, 0.5), p99Of(honest)]
  const why = refusedCount(honest) === 0 ? '' : ` (${JSON.stringify(honest.refused)})`
  const cells = [name, p50.toFixed(1), p99.toFixed(1), (p99 / quiet_ms).toFixed(2), `${refusedCount(honest)}${why}`]
  return `| ${[...cells, report?.open ?? '', report?.responses ?? ''].join(' | ')} |`
}
