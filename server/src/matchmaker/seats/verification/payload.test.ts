import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { lobbyPlan, START_MS } from '../../../../test/matchmaker/plain-requests.ts'
import type { Hold } from '../../book/holds.ts'
import type { Lobby } from '../../book/lobby.ts'
import { aboutHold, verificationPayload } from './payload.ts'

const GAME = '00000000-0000-7000-8000-0000000000ee'
const NAMESPACE = '00000000-0000-7000-8000-00000000cafe'
const { ready_within_ms: _, edge_ports_wanted, ...record } = lobbyPlan()
const LOBBY: Lobby = {
  ...record,
  max_spectators: 0,
  lobby_id: '00000000-0000-7000-8000-00000000beef',
  edge_ports: [],
  node_id: null,
  create_ms: START_MS,
  ready_deadline_ms: START_MS,
  is_closed: true,
  is_stalled: false,
  state: '{"round":3}',
  ready_ms: START_MS,
  idle_ms: null,
  keep_until_ms: null,
  stop_ms: null,
  stop_reason: null,
  players: new Map(),
  spectators: new Map(),
  held_count: 1,
  held_spectator_count: 0,
  has_reported_players: false,
  seats_expired_while_connected: 0,
  connections_at_stop: null,
  connection_count: 0,
  quiet_ms: null,
}

const PLAYER = { address: '192.0.2.1', user_agent: 'Arena/1.0', coordinates: { latitude: 52.5, longitude: 13.4 } }
const FRIEND = { address: '2001:db8::1', user_agent: null, coordinates: null }
const FIND_WORDS = { verification_data: { ticket: 'abc' }, tags: { map: 'dunes' }, max_players: 3 }

const CASES = [
  { name: 'find, in a lobby that is being created', action: 'find', is_planned: true, words: FIND_WORDS },
  { name: 'find, in a lobby that is there', action: 'find', is_planned: false, words: FIND_WORDS },
  { name: 'join', action: 'join', is_planned: false, words: { verification_data: 'abc' } },
  { name: 'create', action: 'create', is_planned: true, words: { ...FIND_WORDS, lobby_config: { laps: 3 } } },
  { name: 'nothing but the request', action: 'find', is_planned: true, words: {} },
] as const

test('the payload is what it has always been', () => {
  const golden = JSON.parse(readFileSync(new URL('./payload.golden.json', import.meta.url), 'utf8')) as object
  const made = CASES.flatMap(({ name, action, is_planned, words }) =>
    (['normal', 'party'] as const).map((join_kind) => {
      const hold: Hold = {
        player_id: 'x',
        client_key: 'x',
        member: null,
        action,
        is_spectator: false,
        lobby: LOBBY,
        plan: is_planned ? { ...LOBBY, edge_ports_wanted, creator_lobbies_max: null } : null,
        expire_ms: 0,
      }
      const players = join_kind === 'party' ? [PLAYER, FRIEND] : [PLAYER]
      const payload = verificationPayload({
        game_id: GAME,
        namespace_id: NAMESPACE,
        about: aboutHold(hold),
        players,
        join_kind,
        words,
      })
      return [`${name}, ${join_kind}`, JSON.parse(payload) as unknown]
    }),
  )
  // Letter for letter: members, their order, null and absent.
  assert.equal(JSON.stringify(Object.fromEntries(made), null, 2), JSON.stringify(golden, null, 2))
})
