// The arena: ships, shards, rounds. The server's loop calls `step` thirty times a second. Pure: no clock, and its
// randomness comes from a number in the world, so that a test plays the same game every time.
import type { ArenaEvent, PlayerView, RosterEntry, ShardView, Snapshot } from '../game/messages.ts'
import {
  AT_REST,
  BUMPERS,
  createShip,
  HEIGHT,
  moveShip,
  SHIP_RADIUS,
  type Ship,
  type Steering,
  TICKS_PER_SECOND,
  WIDTH,
} from '../game/motion.ts'

/** The first player with this score wins the round. */
export const SCORE_TO_WIN = 30
const PAUSE_TICKS = 120
const SHARDS_AT_REST = 16
/** Shards that robbed ships drop come on top; beyond this they are lost. */
const SHARDS_MAX = 64
const SHARD_RADIUS = 16
const SHARD_DRAG = 0.88
const GOLDEN_PART = 0.08
const GOLDEN_WORTH = 5
/** Of the victim's score, and never less than LOOT_MIN while there is that much. */
const LOOT_PART = 0.34
const LOOT_MIN = 2
const STUN_TICKS = 12
const SHIELD_TICKS = 45
/** A dropped shard cannot be picked up at once, or the victim would lie on it. */
const FRESH_TICKS = 10
/** Beyond this many waiting inputs the oldest are dropped, and the server corrects the position of the ship. */
const INPUTS_MAX = 3
/** A browser that sends nothing (a hidden tab) stops steering after this. */
const SILENT_TICKS_MAX = 15
const PLACES_TRIED_MAX = 24
const COLOURS = 8

type Input = Steering & { seq: number }

export type Player = {
  id: number
  name: string
  /** Index into the browser's palette: the lowest free one, while there are enough. */
  colour: number
  ship: Ship
  score: number
  wins: number
  shield_ticks: number
  inputs: Input[]
  steering: Steering
  silent_ticks: number
  acknowledged: number
}

type Shard = ShardView & { vx: number; vy: number; fresh_ticks: number }

export type World = {
  tick: number
  random_state: number
  id_last: number
  players: Map<number, Player>
  shards: Shard[]
  pause_ticks: number
  winner_id: number | null
  events: ArenaEvent[]
}

export function createWorld(seed: number): World {
  const world: World = {
    tick: 0,
    random_state: seed >>> 0,
    id_last: 0,
    players: new Map(),
    shards: [],
    pause_ticks: 0,
    winner_id: null,
    events: [],
  }
  while (world.shards.length < SHARDS_AT_REST) growShard(world)
  return world
}

/** A new ship, as far from everything as a few tries find. */
export function addPlayer(world: World, name: string): Player {
  const player: Player = { id: ++world.id_last, name, score: 0, wins: 0, ...beginning(world) }
  world.players.set(player.id, player)
  return player
}

/** A player who was removed is back, with the same id and score, in a new ship. */
export function returnPlayer(world: World, player: Player): Player {
  world.players.set(player.id, Object.assign(player, beginning(world)))
  return player
}

function beginning(world: World): Omit<Player, 'id' | 'name' | 'score' | 'wins'> {
  const taken = new Set(Array.from(world.players.values(), (player) => player.colour))
  let colour = 0
  while (taken.has(colour)) colour += 1
  const place = freePlace(world, SHIP_RADIUS)
  return {
    colour: colour % COLOURS,
    ship: createShip(place.x, place.y),
    shield_ticks: SHIELD_TICKS,
    inputs: [],
    steering: AT_REST,
    silent_ticks: 0,
    acknowledged: 0,
  }
}

export function removePlayer(world: World, id: number): void {
  world.players.delete(id)
}

/** Queues what a player wants; one input is used per tick. */
export function steer(player: Player, input: Input): void {
  // Sent twice, or out of order: a browser that counts backwards is not played along with.
  if (input.seq <= (player.inputs.at(-1)?.seq ?? player.acknowledged)) return
  player.inputs.push(input)
  player.silent_ticks = 0
  while (player.inputs.length > INPUTS_MAX) {
    const dropped = player.inputs.shift()!
    // A dash is one press of a key: it must not get lost with the input that carried it.
    if (dropped.dash) player.inputs[0]!.dash = true
  }
}

/** One tick. Everything that happened is in `world.events` until the next. */
export function step(world: World): void {
  world.tick += 1
  world.events = []
  if (world.pause_ticks > 0) {
    world.pause_ticks -= 1
    if (world.pause_ticks === 0) startRound(world)
  }
  for (const player of world.players.values()) {
    if (player.shield_ticks > 0) player.shield_ticks -= 1
    moveShip(player.ship, nextSteering(player))
  }
  const players = [...world.players.values()]
  for (const [index, one] of players.entries()) {
    for (const other of players.slice(index + 1)) collide(world, one, other)
  }
  moveShards(world)
  if (world.pause_ticks === 0) {
    for (const player of players) pickUp(world, player)
    const winner = players.find((player) => player.score >= SCORE_TO_WIN)
    if (winner !== undefined) endRound(world, winner)
  }
  while (world.shards.length < SHARDS_AT_REST) growShard(world)
}

/** What all players receive. `ownView` is what one of them receives in addition. */
export function sharedView(world: World): Omit<Snapshot, 'acknowledged' | 'ship'> {
  return {
    type: 'snapshot',
    tick: world.tick,
    players: Array.from(world.players.values(), playerView),
    shards: world.shards.map(({ id, x, y, worth }) => ({ id, x: Math.round(x), y: Math.round(y), worth })),
    events: world.events,
    pause_ticks: world.pause_ticks,
    winner_id: world.winner_id,
  }
}

export function ownView(player: Player): Required<Pick<Snapshot, 'acknowledged' | 'ship'>> {
  return { acknowledged: player.acknowledged, ship: player.ship }
}

export function roster(world: World): RosterEntry[] {
  return Array.from(world.players.values(), ({ id, name, colour, wins }) => ({ id, name, colour, wins }))
}

function playerView({ id, ship, score, shield_ticks }: Player): PlayerView {
  return {
    id,
    x: Math.round(ship.x * 10) / 10,
    y: Math.round(ship.y * 10) / 10,
    heading: Math.round(ship.heading * 1000) / 1000,
    score,
    is_dashing: ship.dash_ticks > 0,
    is_stunned: ship.stun_ticks > 0,
    is_shielded: shield_ticks > 0,
  }
}

function nextSteering(player: Player): Steering {
  const input = player.inputs.shift()
  if (input !== undefined) {
    player.acknowledged = input.seq
    // Until the next input comes the ship flies on, but one press is one dash.
    player.steering = { x: input.x, y: input.y, dash: false }
    return input
  }
  player.silent_ticks += 1
  if (player.silent_ticks > SILENT_TICKS_MAX) player.steering = AT_REST
  return player.steering
}

function collide(world: World, one: Player, other: Player): void {
  const dx = other.ship.x - one.ship.x
  const dy = other.ship.y - one.ship.y
  const distance = Math.hypot(dx, dy)
  if (distance >= SHIP_RADIUS * 2) return
  const nx = distance > 0 ? dx / distance : 1
  const ny = distance > 0 ? dy / distance : 0
  const isOneDashing = one.ship.dash_ticks > 0
  const isOtherDashing = other.ship.dash_ticks > 0

  const overlap = (SHIP_RADIUS * 2 - distance) / 2
  one.ship.x -= nx * overlap
  one.ship.y -= ny * overlap
  other.ship.x += nx * overlap
  other.ship.y += ny * overlap
  // Equal masses, all of the impulse: they swap their speeds along the line between them.
  const approach = (one.ship.vx - other.ship.vx) * nx + (one.ship.vy - other.ship.vy) * ny
  if (approach > 0) {
    one.ship.vx -= approach * nx
    one.ship.vy -= approach * ny
    other.ship.vx += approach * nx
    other.ship.vy += approach * ny
  }
  one.ship.dash_ticks = 0
  other.ship.dash_ticks = 0
  // Head on, both dashing: a draw.
  if (isOneDashing === isOtherDashing || world.pause_ticks > 0) return
  if (isOneDashing) rob(world, one, other)
  else rob(world, other, one)
}

function rob(world: World, robber: Player, victim: Player): void {
  if (victim.shield_ticks > 0) return
  const lost = Math.min(victim.score, Math.max(LOOT_MIN, Math.floor(victim.score * LOOT_PART)))
  victim.score -= lost
  victim.shield_ticks = SHIELD_TICKS
  victim.ship.stun_ticks = STUN_TICKS
  const { x, y } = victim.ship
  for (let count = 0; count < lost && world.shards.length < SHARDS_MAX; count++) {
    const angle = random(world) * Math.PI * 2
    const speed = 180 + random(world) * 380
    const velocity = { vx: Math.cos(angle) * speed, vy: Math.sin(angle) * speed }
    world.shards.push({ id: ++world.id_last, x, y, worth: 1, ...velocity, fresh_ticks: FRESH_TICKS })
  }
  world.events.push({ type: 'hit', player_id: robber.id, victim_id: victim.id, x, y, lost })
}

function pickUp(world: World, player: Player): void {
  if (player.ship.stun_ticks > 0) return
  world.shards = world.shards.filter((shard) => {
    const isNear = Math.hypot(shard.x - player.ship.x, shard.y - player.ship.y) < SHIP_RADIUS + SHARD_RADIUS
    if (!isNear || shard.fresh_ticks > 0) return true
    player.score += shard.worth
    world.events.push({ type: 'picked', player_id: player.id, x: shard.x, y: shard.y, worth: shard.worth })
    return false
  })
}

function endRound(world: World, winner: Player): void {
  winner.wins += 1
  world.winner_id = winner.id
  world.pause_ticks = PAUSE_TICKS
  world.events.push({ type: 'won', player_id: winner.id })
}

function startRound(world: World): void {
  world.winner_id = null
  world.shards = []
  for (const player of world.players.values()) player.score = 0
}

function moveShards(world: World): void {
  for (const shard of world.shards) {
    if (shard.fresh_ticks > 0) shard.fresh_ticks -= 1
    if (shard.vx === 0 && shard.vy === 0) continue
    shard.x = Math.min(Math.max(shard.x + shard.vx / TICKS_PER_SECOND, SHARD_RADIUS), WIDTH - SHARD_RADIUS)
    shard.y = Math.min(Math.max(shard.y + shard.vy / TICKS_PER_SECOND, SHARD_RADIUS), HEIGHT - SHARD_RADIUS)
    shard.vx *= SHARD_DRAG
    shard.vy *= SHARD_DRAG
    for (const bumper of BUMPERS) {
      const distance = Math.hypot(shard.x - bumper.x, shard.y - bumper.y)
      const distance_min = bumper.radius + SHARD_RADIUS
      if (distance >= distance_min || distance === 0) continue
      shard.x = bumper.x + ((shard.x - bumper.x) / distance) * distance_min
      shard.y = bumper.y + ((shard.y - bumper.y) / distance) * distance_min
    }
    if (Math.hypot(shard.vx, shard.vy) < 4) Object.assign(shard, { vx: 0, vy: 0 })
  }
}

function growShard(world: World): void {
  const worth = random(world) < GOLDEN_PART ? GOLDEN_WORTH : 1
  world.shards.push({ id: ++world.id_last, ...freePlace(world, SHARD_RADIUS), worth, vx: 0, vy: 0, fresh_ticks: 0 })
}

/** The best of a few random places: the one with the most room around it. */
function freePlace(world: World, radius: number): { x: number; y: number } {
  let best = { x: WIDTH / 2, y: HEIGHT / 4, room: Number.NEGATIVE_INFINITY }
  for (let tried = 0; tried < PLACES_TRIED_MAX; tried++) {
    const margin = radius + 40
    const x = margin + random(world) * (WIDTH - margin * 2)
    const y = margin + random(world) * (HEIGHT - margin * 2)
    const distances = [
      ...BUMPERS.map((bumper) => Math.hypot(x - bumper.x, y - bumper.y) - bumper.radius - radius),
      ...Array.from(world.players.values(), ({ ship }) => Math.hypot(x - ship.x, y - ship.y) - SHIP_RADIUS - radius),
    ]
    const room = Math.min(...distances)
    // A shard needs no more room than this: they shall lie anywhere, not only in the corners.
    if (room > 60 && radius === SHARD_RADIUS) return { x, y }
    if (room > best.room) best = { x, y, room }
  }
  return { x: best.x, y: best.y }
}

/** 0 to 1. A counter, stirred until its neighbours have nothing in common: small, and good enough to scatter shards. */
function random(world: World): number {
  world.random_state = (world.random_state + 0x9e3779b9) >>> 0
  let mixed = world.random_state
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32
}
