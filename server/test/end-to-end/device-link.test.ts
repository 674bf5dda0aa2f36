// The page of a device link in a browser: a person logs in there, sees which program asks, and confirms or refuses.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import {
  consumeGroupInvite,
  createGroup,
  createGroupInvite,
  getDeviceLink,
  inspectAuth,
  prepareDeviceLink,
} from '@muster/contract'
import { createClient } from '@muster/contract/client'
import { newGame, refused } from '../cloud/steps.ts'
import { startMailServer } from '../identity/mail-server.ts'
import { codeIn, logIn } from '../identity/people.ts'
import { startPlatform } from '../platform.ts'
import { openBrowser, openPage } from './browser.ts'

const AXE = fileURLToPath(import.meta.resolve('axe-core/axe.min.js'))
type AxeWindow = { axe: { run: () => Promise<{ violations: { id: string }[] }> } }

test('a person confirms or refuses the program that shows a device link, on the page of the link', async (t) => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const mail = await startMailServer(t)
  const env = { MUSTER_SMTP_URL: mail.url, MUSTER_RATE_LIMIT_LOGIN: '0' }
  const platform = await startPlatform(t, { roles: 'api,edge', env })
  const { game_id, group_id } = await newGame(platform)
  const email = 'ada@example.com'
  const ada = await logIn(platform, mail, email)
  for (const [id, role] of [
    [group_id, 'developer'],
    [(await platform.client.call(createGroup, { body: { display_name: 'Others' } })).group_id, 'viewer'],
  ] as const) {
    const { code } = await platform.client.call(createGroupInvite, { params: { group_id: id }, body: { role } })
    await ada.client.call(consumeGroupInvite, { params: { group_invite_code: code } })
  }
  const program = createClient({ url: platform.api_url })
  const link = await program.call(prepareDeviceLink, {})
  const wait = ({ device_link_token }: { device_link_token: string }) =>
    program.call(getDeviceLink, { query: { device_link_token, watch_index: 'pending' } })

  // Without a session the page lets in by the code from a mail, as often as it is mistyped.
  const page = await openPage(browser, link.device_link_url)
  const faults: string[] = []
  page.on('pageerror', ({ message }) => faults.push(message))
  await page.getByText('Log in to go on.').waitFor()
  assert.ok((await page.locator('main').textContent())?.includes(link.device_link_id.slice(-8)))
  await page.getByLabel('Address').fill(email)
  await page.getByRole('button', { name: 'Send a code' }).click()
  await page.getByLabel('Code from the mail').fill('AAAAAAAA')
  await page.locator('#code').getByRole('button').click()
  await page.getByText('This is not the code. Look again.').waitFor()
  await page.getByLabel('Code from the mail').fill(codeIn(mail, email))
  await page.locator('#code').getByRole('button').click()
  await page.getByText('Choose a game.').waitFor()
  assert.equal(await page.locator('#name').textContent(), 'ada')
  assert.deepEqual(await page.locator('option').allInnerTexts(), ['Game (Developers)'])
  // The page's policy lets no script be added to it: the checker is run by the browser itself.
  await page.evaluate(await readFile(AXE, 'utf8'))
  const { violations } = await page.evaluate(() => (globalThis as unknown as AxeWindow).axe.run())
  assert.deepEqual(
    violations.map(({ id }) => id),
    [],
  )

  const confirmed = wait(link)
  await page.getByRole('button', { name: 'Confirm' }).click()
  await page.getByText('The program is let in.').waitFor()
  const { cloud_token } = await confirmed
  const agent = await createClient({ url: platform.api_url, token: cloud_token! }).call(inspectAuth, {})
  assert.deepEqual(agent, { agent: { game_cloud: { game_id } } })

  // With a session of this browser the page asks at once.
  const unwanted = await program.call(prepareDeviceLink, {})
  await page.goto(unwanted.device_link_url)
  await page.getByText('Choose a game.').waitFor()
  const ended = refused('CLOUD_DEVICE_LINK_INVALID', wait(unwanted))
  await page.getByRole('button', { name: 'Refuse' }).click()
  await page.getByText('The program is refused.').waitFor()
  await ended
  await page.reload()
  await page.getByText('This link is not valid').waitFor()
  assert.deepEqual(faults, [])
})
