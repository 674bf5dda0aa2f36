// The first page with a cold cache: its bytes, and the time until it can be used, on a processor slowed four times.
import type { Browser } from 'playwright-core'
import type { BenchPlatform } from '../platform.ts'
import { verdict } from '../report.ts'
import { openPage } from './browser.ts'

const SLOWED = 4
const FIRST_PAGE_KB_GOAL = 200
const FIRST_PAGE_MS_GOAL = 1_500

export async function measureFirstPage(browser: Browser, platform: BenchPlatform): Promise<void> {
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
