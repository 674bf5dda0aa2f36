// `npm run bench hub [MINUTES] [first-page|lobbies|log]`: measures the hub's pages in Chromium against a running platform.
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Browser } from 'playwright-core'
import { type BenchPlatform, startPlatform } from '../platform.ts'
import { openBrowser } from './browser.ts'
import { measureFirstPage } from './first-page.ts'
import { measureLobbies } from './lobbies.ts'
import { measureLog } from './log.ts'

const BUILD = fileURLToPath(new URL('../../../hub/build.ts', import.meta.url))
const MINUTES_DEFAULT = 1
const MINUTES_MAX = 60

type Part = {
  roles: Parameters<typeof startPlatform>[0]
  measure: (browser: Browser, platform: BenchPlatform, minutes: number) => Promise<void>
}

const PARTS: Readonly<Record<string, Part>> = {
  'first-page': { roles: ['api', 'matchmaker', 'edge'], measure: measureFirstPage },
  lobbies: { roles: ['api', 'matchmaker', 'edge'], measure: measureLobbies },
  log: { roles: ['api', 'matchmaker', 'runner', 'edge'], measure: measureLog },
}

export async function run(): Promise<void> {
  const [minutes_text = MINUTES_DEFAULT, name] = process.argv.slice(3)
  const minutes = Number(minutes_text)
  if (!(minutes > 0 && minutes <= MINUTES_MAX) || (name !== undefined && PARTS[name] === undefined))
    throw new Error(`npm run bench hub [MINUTES, at most ${MINUTES_MAX}] [${Object.keys(PARTS).join('|')}]`)
  execFileSync(process.execPath, [BUILD, '--when-stale'], { stdio: 'inherit' })
  const browser = await openBrowser()
  try {
    for (const [part_name, part] of Object.entries(PARTS))
      if (name === undefined || name === part_name) await measurePart(browser, part, minutes)
  } finally {
    await browser.close()
  }
}

async function measurePart(browser: Browser, { roles, measure }: Part, minutes: number): Promise<void> {
  const platform = await startPlatform(roles)
  try {
    await measure(browser, platform, minutes)
  } finally {
    await platform.stop()
  }
}
