// Real Chromium for the tests that see the platform as a player does. Where there is none they are skipped aloud.
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { TestContext } from 'node:test'
import { type Browser, chromium, type Page } from 'playwright-core'
import { WIDTH } from '../../../examples/arena/game/motion.ts'
import { findProgram, lacking } from '../run/optional-programs.ts'

/** Without them Chromium calls home at every start. */
const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Two pages are two players: neither may be slowed down for lying behind the other.
  '--disable-background-timer-throttling',
  '--disable-backgrounding-occluded-windows',
  '--disable-renderer-backgrounding',
]

/** Starts Chromium so that addresses which other tests add to the machine do not end its requests. */
const WITHOUT_NETLINK = join(import.meta.dirname, 'without-netlink.pl')

/** Small: without a graphics card the processor draws every pixel, sixty times a second and for each page. */
const PAGE_SIZE = { width: 480, height: 320 }

/**
 * A browser for this test, or null, in which case the test has been skipped and should return. `name`: only the whole Chromium has
 * the settings of a person's browser, such as the one that blocks the storage of frames of other sites.
 */
export async function openBrowser(
  t: TestContext,
  more: readonly string[] = [],
  name: 'chromium' | 'whole-chromium' = 'chromium',
): Promise<Browser | null> {
  const program = findProgram(name)
  if (program === null) {
    t.skip(lacking(name)!)
    return null
  }
  const browser = await chromium.launch({
    executablePath: hasPerl() ? WITHOUT_NETLINK : program,
    env: { ...process.env, BROWSER_PROGRAM: program },
    args: [...ARGUMENTS, ...more],
  })
  t.after(() => browser.close())
  return browser
}

/** Debian cannot be without it; other systems can. */
function hasPerl(): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, 'perl')))
}

export type PlayerView = { id: string; name: string; x: number; y: number; score: number }

/** A page that plays the arena. Each has storage of its own, as another person's browser would. */
export type Player = {
  page: Page
  lobby_id: () => Promise<string>
  /** How this page sees the player of that name; undefined when it does not. */
  sees: (name: string) => Promise<PlayerView | undefined>
  /** Resolves once the page sees that many players. */
  seesPlayers: (count: number) => Promise<void>
  leave: () => Promise<void>
}

type ArenaWindow = { arena?: { lobby_id: string; players: () => PlayerView[] } }

export async function play(browser: Browser, play_url: string, name: string): Promise<Player> {
  return playerOf(await openDoor(browser, play_url, name))
}

/** A page that has asked for a seat, and has yet to get in. */
export function openDoor(browser: Browser, play_url: string, name: string): Promise<Page> {
  return openPage(browser, `${play_url}?name=${name}&autoplay`)
}

/** As another person's browser would: nothing is kept from other pages. */
export async function openPage(browser: Browser, url: string): Promise<Page> {
  const context = await browser.newContext({ viewport: PAGE_SIZE })
  const page = await context.newPage()
  await page.goto(url)
  return page
}

/** Resolves once the page is in the arena. */
export async function playerOf(page: Page): Promise<Player> {
  await page.waitForFunction(() => Boolean((globalThis as ArenaWindow).arena?.lobby_id))
  await page.waitForFunction(() => ((globalThis as ArenaWindow).arena?.players() ?? []).length > 0)
  return {
    page,
    lobby_id: () => page.evaluate(() => (globalThis as ArenaWindow).arena?.lobby_id ?? ''),
    sees: (other) =>
      page.evaluate(
        (wanted) => (globalThis as ArenaWindow).arena?.players().find((player) => player.name === wanted),
        other,
      ),
    seesPlayers: async (count) => {
      await page.waitForFunction(
        (wanted) => ((globalThis as ArenaWindow).arena?.players() ?? []).length === wanted,
        count,
      )
    },
    leave: () => page.context().close(),
  }
}

/** Lets one player fly and waits until another page has seen it: through the lobby, both ways. */
export async function movesBefore(player: Player, name: string, watcher: Player): Promise<void> {
  const before = await watcher.sees(name)
  if (before === undefined) throw new Error(`${name} is not seen`)
  // Away from the nearer wall, so that there is room to move.
  const key = before.x > WIDTH / 2 ? 'ArrowLeft' : 'ArrowRight'
  await player.page.keyboard.down(key)
  await watcher.page.waitForFunction(
    ({ wanted, x, y }) => {
      const seen = (globalThis as ArenaWindow).arena?.players().find((other) => other.name === wanted)
      return seen !== undefined && Math.hypot(seen.x - x, seen.y - y) > 20
    },
    { wanted: name, x: before.x, y: before.y },
  )
  await player.page.keyboard.up(key)
}
