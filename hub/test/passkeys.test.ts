// Passkeys in a real Chromium with a virtual authenticator: added at the account page, used by the keyboard to sign in, and
// asked for before a game is deleted.
import assert from 'node:assert/strict'
import test from 'node:test'
import { createGame, createGroup, listAuditEvents } from '@musterhost/contract'
import type { CDPSession } from 'playwright-core'
import { isTooWide, violationsOf } from './axe.ts'
import { dialogCloses, dialogOpens, press, tabTo } from './keyboard-steps.ts'
import { type OpenHub, openHub, openView, PHONE, signInAsAdmin, type View } from './steps.ts'

const BUTTON = 'Sign in with a passkey'
/** Longer than a confirmation holds. */
const LATE_MS = 6 * 60_000

type Device = { session: CDPSession; authenticatorId: string }

test('people sign in to the hub with passkeys, and confirm with them', async (t) => {
  const hub = await openHub(t)
  if (hub === null) return
  const view = await openView(hub)
  const device = await giveDevice(view)
  await signInAsAdmin(hub, view)
  await t.test('a passkey is added at the account page, and named', () => add(hub, view, device))
  await t.test('after a sign-out, the keyboard signs in with the passkey alone', () => signIn(hub, view))
  await t.test('a game is deleted after the passkey confirmed it in the same dialog, and not without', () =>
    deleteGameWith(hub, view, device),
  )
  await t.test('the passkey is renamed and removed, and signs in no more', () => remove(hub, view))
  assert.deepEqual(view.faults, [])
  await t.test('on a dark phone, axe finds nothing on both pages, and nothing scrolls sideways', () => examine(hub))
})

/** An authenticator inside the browser, whose person is always there. */
async function giveDevice({ context, page }: View): Promise<Device> {
  const session = await context.newCDPSession(page)
  await session.send('WebAuthn.enable')
  const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
    },
  })
  return { session, authenticatorId }
}

async function add(hub: OpenHub, { page }: View, { session, authenticatorId }: Device): Promise<void> {
  await page.goto(`${hub.url}/account`)
  await page.getByText('You have no passkey.').waitFor()
  await page.getByRole('button', { name: 'Add a passkey' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('Laptop')
  await dialog.getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('button', { name: 'Rename Laptop' }).waitFor()
  const { credentials } = await session.send('WebAuthn.getCredentials', { authenticatorId })
  assert.deepEqual(
    credentials.map(({ isResidentCredential, rpId }) => [isResidentCredential, rpId]),
    [[true, new URL(hub.url).hostname]],
  )
}

async function signIn(hub: OpenHub, { page }: View): Promise<void> {
  await page.getByRole('button', { name: 'Sign out' }).first().click()
  await page.waitForURL(/\/sign-in(?:\?|$)/)
  await page.goto(`${hub.url}/sign-in?to=%2Faccount`)
  await page.getByRole('button', { name: BUTTON }).waitFor()
  await press(page, new RegExp(`^${BUTTON}$`))
  await page.getByRole('heading', { level: 1, name: 'Your account' }).waitFor()
  await page.getByText('with Laptop').waitFor()
}

async function deleteGameWith(hub: OpenHub, { page }: View, { session, authenticatorId }: Device): Promise<void> {
  const { platform } = hub
  const { group_id } = await platform.client.call(createGroup, { body: { display_name: 'Studio' } })
  const body = { display_name: 'Doomed', name_id: 'doomed', developer_group_id: group_id }
  const { game_id } = await platform.client.call(createGame, { body })
  platform.advance(LATE_MS)
  await page.goto(`${hub.url}/games/${game_id}/settings`)
  await page.getByRole('button', { name: 'Delete the game' }).waitFor()
  await press(page, /^Delete the game/)
  await dialogOpens(page)
  await tabTo(page, /^Type “doomed”/)
  await page.keyboard.type('doomed')
  // The person does not prove to be there.
  await session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false })
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').getByText('none was used').waitFor()
  await session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true })
  await press(page, /^Delete the game/)
  await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
  await page.getByText('The game Doomed is deleted.').waitFor()
  await dialogCloses(page)
  const query = { operation: 'auth.confirmation.complete' }
  const { events } = await platform.client.call(listAuditEvents, { query })
  assert.equal(events.length, 1)
}

async function remove(hub: OpenHub, { page }: View): Promise<void> {
  await page.goto(`${hub.url}/account`)
  await page.getByRole('button', { name: 'Rename Laptop' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('Old laptop')
  await dialog.getByRole('button', { name: 'Rename', exact: true }).click()
  await page.getByRole('button', { name: 'Remove Old laptop' }).click()
  await dialog.getByRole('button', { name: 'Remove', exact: true }).click()
  await page.getByText('You have no passkey.').waitFor()
  await page.getByRole('button', { name: 'Sign out' }).first().click()
  await page.getByRole('button', { name: BUTTON }).click()
  await page.getByText('This platform does not know the passkey').waitFor()
}

async function examine(hub: OpenHub): Promise<void> {
  const view = await openView(hub, { viewport: PHONE, colorScheme: 'dark', bypassCSP: true })
  const { page } = view
  const device = await giveDevice(view)
  await page.goto(`${hub.url}/sign-in`)
  await page.getByRole('button', { name: BUTTON }).waitFor()
  assert.deepEqual(await violationsOf(page), [])
  assert.equal(await isTooWide(page), false)
  await signInAsAdmin(hub, view)
  await add(hub, view, device)
  assert.deepEqual(await violationsOf(page), [])
  assert.equal(await isTooWide(page), false)
  await page.getByRole('button', { name: 'Remove Laptop' }).click()
  await page.getByRole('dialog').getByText('other sessions that it opened end').waitFor()
  assert.deepEqual(await violationsOf(page), [])
  await view.context.close()
}
