// Sign-in with a provider, in a browser: an administrator sets it by the form, a person signs in and out, and a refusal is shown.
import assert from 'node:assert/strict'
import test from 'node:test'
import { getGroupMembers } from '@musterhost/contract'
import type { Page } from 'playwright-core'
import { CLIENT_ID, CLIENT_SECRET, type OidcServer, startOidcServer } from '../../server/test/identity/oidc-server.ts'
import type { TestGame } from '../../server/test/support/platform.ts'
import { isTooWide, violationsOf } from './axe.ts'
import { type OpenHub, openHub, openView, PHONE, signInAsAdmin } from './steps.ts'

const BUTTON = 'Sign in with Example Studio'

type Scene = { hub: OpenHub; oidc: OidcServer; game: TestGame }

test('people sign in to the hub with a provider', async (t) => {
  const hub = await openHub(t, { env: { MUSTER_FETCH_PRIVATE_NETWORKS: '127.0.0.0/8' } })
  if (hub === null) return
  const oidc = await startOidcServer(t, () => ({
    redirect: `${hub.url}/sign-in/studio`,
    sign_out: `${hub.url}/sign-in`,
    backchannel: `${hub.platform.api_url}/auth/backchannel-logout/studio`,
  }))
  const person = { name: 'Ada', email: 'ada@example.com', email_verified: true, groups: ['arena-dev'] }
  oidc.accounts.set('ada', person)
  oidc.person = 'ada'
  const scene = { hub, oidc, game: await hub.platform.game() }
  await t.test('an administrator checks the issuer, saves the provider, and reads the addresses to register', () =>
    setProvider(scene),
  )
  await t.test('a person signs in, lands on the page that asked, and the account page names the provider', () =>
    signIn(scene),
  )
  await t.test('a forged state is refused on the page, which leads back to the sign-in', () => refuseState(scene))
  await t.test('on a dark phone, axe finds nothing on the pages of the sign-in, and nothing scrolls sideways', () =>
    examine(scene),
  )
})

async function setProvider({ hub, oidc, game }: Scene): Promise<void> {
  const view = await openView(hub)
  const { page } = view
  await signInAsAdmin(hub, view)
  await page.goto(`${hub.url}/platform/sign-in`)
  await page.getByText('There is no provider.').waitFor()
  await page.getByRole('button', { name: 'Add a provider' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Text of the button').fill('Example Studio')
  await dialog.getByLabel('Name', { exact: true }).fill('studio')
  await dialog.getByLabel('Issuer', { exact: true }).fill(oidc.issuer)
  await dialog.getByRole('button', { name: 'Check the issuer' }).click()
  await dialog.getByText('The issuer answers, with 1 key.').waitFor()
  await dialog.getByLabel('Client id').fill(CLIENT_ID)
  await dialog.getByLabel('Client secret').fill(CLIENT_SECRET)
  await dialog.getByLabel('Scopes').fill('openid profile email groups')
  await dialog.getByLabel('Claim with groups').fill('groups')
  await dialog.getByLabel('Roles by group').fill(`arena-dev ${game.group_id} developer`)
  await dialog.getByRole('button', { name: 'Save' }).click()
  await page.getByText(`${hub.url}/sign-in/studio`).waitFor()
  assert.deepEqual(view.faults, [])
  await view.context.close()
}

async function signIn({ hub, game }: Scene): Promise<void> {
  const { page, context } = await openView(hub)
  await page.goto(`${hub.url}/account`)
  await page.getByRole('button', { name: BUTTON }).click()
  await page.getByRole('heading', { level: 1, name: 'Your account' }).waitFor()
  await page.getByText('Example Studio (ada@example.com)').waitFor()
  // Neither the address nor the history of the tab keeps the code.
  assert.equal(page.url(), `${hub.url}/account`)
  const params = { group_id: game.group_id }
  const { members } = await hub.platform.client.call(getGroupMembers, { params, query: {} })
  assert.ok(members.some(({ identity, role }) => identity.display_name === 'Ada' && role === 'developer'))
  await page.getByRole('button', { name: 'Sign out' }).first().click()
  await confirmAtProvider(page)
  await page.waitForURL(/\/sign-in(?:\?|$)/)
  await page.getByRole('button', { name: BUTTON }).waitFor()
  await page.goto(`${hub.url}/account`)
  await page.waitForURL(/\/sign-in\?/)
  await context.close()
}

/** The provider asks before it ends its session. */
async function confirmAtProvider(page: Page): Promise<void> {
  await page.getByRole('button', { name: /yes/i }).click()
}

async function refuseState({ hub }: Scene): Promise<void> {
  const { page, context } = await openView(hub)
  await page.goto(`${hub.url}/sign-in/studio?code=stolen&state=forged`)
  await page.getByText('This sign-in did not begin in this browser').waitFor()
  assert.equal(page.url(), `${hub.url}/sign-in/studio`)
  await page.getByRole('link', { name: 'Back to the sign-in' }).click()
  await page.getByRole('button', { name: BUTTON }).waitFor()
  await context.close()
}

async function examine({ hub }: Scene): Promise<void> {
  const view = await openView(hub, { viewport: PHONE, colorScheme: 'dark', bypassCSP: true })
  const { page } = view
  await page.goto(`${hub.url}/sign-in`)
  await page.getByRole('button', { name: BUTTON }).waitFor()
  assert.deepEqual(await violationsOf(page), [])
  assert.equal(await isTooWide(page), false)
  await signInAsAdmin(hub, view)
  await page.goto(`${hub.url}/platform/sign-in`)
  await page.getByRole('button', { name: 'Change Example Studio' }).click()
  await page.getByRole('dialog').getByLabel('Issuer', { exact: true }).waitFor()
  assert.deepEqual(await violationsOf(page), [])
  assert.equal(await isTooWide(page), false)
  await view.context.close()
}
