// The steps of the model test: what is drawn at random, and the values that the drawn numbers choose from.
import fc from 'fast-check'
import type { LobbyPlan } from '../../../src/matchmaker/book/commands.ts'
import type { PlainIdle } from '../plain-book/state.ts'
import { lobbyPlan, VERSION } from '../plain-requests.ts'

const STEPS_MAX = 60
export const TIMES_MS = [0, 0, 0, 1, 500, 4_000, 5_000, 15_000, 60_000, 120_000, 600_000]
export const KINDS = [
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
  ...[
    'solve_captcha',
    'count_request',
    'count_request',
    'hold',
    'hold',
    'hold',
    'hold',
    'seat_held',
    'seat_held',
    'drop_hold',
  ],
  ...[
    'drain',
    'drain',
    'prepare',
    'prepare',
    'create_party',
    'create_party',
    'join_party',
    'join_party',
    'join_party',
    'lead_party',
    'remove_member',
    'leave_party',
    'look_at_party',
  ],
  ...['connections', 'connections', 'connections', 'edge_report', 'edge_report'],
  ...['changed', 'changed'],
] as const
export const CLIENTS = ['192.0.2.1', '192.0.2.2', '2001:db8::']
export const IDENTITIES = ['ada', 'grace', 'joan', 'mary']
export const SEAT_KEYS = [null, null, null, 'a', 'b', 'c']
export const MODES = [['m'], ['m'], ['n'], ['m', 'n']]
export const REGIONS = [['r'], ['r'], ['s'], ['r', 's']]
export const TAGS: Record<string, string>[] = [{}, {}, {}, { x: '1' }, { y: '1' }, { x: '1', y: '1' }, { x: '2' }]
/** The rules for idle lobbies that a commit may set. Most of them keep no idle lobby. */
export const IDLE: PlainIdle[] = [
  { version: null, max: 0 },
  { version: VERSION, max: 0 },
  { version: VERSION, max: 1 },
  { version: VERSION, max: 2 },
  { version: 'another', max: 0 },
]
export const LOBBIES_MAX = 6
export const CLIENT_PLAYERS_MAX = 5

export type StepKind = (typeof KINDS)[number]
/** The kind of the next command, the numbers that choose its values, and the time that passes before it. */
export type Step = readonly [kind: number, actor: number, choice: number, time: number]

export const steps = fc.array(fc.tuple(fc.nat(KINDS.length - 1), fc.nat(), fc.nat(), fc.nat(TIMES_MS.length - 1)), {
  maxLength: STEPS_MAX,
  size: 'max',
})

export const pick = <T>(items: readonly T[], number: number): T => items[number % items.length]!

export function planOf(number: number): LobbyPlan {
  return lobbyPlan({
    game_mode: pick(['m', 'n'], number),
    region: pick(['r', 's', 'r'], number >> 1),
    publicity: pick(['public', 'public', 'public', 'private'] as const, number >> 2),
    max_players_normal: pick([1, 2, 3], number >> 3),
    max_players_direct: pick([1, 2, 4], number >> 4),
    max_players_party: pick([1, 3], number >> 5),
    max_spectators: pick([2, 0, 1], number >> 6),
    tags: pick(TAGS, number >> 6),
    ready_within_ms: pick([5_000, 60_000, 1_200_000], number >> 7),
    player_deadline_ms: pick([4_000, 60_000, 1_200_000], number >> 8),
    idle_grace_ms: pick([0, 500, 15_000], number >> 9),
  })
}
