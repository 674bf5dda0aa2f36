// The page of nodes: a machine is invited and joins, and a node is taken out of service and back.
import assert from 'node:assert/strict'
import test from 'node:test'
import { listNodes } from '@musterhost/contract'
import { LONG_MS } from '../../server/test/http/steps.ts'
import { joinWith } from '../../server/test/links/node.ts'
import { until } from '../../server/test/support/until.ts'
import { violationsOf } from './axe.ts'
import { dialogCloses, dialogOpens, press, tabTo } from './keyboard-steps.ts'
import { type OpenHub, openHub, openView, PHONE, signInAsAdmin, type View, WIDE } from './steps.ts'

const NODE = { MUSTER_NODE: 'fra-1', MUSTER_CAPACITY_CORES: '8', MUSTER_CAPACITY_MEMORY_MB: '16384' }
const MODES = { default: { idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS } }

test('the page of nodes', async (t) => {
  const hub = await openHub(t, { roles: 'api,matchmaker,runner,edge', env: NODE })
  if (hub === null) return
  const { platform } = hub
  const { node_id } = platform.ctx.config
  await (await platform.game({ matchmaker: { game_modes: MODES } })).find()
  const view = await openView(hub, { bypassCSP: true })
  await signInAsAdmin(hub, view)
  await view.page.goto(`${hub.url}/platform/nodes`)

  await t.test('a node shows its state, roles, region, use and version', async () => {
    const row = rowOf(view, 'Nodes', node_id)
    await row.getByText('open', { exact: true }).waitFor()
    await row.getByText('edge, matchmaker, runner').waitFor()
    await row.getByText('local', { exact: true }).waitFor()
    const { lobby_count, version } = await stateOf(hub, node_id)
    assert.equal(lobby_count, 1)
    await row.getByText(version!, { exact: true }).waitFor()
    await row.getByRole('img', { name: /^Cores: [1-9]\d* % used$/ }).waitFor()
    await row.getByText(/^[\d.]+ of 8$/).waitFor()
    await row.getByText('1 player', { exact: true }).waitFor()
    await row.getByRole('img', { name: /^Memory: [1-9]\d* % used$/ }).waitFor()
  })

  await t.test('the use of a machine is shown over time, on a wide page and on a phone', async () => {
    const { page } = view
    await platform.ctx.pool.query(
      `insert into node_use select $1, to_timestamp($2::float8) - n * interval '1 minute', 2 + 1.5 * sin(n / 60.0),
         6000 + n, 8, 16384 from generate_series(0, 1400) as n`,
      [node_id, platform.ctx.now() / 1_000],
    )
    await page.reload()
    const use = page.getByRole('region', { name: 'Use of machines' })
    await use.getByText('Cores, of 8').waitFor()
    await use.getByText('Memory, of 17 GB').waitFor()
    assert.equal(await use.getByLabel('Node').inputValue(), node_id)
    await use.getByRole('img', { name: /^Used cores/ }).waitFor()
    await use.getByLabel('Time').selectOption('last hour')
    await use.getByRole('img', { name: /^Used memory/ }).waitFor()
    assert.deepEqual(await violationsOf(page), [])
    await page.setViewportSize(PHONE)
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), PHONE.width)
    await page.setViewportSize(WIDE)
  })

  await t.test('a node is drained, and the drain is cancelled, by keyboard alone', async () => {
    const { page } = view
    await press(page, new RegExp(`^Drain ${node_id}$`))
    await dialogOpens(page)
    assert.deepEqual(await violationsOf(page), [])
    await press(page, /^Its lobbies take no new players$/, 'Space')
    await tabTo(page, /^Deadline$/)
    await page.keyboard.type('in 2')
    await press(page, /^Drain$/)
    await dialogCloses(page)
    const row = rowOf(view, 'Nodes', node_id)
    await row.getByText('draining', { exact: true }).waitFor()
    await row.getByText('no new players').waitFor()
    await row.getByText('ends in 2 h').waitFor()
    const { drain } = await stateOf(hub, node_id)
    assert.equal(drain?.at_match_end, true)
    await press(page, new RegExp(`^Cancel the drain of ${node_id}$`))
    await dialogOpens(page)
    await press(page, /^Cancel the drain$/)
    await dialogCloses(page)
    await row.getByText('open', { exact: true }).waitFor()
    assert.equal((await stateOf(hub, node_id)).drain, undefined)
  })

  await t.test('a machine joins with the command of an invitation, which is shown once', async () => {
    const { page } = view
    const { invitation, dialog } = await invite(view, 'attic')
    assert.deepEqual(await violationsOf(page), [])
    await dialog.getByRole('button', { name: 'Close' }).click()
    assert.equal(await page.getByText(invitation).count(), 0)
    await rowOf(view, 'Invitations', 'attic')
      .getByText(/expires in 1[45] min/)
      .waitFor()
    await joinWith(platform, invitation)
    await page.getByText('No invitation is open.').waitFor()
    await page.getByLabel('Past ones too').check()
    await rowOf(view, 'Invitations', 'attic').getByText('from 127.0.0.1').waitFor()
    const row = rowOf(view, 'Nodes', 'attic')
    await row.getByText('certificate ends in 24 h').waitFor()
    await row.getByText('away', { exact: true }).waitFor()
  })

  await t.test('an invitation of an edge names the host where players reach it', async () => {
    const { page } = view
    await page.getByRole('button', { name: 'Invite a machine' }).click()
    await page.getByLabel('Name of the node').fill('porch')
    await page.getByLabel('What it does').selectOption('runner,edge')
    const host = page.getByLabel('Public host')
    const submit = page.getByRole('button', { name: 'Invite', exact: true })
    await host.fill('https://porch.example.com')
    await page.getByText('A host name or an address, without port or https://.').waitFor()
    assert.equal(await submit.isDisabled(), true)
    await host.fill('porch.example.com')
    assert.deepEqual(await violationsOf(page), [])
    await submit.click()
    const dialog = page.getByRole('dialog', { name: 'Join as porch' })
    const command = await dialog.locator('pre').textContent()
    const prefix = 'MUSTER_EDGE_PUBLIC_HOST=porch.example.com npm run muster -- join '
    assert.ok(command?.startsWith(prefix), `${command}`)
    await dialog.getByRole('button', { name: 'Close' }).click()
    const { roles } = await joinWith(platform, command!.split(' ').at(-1)!)
    assert.deepEqual(roles, ['runner', 'edge'])
  })

  await t.test('a revoked invitation lets no machine join', async () => {
    const { page } = view
    const { invitation, dialog } = await invite(view, 'cellar')
    await dialog.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('button', { name: 'Revoke the invitation of cellar' }).click()
    await page.getByRole('button', { name: 'Revoke', exact: true }).click()
    await rowOf(view, 'Invitations', 'cellar').getByText('revoked', { exact: true }).waitFor()
    await assert.rejects(joinWith(platform, invitation), /was revoked/)
  })

  await t.test('a node with lobbies is removed only after a confirmation that they end', async () => {
    const { page } = view
    await page.setViewportSize(PHONE)
    await page.getByRole('button', { name: `Remove ${node_id}` }).click()
    const dialog = page.getByRole('dialog')
    const remove = dialog.getByRole('button', { name: 'Remove', exact: true })
    await dialog.getByText('It still runs 1 lobby with 1 player.').waitFor()
    assert.equal(await remove.isDisabled(), true)
    await dialog.getByLabel('End its lobbies now').check()
    assert.deepEqual(await violationsOf(page), [])
    await remove.click()
    await dialog.waitFor({ state: 'detached' })
    await rowOf(view, 'Nodes', node_id).getByText('removed', { exact: true }).waitFor()
    await until('its lobby to end', async () => (await stateOf(hub, node_id)).lobby_count === 0)
    await page.getByRole('button', { name: `Take back ${node_id}` }).click()
    await dialog.getByRole('button', { name: 'Take back', exact: true }).click()
    await rowOf(view, 'Nodes', node_id).getByText('open', { exact: true }).waitFor()
  })
  assert.deepEqual(view.faults, [])
})

function rowOf({ page }: View, table: string, text: string) {
  return page.getByRole('table', { name: table }).getByRole('row').filter({ hasText: text })
}

async function stateOf({ platform }: OpenHub, node_id: string) {
  const { nodes } = await platform.client.call(listNodes, {})
  return nodes.find((node) => node.node_id === node_id)!
}

/** Invites a machine on the page. The dialog with its command is open afterwards. */
async function invite({ page }: View, name: string) {
  await page.getByRole('button', { name: 'Invite a machine' }).click()
  await page.getByLabel('Name of the node').fill(name)
  await page.getByRole('button', { name: 'Invite', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: `Join as ${name}` })
  const command = await dialog.locator('pre').textContent()
  await dialog.getByRole('button', { name: 'Copy', exact: true }).waitFor()
  const [, invitation] = /^npm run muster -- join https?:\/\/\S+ (mj1\.\S+)$/.exec(command ?? '') ?? []
  assert.ok(invitation, `${command}`)
  return { invitation, dialog }
}
