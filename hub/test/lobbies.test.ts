// The pages of a namespace's lobbies, in a real Chromium. live-view.test.ts compares them with the tables for longer.
import assert from 'node:assert/strict'
import test from 'node:test'

import { startMailServer } from '../../server/test/identity/mail-server.ts'
import { logIn } from '../../server/test/identity/people.ts'
import type { TestGame } from '../../server/test/support/platform.ts'
import { until } from '../../server/test/support/until.ts'
import { isTooWide, violationsOf } from './axe.ts'
import { CHANGES_WITHOUT_PROCESSES, LIVE_LIMITS, LIVE_MODES, LiveChanges } from './live-changes.ts'
import { requireTrueTable } from './live-table.ts'
import { type OpenHub, openHub, openView, PHONE, signInAsAdmin, useSession, type View, WIDE } from './steps.ts'

const CHANGES_MS = 2_000
const SEED = 14

type Scene = { hub: OpenHub; game: TestGame; path: string }

async function openLobbies({ hub, path }: Scene, query = ''): Promise<View> {
  const view = await openView(hub)
  await signInAsAdmin(hub, view)
  await view.page.goto(`${hub.url}${path}${query}`)
  await view.page.getByText('live', { exact: true }).waitFor()
  return view
}

test('the live lobbies of a namespace', async (t) => {
  const mail = await startMailServer(t)
  const hub = await openHub(t, { env: { MUSTER_SMTP_URL: mail.url } })
  if (hub === null) return
  const { platform } = hub
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: LIVE_MODES }, limits: LIVE_LIMITS })
  const scene: Scene = {
    hub,
    game,
    path: `/games/${game.game_id}/namespaces/${game.namespace_id}/lobbies`,
  }

  await t.test('stalled lobbies and those of another version are what the tables have', async () => {
    const view = await openLobbies(scene)
    await view.page.getByText('No lobby runs.').waitFor()
    await new LiveChanges(platform, game, CHANGES_WITHOUT_PROCESSES, SEED).run(CHANGES_MS)
    await requireTrueTable(platform, game, view.page)
    const seat = await game.find()
    await platform.stallRun(seat.lobby.lobby_id)
    await platform.deploy(game, LIVE_MODES)
    await game.find()
    assert.ok((await requireTrueTable(platform, game, view.page)) > 1)
    assert.ok((await view.page.getByText('stalled', { exact: true }).count()) > 0)
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('filters and the order are in the address, and Back returns to the view before', async () => {
    const view = await openLobbies(scene, '?mode=duel')
    const { page } = view
    const modes = () => page.locator('tbody tr td:nth-child(5)').allInnerTexts()
    await game.find({ game_modes: ['duel'] })
    await until('only duels', async () => {
      const shown = await modes()
      return shown.length > 0 && shown.every((mode) => mode === 'duel')
    })
    await page.getByRole('button', { name: 'Players', exact: true }).click()
    await page.waitForURL(/sort=players/)
    await page.getByLabel('Game mode').selectOption('')
    await until('all modes', async () => (await modes()).includes('default'))
    await page.goBack()
    await until('only duels again', async () => !(await modes()).includes('default'))
    await page.getByRole('button', { name: /stalled$/ }).click()
    await page.getByText('No running lobby passes the filters.').waitFor()
    await page.getByRole('button', { name: 'Show all' }).click()
    await until('all of them', async () => (await modes()).length > 2)
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('selected lobbies are stopped by keyboard, after a confirmation', async () => {
    const view = await openLobbies(scene)
    const { page } = view
    const boxes = page.getByRole('checkbox')
    const all = await boxes.count()
    const ids: string[] = []
    for (const at of [0, 1]) {
      ids.push((await page.locator('tbody tr').nth(at).locator('a').getAttribute('title')) ?? '')
      await boxes.nth(at).focus()
      await page.keyboard.press('Space')
    }
    await page.getByRole('button', { name: 'Stop 2 lobbies' }).focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog')
    await dialog.waitFor()
    assert.match((await dialog.textContent()) ?? '', /cannot be undone/)
    await dialog.getByRole('button', { name: 'Stop', exact: true }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('2 lobbies stopped.').waitFor()
    await until('the rows to be gone', async () => (await boxes.count()) === all - 2)
    const { rows } = await platform.ctx.pool.query('select from lobbies where lobby_id = any($1) and stop_ts is null', [
      ids,
    ])
    assert.equal(rows.length, 0)
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('the history has every lobby that ran, page by page, and how it ended', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${hub.url}${scene.path}/history?outcome=ended`)
    await page.getByRole('table', { name: 'History of lobbies' }).waitFor()
    assert.equal(await page.locator('tbody').getByText('running', { exact: true }).count(), 0)
    await page.getByLabel('Outcome').selectOption('')
    for (const more = page.getByRole('button', { name: 'Load more' }); (await more.count()) > 0; ) {
      const before = await page.locator('tbody tr').count()
      await more.click()
      await until('another page', async () => (await page.locator('tbody tr').count()) > before)
    }
    const { rows } = await platform.ctx.pool.query<{ lobby_id: string }>(
      'select lobby_id from lobbies where namespace_id = $1 order by create_ts desc, lobby_id desc',
      [game.namespace_id],
    )
    const shown = await page
      .locator('tbody tr a')
      .evaluateAll((links) => links.map((link) => link.getAttribute('title') ?? ''))
    assert.deepEqual(
      shown,
      rows.map(({ lobby_id }) => lobby_id),
    )
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('a viewer sees the lobbies, and nothing that changes them', async () => {
    const person = await logIn(platform, mail, 'viewer@example.com')
    await platform.ctx.db
      .insertInto('group_members')
      .values({ group_id: game.group_id, user_id: person.user_id, role: 'viewer', join_ts: new Date() })
      .execute()
    const view = await openView(hub)
    await useSession(hub, view, person.cookie)
    await view.page.goto(`${hub.url}${scene.path}`)
    await view.page.getByText('live', { exact: true }).waitFor()
    await view.page.getByRole('table', { name: 'Running lobbies' }).waitFor()
    assert.equal(await view.page.getByRole('checkbox').count(), 0)
    assert.equal(await view.page.getByRole('button', { name: /^(Stop|Select)/ }).count(), 0)
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
        const view = await openView(hub, { colorScheme, viewport, bypassCSP: true })
        await signInAsAdmin(hub, view)
        await view.page.goto(`${hub.url}${scene.path}`)
        await view.page.getByRole('table', { name: 'Running lobbies' }).waitFor()
        assert.deepEqual(await violationsOf(view.page), [])
        assert.equal(await isTooWide(view.page), false)
        await view.context.close()
      },
    )
  }
})
