import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BUMPERS, HEIGHT, SHIP_RADIUS, TICKS_PER_SECOND, WIDTH } from '../game/motion.ts'
import {
  addPlayer,
  createWorld,
  ownView,
  type Player,
  removePlayer,
  SCORE_TO_WIN,
  sharedView,
  steer,
  step,
  type World,
} from './world.ts'

const RIGHT = { x: 1, y: 0, dash: false }
const DASH_RIGHT = { x: 1, y: 0, dash: true }

/** Two ships on a free line, the first one to the left, out of reach of every shard. */
function duel(distance: number): { world: World; left: Player; right: Player } {
  const world = createWorld(1)
  const left = addPlayer(world, 'Left')
  const right = addPlayer(world, 'Right')
  Object.assign(left.ship, { x: 600, y: 100, heading: 0 })
  Object.assign(right.ship, { x: 600 + distance, y: 100 })
  for (const shard of world.shards) Object.assign(shard, { x: 100, y: 800 })
  left.shield_ticks = 0
  right.shield_ticks = 0
  return { world, left, right }
}

/** Numbers the inputs of the player. */
function press(player: Player, steering: typeof RIGHT): void {
  steer(player, { ...steering, seq: (player.inputs.at(-1)?.seq ?? player.acknowledged) + 1 })
}

test('the same seed and the same inputs play the same game', () => {
  const play = () => {
    const world = createWorld(7)
    const player = addPlayer(world, 'Ada')
    for (let tick = 0; tick < 300; tick++) {
      press(player, { x: Math.cos(tick / 9), y: Math.sin(tick / 9), dash: tick % 50 === 0 })
      step(world)
    }
    return JSON.stringify([sharedView(world), ownView(player)])
  }
  assert.equal(play(), play())
})

test('a steered ship moves, and comes to rest when its browser falls silent', () => {
  const { world, left } = duel(800)
  for (let tick = 0; tick < 5; tick++) {
    press(left, RIGHT)
    step(world)
  }
  assert.ok(left.ship.x > 605)
  assert.equal(left.acknowledged, 5)
  for (let tick = 0; tick < 10 * TICKS_PER_SECOND; tick++) step(world)
  assert.ok(Math.abs(left.ship.vx) < 1)
})

test('no ship leaves the arena or stays in a bumper, whatever its steering', () => {
  const world = createWorld(3)
  const players = Array.from({ length: 8 }, (_, index) => addPlayer(world, `Pilot ${index}`))
  for (let tick = 0; tick < 3_000; tick++) {
    for (const [index, player] of players.entries()) {
      const angle = (tick / 40) * (index + 1)
      press(player, { x: Math.cos(angle), y: Math.sin(angle), dash: (tick + index) % 45 === 0 })
    }
    step(world)
    for (const { ship } of players) {
      // Ships that push each other may stand a little over the edge until the next tick.
      assert.ok(ship.x > -SHIP_RADIUS && ship.x < WIDTH + SHIP_RADIUS, `x ${ship.x} at tick ${tick}`)
      assert.ok(ship.y > -SHIP_RADIUS && ship.y < HEIGHT + SHIP_RADIUS, `y ${ship.y} at tick ${tick}`)
      for (const bumper of BUMPERS) {
        assert.ok(Math.hypot(ship.x - bumper.x, ship.y - bumper.y) > bumper.radius, `in a bumper at tick ${tick}`)
      }
    }
  }
})

test('a shard is picked up once, counts its worth, and another one grows', () => {
  const { world, left, right } = duel(800)
  const count = world.shards.length
  Object.assign(world.shards[0]!, { x: left.ship.x, y: left.ship.y, worth: 5 })
  step(world)
  assert.equal(left.score, 5)
  assert.equal(right.score, 0)
  assert.deepEqual(
    world.events.map(({ type }) => type),
    ['picked'],
  )
  assert.equal(world.shards.length, count)
  for (const shard of world.shards) Object.assign(shard, { x: 100, y: 800 })
  step(world)
  assert.equal(left.score, 5)
})

test('a dash into another ship makes it drop part of its score, and stuns it', () => {
  const { world, left, right } = duel(160)
  right.score = 12
  const shards = world.shards.length
  press(left, DASH_RIGHT)
  for (let tick = 0; tick < 6; tick++) step(world)
  assert.equal(right.score, 8)
  assert.ok(right.ship.stun_ticks > 0)
  assert.equal(world.shards.length, shards + 4)
})

test('a ship that was just hit cannot be robbed again', () => {
  const { world, left, right } = duel(160)
  right.score = 12
  right.shield_ticks = 30
  press(left, DASH_RIGHT)
  for (let tick = 0; tick < 6; tick++) step(world)
  assert.equal(right.score, 12)
})

test('flying into another ship without a dash robs nobody', () => {
  const { world, left, right } = duel(60)
  right.score = 12
  for (let tick = 0; tick < 20; tick++) {
    press(left, RIGHT)
    step(world)
  }
  assert.ok(right.ship.x > 660, 'it was pushed')
  assert.equal(right.score, 12)
})

test('a dash needs a pause before the next one', () => {
  const { world, left } = duel(800)
  press(left, DASH_RIGHT)
  step(world)
  const { cooldown_ticks } = left.ship
  assert.ok(cooldown_ticks > 0)
  press(left, DASH_RIGHT)
  step(world)
  assert.equal(left.ship.cooldown_ticks, cooldown_ticks - 1)
})

test('the first player at the goal wins the round, and the next one starts from zero', () => {
  const { world, left, right } = duel(800)
  left.score = SCORE_TO_WIN - 1
  right.score = 3
  Object.assign(world.shards[0]!, { x: left.ship.x, y: left.ship.y, worth: 1 })
  step(world)
  assert.equal(left.wins, 1)
  assert.equal(sharedView(world).winner_id, left.id)
  for (let tick = 0; tick < 200 && world.pause_ticks > 0; tick++) step(world)
  assert.equal(sharedView(world).winner_id, null)
  assert.deepEqual([left.score, right.score, left.wins], [0, 0, 1])
})

test('a burst of inputs does not make a ship faster, and does not lose its dash', () => {
  const { world, left } = duel(800)
  press(left, DASH_RIGHT)
  for (let count = 0; count < 50; count++) press(left, RIGHT)
  assert.ok(left.inputs.length <= 3)
  step(world)
  assert.ok(left.ship.dash_ticks > 0)
})

test('an input that was seen is not used again', () => {
  const { world, left } = duel(800)
  steer(left, { ...RIGHT, seq: 5 })
  step(world)
  steer(left, { ...DASH_RIGHT, seq: 5 })
  steer(left, { ...DASH_RIGHT, seq: 4 })
  assert.equal(left.inputs.length, 0)
})

test('colours are given back', () => {
  const world = createWorld(1)
  const first = addPlayer(world, 'Ada')
  const second = addPlayer(world, 'Bob')
  assert.notEqual(first.colour, second.colour)
  removePlayer(world, first.id)
  assert.equal(addPlayer(world, 'Cy').colour, first.colour)
})
