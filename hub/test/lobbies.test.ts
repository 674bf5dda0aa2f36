// The live lobbies of a namespace, in a real Chromium: what the page shows is compared with the tables.
import assert from 'node:assert/strict'
import test from 'node:test'
import { deleteMatchmakerLobby, playerConnected, playerDisconnected, setLobbyClosed } from '@muster/contract'
import fc from 'fast-check'
import type { Page } from 'playwright-core'
import { deploy, find, LONG_MS, type Seat, serverOf, stallRun } from '../../server/test/http/steps.ts'
import { startMailServer } from '../../server/test/identity/mail-server.ts'
import { logIn } from '../../server/test/identity/people.ts'
import type { Platform, TestGame } from '../../server/test/platform.ts'
import { until } from '../../server/test/until.ts'
import { isTooWide, violationsOf } from './axe.ts'
import { type OpenHub, openHub, openView, PHONE, signInAsAdmin, useSession, type View, WIDE } from './steps.ts'

/** How long lobbies change before the page is compared with the tables. Two minutes were run by hand. */
const CHANGES_MS = 4_000
/** Seats of one round of changes: the tables stay so short that the page draws every row. */
const SEATS_MAX = 80
const MODES = {
  default: { max_players: 3, idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS },
  duel: { max_players: 2, idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS },
}
const LIMITS = { max_players_per_client: 1_000_000, lobby_count_max: 1_000_000 }

type Scene = { hub: OpenHub; game: TestGame; path: string }

async function openLobbies({ hub, path }: Scene, query = ''): Promise<View> {
  const view = await openView(hub)
  await signInAsAdmin(hub, view)
  await view.page.goto(`${hub.url}${path}${query}`)
  await view.page.getByText('live', { exact: true }).waitFor()
  return view
}

/** The cells of each row, by lobby: without the checkbox and the id before them, and the age after them, which grows. */
async function shownOf(page: Page): Promise<Record<string, string[]>> {
  const rows = await page.locator('table[aria-label="Running lobbies"] tbody tr').evaluateAll((elements) =>
    elements.map((element) => ({
      lobby_id: element.querySelector('a')?.title ?? '',
      texts: [...element.querySelectorAll('td')].map((cell) => cell.textContent),
    })),
  )
  return Object.fromEntries(
    rows.map(({ lobby_id, texts }) => [
      lobby_id,
      texts.slice(2, -1).map((text) => text.replaceAll(/\s+/g, ' ').trim()),
    ]),
  )
}

/** What the tables have, once everything that was decided is in them. */
async function wantedOf({ ctx }: Platform, { namespace_id }: TestGame): Promise<Record<string, string[]>> {
  const { rows } = await ctx.pool.query<Record<string, string | boolean | number>>(
    `select l.lobby_id, l.game_mode, l.is_closed, l.is_stalled, l.ready_ts is not null as is_ready, l.max_players_normal,
        l.version_id <> n.version_id as is_outdated, v.display_name as version,
        (select count(*)::int from players p where p.lobby_id = l.lobby_id and p.remove_ts is null) as taken
      from lobbies l join namespaces n using (namespace_id) join versions v on v.version_id = l.version_id where namespace_id = $1 and l.stop_ts is null`,
    [namespace_id],
  )
  return Object.fromEntries(
    rows.map((row) => {
      const state = row.is_stalled
        ? 'stalled'
        : !row.is_ready
          ? 'starting'
          : row.is_closed
            ? 'closed'
            : row.taken === 0
              ? 'idle'
              : 'ready'
      const states = row.is_outdated ? `${state} outdated` : state
      const seats = `${row.taken} / ${row.max_players_normal}`
      // No process runs, so no sample is taken of one.
      return [row.lobby_id, [states, seats, row.game_mode as string, row.version as string, 'Local', '', '']]
    }),
  )
}

async function requireTrue({ hub, game }: Scene, page: Page): Promise<number> {
  let shown: Record<string, string[]> = {}
  let wanted: Record<string, string[]> = {}
  await until('the page to show what the tables have', async () => {
    ;[wanted, shown] = [await wantedOf(hub.platform, game), await shownOf(page)]
    return JSON.stringify(Object.entries(shown).sort()) === JSON.stringify(Object.entries(wanted).sort())
  }).catch(() => undefined)
  assert.deepEqual(shown, wanted)
  return Object.keys(shown).length
}

/** Changes lobbies at random until the time is over. */
async function change({ hub: { platform }, game }: Scene, duration_ms: number): Promise<void> {
  const seats: Seat[] = []
  const onSeat = async (
    pick: number,
    act: (server: ReturnType<typeof serverOf>, body: { player_token: string }) => Promise<unknown>,
  ): Promise<void> => {
    const seat = seats[pick % Math.max(1, seats.length)]
    // A player who has left, or whose lobby has stopped, is refused. That changes nothing either.
    if (seat !== undefined)
      await act(serverOf(platform, game, seat.lobby.lobby_id), { player_token: seat.player.token }).catch(() => {})
  }
  const kinds: Record<string, (pick: number) => Promise<unknown>> = {
    find: async () => seats.push(await find(game)),
    duel: async () => seats.push(await find(game, { game_modes: ['duel'] })),
    connect: (pick) => onSeat(pick, (server, body) => server.call(playerConnected, { body })),
    leave: (pick) => onSeat(pick, (server, body) => server.call(playerDisconnected, { body })),
    close: (pick) => onSeat(pick, (server) => server.call(setLobbyClosed, { body: { is_closed: pick % 2 === 0 } })),
    stop: async (pick) => {
      const lobby_id = seats[pick % Math.max(1, seats.length)]?.lobby.lobby_id
      const params = { game_id: game.game_id, lobby_id: lobby_id ?? '' }
      if (lobby_id !== undefined) await platform.client.call(deleteMatchmakerLobby, { params })
    },
  }
  const weighted = [...Object.keys(kinds), 'find', 'find', 'duel', 'connect', 'connect', 'leave']
  const steps = fc.sample(fc.tuple(fc.constantFrom(...weighted), fc.nat(1_000)), 100_000)
  const end_ms = performance.now() + duration_ms
  for (const [kind, pick] of steps) {
    if (performance.now() > end_ms) return
    if (seats.length >= SEATS_MAX && (kind === 'find' || kind === 'duel')) continue
    await kinds[kind]!(pick)
  }
}

test('the live lobbies of a namespace', async (t) => {
  const mail = await startMailServer(t)
  const hub = await openHub(t, { env: { MUSTER_SMTP_URL: mail.url } })
  if (hub === null) return
  const { platform } = hub
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES }, limits: LIMITS })
  const scene: Scene = {
    hub,
    game,
    path: `/games/${game.game_id}/namespaces/${game.namespace_id}/lobbies`,
  }

  await t.test('the live view is true: after random changes each cell is what the tables have', async () => {
    const view = await openLobbies(scene)
    await view.page.getByText('No lobby runs.').waitFor()
    await change(scene, CHANGES_MS)
    await requireTrue(scene, view.page)
    const seat = await find(game)
    await stallRun(platform, seat.lobby.lobby_id)
    await deploy(platform, game, MODES)
    await find(game)
    assert.ok((await requireTrue(scene, view.page)) > 1)
    assert.ok((await view.page.getByText('stalled', { exact: true }).count()) > 0)
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('a lost connection is shown, and the page recovers without a reload', async () => {
    const view = await openLobbies(scene)
    const { page, context } = view
    await page.evaluate(() => Object.assign(globalThis, { is_same_page: true }))
    await context.setOffline(true)
    await page.getByText('not live', { exact: true }).waitFor()
    await page.getByText('The connection was lost at').waitFor()
    await change(scene, 500)
    await find(game)
    await context.setOffline(false)
    await page.getByText('live', { exact: true }).waitFor()
    await page.getByText('The connection was lost at').waitFor({ state: 'detached' })
    await requireTrue(scene, page)
    assert.equal(await page.evaluate(() => 'is_same_page' in globalThis), true)
    await context.close()
  })

  await t.test('filters and the order are in the address, and Back returns to the view before', async () => {
    const view = await openLobbies(scene, '?mode=duel')
    const { page } = view
    const modes = () => page.locator('tbody tr td:nth-child(5)').allInnerTexts()
    await find(game, { game_modes: ['duel'] })
    await until('only duels', async () => {
      const shown = await modes()
      return shown.length > 0 && shown.every((mode) => mode === 'duel')
    })
    await page.getByRole('button', { name: 'Players', exact: true }).click()
    await page.waitForURL(/sort=players/)
    await page.getByLabel('Game mode').selectOption('')
    await until('all modes', async () => (await modes()).includes('default'))
    await page.goBack()
    await until('only duels again', async () => !(await modes()).includes('default'))
    await page.getByRole('button', { name: /stalled$/ }).click()
    await page.getByText('No running lobby passes the filters.').waitFor()
    await page.getByRole('button', { name: 'Show all' }).click()
    await until('all of them', async () => (await modes()).length > 2)
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('selected lobbies are stopped by keyboard, after a confirmation', async () => {
    const view = await openLobbies(scene)
    const { page } = view
    const boxes = page.getByRole('checkbox')
    const all = await boxes.count()
    const ids: string[] = []
    for (const at of [0, 1]) {
      ids.push((await page.locator('tbody tr').nth(at).locator('a').getAttribute('title')) ?? '')
      await boxes.nth(at).focus()
      await page.keyboard.press('Space')
    }
    await page.getByRole('button', { name: 'Stop 2 lobbies …' }).focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog')
    await dialog.waitFor()
    assert.match((await dialog.textContent()) ?? '', /cannot be undone/)
    await dialog.getByRole('button', { name: 'Stop', exact: true }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('2 lobbies stopped.').waitFor()
    await until('the rows to be gone', async () => (await boxes.count()) === all - 2)
    const { rows } = await platform.ctx.pool.query('select from lobbies where lobby_id = any($1) and stop_ts is null', [
      ids,
    ])
    assert.equal(rows.length, 0)
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('the history has every lobby that ran, page by page, and how it ended', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${hub.url}${scene.path}/history?outcome=ended`)
    await page.getByRole('table', { name: 'History of lobbies' }).waitFor()
    assert.equal(await page.locator('tbody').getByText('running', { exact: true }).count(), 0)
    await page.getByLabel('Outcome').selectOption('')
    for (const more = page.getByRole('button', { name: 'Load more' }); (await more.count()) > 0; ) {
      const before = await page.locator('tbody tr').count()
      await more.click()
      await until('another page', async () => (await page.locator('tbody tr').count()) > before)
    }
    const { rows } = await platform.ctx.pool.query<{ lobby_id: string }>(
      'select lobby_id from lobbies where namespace_id = $1 order by create_ts desc, lobby_id desc',
      [game.namespace_id],
    )
    const shown = await page
      .locator('tbody tr a')
      .evaluateAll((links) => links.map((link) => link.getAttribute('title') ?? ''))
    assert.deepEqual(
      shown,
      rows.map(({ lobby_id }) => lobby_id),
    )
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('a viewer sees the lobbies, and nothing that changes them', async () => {
    const person = await logIn(platform, mail, 'viewer@example.com')
    await platform.ctx.db
      .insertInto('group_members')
      .values({ group_id: game.group_id, user_id: person.user_id, role: 'viewer', join_ts: new Date() })
      .execute()
    const view = await openView(hub)
    await useSession(hub, view, person.cookie)
    await view.page.goto(`${hub.url}${scene.path}`)
    await view.page.getByText('live', { exact: true }).waitFor()
    await view.page.getByRole('table', { name: 'Running lobbies' }).waitFor()
    assert.equal(await view.page.getByRole('checkbox').count(), 0)
    assert.equal(await view.page.getByRole('button', { name: /^(Stop|Select)/ }).count(), 0)
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  for (const { colorScheme, viewport } of [
    { colorScheme: 'light', viewport: WIDE },
    { colorScheme: 'dark', viewport: PHONE },
  ] as const) {
    await t.test(
      `${colorScheme}, ${viewport.width} wide: axe finds nothing, and nothing scrolls sideways`,
      async () => {
        const view = await openView(hub, { colorScheme, viewport, bypassCSP: true })
        await signInAsAdmin(hub, view)
        await view.page.goto(`${hub.url}${scene.path}`)
        await view.page.getByRole('table', { name: 'Running lobbies' }).waitFor()
        assert.deepEqual(await violationsOf(view.page), [])
        assert.equal(await isTooWide(view.page), false)
        await view.context.close()
      },
    )
  }
})
