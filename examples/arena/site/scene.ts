// What the browser knows of the world. The others are shown a moment late, between two snapshots; the own ship is shown
// at once, by the same rules as the server's, and is corrected when the server's word differs.
import type { ArenaEvent, FromServer, PlayerView, RosterEntry, ShardView, Snapshot } from '../game/messages.ts'
import { AT_REST, createShip, moveShip, type Ship, type Steering, TICKS_PER_SECOND } from '../game/motion.ts'

/** How late the others are shown: three ticks hide the jitter of an ordinary line. */
const DELAY_TICKS = 3
const SNAPSHOTS_MAX = 40
/** Inputs without an answer: two seconds, then the line is as good as dead. */
const PENDING_MAX = 60
/** A correction larger than this is a jump that the eye should see. */
const SMOOTHED_UNITS_MAX = 220

export type Scene = {
  lobby_id: string
  /** Null: this page only watches. */
  self_id: number | null
  players_max: number
  score_to_win: number
  roster: Map<number, RosterEntry>
  snapshots: Snapshot[]
  /** Events that are not drawn yet. */
  events: ArenaEvent[]
  /** The tick, with fraction, at which the others are shown. */
  clock: number
  seq: number
  pending: { seq: number; steering: Steering }[]
  own: { before: Ship; now: Ship; offset: { x: number; y: number } }
}

export type ShownPlayer = PlayerView & { name: string; colour: number; wins: number; is_self: boolean }

export function createScene(welcome: Extract<FromServer, { type: 'welcome' }>): Scene {
  const { lobby_id, self_id, players_max, score_to_win } = welcome
  return {
    lobby_id,
    self_id,
    players_max,
    score_to_win,
    roster: new Map(),
    snapshots: [],
    events: [],
    clock: 0,
    seq: 0,
    pending: [],
    own: { before: createShip(0, 0), now: createShip(0, 0), offset: { x: 0, y: 0 } },
  }
}

export function latest(scene: Scene): Snapshot | undefined {
  return scene.snapshots.at(-1)
}

export function receive(scene: Scene, message: FromServer): void {
  if (message.type === 'roster') scene.roster = new Map(message.players.map((entry) => [entry.id, entry]))
  if (message.type !== 'snapshot') return
  const isFirst = scene.snapshots.length === 0
  scene.snapshots.push(message)
  if (scene.snapshots.length > SNAPSHOTS_MAX) scene.snapshots.shift()
  // A hidden tab draws nothing: what nobody sees must not pile up.
  scene.events = [...scene.events, ...message.events].slice(-SNAPSHOTS_MAX)
  if (isFirst) {
    scene.clock = message.tick - DELAY_TICKS
    if (message.ship) scene.own = { before: { ...message.ship }, now: { ...message.ship }, offset: { x: 0, y: 0 } }
  }
  if (message.ship) correct(scene, message.ship, message.acknowledged ?? 0)
}

/** One tick of the own ship. Returns the input for the server. */
export function tick(scene: Scene, steering: Steering): { seq: number } & Steering {
  scene.seq += 1
  scene.pending.push({ seq: scene.seq, steering })
  if (scene.pending.length > PENDING_MAX) scene.pending.shift()
  const { own } = scene
  own.before = { ...own.now }
  moveShip(own.now, steering)
  own.offset.x *= 0.8
  own.offset.y *= 0.8
  return { seq: scene.seq, ...steering }
}

/** Lets time pass for the others. The clock drifts towards the newest snapshot, so that it never stands or jumps. */
export function advance(scene: Scene, seconds: number): void {
  const newest = latest(scene)
  if (newest === undefined) return
  scene.clock += seconds * TICKS_PER_SECOND
  const error = newest.tick - DELAY_TICKS - scene.clock
  if (Math.abs(error) > TICKS_PER_SECOND / 2) scene.clock += error
  else scene.clock += error * Math.min(1, seconds * 3)
}

/** Everybody as they are to be drawn; `part` is how far the own ship is between its last two ticks, 0 to 1. */
export function shownPlayers(scene: Scene, part: number): ShownPlayer[] {
  const [from, to, between] = around(scene)
  if (from === undefined || to === undefined) return []
  const before = new Map(from.players.map((player) => [player.id, player]))
  return to.players.map((player) => {
    const entry = scene.roster.get(player.id)
    const identity = { name: entry?.name ?? '', colour: entry?.colour ?? 0, wins: entry?.wins ?? 0 }
    if (player.id === scene.self_id) return { ...player, ...ownPlace(scene, part), ...identity, is_self: true }
    const old = before.get(player.id) ?? player
    return {
      ...player,
      x: mix(old.x, player.x, between),
      y: mix(old.y, player.y, between),
      heading: old.heading + turn(old.heading, player.heading) * between,
      ...identity,
      is_self: false,
    }
  })
}

export function shownShards(scene: Scene): ShardView[] {
  const [from, to, between] = around(scene)
  const before = new Map(from?.shards.map((shard) => [shard.id, shard]))
  return (to?.shards ?? []).map((shard) => {
    const old = before.get(shard.id) ?? shard
    return { ...shard, x: mix(old.x, shard.x, between), y: mix(old.y, shard.y, between) }
  })
}

/** The two snapshots around the clock, and where between them it stands. */
function around({ snapshots, clock }: Scene): [Snapshot | undefined, Snapshot | undefined, number] {
  const index = snapshots.findIndex((snapshot) => snapshot.tick > clock)
  if (index === -1) return [snapshots.at(-1), snapshots.at(-1), 0]
  const to = snapshots[index]!
  const from = snapshots[index - 1] ?? to
  return [from, to, to.tick === from.tick ? 0 : (clock - from.tick) / (to.tick - from.tick)]
}

function ownPlace({ own }: Scene, part: number) {
  return {
    x: mix(own.before.x, own.now.x, part) + own.offset.x,
    y: mix(own.before.y, own.now.y, part) + own.offset.y,
    heading: own.before.heading + turn(own.before.heading, own.now.heading) * part,
    is_dashing: own.now.dash_ticks > 0,
    is_stunned: own.now.stun_ticks > 0,
  }
}

/** Starts from the server's ship, replays what it has not seen yet, and hides a small difference for a moment. */
function correct(scene: Scene, server_ship: Ship, acknowledged: number): void {
  scene.pending = scene.pending.filter((input) => input.seq > acknowledged)
  const ship = { ...server_ship }
  for (const input of scene.pending) moveShip(ship, input.steering ?? AT_REST)
  const { own } = scene
  const dx = own.now.x - ship.x
  const dy = own.now.y - ship.y
  own.now = ship
  own.before = { ...own.before, x: own.before.x - dx, y: own.before.y - dy }
  const offset = { x: own.offset.x + dx, y: own.offset.y + dy }
  own.offset = Math.hypot(offset.x, offset.y) > SMOOTHED_UNITS_MAX ? { x: 0, y: 0 } : offset
}

function mix(from: number, to: number, part: number): number {
  return from + (to - from) * part
}

/** The shorter way round from one angle to another. */
function turn(from: number, to: number): number {
  return Math.atan2(Math.sin(to - from), Math.cos(to - from))
}
