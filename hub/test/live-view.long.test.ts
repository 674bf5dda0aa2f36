// The live view is true: real server processes start, play, stop and are killed at random, and the page is compared with the
// tables cell by cell. LIVE_VIEW_SECONDS sets how long, and LIVE_VIEW_SEED the steps:
//   LIVE_VIEW_SECONDS=120 npm test -- hub/test/live-view.long.test.ts
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import test from 'node:test'
import { until } from '../../server/test/support/until.ts'
import { CHANGES, LIVE_LIMITS, LIVE_MODES, LiveChanges } from './live-changes.ts'
import { requireTrueTable, wantedTable } from './live-table.ts'
import { openHub, openView, signInAsAdmin } from './steps.ts'

const SECONDS = numberOf('LIVE_VIEW_SECONDS', 8, 1_800)
const SEED = numberOf('LIVE_VIEW_SEED', randomInt(2 ** 31), 2 ** 31)
/** Shares of the time: until the first comparison, without a connection, and until the last one. */
const [BEFORE, LOST, AFTER] = [0.5, 0.2, 0.3]
/** Written by Chromium for each request without a network. */
const WITHOUT_NETWORK = 'ERR_INTERNET_DISCONNECTED'

test('after random changes each cell of the running lobbies is what the tables have', async (t) => {
  t.diagnostic(`LIVE_VIEW_SEED=${SEED}, ${SECONDS} s`)
  const hub = await openHub(t, { roles: 'api,matchmaker,runner,edge' })
  if (hub === null) return
  const { platform } = hub
  const game = await platform.game({ matchmaker: { game_modes: LIVE_MODES }, limits: LIVE_LIMITS })
  const changes = new LiveChanges(platform, game, CHANGES, SEED)
  const view = await openView(hub)
  const { page, context } = view
  await signInAsAdmin(hub, view)
  await page.goto(`${hub.url}/games/${game.game_id}/namespaces/${game.namespace_id}/lobbies`)
  await page.getByText('No lobby runs.').waitFor()
  await page.evaluate(() => Object.assign(globalThis, { is_same_page: true }))
  const compare = async (when: string): Promise<void> => {
    await until('every killed server to be missed', async () => {
      const running = await wantedTable(platform, game)
      return changes.killed_lobby_ids.every((lobby_id) => !(lobby_id in running))
    })
    const lobbies = await requireTrueTable(platform, game, page)
    t.diagnostic(`${when}: all cells of ${lobbies} lobbies are those of the tables`)
  }

  await t.test('while the connection stands', async () => {
    await changes.takeEach(CHANGES)
    await changes.run(SECONDS * 1_000 * BEFORE)
    await compare('with the connection')
  })

  await t.test('after a lost connection, which the page shows, and without a reload', async () => {
    await context.setOffline(true)
    await page.getByText('not live', { exact: true }).waitFor()
    await page.getByText('The connection was lost at').waitFor()
    await changes.run(SECONDS * 1_000 * LOST)
    await context.setOffline(false)
    await page.getByText('live', { exact: true }).waitFor()
    await page.getByText('The connection was lost at').waitFor({ state: 'detached' })
    await compare('after the lost connection')
    await changes.run(SECONDS * 1_000 * AFTER)
    await compare('at the end')
    assert.equal(await page.evaluate(() => 'is_same_page' in globalThis), true)
  })

  t.diagnostic(`changes: ${textOf(changes.counts)}; refused: ${textOf(changes.refusals)}`)
  assert.deepEqual(CHANGES.toSorted(), [...changes.counts.keys()].sort(), 'each change was made')
  assert.ok(changes.killed_lobby_ids.length > 0, 'a server was killed')
  assert.deepEqual(
    view.faults.filter((fault) => !fault.includes(WITHOUT_NETWORK)),
    [],
  )
  await context.close()
})

function textOf(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([name, count]) => `${count} ${name}`).join(', ') || 'none'
}

function numberOf(variable: string, otherwise: number, max: number): number {
  const value = Number(process.env[variable] ?? otherwise)
  const is_valid = Number.isSafeInteger(value) && value > 0 && value <= max
  if (!is_valid) throw new Error(`${variable} is a whole number from 1 to ${max}, and not ${process.env[variable]}.`)
  return value
}
