// The matchmaker, live, and the playground that makes it work.
import assert from 'node:assert/strict'
import test from 'node:test'
import { listGameCloudTokens, listGameNamespaceTokensPublic, setupIdentity } from '@musterhost/contract'
import { UNKNOWN_ID } from '../../server/test/http/steps.ts'
import { failureOf } from '../../server/test/support/refusal.ts'
import { isTooWide, violationsOf } from './axe.ts'
import { openPlayedHub, type PlayedHub } from './played-hub.ts'
import { openView, PHONE, signInAsAdmin, WIDE } from './steps.ts'

const shortId = (id: string): string => id.slice(-8)

test('the matchmaker at work', async (t) => {
  const hub = await openPlayedHub(t)
  if (hub === null) return
  const { game_id, namespace_id } = hub.game
  const address = `${hub.url}/games/${game_id}/namespaces/${namespace_id}`
  const lobby = shortId(hub.seat.lobby.lobby_id)

  await t.test(
    'each lobby is a bar of seats that moves as players come, and refusals are counted by code',
    async () => {
      const view = await hub.viewAs('developer')
      const { page } = view
      await page.goto(`${address}/matchmaker`)
      await page.getByRole('link', { name: `Lobby ${lobby}: 1 of 4, ready`, exact: true }).waitFor()
      await page.getByRole('rowheader', { name: 'ranked' }).waitFor()
      const refusals = page.getByRole('table', { name: 'Refusals' })
      await refusals.getByRole('row', { name: /MATCHMAKER_TOO_MANY_LOBBIES 1 / }).waitFor()
      await hub.game.find()
      await page.getByRole('link', { name: `Lobby ${lobby}: 2 of 4, ready`, exact: true }).waitFor()
      await page.getByRole('table', { name: 'Requests' }).getByText('lobbies.find').first().waitFor()
      await refusals.getByRole('link', { name: shortId(hub.refused_ray_id) }).click()
      await page.getByText('The namespace had 2 of 2 lobbies (lobby_count_max).').waitFor()
      assert.deepEqual(view.faults, [])
      await view.context.close()
    },
  )

  await t.test('a refusal arrives without reading a list again, also after the connection was lost', async () => {
    const { page, context } = await hub.viewAs('developer')
    await page.goto(`${address}/matchmaker`)
    const refusals = page.getByRole('table', { name: 'Refusals' })
    await refusals.getByRole('row', { name: /MATCHMAKER_TOO_MANY_LOBBIES/ }).waitFor()
    let reads = 0
    page.on('request', (request) => {
      if (new URL(request.url()).pathname.endsWith('/rays')) reads++
    })
    await failureOf(hub.game.join(UNKNOWN_ID))
    await refusals.getByRole('row', { name: /MATCHMAKER_LOBBY_NOT_FOUND 1 / }).waitFor()
    const requests = page.getByRole('table', { name: 'Requests' })
    await requests.getByRole('row', { name: /lobbies\.join .*MATCHMAKER_LOBBY_NOT_FOUND/ }).waitFor()
    await context.setOffline(true)
    await page.getByText('not live: connecting again').waitFor()
    await failureOf(hub.game.join(UNKNOWN_ID))
    await context.setOffline(false)
    await refusals.getByRole('row', { name: /MATCHMAKER_LOBBY_NOT_FOUND 2 / }).waitFor()
    assert.equal(await page.getByText('not live: connecting again').count(), 0)
    assert.equal(reads, 0)
    await context.close()
  })

  await t.test('a find of the playground is explained, by keyboard, and its token is revoked', async () => {
    const view = await hub.viewAs('developer')
    const { page } = view
    await page.goto(`${address}/playground`)
    await page.getByLabel('Game mode').selectOption('ranked')
    await page.getByLabel('Tags').fill('map')
    await page.getByText('Each line needs a name and a value').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Find', exact: true }).isDisabled(), true)
    await page.getByLabel('Tags').fill('map=moon')
    await page.getByRole('button', { name: 'Find', exact: true }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('The request was refused with MATCHMAKER_TOO_MANY_LOBBIES, after').waitFor()
    await page.getByText('"map":"moon"').waitFor()
    await page.getByRole('table', { name: 'Waterfall' }).waitFor()
    const { tokens } = await hub.platform.client.call(listGameNamespaceTokensPublic, {
      params: { game_id, namespace_id },
    })
    assert.deepEqual(
      tokens.map(({ revoke_ts }) => revoke_ts === undefined),
      [false, true],
      'the token of the playground, and that of the game',
    )
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('fake players take seats, and each gives its seat back', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${address}/playground`)
    await page.getByLabel('Game mode').selectOption('default')
    await page.getByLabel('How many').fill('2')
    await page.keyboard.press('Enter')
    const table = page.getByRole('table', { name: 'Fake players' })
    await table
      .getByRole('button', { name: /^Remove 198\.18\./ })
      .nth(1)
      .waitFor()
    const live = await openView(hub)
    await signInAsAdmin(hub, live)
    await live.page.goto(`${address}/matchmaker`)
    await live.page.getByRole('link', { name: `Lobby ${lobby}: 4 of 4, ready`, exact: true }).waitFor()
    await table
      .getByRole('button', { name: /^Remove 198\.18\./ })
      .first()
      .click()
    await live.page.getByRole('link', { name: `Lobby ${lobby}: 3 of 4, ready`, exact: true }).waitFor()
    await page.getByRole('button', { name: 'Remove all' }).click()
    await live.page.getByRole('link', { name: `Lobby ${lobby}: 2 of 4, ready`, exact: true }).waitFor()
    await table.waitFor({ state: 'detached' })
    const { tokens } = await hub.platform.client.call(listGameCloudTokens, { params: { game_id } })
    assert.deepEqual(
      tokens.map(({ revoke_ts }) => revoke_ts === undefined),
      [false],
    )
    assert.deepEqual([...view.faults, ...live.faults], [])
    await view.context.close()
    await live.context.close()
  })

  await t.test('requests that wait for a match are shown with what refuses others, until they end', async () => {
    const hang_up = new AbortController()
    const waits = [9_000, 1_234].map((skill) =>
      assert.rejects(hub.game.find({ game_modes: ['duel'], attributes: { skill } }, { signal: hang_up.signal })),
    )
    const view = await hub.viewAs('viewer')
    const { page } = view
    await page.goto(`${address}/matchmaker`)
    const requests = page.getByRole('table', { name: 'Waiting requests' })
    const [first, second] = ['9,000', '1,234'].map((skill) => requests.getByRole('row').filter({ hasText: skill }))
    await first!.getByText('near skill refuses 1 request at its limit of 100').waitFor()
    await second!.waitFor()
    await page
      .getByRole('table', { name: 'Waiting by game mode' })
      .getByRole('row', { name: /^duel 2 2 / })
      .waitFor()
    hang_up.abort()
    await Promise.all(waits)
    await page.getByText('No request waits for a match.').waitFor()
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('a leaderboard leads to the ratings of a player, which a developer resets after a confirmation', () =>
    showRatings(hub, address),
  )

  await t.test('a viewer sees the lobbies, and neither requests nor the playground', async () => {
    const view = await hub.viewAs('viewer')
    const { page } = view
    await page.goto(`${address}/matchmaker`)
    await page.getByRole('link', { name: new RegExp(`^Lobby ${lobby}`) }).waitFor()
    assert.equal(await page.getByRole('heading', { name: /Requests|Refusals/ }).count(), 0)
    await page.goto(`${address}/playground`)
    await page.getByText('Developers and owners of the group may use the playground.').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Find', exact: true }).count(), 0)
    await view.context.close()
  })

  await t.test('axe finds nothing, and nothing scrolls sideways', () => checkLook(hub, address))
})

async function showRatings(hub: PlayedHub, address: string): Promise<void> {
  const { platform, game } = hub
  const identities = await Promise.all(Array.from({ length: 2 }, () => game.player.call(setupIdentity, { body: {} })))
  const [strong, weak] = identities.map(({ identity }) => identity)
  for (const [{ identity_id }, mu, mode] of [
    [strong!, 40.125, 'default'],
    [strong!, 31, 'former'],
    [weak!, 20, 'default'],
  ] as const) {
    const text = 'insert into ratings values ($1, $2, $3, $4, 8, 3, now())'
    await platform.ctx.pool.query(text, [game.namespace_id, mode, identity_id, mu])
  }
  const view = await hub.viewAs('developer')
  const { page } = view
  await page.goto(`${address}/ratings`)
  const leaders = page.getByRole('table', { name: 'Leaderboard' }).locator('tbody').getByRole('row')
  await leaders.nth(1).waitFor()
  const ranks = await leaders.allInnerTexts()
  assert.match(ranks[0] ?? '', new RegExp(`#${strong!.account_number}\\s+16\\.1[23]\\s`))
  assert.match(ranks[1] ?? '', new RegExp(`#${weak!.account_number}\\s+-4\\.00\\s`))
  await leaders.first().getByRole('button').click()
  const own = page.getByRole('table', { name: 'Ratings of the player' })
  await own.getByRole('row', { name: /^former 7\.00/ }).waitFor()
  await own.getByRole('button', { name: 'Reset default' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Reset', exact: true }).click()
  await page.getByText('1 rating removed.').waitFor()
  await leaders.nth(1).waitFor({ state: 'detached' })
  await own.getByRole('row', { name: /^former/ }).waitFor()
  await page.getByRole('button', { name: 'Reset all of default …' }).click()
  const dialog = page.getByRole('dialog')
  assert.equal(await dialog.getByRole('button', { name: 'Reset', exact: true }).isDisabled(), true)
  await dialog.getByLabel('Type “default” to confirm').fill('default')
  await dialog.getByRole('button', { name: 'Reset', exact: true }).click()
  await page.getByText('No match was rated yet.').waitFor()
  assert.deepEqual(view.faults, [])
  await view.context.close()
}

async function checkLook(hub: PlayedHub, address: string): Promise<void> {
  for (const { colorScheme, viewport } of [
    { colorScheme: 'light', viewport: WIDE },
    { colorScheme: 'dark', viewport: PHONE },
  ] as const) {
    const view = await openView(hub, { colorScheme, viewport, bypassCSP: true })
    const { page } = view
    await signInAsAdmin(hub, view)
    for (const [path, heading] of [
      ['matchmaker', 'Requests for seats, as they end'],
      ['playground', 'Fake players'],
      ['ratings', 'Leaderboard of default'],
    ] as const) {
      await page.goto(`${address}/${path}`)
      await page.getByRole('heading', { name: heading }).waitFor()
      assert.deepEqual(await violationsOf(page), [], `${path} ${colorScheme}`)
      assert.equal(await isTooWide(page), false, `${path} is wider than the window`)
    }
    await view.context.close()
  }
}
