import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createParty, findLobby, joinParty, type ResponseOf, setupIdentity, watchEvents } from '@musterhost/contract'
import { type Client, createClient } from '@musterhost/contract/client'
import type { Browser, Page } from 'playwright-core'
import { roleOf } from '../supervisor/started.ts'
import { until } from '../support/until.ts'
import { type Arena, startArena } from './arena.ts'
import { openBrowser, openPage, playerOf } from './browser.ts'

type Seat = ResponseOf<typeof findLobby>

test('a party of four pages lands in one lobby by the event', async (t) => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const arena = await startArena(t, { deploy: ['--max-players', '8'] })
  const { leader, link } = await makeParty(browser, arena)
  const others = await Promise.all(['Grace', 'Joan', 'Mary'].map((name) => openPage(browser, `${link}&name=${name}`)))
  await leader.getByText('Your party: 4 pilots').waitFor()
  for (const page of others) await page.getByText('Waiting for the leader').waitFor()
  await leader.click('text=Play together')
  const players = await Promise.all([leader, ...others].map(playerOf))
  for (const player of players) await player.seesPlayers(4)
  const lobbies = new Set(await Promise.all(players.map((player) => player.lobby_id())))
  assert.equal(lobbies.size, 1)
  const [lobby] = await arena.lobbies()
  assert.deepEqual([lobby?.lobby_id, lobby?.total_player_count], [[...lobbies][0], 4])
})

test('who leaves a party plays alone again, and an invitation that is over is refused in words', async (t) => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const arena = await startArena(t, { deploy: ['--max-players', '8'] })
  const { leader, link } = await makeParty(browser, arena)
  const friend = await openPage(browser, `${link}&name=Grace`)
  await leader.getByText('Your party: 2 pilots').waitFor()
  await leader.click('text=Leave the party')
  // Who has been in it for the longest time leads it then.
  await friend.getByText('Play together').waitFor()
  await friend.click('text=Leave the party')
  const late = await openPage(browser, `${link}&name=Joan`)
  await late.getByText('No party has this code any more.').waitFor()
  for (const page of [leader, friend]) await page.click('#play')
  for (const player of await Promise.all([leader, friend].map(playerOf))) await player.seesPlayers(2)
})

test('the matchmaker is killed before and after the seats are ready: every member receives their own', async (t) => {
  const arena = await startArena(t, { deploy: ['--max-players', '8'] })
  const members = await Promise.all([1, 2, 3, 4].map(() => memberOf(arena)))
  const leader = members[0]!
  const { party } = await leader.call(createParty, {})
  for (const member of members.slice(1)) await member.call(joinParty, { body: { code: party.code } })
  const starts = await Promise.all(members.map(async (member) => (await member.call(watchEvents, {})).watch.index))

  // The seats are committed and their lobby is about to start; every member that listens is cut off with the leader.
  const told = members.map((member, number) => seatAfter(member, starts[number]!))
  const found = repeated(() => find(leader, 'one-key'))
  await until('the lobby to be there', async () => (await arena.lobbies().catch(() => [])).length === 1)
  await killMatchmaker(arena)
  const answer = await found
  const seats = await Promise.all(told)
  assert.deepEqual(seats[0]!.seat, answer)
  assert.deepEqual([...new Set(seats.map(({ seat }) => seat.lobby.lobby_id))], [answer.lobby.lobby_id])
  assert.equal(new Set(seats.map(({ seat }) => seat.player.token)).size, 4)

  // Now they are ready and the leader knows, but no other member does when the matchmaker falls.
  const second = await repeated(() => find(leader, 'another-key'))
  await killMatchmaker(arena)
  for (const [number, member] of members.entries()) {
    const { seat } = await seatAfter(member, seats[number]!.index)
    assert.equal(seat.lobby.lobby_id, second.lobby.lobby_id)
    assert.notEqual(seat.player.token, seats[number]!.seat.player.token)
    // The seat is sent again, for the member has not acknowledged it.
    assert.deepEqual((await seatAfter(member, seats[number]!.index)).seat, seat)
  }
})

/** Ada's page, which leads one, and the link for her friends. */
async function makeParty(browser: Browser, { play_url }: Arena): Promise<{ leader: Page; link: string }> {
  const leader = await openPage(browser, `${play_url}?name=Ada`)
  await leader.click('text=Play with friends')
  const field = leader.locator('#party-link')
  await field.waitFor()
  return { leader, link: await field.inputValue() }
}

function find(leader: Client, key: string): Promise<Seat> {
  const body = { game_modes: ['default'], party: true }
  return leader.call(findLobby, { body, headers: { 'idempotency-key': key } })
}

/** The first seat behind the index, and the index behind it. */
async function seatAfter(member: Client, watch_index: string): Promise<{ seat: Seat; index: string }> {
  const { events, watch } = await repeated(async () => {
    const news = await member.call(watchEvents, { query: { watch_index } })
    return news.events.length > 0 && news
  })
  assert.equal(events.length, 1)
  return { seat: events[0]!.kind.matchmaker_lobby_join!, index: watch.index }
}

/** Again while the platform says "not now", or the connection broke: what the SDK does. */
async function repeated<T>(call: () => Promise<T | false>): Promise<T> {
  return until('an answer', async () => {
    try {
      return await call()
    } catch (error) {
      const { code } = error as { code?: string }
      if (code !== undefined && !/^(API_NOT_AVAILABLE|LOBBY_NOT_REACHABLE|MATCHMAKER_LOBBY_NOT_STARTED)$/.test(code)) {
        throw error
      }
      return false
    }
  }) as Promise<T>
}

async function memberOf(arena: Arena): Promise<Client> {
  const { identity_token } = await arena.player.call(setupIdentity, { body: {} })
  const url = `http://localhost:${arena.settings.MUSTER_EDGE_HTTP_PORT}`
  return createClient({ url, token: identity_token })
}

async function killMatchmaker(arena: Arena): Promise<void> {
  const pid = await until('a matchmaker', () => roleOf(arena.folder, 'matchmaker'))
  process.kill(pid, 'SIGKILL')
  await until('another matchmaker', () => {
    const other = roleOf(arena.folder, 'matchmaker')
    return other !== undefined && other !== pid
  })
}
