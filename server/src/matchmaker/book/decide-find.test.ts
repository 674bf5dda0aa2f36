// Which lobby a find gets, with and without tags, and which lobbies a list has.
import assert from 'node:assert'
import { test } from 'node:test'
import {
  at,
  findRequest,
  grantIn,
  idOf,
  idSource,
  lobbyPlan,
  PLACE,
  requestedSeat,
  runningLobby,
  START_MS,
  VERSION,
} from '../../../test/matchmaker/plain-requests.ts'
import * as decide from './decide.ts'
import { load } from './evolve.ts'
import { TAG_CANDIDATES_MAX } from './open-lobbies.ts'
import { Book, LIST_PAGE_MAX } from './state.ts'

const refused = (code: string) => ({ refused: code })
const NO_ROOM = refused('MATCHMAKER_NO_AVAILABLE_LOBBIES')

test('find takes the fullest lobby, whatever the order in which they filled', () => {
  const book = new Book()
  const ids = idSource()
  for (const players of [1, 3, 2]) runningLobby(book, ids, START_MS, { players })
  const fullest = [...book.lobbies.values()][1]!
  assert.equal(grantIn(book, decide.find(book, findRequest(), ids(), at(START_MS))).lobby_id, fullest.lobby_id)
  const next = grantIn(book, decide.find(book, findRequest(), ids(), at(START_MS)))
  assert.equal(next.lobby_id, [...book.lobbies.values()][2]!.lobby_id, 'the fullest is full now')
})

test('fullest is what has the fewest free places, not the most players', () => {
  const book = new Book()
  const ids = idSource()
  runningLobby(book, ids, START_MS, { players: 5, plan: { max_players_normal: 32, max_players_direct: 32 } })
  const small = runningLobby(book, ids, START_MS, { players: 1, plan: { max_players_normal: 2 } })
  assert.equal(grantIn(book, decide.find(book, findRequest(), ids(), at(START_MS))).lobby_id, small.lobby_id)
})

test('of equally full lobbies find takes the oldest, and of the same millisecond the one with the lower id', () => {
  const book = new Book()
  for (const [number, ms] of [
    [5, 30],
    [9, 10],
    [7, 10],
    [1, 20],
  ] as const) {
    const plan = lobbyPlan()
    const ids = { lobby_id: idOf(number), player_id: idOf(100 + number) }
    grantIn(book, decide.create(book, { ...requestedSeat(), plan }, ids, at(START_MS + ms)))
  }
  const ids = idSource()
  const order = Array.from(
    { length: 12 },
    () => grantIn(book, decide.find(book, findRequest(), ids(), at(START_MS))).lobby_id,
  )
  assert.deepEqual([...new Set(order)], [7, 9, 1, 5].map(idOf))
})

test('a find among several game modes and regions takes the fullest of all of them, and of no other', () => {
  const book = new Book()
  const ids = idSource()
  const solo = { ...PLACE, game_mode: 'solo' }
  const far = { ...PLACE, region: 'far' }
  runningLobby(book, ids, START_MS, { players: 1 })
  const in_solo = runningLobby(book, ids, START_MS, { players: 2, plan: solo })
  runningLobby(book, ids, START_MS, { players: 3, plan: far })
  runningLobby(book, ids, START_MS, { players: 3, plan: { version_id: idOf(999_999) } })
  assert.equal(
    grantIn(book, decide.find(book, findRequest({ keys: [PLACE, solo] }), ids(), at(START_MS))).lobby_id,
    in_solo.lobby_id,
  )
  assert.deepEqual(
    decide.find(book, findRequest({ keys: [{ ...PLACE, game_mode: 'other' }] }), ids(), at(START_MS)),
    NO_ROOM,
  )
  assert.deepEqual(decide.find(book, findRequest({ keys: [] }), ids(), at(START_MS)), NO_ROOM)
})

test('find by tags takes a lobby that has them all, and it may have more', () => {
  const book = new Book()
  const ids = idSource()
  runningLobby(book, ids, START_MS, { players: 3 })
  runningLobby(book, ids, START_MS, { players: 3, plan: { tags: { mood: 'calm' } } })
  const both = runningLobby(book, ids, START_MS, { players: 1, plan: { tags: { mood: 'calm', map: 'ice' } } })
  const find = (tags: Record<string, string>) =>
    decide.find(book, findRequest({ tags: Object.entries(tags) }), ids(), at(START_MS + 1))
  assert.equal(grantIn(book, find({ map: 'ice', mood: 'calm' })).lobby_id, both.lobby_id)
  assert.equal(grantIn(book, find({ map: 'ice' })).lobby_id, both.lobby_id)
  assert.deepEqual(find({ map: 'ice', mood: 'wild' }), NO_ROOM)
  assert.deepEqual(find({ map: 'calm' }), NO_ROOM)
  assert.deepEqual(find({ constructor: 'x' }), NO_ROOM)
})

test('a lobby with tags that was full or closed is found by its tags again when it is open again', () => {
  const book = new Book()
  const ids = idSource()
  const lobby = runningLobby(book, ids, START_MS, { players: 4, plan: { tags: { map: 'ice' } } })
  const find = () => decide.find(book, findRequest({ tags: [['map', 'ice']] }), ids(), at(START_MS))
  assert.deepEqual(find(), NO_ROOM)
  grantIn(book, decide.release(book, lobby.player_id, START_MS))
  grantIn(book, decide.setClosed(book, lobby.lobby_id, true))
  assert.deepEqual(find(), NO_ROOM)
  grantIn(book, decide.setClosed(book, lobby.lobby_id, false))
  assert.equal(grantIn(book, find()).lobby_id, lobby.lobby_id)
})

test('a closed lobby is not found, but joined', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id } = runningLobby(book, ids, START_MS)
  grantIn(book, decide.setClosed(book, lobby_id, true))
  assert.deepEqual(decide.find(book, findRequest(), ids(), at(START_MS)), NO_ROOM)
  assert.equal(grantIn(book, decide.join(book, { ...requestedSeat(), lobby_id }, ids(), START_MS)).lobby_id, lobby_id)
  grantIn(book, decide.setClosed(book, lobby_id, false))
  assert.equal(grantIn(book, decide.find(book, findRequest(), ids(), at(START_MS))).lobby_id, lobby_id)
})

test('a private lobby is never found nor listed, but joined', () => {
  const book = new Book()
  const ids = idSource()
  const { lobby_id } = runningLobby(book, ids, START_MS, { plan: { publicity: 'private' } })
  assert.deepEqual(decide.find(book, findRequest(), ids(), at(START_MS)), NO_ROOM)
  const request = { version_id: VERSION, game_modes: new Set([PLACE.game_mode]), after: null }
  assert.deepEqual(book.list(request), { lobbies: [], more: false })
  assert.equal(grantIn(book, decide.join(book, { ...requestedSeat(), lobby_id }, ids(), START_MS)).lobby_id, lobby_id)
})

test('a list names the public lobbies of its version and game modes once each, page by page, oldest first', () => {
  const book = new Book()
  const ids = idSource()
  const listed: string[] = []
  for (let count = 0; count < 2 * LIST_PAGE_MAX + 5; count++) {
    listed.push(runningLobby(book, ids, START_MS).lobby_id)
    runningLobby(book, ids, START_MS, { plan: { game_mode: 'other' } })
    const stopped = runningLobby(book, ids, START_MS)
    grantIn(book, decide.stop(book, stopped.lobby_id, 'requested', START_MS))
  }
  runningLobby(book, ids, START_MS, { plan: { version_id: idOf(999_999) } })
  const request = { version_id: VERSION, game_modes: new Set([PLACE.game_mode]) }
  const seen: string[] = []
  for (let after: string | null = null, pages = 1; ; pages++) {
    const page = book.list({ ...request, after })
    seen.push(...page.lobbies.map((lobby) => lobby.lobby_id))
    after = seen.at(-1)!
    assert.equal(page.more, pages < 3)
    if (!page.more) break
  }
  assert.deepEqual(seen, listed)
})

test('a lobby without players is listed only when it is the only one of its game mode', () => {
  const book = new Book()
  const ids = idSource()
  const request = { version_id: VERSION, game_modes: new Set([PLACE.game_mode, 'other']), after: null }
  const listed = () => book.list(request).lobbies.map((lobby) => lobby.lobby_id)
  const leave = ({ lobby_id, player_id }: { lobby_id: string; player_id: string }) =>
    grantIn(book, decide.disconnected(book, { lobby_id, player_id, disconnect_key: null }, START_MS))
  const first = runningLobby(book, ids, START_MS)
  const other = runningLobby(book, ids, START_MS, { plan: { game_mode: 'other' } })
  leave(first)
  leave(other)
  assert.deepEqual(listed(), [first.lobby_id, other.lobby_id])
  const second = runningLobby(book, ids, START_MS)
  assert.deepEqual(listed(), [other.lobby_id, second.lobby_id])
  leave(second)
  assert.deepEqual(listed(), [other.lobby_id])
  grantIn(book, decide.stop(book, second.lobby_id, 'idle', START_MS))
  assert.deepEqual(listed(), [first.lobby_id, other.lobby_id])
})

test('a find among 10,000 open lobbies reads a handful of them, and so does taking the seat', () => {
  const cost = (count: number) => {
    const book = new Book()
    const ids = idSource()
    let looked_at = 0
    for (let number = 0; number < count; number++) {
      runningLobby(book, ids, START_MS + number, { plan: { max_players_normal: 3, max_players_direct: 3 } })
    }
    // A comparison of lobbies reads the limit of each: that is counted.
    for (const lobby of book.lobbies.values()) {
      const { max_players_normal } = lobby
      Object.defineProperty(lobby, 'max_players_normal', {
        get() {
          looked_at++
          return max_players_normal
        },
      })
    }
    let most = 0
    for (let finds = 0; finds < 2 * Math.min(count, 50); finds++) {
      looked_at = 0
      grantIn(book, decide.find(book, findRequest(), ids(), at(START_MS + count)))
      most = Math.max(most, looked_at)
    }
    return most
  }
  const [few, many] = [cost(10), cost(10_000)]
  assert.ok(few > 0, 'the counter counts')
  // A heap of 10,000 is 14 deep; each level costs two comparisons of two lobbies, and a full lobby is taken out.
  assert.ok(many <= 4 * 2 * 14, `a find looked ${many} times at a lobby`)
})

test('a find by tags reads no more than TAG_CANDIDATES_MAX lobbies', () => {
  const book = new Book()
  const ids = idSource()
  let looked_at = 0
  for (let number = 0; number < 1_000; number++) {
    const tags: Record<string, string> = number < 500 ? { rare: 'a', common: 'b' } : { common: 'b' }
    const { lobby_id } = runningLobby(book, ids, START_MS, { plan: { tags } })
    const lobby = book.lobbies.get(lobby_id)!
    Object.defineProperty(lobby, 'tags', {
      get() {
        looked_at++
        return tags
      },
    })
  }
  const tags = Object.entries({ common: 'b', rare: 'a' })
  assert.ok('changes' in decide.find(book, findRequest({ tags }), ids(), at(START_MS)))
  // Each candidate is asked for each tag: whether it has it, and its value.
  assert.ok(looked_at > 0 && looked_at <= TAG_CANDIDATES_MAX * tags.length * 2, `${looked_at} reads of tags`)
})

test('a find by tags takes the same lobby before and after a load, in whichever order lobbies filled and emptied', () => {
  const book = new Book()
  const ids = idSource()
  const tags = { map: 'ice' }
  const plan = { tags, max_players_normal: 2 }
  const lobbies = Array.from({ length: TAG_CANDIDATES_MAX + 20 }, (_, number) =>
    runningLobby(book, ids, START_MS + number, { plan, players: number < 10 ? 2 : 0 }),
  )
  // The oldest leave the index and return to it: behind all others, if the order were that of their return.
  for (const { lobby_id } of lobbies.slice(0, 10)) {
    const [player_id] = book.lobbies.get(lobby_id)!.players.keys()
    grantIn(book, decide.disconnected(book, { player_id: player_id!, lobby_id, disconnect_key: null }, START_MS + 500))
  }
  const loaded = new Book()
  load(loaded, {
    lobbies: structuredClone([...book.lobbies.values()]),
    players: structuredClone([...book.players.values()]),
  })
  const find = (of: Book) => decide.find(of, findRequest({ tags: Object.entries(tags) }), ids(), at(START_MS + 1_000))
  for (let count = 0; count < 30; count++) {
    const chosen = grantIn(book, find(book)).lobby_id
    if (count < 10) assert.equal(chosen, lobbies[count]!.lobby_id)
    assert.equal(grantIn(loaded, find(loaded)).lobby_id, chosen)
  }
})

test('a page of a list costs what is on it, however many lobbies there are', () => {
  const cost = (count: number): number => {
    const book = new Book()
    const ids = idSource()
    let looked_at = 0
    let middle = ''
    for (let number = 0; number < count; number++) {
      // Most of what there is is not to be listed.
      const plan = { game_mode: number % 4 === 0 ? 'default' : 'other' }
      const { lobby_id } = runningLobby(book, ids, START_MS + number, { plan })
      if (number === count / 2) middle = lobby_id
      const lobby = book.lobbies.get(lobby_id)!
      const { create_ms } = lobby
      Object.defineProperty(lobby, 'create_ms', {
        get() {
          looked_at++
          return create_ms
        },
      })
    }
    looked_at = 0
    const request = { version_id: VERSION, game_modes: new Set([PLACE.game_mode]), after: middle }
    assert.equal(book.list(request).lobbies.length, Math.min(LIST_PAGE_MAX, count / 8 - 1))
    return looked_at
  }
  assert.ok(cost(80) > 0, 'the counter counts')
  const few = cost(8 * (LIST_PAGE_MAX + 2))
  const many = cost(64 * (LIST_PAGE_MAX + 2))
  // To find its beginning takes a comparison of two lobbies, twice read, for each doubling.
  assert.ok(many <= few + 3 * 4, `${many} looks for a page of many, ${few} for one of few`)
})

const CURRENT = idOf(0xfffe)
const REPLACED = { refused: 'MATCHMAKER_VERSION_REPLACED', metadata: { version_id: CURRENT } }
/** A find for a version that another one has replaced. */
const outdatedFind = (changes: Parameters<typeof findRequest>[0] = {}) =>
  findRequest({ replaced_by: CURRENT, ...changes })

test('a find for a replaced version gets the free seats of its open lobbies, then the version that replaced it', () => {
  const book = new Book()
  const ids = idSource()
  const find = (request = outdatedFind()) => decide.find(book, request, ids(), at(START_MS))
  const isFound = (request = outdatedFind()) => decide.hasOutdatedSeat(book, request, false, START_MS)
  assert.deepEqual([isFound(), find()], [false, REPLACED])
  const { lobby_id } = runningLobby(book, ids, START_MS, { players: 3 })
  assert.equal(isFound(outdatedFind({ keys: [] })), false, 'the deployed version does not allow it')
  assert.equal(isFound(), true)
  assert.equal(grantIn(book, find(outdatedFind({ seat_key: 'key' }))).lobby_id, lobby_id)
  assert.deepEqual([isFound(), find()], [false, REPLACED])
  const again = outdatedFind({ seat_key: 'key', keys: [] })
  assert.equal(isFound(again), true, 'a repeated find has its seat')
  assert.equal(grantIn(book, find(again)).lobby_id, lobby_id)
  assert.equal(book.lobbies.size, 1)

  const draining = runningLobby(book, ids, START_MS)
  grantIn(book, decide.setDraining(book, VERSION, true))
  assert.deepEqual([isFound(), find()], [false, REPLACED])
  assert.equal(book.lobby(draining.lobby_id).players.size, 1)
})

test('a create for a replaced version starts no lobby, with and without verification', () => {
  const book = new Book()
  const ids = idSource()
  const request = { ...requestedSeat({ replaced_by: CURRENT }), plan: lobbyPlan() }
  assert.deepEqual(decide.create(book, request, ids(), at(START_MS)), REPLACED)
  assert.deepEqual(decide.hold(book, { action: 'create', request }, ids(), at(START_MS)), REPLACED)
})

test('a verified find for a replaced version holds a seat of an open lobby, and none of a lobby that is only planned', () => {
  const book = new Book()
  const ids = idSource()
  const verified_modes = new Set(['default'])
  const hold = (request: ReturnType<typeof findRequest>, fresh = ids()) =>
    decide.hold(book, { action: 'find', request, verified_modes }, fresh, at(START_MS))
  const planned = grantIn(book, hold(findRequest({ plan: lobbyPlan() })))
  assert.ok('hold' in planned && planned.hold.plan !== null)
  assert.deepEqual(hold(outdatedFind()), REPLACED)

  const { lobby_id } = runningLobby(book, ids, START_MS)
  const fresh = ids()
  const held = grantIn(book, hold(outdatedFind(), fresh))
  assert.ok('hold' in held && held.hold.lobby.lobby_id === lobby_id)
  grantIn(book, decide.setDraining(book, VERSION, true))
  const seat = { ...requestedSeat({ replaced_by: CURRENT }) }
  assert.deepEqual(decide.seatHeld(book, fresh, seat, at(START_MS)), REPLACED)
  grantIn(book, decide.setDraining(book, VERSION, false))
  assert.equal(grantIn(book, decide.seatHeld(book, fresh, seat, at(START_MS)))?.lobby_id, lobby_id)
})
