// The pages that explain what happened: requests, one ray, and the search.
import assert from 'node:assert/strict'
import test from 'node:test'
import { openPlayedHub } from './played-hub.ts'
import { openView, signInAsAdmin } from './steps.ts'

const shortId = (id: string): string => id.slice(-8)

test('requests, rays and the search', async (t) => {
  const hub = await openPlayedHub(t)
  if (hub === null) return
  const address = `${hub.url}/games/${hub.game.game_id}`

  await t.test('the list is filtered by keyboard, the address keeps the filter, and Back removes it', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${address}/rays`)
    await page.getByRole('cell', { name: 'MATCHMAKER_TOO_MANY_LOBBIES' }).waitFor()
    await page.getByRole('cell', { name: 'players.connected' }).waitFor()
    await page.getByLabel('Error code').focus()
    await page.keyboard.type('any')
    await page.keyboard.press('Enter')
    await page.waitForURL(/\?code=any$/)
    await page.getByRole('cell', { name: 'players.connected' }).waitFor({ state: 'detached' })
    await page.getByRole('cell', { name: 'MATCHMAKER_TOO_MANY_LOBBIES' }).waitFor()
    await page.reload()
    await page.getByRole('cell', { name: 'MATCHMAKER_TOO_MANY_LOBBIES' }).waitFor()
    assert.equal(await page.getByLabel('Error code').inputValue(), 'any')
    await page.goBack()
    await page.getByRole('cell', { name: 'players.connected' }).waitFor()
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('the command palette shows failed requests, and all again', async () => {
    const view = await hub.viewAs('developer')
    const { page } = view
    await page.goto(`${address}/rays`)
    const refused = page.getByRole('link', { name: shortId(hub.refused_ray_id) })
    await refused.waitFor()
    for (const [title, url] of [
      ['Show failed requests', /code=any/],
      ['Show all requests', /\/rays$/],
    ] as const) {
      await page.keyboard.press('Control+k')
      await page.getByRole('searchbox').waitFor()
      await page.keyboard.type(title)
      await page.getByRole('menuitem', { name: title }).waitFor()
      await page.keyboard.press('Enter')
      await page.waitForURL(url)
      await refused.waitFor()
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    }
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('a ray shows its waterfall, and explains a refusal in words; markup of a tag stays text', async () => {
    const view = await hub.viewAs('developer')
    const { page } = view
    await page.goto(`${address}/rays?code=any`)
    await page.getByRole('link', { name: shortId(hub.refused_ray_id) }).click()
    await page.getByRole('heading', { name: 'Request', exact: true }).waitFor()
    await page.getByText('The request was refused with MATCHMAKER_TOO_MANY_LOBBIES, after').waitFor()
    await page.getByText('The namespace had 2 of 2 lobbies (lobby_count_max).').waitFor()
    await page.getByText('has other tags than the request').waitFor()
    await page.getByText('"map":"<b>hill</b>"').waitFor()
    const waterfall = page.getByRole('table', { name: 'Waterfall' })
    await waterfall.getByRole('row', { name: /^choose a lobby is chosen/ }).waitFor()
    await waterfall.getByRole('row', { name: /^matchmaker lobbies\.find/ }).waitFor()
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('the search finds a player by id, with the lobby and the request, and links to them', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${address}/search`)
    await page.getByLabel('Id or address').fill(hub.player_id)
    await page.keyboard.press('Enter')
    await page.waitForURL(new RegExp(`text=${hub.player_id}`))
    const players = page.getByRole('table', { name: 'Players' })
    await players.getByText('connected', { exact: true }).waitFor()
    await page.getByRole('table', { name: 'Lobbies' }).getByText('running').waitFor()
    await page.getByRole('table', { name: 'Requests' }).getByText('lobbies.find').waitFor()
    const lobby = players.getByRole('link', { name: shortId(hub.seat.lobby.lobby_id) })
    assert.match((await lobby.getAttribute('href')) ?? '', new RegExp(`/lobbies/${hub.seat.lobby.lobby_id}$`))
    await players.getByRole('link', { name: 'requests' }).click()
    await page.waitForURL(new RegExp(`/rays\\?player=${hub.player_id}`))
    await page.getByRole('cell', { name: 'players.connected' }).waitFor()
    await page.goto(`${address}/search?text=ada`)
    await page.getByRole('alert').waitFor()
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('a viewer sees neither requests nor players', async () => {
    const view = await hub.viewAs('viewer')
    const { page } = view
    await page.goto(`${address}/rays`)
    await page.getByText('Developers and owners of the group may see requests.').waitFor()
    await page.goto(`${address}/search?text=${hub.player_id}`)
    await page.getByText('Developers and owners of the group may search.').waitFor()
    assert.equal(await page.getByRole('table').count(), 0)
    await view.context.close()
  })
})
