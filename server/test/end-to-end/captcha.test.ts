import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startArena } from './arena.ts'
import { openBrowser, openDoor, play, playerOf } from './browser.ts'
import { startTurnstileServer, TEST_SECRET_KEY, TEST_SITE_KEY } from './turnstile-server.ts'

test('pages play behind a captcha: the widget is loaded where one is asked for, and what is made up is refused', async (t) => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const turnstile = await startTurnstileServer(t)
  const captcha = ['--captcha', 'turnstile', '--captcha-site-key', TEST_SITE_KEY]
  const arena = await startArena(t, {
    deploy: [...captcha, '--captcha-requests', '1', '--captcha-script', turnstile.script_url],
    deploy_env: { CAPTCHA_SECRET_KEY: TEST_SECRET_KEY },
    env: { MUSTER_TURNSTILE_URL: turnstile.verify_url },
  })

  const door = await openDoor(browser, arena.play_url, 'Ada')
  await door.getByRole('button', { name: 'guess' }).click()
  await door.getByText('CAPTCHA_CAPTCHA_FAILED').waitFor()
  assert.equal((await arena.lobbies()).length, 0, 'no lobby was started for who is refused')
  await door.getByRole('button', { name: 'Try again' }).click()
  await door.getByRole('button', { name: 'Verify you are human' }).click()
  const ada = await playerOf(door)
  assert.equal(turnstile.loads(), 1)

  // One request is left to this address: its next page is not asked, and loads nothing of the provider's.
  const bob = await play(browser, arena.play_url, 'Bob')
  assert.equal(turnstile.loads(), 1)
  assert.equal(await bob.lobby_id(), await ada.lobby_id())
  await ada.seesPlayers(2)
  await bob.seesPlayers(2)

  const cy = await openDoor(browser, arena.play_url, 'Cy')
  await cy.getByRole('button', { name: 'Verify you are human' }).click()
  await playerOf(cy)
  await ada.seesPlayers(3)
  assert.equal(turnstile.loads(), 2)
  assert.deepEqual(
    turnstile.asked.map(({ secret, sitekey, response }) => [secret, sitekey, response]),
    ['made up', 'XXXX.DUMMY.TOKEN.XXXX', 'XXXX.DUMMY.TOKEN.XXXX'].map((response) => [
      TEST_SECRET_KEY,
      TEST_SITE_KEY,
      response,
    ]),
  )
  assert.ok(!arena.started().output().includes(TEST_SECRET_KEY))
})
