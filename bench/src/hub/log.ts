// 100,000 lines of a log: frames per second while it scrolls. The ceiling is plain text that scrolls by the same steps.

import { archive } from '@musterhost/arena/build'
import { createLobby } from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import type { Browser } from 'playwright-core'
import { newGame } from '../find/games.ts'
import type { BenchPlatform } from '../platform.ts'
import { verdict } from '../report.ts'
import { endFrames, type Frames, framesPerSecond, type OpenPage, openPage, recordFrames } from './browser.ts'

const LINES = 100_000
const SCROLL_MS = 5_000
const LONG_MS = 3_600_000
const WAIT_MS_MAX = 180_000
const FRAMES_PER_SECOND_GOAL = 50
const CEILING_SHARE_GOAL = 0.9

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

export async function measureLog(browser: Browser, platform: BenchPlatform): Promise<void> {
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
  const per_second = framesPerSecond(await scroll(opened))
  await page.goto(`${url}/sign-in`)
  await page.evaluate(PLAIN_TEXT)
  const ceiling = framesPerSecond(await scroll(opened))
  console.log(`\n  ${LINES} lines of a log; plain text of this size: ${ceiling.toFixed(1)} frames per second`)
  verdict('frames per second while it scrolls', per_second, FRAMES_PER_SECOND_GOAL, 'at least')
  verdict('of those of plain text', per_second / ceiling, CEILING_SHARE_GOAL, 'at least')
  await opened.context.close()
}

/** A page with nothing but text, of which the browser draws other lines with each step. */
const PLAIN_TEXT = `{
  document.body.innerHTML = '<div aria-label="Log" style="height: 60vh; overflow: auto; font: 12px/20px monospace; white-space: pre"></div>'
  document.querySelector('[aria-label=Log]').textContent = Array.from({ length: 2000 }, (_, line) => line + ' 12:34:56.789 ' + line).join('\\n')
}`

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

async function scroll(opened: OpenPage): Promise<Frames> {
  await recordFrames(opened)
  await opened.page.evaluate(SCROLL)
  return endFrames(opened)
}
