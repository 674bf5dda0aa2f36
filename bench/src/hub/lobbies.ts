// 5,000 lobbies with 200 changes per second: the longest frame, the longest task of the page, and the memory over the minutes.
// The ceiling is a page without content in the same browser under the same load: the machine delays its frames too.
import { setTimeout as delay } from 'node:timers/promises'
import { archive } from '@musterhost/arena/build'
import { setLobbyClosed } from '@musterhost/contract'
import type { Browser } from 'playwright-core'
import { lobbyClient, newGame, openLobbies } from '../find/games.ts'
import type { BenchPlatform } from '../platform.ts'
import { verdict } from '../report.ts'
import { endFrames, type Frames, heapMb, openPage, recordFrames } from './browser.ts'

const LOBBIES = 5_000
const CHANGES_PER_SECOND = 200
/** Share of these changes that must be made: with fewer, the page is not under the load that is measured. */
const CHANGES_SHARE_MIN = 0.95
/** Lobbies that change. Each has a client of its own. */
const CHANGING_LOBBIES = 400
const TICK_MS = 50
const LONG_MS = 3_600_000
const WAIT_MS_MAX = 180_000
const FRAME_MS_GOAL = 50
const GROWTH_MB_GOAL = 5
const CEILING_MS = 60_000

export async function measureLobbies(browser: Browser, platform: BenchPlatform, minutes: number): Promise<void> {
  const game = await newGame(platform, {
    // No runner runs, so no server starts. The build only has to exist.
    archive: archive([{ path: 'server.mjs', content: Buffer.from('') }]),
    docker: { args: ['node', 'server.mjs'], ports: { game: { protocol: 'http' } } },
    matchmaker: {
      max_players: 8,
      game_modes: {
        default: {
          player_deadline_ms: LONG_MS,
          idle_grace_ms: LONG_MS,
          actions: { create: { enabled: true, enable_public: true } },
        },
      },
    },
  })
  await openLobbies(platform, game, LOBBIES)
  const opened = await openPage(browser, platform)
  const { page, url } = opened
  await page.goto(`${url}/games/${game.game_id}/namespaces/${game.namespace_id}/lobbies`)
  await page
    .getByText(`${LOBBIES.toLocaleString('en')} lobbies`)
    .first()
    .waitFor({ timeout: WAIT_MS_MAX })
  const changes = await changeLobbies(platform, game.namespace_id)
  // Until the code of the page is compiled.
  await delay(5_000)
  const before_mb = await heapMb(opened)
  const frames: Frames = { gaps_ms: [], tasks_ms: [] }
  const begin = performance.now()
  const changed_before = changes.count()
  for (let minute = 0; minute < minutes; minute++) {
    await recordFrames(opened)
    await delay(Math.min(1, minutes - minute) * 60_000)
    const { gaps_ms, tasks_ms } = await endFrames(opened)
    frames.gaps_ms.push(...gaps_ms)
    frames.tasks_ms.push(...tasks_ms)
    // A collection stops the page: it is not part of the record.
    console.log(`  minute ${minute + 1}: ${(await heapMb(opened)).toFixed(1)} MB`)
  }
  const per_second = (changes.count() - changed_before) / ((performance.now() - begin) / 1_000)
  const growth_mb = (await heapMb(opened)) - before_mb
  await opened.context.close()
  const ceiling = await framesOfEmptyPage(browser, Math.min(CEILING_MS, minutes * 60_000))
  await changes.stop()
  console.log(`\n  ${LOBBIES} lobbies, ${per_second.toFixed(0)} changes per second, ${minutes} min`)
  console.log(`  a page without content under the same load: ${inWords(ceiling)}`)
  console.log(`  the page: ${inWords(frames)}`)
  verdict('changes per second', per_second, CHANGES_PER_SECOND * CHANGES_SHARE_MIN, 'at least')
  verdict('longest frame, ms', longestOf(frames), FRAME_MS_GOAL, 'at most')
  verdict(`tasks of the page over ${FRAME_MS_GOAL} ms`, frames.tasks_ms.length, 0, 'at most')
  verdict(`growth of the heap from ${before_mb.toFixed(1)} MB, MB`, growth_mb, GROWTH_MB_GOAL, 'at most')
}

async function framesOfEmptyPage(browser: Browser, duration_ms: number): Promise<Frames> {
  const page = await browser.newPage()
  await recordFrames({ page })
  await delay(duration_ms)
  const frames = await endFrames({ page })
  await page.close()
  return frames
}

function longestOf({ gaps_ms }: Frames): number {
  return gaps_ms.reduce((longest, gap_ms) => Math.max(longest, gap_ms), 0)
}

function inWords(frames: Frames): string {
  const { gaps_ms } = frames
  const late = gaps_ms.filter((gap_ms) => gap_ms > FRAME_MS_GOAL).length
  const [p50, p99] = [0.5, 0.99].map(
    (part) => gaps_ms.toSorted((a, b) => a - b)[Math.floor(gaps_ms.length * part)] ?? 0,
  )
  return `${gaps_ms.length} frames, p50 ${p50?.toFixed(1)} ms, p99 ${p99?.toFixed(1)} ms, longest ${longestOf(frames).toFixed(0)} ms, ${late} over ${FRAME_MS_GOAL} ms`
}

/** Closes and opens lobbies for find, at a steady rate. */
async function changeLobbies(platform: BenchPlatform, namespace_id: string) {
  const lobbies = await platform.database.db
    .selectFrom('lobbies')
    .where('namespace_id', '=', namespace_id)
    .where('stop_ts', 'is', null)
    .limit(CHANGING_LOBBIES)
    .select(['lobby_id', 'namespace_id'])
    .execute()
  const clients = lobbies.map((lobby) => lobbyClient(platform, lobby))
  const under_way = new Set<Promise<unknown>>()
  let [asked, done] = [0, 0]
  const begin = performance.now()
  const timer = setInterval(() => {
    const due = ((performance.now() - begin) / 1_000) * CHANGES_PER_SECOND
    for (; asked < due && under_way.size < CHANGING_LOBBIES; asked++) {
      const is_closed = Math.floor(asked / clients.length) % 2 === 0
      const change = clients[asked % clients.length]!.call(setLobbyClosed, { body: { is_closed } })
        .then(() => done++)
        .finally(() => under_way.delete(change))
      under_way.add(change)
    }
  }, TICK_MS)
  return {
    count: () => done,
    async stop() {
      clearInterval(timer)
      await Promise.all(under_way)
    },
  }
}
