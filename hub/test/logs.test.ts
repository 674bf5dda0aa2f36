// One lobby and its log, in a real Chromium: the servers are real programs that write what the tests tell them.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { say, talkingGame, talkingLobby } from '../../server/test/cloud/lobbies/talking-server.ts'

import { startMailServer } from '../../server/test/identity/mail-server.ts'
import { logIn } from '../../server/test/identity/people.ts'
import { until } from '../../server/test/support/until.ts'
import { isTooWide, violationsOf } from './axe.ts'
import { canvasTexts, keepCanvasTexts } from './canvas-texts.ts'
import { openHub, openView, PHONE, signInAsAdmin, useSession, type View, WIDE } from './steps.ts'

const MANY_LINES = 3_000
const SCRIPT = [
  'plain <b>text</b> <script>alert(1)</script>',
  '\u001b[31mred\u001b[0m and \u001b[1;32mbold green\u001b[0m',
  'progress 1 %\rprogress 50 %\rprogress 100 %',
  'WARN careful',
  'Error: it broke',
  '\u202egnp.exe',
  'last of the start',
].join('\n')

/** The texts of the drawn lines, by their number. */
function linesOf(page: Page): Promise<Record<string, string>> {
  return page
    .locator('[data-line]')
    .evaluateAll((lines) =>
      Object.fromEntries(
        lines.map((line) => [line.getAttribute('data-line') ?? '', line.lastElementChild?.textContent ?? '']),
      ),
    )
}

const log = (page: Page) => page.getByRole('group', { name: 'Log' })

test('a lobby and its log', async (t) => {
  const mail = await startMailServer(t)
  const hub = await openHub(t, { roles: 'api,matchmaker,runner,edge', env: { MUSTER_SMTP_URL: mail.url } })
  if (hub === null) return
  const { platform } = hub
  const game = await talkingGame(platform, { standard_input: true })
  const lobby_id = await talkingLobby(platform, game, { std_out: `${SCRIPT}\n`, std_err: 'a complaint\n' })
  const path = `/games/${game.game_id}/namespaces/${game.namespace_id}/lobbies/${lobby_id}`
  /** The page of the lobby, as the operator sees it. */
  async function openLobby(line = '', options: BrowserContextOptions = {}): Promise<View> {
    const view = await openView(hub!, options)
    await signInAsAdmin(hub!, view)
    await view.page.goto(`${hub!.url}${path}${line}`)
    return view
  }

  await t.test('the log shows what a person sees of each line, and keeps markup as text', async () => {
    const view = await openLobby()
    const { page } = view
    await page.getByText('last of the start').waitFor()
    // The two streams arrive in their own time.
    await page.getByText('a complaint').waitFor()
    const lines = await linesOf(page)
    assert.equal(lines.L1, 'plain <b>text</b> <script>alert(1)</script>')
    assert.equal(lines.L2, 'red and bold green')
    assert.equal(lines.L3, 'progress 100 %')
    assert.equal(lines.L6, '\\u{202e}gnp.exe')
    assert.equal(lines.E1, 'a complaint')
    assert.equal(await page.locator('[data-line] b, [data-line] script').count(), 0)
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('the charts of a lobby that has only begun show its first minute', async () => {
    const view = await openView(hub)
    const { page } = view
    await keepCanvasTexts(page)
    // The page gets the first of the real values alone, as in the first seconds of a lobby.
    await page.route('**/usage', async (route) => {
      const usage = (await (await route.fetch()).json()) as { points: unknown[] }
      await route.fulfill({ json: { ...usage, points: usage.points.slice(0, 1) } })
    })
    await signInAsAdmin(hub, view)
    await page.goto(`${hub.url}${path}`)
    await page.getByRole('img', { name: /^Busy cores: / }).waitFor()
    const labels = await until('the axes to be drawn', async () => {
      const texts = (await canvasTexts(page)).map(({ text }) => text)
      return texts.length > 0 && texts
    })
    assert.ok(
      labels.some((text) => /^\d\d:\d\d(:\d\d)?$/.test(text)) && labels.every((text) => !/\b20\d\d\b/.test(text)),
      labels.join(' '),
    )
    await view.context.close()
  })

  await t.test(
    'filters find lines by text, by expression and by level, and say what is wrong with an expression',
    async () => {
      const view = await openLobby()
      const { page } = view
      await page.getByText('last of the start').waitFor()
      const shown = async (numbers: string[]): Promise<void> => {
        await until(`only ${numbers}`, async () => {
          const lines = Object.keys(await linesOf(page))
          return JSON.stringify(lines.sort()) === JSON.stringify(numbers)
        })
      }
      const text = page.getByLabel('Lines that contain')
      await text.fill('BROKE')
      await shown(['L5'])
      await text.fill('^(Error|WARN)\\b')
      await page.getByLabel('Regular expression').check()
      await shown(['L4', 'L5'])
      await text.fill('(')
      await page.getByText(/Unterminated group/).waitFor()
      await text.fill('')
      await page.getByLabel('Level').selectOption('error')
      await shown(['L5'])
      await page.getByLabel('Level').selectOption('warn')
      await shown(['L4', 'L5'])
      await page.getByLabel('Level').selectOption('all')
      await page.getByLabel('Stream').selectOption('stderr')
      await until('only the standard error', async () => {
        const lines = Object.keys(await linesOf(page))
        return lines.length > 0 && lines.every((line) => line.startsWith('E'))
      })
      assert.deepEqual(view.faults, [])
      await view.context.close()
    },
  )

  await t.test(
    'a log of many lines follows its end, pauses when scrolled up, and goes from error to error by n and p',
    async () => {
      const view = await openLobby()
      const { page } = view
      await page.getByText('last of the start').waitFor()
      await say(platform, lobby_id, 'line number #\n', MANY_LINES)
      await page.getByText(`line number ${MANY_LINES - 1}`, { exact: true }).waitFor()
      assert.ok((await page.locator('[data-line]').count()) < 200, 'only visible lines are drawn')
      await log(page).focus()
      await page.keyboard.press('Home')
      await page.getByText('Paused: new lines arrive below.').waitFor()
      await say(platform, lobby_id, 'after the pause #\n', 1)
      await page.getByText(`${(MANY_LINES + 9).toLocaleString('en')} lines`).waitFor()
      assert.equal(await page.getByText('after the pause 0').count(), 0, 'it does not follow')
      await say(platform, lobby_id, 'fatal end\n', 1)
      await log(page).focus()
      await page.keyboard.press('n')
      await page.locator('[data-line=L5].bg-mark').waitFor()
      await until('the second error', async () => {
        await page.keyboard.press('n')
        return (await page.locator('[data-line].bg-mark').getByText('fatal end').count()) === 1
      })
      await page.keyboard.press('p')
      await page.locator('[data-line=L5].bg-mark').waitFor()
      await page.getByRole('button', { name: 'Follow' }).click()
      await page.getByText('after the pause 0').waitFor()
      await page.getByLabel('Wrap').check()
      await page.getByText('after the pause 0').waitFor()
      assert.deepEqual(view.faults, [])
      await view.context.close()
    },
  )

  await t.test('a link to a line opens the log there', async () => {
    const view = await openLobby('#L1500')
    const { page } = view
    await page.locator('[data-line=L1500].bg-mark').waitFor()
    await page.locator('[data-line=L1503] button').click()
    await page.waitForURL(/#L1503$/)
    await page.locator('[data-line=L1503].bg-mark').waitFor()
    await view.context.close()
  })

  await t.test('a click in the timeline shows the log at that moment', async () => {
    const view = await openLobby()
    const { page } = view
    await page.getByText('after the pause 0').waitFor()
    await page.getByRole('button', { name: 'server started' }).click()
    await page.getByText('plain <b>text</b>').waitFor()
    await page.getByText('Paused: new lines arrive below.').waitFor()
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('the console writes a line, and the arrow keys bring it back', async () => {
    const view = await openLobby()
    const { page } = view
    const input = page.getByLabel('Line for the standard input of the server')
    await input.fill('hello from the hub')
    await page.keyboard.press('Enter')
    await page.getByText('read hello from the hub').waitFor()
    await until('the field is empty', async () => (await input.inputValue()) === '')
    await input.focus()
    await page.keyboard.press('ArrowUp')
    assert.equal(await input.inputValue(), 'hello from the hub')
    await page.keyboard.press('ArrowDown')
    assert.equal(await input.inputValue(), '')
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('the download has the whole log', async () => {
    const view = await openLobby()
    const { page } = view
    const downloading = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download stdout' }).click()
    const download = await downloading
    assert.equal(download.suggestedFilename(), 'stdout.txt')
    await view.context.close()
  })

  await t.test('a viewer sees the lobby without its log, its console and the buttons that change it', async () => {
    const person = await logIn(platform, mail, 'viewer@example.com')
    await platform.ctx.db
      .insertInto('group_members')
      .values({ group_id: game.group_id, user_id: person.user_id, role: 'viewer', join_ts: new Date() })
      .execute()
    const view = await openView(hub)
    const { page } = view
    await useSession(hub, view, person.cookie)
    await page.goto(`${hub.url}${path}`)
    await page.getByText('server ready').waitFor()
    await page.getByRole('heading', { level: 2, name: 'Players' }).waitFor()
    assert.equal(await page.getByRole('button', { name: /^(Stop|Remove|Send)/ }).count(), 0)
    assert.equal(await log(page).count(), 0)
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  for (const { colorScheme, viewport } of [
    { colorScheme: 'light', viewport: WIDE },
    { colorScheme: 'dark', viewport: PHONE },
  ] as const) {
    await t.test(
      `${colorScheme}, ${viewport.width} wide: axe finds nothing, and nothing scrolls sideways`,
      async () => {
        const view = await openLobby('#L2', { colorScheme, viewport, bypassCSP: true })
        const { page } = view
        await page.locator('[data-line=L2].bg-mark').waitFor()
        await page.getByRole('img', { name: /^Memory/ }).waitFor()
        assert.deepEqual(await violationsOf(page), [])
        assert.equal(await isTooWide(page), false)
        await view.context.close()
      },
    )
  }

  await t.test(
    'a player is removed, and after a stop the page says how the lobby ended, and the log is complete',
    async () => {
      const view = await openLobby()
      const { page } = view
      const players = page.getByRole('table', { name: 'Players' }).locator('tbody tr')
      const seat = await game.find()
      assert.equal(seat.lobby.lobby_id, lobby_id)
      await players
        .filter({ hasText: platform.playerIdOf(seat).slice(-8) })
        .getByRole('button', { name: 'Remove' })
        .click()
      await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click()
      await page.getByText('The player was removed.').waitFor()
      await players.filter({ hasText: platform.playerIdOf(seat).slice(-8) }).waitFor({ state: 'detached' })
      await page.getByRole('button', { name: 'Stop', exact: true }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Stop', exact: true }).click()
      await page.getByText('ended: exit code 0').waitFor()
      await page.getByText('a developer asked for it', { exact: true }).waitFor()
      await page.getByText('The log is complete: the server has ended.').waitFor()
      await page.getByRole('button', { name: 'Stop', exact: true }).waitFor({ state: 'detached' })
      assert.deepEqual(view.faults, [])
      await view.context.close()
    },
  )
})
