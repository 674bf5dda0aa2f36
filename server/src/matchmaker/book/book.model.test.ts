// The book against a plain one (test/matchmaker/plain-book.ts), driven as a shard drives it: commands gather, and a
// batch commits or fails; one that fails is undone. After every step both say the same and the laws hold.
import assert from 'node:assert'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import * as plain from '../../../test/matchmaker/plain-book.ts'
import { at, idOf, lobbyPlan, START_MS, VERSION } from '../../../test/matchmaker/plain-requests.ts'
import type { Change, PartyMember } from '../../journal/changes.ts'
import { TABLES } from '../projection/projected-tables.ts'
import type { Decision, FreshIds, HoldRequest, LobbyPlan, RequestedSeat, SeatTaken, Undo } from './commands.ts'
import * as decide from './decide.ts'
import { apply, dropHolds, forget, load, setConnections, setIdleRules, setReported } from './evolve.ts'
import { ALL_REPORTED_MS, type IdleRules, NO_IDLE_RULES, NONE_REPORTED_MS } from './idle.ts'
import type { Lobby, Player } from './lobby.ts'
import { Book } from './state.ts'

const RUNS = 10_000
const STEPS_MAX = 60
const TIMES_MS = [0, 0, 0, 1, 500, 4_000, 5_000, 15_000, 60_000, 120_000, 600_000]
const KINDS = [
  ...['find', 'find', 'find', 'find', 'join', 'join', 'create', 'ready', 'ready', 'connected', 'connected'],
  ...[
    'disconnected',
    'dropped',
    'expel',
    'release',
    'closed',
    'stalled',
    'stalled',
    'state',
    'stop',
    'commit',
    'commit',
    'fail',
    'time',
  ],
  ...['solve', 'request', 'request', 'hold', 'hold', 'hold', 'hold', 'sit', 'sit', 'let_go'],
  ...[
    'drain',
    'drain',
    'prepare',
    'prepare',
    'party',
    'party',
    'enter',
    'enter',
    'enter',
    'lead',
    'kick',
    'quit',
    'look',
  ],
  ...['open', 'open', 'open', 'report', 'report'],
] as const
const CLIENTS = ['192.0.2.1', '192.0.2.2', '2001:db8::']
const PEOPLE = ['ada', 'grace', 'joan', 'mary']
const KEYS = [null, null, null, 'a', 'b', 'c']
const MODES = [['m'], ['m'], ['n'], ['m', 'n']]
const REGIONS = [['r'], ['r'], ['s'], ['r', 's']]
const TAGS: Record<string, string>[] = [{}, {}, {}, { x: '1' }, { y: '1' }, { x: '1', y: '1' }, { x: '2' }]
/** What may change with a commit; most of these ask for no idle lobbies. */
const IDLE: plain.PlainIdle[] = [
  { version: null, max: 0 },
  { version: VERSION, max: 0 },
  { version: VERSION, max: 1 },
  { version: VERSION, max: 2 },
  { version: 'another', max: 0 },
]
const LOBBIES_MAX = 6
const CLIENT_PLAYERS_MAX = 5
const NOBODY = { lobby_id: 'none', player_id: 'none' }

type Step = readonly [kind: number, who: number, what: number, time: number]
const steps = fc.array(fc.tuple(fc.nat(KINDS.length - 1), fc.nat(), fc.nat(), fc.nat(TIMES_MS.length - 1)), {
  maxLength: STEPS_MAX,
  size: 'max',
})

const pick = <T>(from: readonly T[], number: number): T => from[number % from.length]!

function planOf(number: number): LobbyPlan {
  return lobbyPlan({
    game_mode: pick(['m', 'n'], number),
    region: pick(['r', 's', 'r'], number >> 1),
    publicity: pick(['public', 'public', 'public', 'private'] as const, number >> 2),
    max_players_normal: pick([1, 2, 3], number >> 3),
    max_players_direct: pick([1, 2, 4], number >> 4),
    max_players_party: pick([1, 3], number >> 5),
    tags: pick(TAGS, number >> 6),
    ready_within_ms: pick([5_000, 60_000, 1_200_000], number >> 7),
    player_deadline_ms: pick([4_000, 60_000, 1_200_000], number >> 8),
    idle_grace_ms: pick([0, 500, 15_000], number >> 9),
  })
}

const rulesOf = ({ version, max }: plain.PlainIdle): IdleRules => ({ version_id: version, idle_max: () => max })
function memberOf(identity_id: string, client: string, join_ms: number): PartyMember {
  return { identity_id, client, address: client, user_agent: null, join_ms }
}

/** Under which the places of a hold, and of those who came with it, are held. */
function idsOf(reference: plain.PlainBook, found: plain.PlainHold | undefined) {
  if (found === undefined) return { player: 'nobody', members: [] }
  const party = reference.holds.filter(({ request }) => request === found.request).map(({ player }) => player)
  return { player: party[0]!, members: party.slice(1) }
}

/** Both books, and what a shard keeps beside its own. */
function createPair() {
  /** Room that planned lobbies have taken. */
  const rooms = new Set<string>()
  const onPlanned = (lobby: Lobby, sign: 1 | -1): void => {
    assert.equal(rooms.has(lobby.lobby_id), sign === -1, 'room is taken and given back in turn')
    if (sign === 1) rooms.add(lobby.lobby_id)
    else rooms.delete(lobby.lobby_id)
  }
  const book = new Book({ onPlanned, reported_ms: NONE_REPORTED_MS })
  let reference = plain.emptyBook()
  let now_ms = START_MS
  let last_id = 0
  const committed: Change[] = []
  let uncommitted: Change[] = []
  let undos: Undo[] = []
  let at_commit = { reference: structuredClone(reference), print: fingerprint(book, now_ms), has_holds: false }
  let rows: { text: string; after: number } | null = null
  /** The edges have reported something since the last commit. */
  let is_told_since = false
  /** What no later state may contradict (law L2). */
  const connections = new Map<string, number>()

  function make(change: Change): void {
    // As the journal keeps it.
    const stored = JSON.parse(JSON.stringify(change)) as Change
    undos.push(apply(book, stored))
    uncommitted.push(stored)
  }

  /** Ids whose order is not that of their making: nothing may rest on it but the tie of one millisecond. */
  function freshIds() {
    last_id += 6
    const scrambled = (number: number): string => idOf((number * 7_368_787) % 16_777_213)
    const member_ids = PEOPLE.slice(1).map((_, index) => scrambled(last_id + 2 + index))
    return { lobby_id: scrambled(last_id), player_id: scrambled(last_id + 1), member_ids }
  }

  function step([kind_number, who, what, time]: Step): void {
    const kind = pick(KINDS, kind_number)
    now_ms += pick(TIMES_MS, time)
    if (kind === 'fail') {
      for (const undo of undos.reverse()) undo()
      ;[undos, uncommitted, reference] = [[], [], plain.undone(at_commit.reference, reference)]
      // Holds and connections are not undone; what may be reported of them is compared below.
      if (!at_commit.has_holds && reference.holds.length === 0 && !is_told_since) {
        assert.equal(fingerprint(book, START_MS), at_commit.print, 'an undo restores exactly what was there')
      }
    } else {
      plain.expireHolds(reference, now_ms)
      for (let change = decide.expire(book, now_ms); change !== null; change = decide.expire(book, now_ms)) {
        assert.ok(plain.takeExpiry(reference, change, now_ms), `not yet due: ${JSON.stringify(change)}`)
        make(change)
      }
      if (kind === 'commit') commit(what)
      else if (kind !== 'time') command(kind, who, what)
    }
    assertSame(book, reference)
    assert.deepEqual(
      [...rooms].sort(),
      plain
        .plannedIn(reference)
        .map((plan) => plan.id)
        .sort(),
    )
    assertLaws(book, connections, committed)
  }

  function commit(what: number): void {
    committed.push(...uncommitted)
    ;[undos, uncommitted] = [[], []]
    forget(book, now_ms)
    plain.forget(reference, now_ms)
    reference.seated = []
    reference.idle = pick(IDLE, what >> 4)
    setIdleRules(book, rulesOf(reference.idle))
    const has_holds = reference.holds.length > 0
    at_commit = { reference: structuredClone(reference), print: fingerprint(book, START_MS), has_holds }
    is_told_since = false
    if (rows === null || what % 3 === 0) rows = { text: JSON.stringify(rowsOf(book)), after: committed.length }
  }

  function command(
    kind: Exclude<(typeof KINDS)[number], 'commit' | 'fail' | 'time'>,
    who: number,
    what: number,
  ): unknown {
    const ids = freshIds()
    const of = { lobby: ids.lobby_id, player: ids.player_id, members: ids.member_ids }
    const person = pick(PEOPLE, who >> 10)
    const with_party = (who >> 12) % 3 === 0
    const lobby = pick([...reference.lobbies.map((one) => one.id), 'nowhere'], who)
    const player = pick([...reference.players, undefined], what)
    const player_id = player?.id ?? 'nobody'
    const own_lobby = who % 5 === 0 ? lobby : (player?.lobby ?? lobby)
    const key = pick([null, 'one', 'two'], who >> 3)
    const call = { player: player_id, lobby: own_lobby, key }
    const plan = planOf(what)
    const request = {
      client: pick(CLIENTS, who),
      seat_key: pick(KEYS, who >> 2),
      client_players_max: pick([0, 1, CLIENT_PLAYERS_MAX, CLIENT_PLAYERS_MAX, CLIENT_PLAYERS_MAX], who >> 5),
      lobby_count_max: pick([0, 2, LOBBIES_MAX, LOBBIES_MAX], who >> 8),
      identity_id: with_party || who % 2 === 0 ? person : null,
      party: with_party ? { playersMaxOf: () => CLIENT_PLAYERS_MAX } : null,
    }
    const of_request = {
      client: request.client,
      key: request.seat_key,
      client_max: request.client_players_max,
      lobby_max: request.lobby_count_max,
      who: request.identity_id,
      with_party,
      member_max: CLIENT_PLAYERS_MAX,
    }
    const member = { who: person, client: request.client }
    const comer = memberOf(person, request.client, now_ms)
    switch (kind) {
      case 'find': {
        const [modes, regions, tags] = [pick(MODES, what), pick(REGIONS, what >> 2), pick(TAGS, what >> 4)]
        const places = modes.flatMap((game_mode) =>
          regions.map((region) => ({ version_id: VERSION, region, game_mode })),
        )
        const finder = { ...request, places, tags: Object.entries(tags), plan: what % 7 === 0 ? null : plan }
        const of_find = { ...of_request, modes, regions, tags, plan: finder.plan }
        return same(decide.find(book, finder, ids, at(now_ms)), plain.find(reference, of_find, of, now_ms))
      }
      case 'join':
        return same(
          decide.join(book, { ...request, lobby_id: lobby }, ids, now_ms),
          plain.join(reference, { ...of_request, lobby }, of, now_ms),
        )
      case 'create':
        return same(
          decide.create(book, { ...request, plan }, ids, at(now_ms)),
          plain.create(reference, { ...of_request, plan }, of, now_ms),
        )
      case 'ready':
        return same(decide.ready(book, lobby, now_ms), plain.ready(reference, lobby, now_ms))
      case 'closed':
        return same(
          decide.setClosed(book, lobby, what % 2 === 0),
          plain.say(reference, lobby, { closed: what % 2 === 0 }),
        )
      case 'stalled': {
        const is_stalled = what % 2 === 0
        return same(
          decide.setStalled(book, lobby, is_stalled, now_ms),
          plain.stall(reference, lobby, is_stalled, now_ms),
        )
      }
      case 'state': {
        const state = pick([null, '1', '{}'], what)
        return same(decide.setState(book, lobby, state), plain.say(reference, lobby, { state }))
      }
      case 'stop':
        return same(unsaid(decide.stop(book, lobby, 'exited', now_ms)), plain.stop(reference, lobby, 'exited', now_ms))
      case 'connected':
        return same(
          decide.connected(book, { player_id, lobby_id: own_lobby, connect_key: key }, now_ms),
          plain.connected(reference, call, now_ms),
        )
      case 'disconnected':
        return same(
          decide.disconnected(book, { player_id, lobby_id: own_lobby, disconnect_key: key }, now_ms),
          plain.disconnected(reference, call, now_ms),
        )
      case 'dropped': {
        const hold_ms = pick([0, 500, 60_000], what >> 3)
        return same(
          decide.disconnected(book, { player_id, lobby_id: own_lobby, disconnect_key: key, hold_ms }, now_ms),
          plain.disconnected(reference, { ...call, hold: hold_ms }, now_ms),
        )
      }
      case 'expel':
        return same(
          unsaid(decide.expel(book, { player_id, lobby_id: own_lobby }, now_ms)),
          plain.expel(reference, call, now_ms),
        )
      case 'prepare': {
        const { lobby_count_max } = request
        const idle_min = pick([1, 2, 3], who)
        return same(
          unsaid(decide.prepare(book, { plan, idle_min, lobby_count_max }, ids.lobby_id, at(now_ms))),
          plain.prepare(reference, { plan, idle_min, lobby_max: lobby_count_max }, ids.lobby_id, now_ms),
        )
      }
      case 'drain': {
        const is_draining = what % 3 === 0
        return same(decide.setDraining(book, VERSION, is_draining), plain.drain(reference, VERSION, is_draining))
      }
      case 'solve':
      case 'request': {
        const rules = { requests: pick([1, 2, 3], what), ttl: pick([500, 60_000], what >> 2) }
        const of_captcha = { requests_before_reverify: rules.requests, verification_ttl_ms: rules.ttl }
        return same(
          decide.admit(book, request.client, of_captcha, kind === 'solve', now_ms),
          plain.admit(reference, request.client, rules, kind === 'solve', now_ms),
        )
      }
      case 'hold': {
        const action = pick(['find', 'find', 'find', 'join', 'create'] as const, what)
        return held(action, who, what >> 3, ids, request, of_request)
      }
      case 'sit': {
        const found = pick([...reference.holds, undefined], what)
        const asked = found === undefined ? of_request : found.request
        const entrant = {
          ...request,
          client: asked.client,
          seat_key: found === undefined ? null : asked.key,
          identity_id: asked.who,
          party: asked.with_party ? { playersMaxOf: () => CLIENT_PLAYERS_MAX } : null,
        }
        const of_entrant = {
          ...asked,
          client_max: of_request.client_max,
          lobby_max: of_request.lobby_max,
          key: entrant.seat_key,
        }
        const held_ids = idsOf(reference, found)
        return same(
          decide.seatHeld(book, { player_id: held_ids.player, member_ids: held_ids.members }, entrant, at(now_ms)),
          plain.seatHeld(reference, held_ids, of_entrant, now_ms),
        )
      }
      case 'let_go': {
        const found = pick([...reference.holds, undefined], what)
        const held_ids = idsOf(reference, found)
        dropHolds(book, { player_id: held_ids.player, member_ids: held_ids.members })
        plain.releaseHold(reference, held_ids)
        return null
      }
      case 'party':
        return said(
          book.parties.create(comer, { party_id: ids.lobby_id, code: ids.lobby_id }),
          plain.makeParty(reference, member, { id: ids.lobby_id, code: ids.lobby_id }, now_ms),
        )
      case 'enter': {
        const into = pick([...reference.parties.map((party) => party.code), 'nowhere'], what)
        return said(book.parties.join(comer, into), plain.joinParty(reference, member, into, now_ms))
      }
      case 'lead': {
        const next = pick(PEOPLE, what)
        return said(book.parties.lead(person, next, now_ms), plain.leadParty(reference, person, next, now_ms))
      }
      case 'kick': {
        const [gone, fresh] = [pick(PEOPLE, what), { code: ids.lobby_id }]
        return said(
          book.parties.remove(person, gone, fresh, now_ms),
          plain.kickMember(reference, person, gone, fresh.code, now_ms),
        )
      }
      case 'look':
        return said(book.parties.look(person, now_ms), plain.lookAtParty(reference, person, now_ms))
      case 'open': {
        const count = pick([0, 0, 1, 2], what)
        is_told_since = true
        setConnections(book, lobby, count, now_ms)
        return plain.setOpen(reference, lobby, count, now_ms)
      }
      case 'report':
        is_told_since = true
        reference.reported = pick([now_ms, now_ms - 1_000], what)
        return setReported(book, START_MS, reference.reported)
      case 'quit':
        return said(book.parties.leave(person, now_ms), plain.leaveParty(reference, person, now_ms))
      case 'release':
        return same(decide.release(book, player_id, now_ms), plain.release(reference, player_id, now_ms))
    }
  }

  function held(
    action: 'find' | 'join' | 'create',
    who: number,
    what: number,
    ids: FreshIds,
    request: RequestedSeat,
    of_request: plain.SeatRequest,
  ): unknown {
    const of = { lobby: ids.lobby_id, player: ids.player_id, members: ids.member_ids ?? [] }
    const plan = planOf(what)
    let asked: HoldRequest
    let of_asked: plain.PlainAsked
    if (action === 'join') {
      const lobby = pick([...reference.lobbies.map((one) => one.id), 'nowhere'], who)
      asked = { action, request: { ...request, lobby_id: lobby } }
      of_asked = { action, request: { ...of_request, lobby } }
    } else if (action === 'create') {
      const custom = { ...plan, is_custom: true }
      asked = { action, request: { ...request, plan: custom } }
      of_asked = { action, request: { ...of_request, plan: custom } }
    } else {
      const [modes, regions, tags] = [pick(MODES, what), pick(REGIONS, what >> 2), pick(TAGS, what >> 4)]
      const verified = new Set(pick([['m', 'n'], ['m', 'n'], ['m']], who >> 4))
      const places = modes.flatMap((game_mode) => regions.map((region) => ({ version_id: VERSION, region, game_mode })))
      const finder = { ...request, places, tags: Object.entries(tags), plan: what % 7 === 0 ? null : plan }
      asked = { action, request: finder, verified_modes: verified }
      of_asked = { action, request: { ...of_request, modes, regions, tags, plan: finder.plan }, verified }
    }
    const decision = decide.hold(book, asked, ids, at(now_ms))
    const answer = plain.hold(reference, of_asked, of, now_ms)
    if ('refused' in decision || 'seat' in decision.result) {
      const seat =
        'refused' in decision ? decision : { ...decision, result: (decision.result as { seat: SeatTaken }).seat }
      assert.ok(answer === null || !('held' in answer), 'no hold was to be')
      return same(seat, answer)
    }
    const { hold } = decision.result
    assert.deepEqual(decision.changes, [], 'a hold is in no journal')
    assert.deepEqual({ held: hold.lobby.lobby_id }, answer)
    assert.equal(hold.plan !== null, !book.lobbies.has(hold.lobby.lobby_id))
    return decision
  }

  /** Without its answer, which the plain book does not give. */
  const unsaid = (decision: Decision<boolean>): Decision<null> =>
    'refused' in decision ? decision : { ...decision, result: null }

  function same(decision: Decision<SeatTaken | null>, answer: plain.Answer): Decision<SeatTaken | null> {
    if ('changes' in decision) for (const change of decision.changes) make(change)
    const said = 'refused' in decision ? decision : decision.result
    const expected =
      answer === null || 'refused' in answer
        ? answer
        : { lobby_id: answer.lobby, player_id: answer.player, is_ready: answer.is_ready }
    assert.deepEqual(said, expected)
    return decision
  }

  /** Of a party what is answered is the party itself, which is compared after every step. */
  function said(decision: Decision<unknown>, answer: plain.Answer): unknown {
    return same('refused' in decision ? decision : { ...decision, result: null }, answer)
  }

  /** From its journal, and from its tables and the journal after them, the book is made again as it is. */
  function rebuild(): void {
    for (const { player } of reference.holds) dropHolds(book, { player_id: player })
    assert.equal(rooms.size, 0, 'what is let go takes no room')
    const changes = [...committed, ...uncommitted]
    const durable_ms = now_ms
    forget(book, durable_ms)
    const print = fingerprint(book, now_ms)
    const replayed = new Book()
    setIdleRules(replayed, rulesOf(reference.idle))
    for (const change of changes) apply(replayed, change)
    forget(replayed, durable_ms)
    tellConnections(replayed, reference)
    assert.equal(fingerprint(replayed, now_ms), print, 'the journal alone makes the same book')
    if (rows === null) return
    const loaded = new Book()
    setIdleRules(loaded, rulesOf(reference.idle))
    loadRows(loaded, rows.text)
    for (const change of changes.slice(rows.after)) apply(loaded, change)
    forget(loaded, durable_ms)
    tellConnections(loaded, reference)
    assert.equal(fingerprint(loaded, now_ms), print, 'the tables and the journal after them make the same book')
    assertSameEnd([book, loaded, replayed], now_ms)
  }

  return { step, rebuild }
}

/** A book that was made again knows of no connections before the edges report them. */
function tellConnections(book: Book, { lobbies, reported }: plain.PlainBook): void {
  for (const { id, open, closed_since } of lobbies) {
    if (closed_since !== null) setConnections(book, id, 1, closed_since)
    setConnections(book, id, open, closed_since ?? START_MS)
  }
  setReported(book, START_MS, reported)
}

/** Time finds the same due in all of them, until nothing is left. (Of two that are due in one millisecond either may be first.) */
function assertSameEnd(books: readonly Book[], from_ms: number): void {
  const [book, ...others] = books as [Book, ...Book[]]
  const end_ms = from_ms + 100 * 3_600_000
  for (const one of books) {
    setIdleRules(one, NO_IDLE_RULES)
    for (const { lobby_id } of one.lobbies.values()) setConnections(one, lobby_id, 0, from_ms)
    setReported(one, START_MS, ALL_REPORTED_MS)
  }
  for (let now_ms = book.nextDueMs(); now_ms !== null && now_ms < end_ms; now_ms = book.nextDueMs()) {
    for (const one of books) {
      for (let change = decide.expire(one, now_ms); change !== null; change = decide.expire(one, now_ms))
        apply(one, change)
    }
    for (const other of others) assert.equal(other.nextDueMs(), book.nextDueMs())
  }
  for (const one of books) assert.equal(one.live_lobby_count, 0)
}

/** Everything that can be seen of a book from outside. */
function fingerprint(book: Book, now_ms: number): string {
  const nobody = { identity_id: null, party: null }
  const request = { client: 'x', seat_key: null, client_players_max: 1, lobby_count_max: 0, plan: null, ...nobody }
  const chosen = ['m', 'n'].flatMap((game_mode) =>
    ['r', 's'].flatMap((region) =>
      TAGS.map((tags) => {
        const places = [{ version_id: VERSION, region, game_mode }]
        return decide.find(book, { ...request, places, tags: Object.entries(tags) }, NOBODY, at(now_ms))
      }),
    ),
  )
  const keys = KEYS.map((seat_key) =>
    decide.find(book, { ...request, seat_key, places: [], tags: [] }, NOBODY, at(now_ms)),
  )
  const clients = CLIENTS.map((client) => {
    const isFull = (client_players_max: number) =>
      'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE' ===
      (
        decide.find(book, { ...request, client, client_players_max, places: [], tags: [] }, NOBODY, at(now_ms)) as {
          refused?: string
        }
      ).refused
    let count = 0
    while (isFull(count + 1)) count++
    return count
  })
  const lobbies = [...book.lobbies.values()].map(({ players, ...lobby }) => ({
    ...lobby,
    tags: Object.entries(lobby.tags).sort(),
    players: [...players.keys()].sort(),
  }))
  const sorted = <T>(records: T[]) =>
    records.map((record) => JSON.stringify(Object.entries(record as object).sort())).sort()
  return JSON.stringify({
    lobbies: sorted(lobbies),
    players: sorted([...book.players.values()]),
    live: book.live_lobby_count,
    draining: [...book.draining],
    parties: sorted([...book.parties.all()]),
    verified: CLIENTS.map((client) => book.verified.get(client)),
    told: PEOPLE.map((person) => [...book.partySeatsOf(person)].map(({ player_id }) => player_id).sort()),
    due: book.nextDueMs(),
    chosen: chosen.map((decision) => ('changes' in decision ? decision.result : decision)),
    listed: ['m', 'n'].map((game_mode) =>
      book
        .list({ version_id: VERSION, game_modes: new Set([game_mode]), after: null })
        .lobbies.map((lobby) => lobby.lobby_id),
    ),
    keys: keys.map((decision) => ('changes' in decision ? decision.result : decision)),
    clients,
  })
}

function rowsOf(book: Book) {
  const { lobbies, players, captcha_clients, parties } = TABLES
  return {
    lobbies: [...book.lobbies.values()].map((lobby) => lobbies.rowOf('namespace', lobby)),
    players: [...book.players.values()].map((player) => players.rowOf('namespace', player)),
    captcha_clients: CLIENTS.flatMap((client) => book.verified.get(client) ?? []).map((verified) =>
      captcha_clients.rowOf('namespace', verified),
    ),
    draining_versions: [...book.draining],
    parties: [...book.parties.all()].map((party) => parties.rowOf('namespace', party)),
  }
}

/** What PostgreSQL makes of the rows, and load.ts of what PostgreSQL returns. */
function loadRows(book: Book, text: string): void {
  const rows = JSON.parse(text) as ReturnType<typeof rowsOf>
  const selected = <T>(row: object): T =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [
        name,
        name.endsWith('_ts') && value !== null ? new Date(value as number) : value,
      ]),
    ) as T
  const lobbies = rows.lobbies.map((row) => TABLES.lobbies.storedOf(selected(row)))
  const players = rows.players.map((row) => TABLES.players.storedOf(selected(row)))
  lobbies.sort((a, b) => a.create_ms - b.create_ms || (a.lobby_id < b.lobby_id ? -1 : 1))
  const left = (player: Player): number => player.remove_ms ?? Number.MAX_SAFE_INTEGER
  players.sort((a, b) => a.create_ms - b.create_ms || left(a) - left(b))
  const parties = rows.parties.filter(({ end_ts }) => end_ts === null)
  load(book, {
    lobbies,
    players,
    captcha_clients: rows.captcha_clients.map((row) => TABLES.captcha_clients.storedOf(selected(row))),
    draining_versions: rows.draining_versions,
    parties: parties.map((row) => TABLES.parties.storedOf(selected(row))),
  })
}

function assertSame(book: Book, reference: plain.PlainBook): void {
  assert.deepEqual([...book.draining], reference.draining)
  assert.equal(book.verified.size(), reference.solvers.length)
  for (const { client, solved, until, requests } of reference.solvers) {
    const expected = { client, verify_ms: solved, expire_ms: until, request_count: requests }
    assert.deepEqual(book.verified.get(client), expected)
  }
  assert.equal(book.lobbies.size, reference.lobbies.length)
  assert.equal(book.players.size, reference.players.length)
  let due_ms = Number.POSITIVE_INFINITY
  for (const expected of reference.lobbies) {
    const lobby = book.lobbies.get(expected.id)!
    const seats = plain.seatsOf(reference, expected.id)
    assert.deepEqual(
      [
        lobby.is_closed,
        lobby.is_stalled,
        lobby.state,
        lobby.ready_ms,
        lobby.stop_ms,
        lobby.stop_reason,
        lobby.players.size,
      ],
      [expected.closed, expected.stalled, expected.state, expected.ready, expected.stopped, expected.why, seats.length],
    )
    assert.deepEqual(
      [lobby.has_reported_players, lobby.seats_expired_while_connected, lobby.connections_at_stop],
      [expected.told, expected.expired_open, expected.stopped_open],
    )
    assert.ok(seats.every((player) => lobby.players.has(player.id)))
    assert.equal(lobby.held_count, reference.holds.filter((hold) => hold.lobby === expected.id).length)
    due_ms = Math.min(due_ms, plain.dueOf(reference, expected))
  }
  for (const expected of reference.players) {
    const player = book.players.get(expected.id)!
    assert.deepEqual(
      [
        player.identity_id,
        player.leader_player_id,
        player.lobby_id,
        player.client,
        player.deadline_ms,
        player.connect_ms,
        player.connect_key,
      ],
      [
        expected.who,
        expected.leader,
        expected.lobby,
        expected.client,
        expected.deadline,
        expected.connected,
        expected.connect_key,
      ],
    )
    assert.deepEqual(
      [player.remove_ms, player.remove_reason, player.disconnect_key],
      [expected.left, expected.why, expected.leave_key],
    )
    due_ms = Math.min(due_ms, plain.dueOf(reference, expected))
  }
  for (const { id, code, leader, members, until } of reference.parties) {
    const party = book.parties.get(id)!
    assert.deepEqual(
      [party.code, party.leader_identity_id, party.expire_ms, party.members.map(({ client }) => client)],
      [code, leader, until, members.map(({ client }) => client)],
    )
    for (const { who } of members) assert.equal(book.parties.ofMember(who), party, 'an identity is in one party')
    due_ms = Math.min(due_ms, until)
  }
  const members = reference.parties.flatMap((party) => party.members.map(({ who }) => who))
  for (const person of PEOPLE) if (!members.includes(person)) assert.equal(book.parties.ofMember(person), undefined)
  assert.equal(book.nextDueMs(), Number.isFinite(due_ms) ? due_ms : null)
}

function assertLaws(book: Book, connections: Map<string, number>, committed: Change[]): void {
  const largest = ({ max_players_normal, max_players_direct, max_players_party }: Lobby): number =>
    Math.max(max_players_normal, max_players_direct, max_players_party)
  const clients = new Map<string, number>()
  let live = 0
  for (const lobby of book.lobbies.values()) {
    assert.ok(lobby.players.size <= largest(lobby), 'L1: no lobby has more players than its limit')
    if (lobby.stop_ms === null) live++
    else assert.equal(lobby.players.size, 0, 'L1: what has stopped has no players')
  }
  for (const player of book.players.values()) {
    if (player.remove_ms !== null) continue
    assert.equal(book.lobbies.get(player.lobby_id)?.players.get(player.player_id), player, 'L1: seats are players')
    clients.set(player.client, (clients.get(player.client) ?? 0) + 1)
  }
  assert.ok(live <= LOBBIES_MAX && live === book.live_lobby_count, 'L3: lobby_count_max is exact')
  for (const count of clients.values()) assert.ok(count <= CLIENT_PLAYERS_MAX, 'L4: the limit of a client is exact')

  // Law L2, over all that has become durable, once for each change.
  const [first, from] = [connections.get('looked_at') ?? 0, committed.length]
  for (let index = first; index < from; index++) {
    const change = committed[index]!
    // Who has dropped out may connect once more.
    if (change.kind === 'player_dropped') connections.delete(`player_connected ${change.player_id}`)
    if (change.kind !== 'player_connected' && change.kind !== 'player_removed') continue
    const key = `${change.kind} ${change.player_id}`
    assert.ok(!connections.has(key), `L2: ${key} happened twice`)
    if (change.kind === 'player_connected') assert.ok(!connections.has(`player_removed ${change.player_id}`), 'L2')
    connections.set(key, change.ms)
  }
  connections.set('looked_at', from)
}

test(`the book does what a plain one does, in ${RUNS} random lives`, (t: TestContext) => {
  let steps_made = 0
  fc.assert(
    fc.property(steps, (life) => {
      const pair = createPair()
      for (const one of life) pair.step(one)
      pair.rebuild()
      steps_made += life.length
    }),
    { numRuns: RUNS },
  )
  t.diagnostic(`${RUNS} lives of ${Math.round(steps_made / RUNS)} steps on average`)
})
