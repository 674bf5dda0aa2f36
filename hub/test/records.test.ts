// The pages of numbers and records: analytics, key-value entries, the audit log and billing.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import test from 'node:test'
import { getKvEntry, putKvEntry } from '@muster/contract'
import { openPlayedHub } from './insight-steps.ts'
import { openView, signInAsAdmin } from './steps.ts'

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
      await signInAsAdmin(hub, view)
      await page.goto(`${address}/analytics`)
      await page.getByRole('img', { name: /^Players: from .*; at the end Players 2$/ }).waitFor()
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
    await page.getByText('{"name":"Grace"}').waitFor()
    const read = () => client.call(getKvEntry, { query: { namespace_id, key: 'players/ada' } })
    assert.deepEqual((await read()).value, { name: 'Grace' })
    await page.getByRole('button', { name: 'Delete players/ada' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('No entry is directly in this directory.').waitFor()
    assert.equal((await read()).value, null)
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('a viewer reads entries and usage, but changes nothing and does not read the audit log', async () => {
    const view = await hub.viewAs('viewer')
    const { page } = view
    await page.goto(`${address}/kv`)
    await page.getByRole('button', { name: 'motd', exact: true }).waitFor()
    assert.equal(await page.getByRole('button', { name: /Delete|Write an entry/ }).count(), 0)
    await page.goto(`${hub.url}/groups/${group_id}/billing`)
    await page.getByRole('heading', { name: 'By game and region' }).waitFor()
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
