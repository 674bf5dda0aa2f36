// Chromium for the bench of the hub: signed in as the operator, with the figures that Chromium keeps of a page.
import { spawnSync } from 'node:child_process'
import { mainUrl } from '@musterhost/server/config/addresses'
import { type Browser, type BrowserContext, type CDPSession, chromium, type Page } from 'playwright-core'
import type { BenchPlatform } from '../platform.ts'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome']
const ARGUMENTS = ['--no-sandbox', '--disable-background-networking', '--disable-renderer-backgrounding']
const VIEWPORT = { width: 1280, height: 800 }
const BYTES_PER_MB = 1_000_000

export type OpenPage = { page: Page; context: BrowserContext; cdp: CDPSession; url: string }

export function chromiumPath(): string {
  const command = NAMES.map((name) => `command -v ${name}`).join(' || ')
  const path = spawnSync('sh', ['-c', command], { encoding: 'utf8' }).stdout.trim()
  if (path === '') throw new Error('This bench needs Chromium in the PATH.')
  return path
}

export async function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath(), args: ARGUMENTS })
}

/** A page that is signed in. */
export async function openPage(browser: Browser, platform: BenchPlatform): Promise<OpenPage> {
  const url = mainUrl(platform.config)
  const context = await browser.newContext({ viewport: VIEWPORT })
  const page = await context.newPage()
  const cdp = await context.newCDPSession(page)
  const token = platform.keys.issue({ kind: 'access', name: 'bench' }, { now_ms: Date.now(), lifetime_ms: null })
  await page.goto(`${url}/sign-in`)
  await page.getByRole('button', { name: "Sign in with the operator's access token" }).click()
  await page.getByLabel('Access token').fill(token)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
  return { page, context, cdp, url }
}

/** The heap of the page's scripts after a collection, in MB. */
export async function heapMb({ cdp }: OpenPage): Promise<number> {
  await cdp.send('HeapProfiler.collectGarbage')
  const { usedSize } = await cdp.send('Runtime.getHeapUsage')
  return usedSize / BYTES_PER_MB
}

/** Scripts of the page are text, because this program has no document. */
const RECORD = `
  globalThis.frames_recorded = { gaps_ms: [], tasks_ms: [], is_over: false }
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) frames_recorded.tasks_ms.push(duration)
  }).observe({ type: 'longtask' })
  let before = performance.now()
  const take = (now) => {
    frames_recorded.gaps_ms.push(now - before)
    before = now
    if (!frames_recorded.is_over) requestAnimationFrame(take)
  }
  requestAnimationFrame(take)
`

/** Records the time between frames from now on. */
export async function recordFrames({ page }: Pick<OpenPage, 'page'>): Promise<void> {
  await page.evaluate(`{${RECORD}}`)
}

/** `gaps_ms`: the times between the frames. `tasks_ms`: the tasks of the page that took longer than 50 ms. */
export type Frames = { gaps_ms: number[]; tasks_ms: number[] }

export async function endFrames({ page }: Pick<OpenPage, 'page'>): Promise<Frames> {
  const { gaps_ms, tasks_ms }: Frames = await page.evaluate('frames_recorded.is_over = true; frames_recorded')
  // The first gap began before the record.
  return { gaps_ms: gaps_ms.slice(1), tasks_ms }
}

export function framesPerSecond({ gaps_ms }: Frames): number {
  return gaps_ms.length / (gaps_ms.reduce((sum, gap_ms) => sum + gap_ms, 0) / 1_000)
}
