// Export and erasure of a player, in the settings of a game.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import test from 'node:test'
import { putKvEntry, setupIdentity } from '@musterhost/contract'
import { isTooWide, violationsOf } from './axe.ts'
import { dialogCloses, dialogOpens, press, tabTo } from './keyboard-steps.ts'
import { openHub, openView, PHONE, signInAsAdmin } from './steps.ts'

test('the data of a player', async (t) => {
  const hub = await openHub(t, { roles: 'api,matchmaker,edge' })
  if (hub === null) return
  const game = await hub.platform.game()
  const { identity } = await game.player.call(setupIdentity, { body: {} })
  const { identity_id } = identity
  const entry = { namespace_id: game.namespace_id, key: `saves/${identity_id}`, value: 'a level' }
  await hub.platform.client.call(putKvEntry, { body: entry })
  const view = await openView(hub)
  await signInAsAdmin(hub, view)
  const { page } = view
  const address = `${hub.url}/games/${game.game_id}/settings`

  await t.test('a text that is no player is refused at the field', async () => {
    await page.goto(address)
    await tabTo(page, /^Player/)
    await page.keyboard.type('nowhere')
    await press(page, /^Export the data$/)
    await page.getByText('The address must be an IPv4 or IPv6 address').waitFor()
  })

  await t.test('by keyboard, the file is saved, and then the player is erased', async () => {
    await page.goto(address)
    await tabTo(page, /^Player/)
    await page.keyboard.type(identity_id)
    const saving = page.waitForEvent('download')
    await press(page, /^Export the data$/)
    const text = await readFile(await (await saving).path(), 'utf8')
    assert.match(text, /a level/)
    await press(page, /^Erase the data$/)
    await dialogOpens(page)
    await press(page, /^Erase the data$/)
    await dialogCloses(page)
    await page.getByRole('table', { name: 'Erasures' }).getByText('kv 1').waitFor()
  })

  await t.test('axe finds nothing in both themes, and nothing scrolls sideways on a phone', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const phone = await openView(hub, { viewport: PHONE, colorScheme, bypassCSP: true })
      await signInAsAdmin(hub, phone)
      await phone.page.goto(address)
      await phone.page.getByRole('table', { name: 'Erasures' }).waitFor()
      assert.deepEqual(await violationsOf(phone.page), [])
      assert.equal(await isTooWide(phone.page), false)
      await phone.context.close()
    }
  })
  assert.deepEqual(view.faults, [])
  await view.context.close()
})
