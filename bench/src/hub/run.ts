// `npm run bench hub [MINUTES]`: measures the hub's pages in Chromium against a running platform:
//
// - the first page with a cold cache: its bytes, and the time until it can be used, on a processor slowed four times
// - 5,000 lobbies with 200 changes per second: the longest frame, and the memory over the minutes
// - 100,000 lines of a log: frames per second while it scrolls
import { execFileSync } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createLobby, setLobbyClosed } from '@muster/contract'
import { createClient } from '@muster/contract/client'
import { archive } from 'arena/build'
import type { Browser } from 'playwright-core'
import { lobbyClient, newGame, openLobbies } from '../find/games.ts'
import { type BenchPlatform, startPlatform } from '../platform.ts'
import { verdict } from '../report.ts'
import { endFrames, heapMb, type OpenPage, openBrowser, openPage, recordFrames } from './browser.ts'

const BUILD = fileURLToPath(new URL('../../../hub/build.ts', import.meta.url))
const MINUTES_DEFAULT = 1
const MINUTES_MAX = 60
const LOBBIES = 5_000
const CHANGES_PER_SECOND = 200
/** Lobbies that change. Each has a client of its own. */
const CHANGING_LOBBIES = 400
const TICK_MS = 50
const LONG_MS = 3_600_000
const LINES = 100_000
const SCROLL_MS = 5_000
const SLOWED = 4
const WAIT_MS_MAX = 180_000

const FIRST_PAGE_KB_GOAL = 200
const FIRST_PAGE_MS_GOAL = 1_500
const FRAME_MS_GOAL = 50
const GROWTH_MB_GOAL = 5
const FRAMES_PER_SECOND_GOAL = 50

export async function run(): Promise<void> {
  const minutes = Number(process.argv[3] ?? MINUTES_DEFAULT)
  if (!(minutes > 0 && minutes <= MINUTES_MAX)) throw new Error(`npm run bench hub [MINUTES, at most ${MINUTES_MAX}]`)
  execFileSync(process.execPath, [BUILD, '--when-stale'], { stdio: 'inherit' })
  const browser = await openBrowser()
  try {
    await withPlatform(['api', 'matchmaker', 'edge'], async (platform) => {
      await measureFirstPage(browser, platform)
      await measureLobbies(browser, platform, minutes)
    })
    await withPlatform(['api', 'matchmaker', 'runner', 'edge'], (platform) => measureLog(browser, platform))
  } finally {
    await browser.close()
  }
}

async function withPlatform(
  roles: Parameters<typeof startPlatform>[0],
  measure: (platform: BenchPlatform) => Promise<void>,
): Promise<void> {
  const platform = await startPlatform(roles)
  try {
    await measure(platform)
  } finally {
    await platform.stop()
  }
}

async function measureFirstPage(browser: Browser, platform: BenchPlatform): Promise<void> {
  const opened = await openPage(browser, platform)
  const { page, cdp, url } = opened
  await cdp.send('Network.enable')
  await cdp.send('Network.clearBrowserCache')
  await cdp.send('Emulation.setCPUThrottlingRate', { rate: SLOWED })
  let bytes = 0
  cdp.on('Network.loadingFinished', ({ encodedDataLength }) => {
    bytes += encodedDataLength
  })
  await page.goto(url, { waitUntil: 'commit' })
  await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
  // The page reacts only once its scripts have run to their end.
  const interactive_ms: number = await page.evaluate(
    'new Promise((resolve) => requestIdleCallback(() => resolve(performance.now())))',
  )
  console.log(`\n  first page, cold cache, processor slowed ${SLOWED} times`)
  verdict('compressed KB', bytes / 1_000, FIRST_PAGE_KB_GOAL, 'at most')
  verdict('ms until it can be used', interactive_ms, FIRST_PAGE_MS_GOAL, 'at most')
  await opened.context.close()
}

async function measureLobbies(browser: Browser, platform: BenchPlatform, minutes: number): Promise<void> {
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
  const gaps_ms: number[] = []
  const begin = performance.now()
  const changed_before = changes.count()
  for (let minute = 0; minute < minutes; minute++) {
    await recordFrames(opened)
    await delay(Math.min(1, minutes - minute) * 60_000)
    gaps_ms.push(...(await endFrames(opened)))
    // A collection stops the page: it is not part of the record.
    console.log(`  minute ${minute + 1}: ${(await heapMb(opened)).toFixed(1)} MB`)
  }
  const per_second = (changes.count() - changed_before) / ((performance.now() - begin) / 1_000)
  await changes.stop()
  const growth_mb = (await heapMb(opened)) - before_mb
  const late = gaps_ms.filter((gap_ms) => gap_ms > FRAME_MS_GOAL).length
  console.log(
    `\n  ${LOBBIES} lobbies, ${per_second.toFixed(0)} changes per second, ${minutes} min, ${gaps_ms.length} frames`,
  )
  verdict('longest frame, ms', Math.max(...gaps_ms), FRAME_MS_GOAL, 'at most')
  verdict(`frames over ${FRAME_MS_GOAL} ms`, late, 0, 'at most')
  verdict(`growth of the heap from ${before_mb.toFixed(1)} MB, MB`, growth_mb, GROWTH_MB_GOAL, 'at most')
  await opened.context.close()
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

/** It writes faster than a person reads, and slower than the platform drops lines. */
const TALKER = `
import http from 'node:http'
const { PLATFORM_API_URL, PLATFORM_TOKEN, PORT_GAME } = process.env
let line = 0
http.createServer((_, answer) => answer.end()).listen(Number(PORT_GAME), '127.0.0.1', () => {
  http.request(PLATFORM_API_URL + '/matchmaker/lobbies/ready', { method: 'POST', headers: { authorization: 'Bearer ' + PLATFORM_TOKEN } }).end()
  const timer = setInterval(() => {
    let text = ''
    for (let count = 0; count < 150 && line < ${LINES}; count++) text += ++line + '\\n'
    process.stdout.write(text)
    if (line >= ${LINES}) clearInterval(timer)
  }, 50)
})
process.on('SIGTERM', () => process.exit(0))
`

async function measureLog(browser: Browser, platform: BenchPlatform): Promise<void> {
  const game = await newGame(platform, {
    archive: archive([{ path: 'server.mjs', content: Buffer.from(TALKER) }]),
    docker: { args: ['node', 'server.mjs'], ports: { game: { protocol: 'http' } } },
    matchmaker: {
      game_modes: {
        default: { idle_grace_ms: LONG_MS, actions: { create: { enabled: true, enable_public: true } } },
      },
    },
  })
  const opened = await openPage(browser, platform)
  const { page, url } = opened
  const player = createClient({ url: platform.matchmaker_url, token: game.public_token })
  const { lobby } = await player.call(createLobby, { body: { game_mode: 'default' } })
  await page.goto(`${url}/games/${game.game_id}/namespaces/${game.namespace_id}/lobbies/${lobby.lobby_id}`)
  await page.getByText(`${LINES.toLocaleString('en')} lines`).waitFor({ timeout: WAIT_MS_MAX })
  const per_second = await scroll(opened)
  console.log(`\n  ${LINES} lines of a log`)
  verdict('frames per second while it scrolls', per_second, FRAMES_PER_SECOND_GOAL, 'at least')
  await opened.context.close()
}

/** Fifteen lines up with each frame: a quick turn of the wheel. */
const SCROLL = `new Promise((resolve) => {
  const log = document.querySelector('[aria-label=Log]')
  const begin = performance.now()
  const step = (now) => {
    log.scrollTop -= 300
    if (log.scrollTop <= 0) log.scrollTop = log.scrollHeight / 2
    if (now - begin < ${SCROLL_MS}) requestAnimationFrame(step)
    else resolve()
  }
  requestAnimationFrame(step)
})`

/** Returns the frames per second. */
async function scroll(opened: OpenPage): Promise<number> {
  await recordFrames(opened)
  await opened.page.evaluate(SCROLL)
  const gaps_ms = await endFrames(opened)
  return gaps_ms.length / (gaps_ms.reduce((sum, gap_ms) => sum + gap_ms, 0) / 1_000)
}
