// The pages of numbers and records: analytics, key-value entries, the audit log and billing.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import test from 'node:test'
import { getGameById, getKvEntry, putKvEntry } from '@musterhost/contract'
import { until } from '../../server/test/support/until.ts'
import { canvasTexts, keepCanvasTexts } from './canvas-texts.ts'
import { openPlayedHub, type PlayedHub } from './played-hub.ts'
import { openView, PHONE, signInAsAdmin } from './steps.ts'

const HOUR_MS = 3_600_000

const COUNT_WAITS_SQL = `insert into match_waits select $1, width, date_bin(make_interval(secs => width), now(), 'epoch'), 20, 3
  from unnest(array[60, 600, 3600]) as width`

test('numbers and records', async (t) => {
  const hub = await openPlayedHub(t)
  if (hub === null) return
  const { client } = hub.platform
  const { game_id, namespace_id, group_id } = hub.game
  const address = `${hub.url}/games/${game_id}/namespaces/${namespace_id}`
  await client.call(putKvEntry, { body: { namespace_id, key: 'players/ada', value: { name: '<b>Ada</b>' } } })
  await client.call(putKvEntry, { body: { namespace_id, key: 'motd', value: 'hello' } })

  await t.test(
    'analytics show the players of now, as a chart, a table and a CSV file, beside the previous period',
    async () => {
      const view = await openView(hub)
      const { page } = view
      await keepCanvasTexts(page)
      await signInAsAdmin(hub, view)
      await page.goto(`${address}/analytics`)
      await page.getByRole('img', { name: /^Players: from .*; at the end Players 2$/ }).waitFor()
      const waits = page.getByRole('heading', { name: 'Waits for a match' })
      assert.equal(await waits.count(), 0, 'no game mode has rules')
      await hub.platform.ctx.pool.query(COUNT_WAITS_SQL, [namespace_id])
      await page.reload()
      await waits.waitFor()
      await page.getByText('Deploys in this time:').getByRole('link', { name: '1.0.0', exact: true }).waitFor()
      await until('the chart to mark the deploy', async () =>
        (await canvasTexts(page)).some(({ text }) => text === '1.0.0'),
      )
      await page.getByLabel('Compare with the previous period').click()
      await page.waitForURL(/compare=yes/)
      await page.getByRole('img', { name: /^Players: .*Players 2, Previous period 0$/ }).waitFor()
      await page.getByRole('button', { name: 'Table', exact: true }).first().click()
      const table = page.getByRole('table', { name: 'Values: Players' })
      await table.getByRole('columnheader', { name: 'Previous period' }).waitFor()
      await table.getByRole('cell', { name: '2', exact: true }).first().waitFor()
      const download = page.waitForEvent('download')
      await page.getByRole('button', { name: 'CSV: Players' }).click()
      const file = await download
      const text = await readFile((await file.path()) ?? '', 'utf8')
      assert.equal(file.suggestedFilename(), 'players.csv')
      assert.match(text, /^time,Players,"Previous period"\r\n/)
      assert.match(text, /T[\d:.]+Z,2,0\r\n$/)
      assert.deepEqual(view.faults, [])
      await view.context.close()
    },
  )

  await t.test('a marked part of a chart is zoomed into, and Back zooms out', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${address}/analytics`)
    const plot = page.locator('.u-over').first()
    await plot.waitFor()
    const box = (await plot.boundingBox())!
    const middle = box.y + box.height / 2
    await page.mouse.move(box.x + box.width * 0.4, middle)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width * 0.6, middle, { steps: 4 })
    await page.mouse.up()
    await page.waitForURL(/from=\d+&to=\d+/)
    const { searchParams } = new URL(page.url())
    const minutes = (Number(searchParams.get('to')) - Number(searchParams.get('from'))) / 60_000
    assert.ok(minutes > 8 && minutes < 16, `${minutes} minutes of an hour`)
    await page.getByRole('button', { name: 'Zoom out' }).waitFor()
    await page.goBack()
    await page.getByRole('button', { name: 'Zoom out' }).waitFor({ state: 'detached' })
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('a chart says its values by keyboard, with times in 24 hours and labels apart on a phone', async () => {
    const view = await openView(hub, { viewport: PHONE, timezoneId: 'UTC' })
    const { page } = view
    await keepCanvasTexts(page)
    await signInAsAdmin(hub, view)
    await page.goto(`${address}/analytics`)
    const slider = page.getByRole('slider', { name: 'Players at an instant', exact: true })
    await slider.waitFor({ state: 'attached' })
    await slider.focus()
    const last = await slider.getAttribute('aria-valuetext')
    assert.match(last ?? '', /, \d\d:\d\d:\d\d: Players 2$/)
    await page.keyboard.press('Home')
    const first = await slider.getAttribute('aria-valuetext')
    assert.match(first ?? '', /: Players 0$/)
    assert.notEqual(first, last)
    const legend = page.locator('.u-legend').first().locator('.u-value')
    assert.deepEqual(await legend.allTextContents(), first?.split(': Players '))
    const labels = await canvasTexts(page)
    const times = labels.filter(({ text }) => /^\d\d:\d\d$/.test(text))
    assert.ok(times.length > 2, `labels: ${labels.map(({ text }) => text).join(' ')}`)
    assert.deepEqual(
      labels.filter(({ text }) => /[ap]m$/.test(text)),
      [],
    )
    const instants = new Map(times.map(({ text, left, width }) => [text, { left, width }]))
    const placed = [...instants.values()].sort((one, other) => one.left - other.left)
    for (const [at, { left }] of placed.entries()) {
      const before = placed[at - 1]
      assert.ok(before === undefined || left - before.left > before.width, 'two labels overlap')
    }
    await page.getByRole('region', { name: 'Play time' }).getByText('No value in this time.').waitFor()
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('billing adds up a range of months by what is chosen, and saves the same as CSV', async () => {
    const [month, before] = [1, 2].map((back) => monthBack(back))
    await insertRun(hub, `${month}-10`, 3)
    await insertRun(hub, `${before}-10`, 2)
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${hub.url}/groups/${group_id}/billing`)
    await page.getByLabel('From').selectOption(before!)
    await page.getByLabel('To', { exact: true }).selectOption(month!)
    const table = page.getByRole('table', { name: 'Usage' })
    await table.getByRole('cell', { name: '2', exact: true }).waitFor()
    await table.getByRole('cell', { name: '3', exact: true }).waitFor()
    await page.getByText('5 core hours', { exact: true }).waitFor()
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'CSV' }).click()
    const file = await download
    const text = await readFile((await file.path()) ?? '', 'utf8')
    assert.equal(file.suggestedFilename(), `usage-${before}-to-${month}.csv`)
    assert.match(text, /^month,game_id,game,region_id,region,core_time_ms,cost_micros,currency\r\n/)
    assert.match(text, new RegExp(`${month},${game_id},.*,10800000,`))
    await page.getByLabel('Sum by').selectOption('Region')
    await table.getByRole('cell', { name: '5', exact: true }).waitFor()
    assert.equal(await table.getByRole('columnheader', { name: 'Month' }).count(), 0)
    await page.goBack()
    await table.getByRole('columnheader', { name: 'Month' }).waitFor()
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('an entry is read, changed with a check of its JSON, and deleted after a question', async () => {
    const view = await hub.viewAs('developer')
    const { page } = view
    await page.goto(`${address}/kv`)
    await page.getByRole('button', { name: 'motd', exact: true }).waitFor()
    await page.getByRole('button', { name: 'players', exact: true }).focus()
    await page.keyboard.press('Enter')
    await page.waitForURL(/directory=players/)
    await page.getByText('{"name":"<b>Ada</b>"}').waitFor()
    await page.getByRole('button', { name: 'players/ada', exact: true }).click()
    const value = page.getByLabel('Value (JSON)')
    await value.fill('{"name":')
    await page.getByText('This is no JSON').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Write', exact: true }).isDisabled(), true)
    await value.fill('{"name":"Grace"}')
    await page.getByRole('button', { name: 'Write', exact: true }).click()
    // The text is also that of the field, so only the table shows that the entry is written.
    await page.getByRole('cell', { name: '{"name":"Grace"}', exact: true }).waitFor()
    const read = () => client.call(getKvEntry, { query: { namespace_id, key: 'players/ada' } })
    assert.deepEqual((await read()).value, { name: 'Grace' })
    await page.getByRole('button', { name: 'Delete players/ada' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('No entry is directly in this directory.').waitFor()
    assert.equal((await read()).value, null)
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test(
    'a namespace whose version has no kv says how to add it, and offers nothing that would be refused',
    async () => {
      const { game } = await client.call(getGameById, { params: { game_id } })
      const other = game.namespaces.find((one) => one.namespace_id !== namespace_id)!
      const view = await hub.viewAs('developer')
      const { page } = view
      await page.goto(`${hub.url}/games/${game_id}/namespaces/${other.namespace_id}/kv`)
      await page.getByText('has no kv section, so this namespace keeps no entries.').waitFor()
      await page.getByRole('link', { name: 'New version' }).waitFor()
      assert.equal(await page.getByRole('button', { name: 'Write an entry' }).count(), 0)
      assert.equal(await page.getByRole('alert').count(), 0)
      assert.deepEqual(view.faults, [])
      await view.context.close()
    },
  )

  await t.test('a viewer reads entries and usage, but changes nothing and does not read the audit log', async () => {
    const view = await hub.viewAs('viewer')
    const { page } = view
    await page.goto(`${address}/kv`)
    await page.getByRole('button', { name: 'motd', exact: true }).waitFor()
    assert.equal(await page.getByRole('button', { name: /Delete|Write an entry/ }).count(), 0)
    await page.goto(`${hub.url}/groups/${group_id}/billing`)
    await page.getByRole('heading', { name: 'By game, region and month' }).waitFor()
    await page.goto(`${hub.url}/groups/${group_id}/audit`)
    await page.getByText('Developers and owners of the group may read its audit log.').waitFor()
    await view.context.close()
  })

  await t.test('the audit log names who changed what, and filters by operation', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${hub.url}/groups/${group_id}/audit`)
    const table = page.getByRole('table', { name: 'Audit log' })
    await table.getByText('games.createGame', { exact: true }).waitFor()
    await page.getByLabel('Operation', { exact: true }).fill('games.namespaces.updateGameNamespaceVersion')
    await page.keyboard.press('Enter')
    await table.getByText('games.createGame', { exact: true }).waitFor({ state: 'detached' })
    await table.getByText(hub.game.version_id).waitFor()
    await page.goto(`${hub.url}/platform/audit`)
    await table.getByText('accessToken.completeVerification').first().waitFor()
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })
})

/** As the page writes it: "2026-11". */
function monthBack(back: number): string {
  const now = new Date()
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back)).toISOString().slice(0, 7)
}

/** A lobby of the game that ran on one core from midnight of a day. */
async function insertRun({ platform, game }: PlayedHub, day: string, hours: number): Promise<void> {
  const start = new Date(`${day}T00:00:00Z`)
  const end = new Date(start.getTime() + hours * HOUR_MS)
  await platform.ctx.pool.query(
    `insert into lobby_runs (lobby_id, runner_id, driver, handle, ports, group_id, game_id, region, cpu_cores, start_ts, exit_ts)
     values (gen_random_uuid(), 'here', 'process', '{}', '{}', $1, $2, 'local', 1, $3, $4)`,
    [game.group_id, game.game_id, start, end],
  )
}
