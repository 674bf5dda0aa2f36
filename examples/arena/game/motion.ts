// How a ship moves: the same rules on both sides, so that the browser can show its own ship at once and the server,
// who decides, comes to the same place. Pure: no clock, no randomness.

export const TICKS_PER_SECOND = 30
export const WIDTH = 1600
export const HEIGHT = 900
export const SHIP_RADIUS = 27

/** Round obstacles that throw ships back. */
export const BUMPERS = [
  { x: 800, y: 450, radius: 64 },
  { x: 420, y: 245, radius: 40 },
  { x: 1180, y: 245, radius: 40 },
  { x: 420, y: 655, radius: 40 },
  { x: 1180, y: 655, radius: 40 },
] as const

export const DASH_COOLDOWN_TICKS = 40
const DASH_TICKS = 6
const DASH_SPEED = 1250
const ACCELERATION = 1750
/** Speed lost per second, as a part of it: the top speed is ACCELERATION / DRAG. */
const DRAG = 3.9
const WALL_BOUNCE = 0.7
const BUMPER_SPEED_MIN = 380
const SECONDS = 1 / TICKS_PER_SECOND

export type Ship = {
  x: number
  y: number
  vx: number
  vy: number
  /** Radians, 0 to the right, clockwise. */
  heading: number
  /** Greater than 0 while a dash lasts. */
  dash_ticks: number
  /** Greater than 0 until the next dash is possible. */
  cooldown_ticks: number
  /** Greater than 0 while a hit ship tumbles: it cannot steer. */
  stun_ticks: number
}

/** What a player wants: a direction of length 0 to 1, and whether to dash. */
export type Steering = { x: number; y: number; dash: boolean }

export const AT_REST: Steering = { x: 0, y: 0, dash: false }

export function createShip(x: number, y: number): Ship {
  return { x, y, vx: 0, vy: 0, heading: -Math.PI / 2, dash_ticks: 0, cooldown_ticks: 0, stun_ticks: 0 }
}

/** Moves the ship by one tick. */
export function moveShip(ship: Ship, steering: Steering): void {
  if (ship.cooldown_ticks > 0) ship.cooldown_ticks -= 1
  const isSteered = ship.stun_ticks === 0
  if (ship.stun_ticks > 0) ship.stun_ticks -= 1
  if (isSteered && (steering.x !== 0 || steering.y !== 0)) ship.heading = Math.atan2(steering.y, steering.x)

  if (isSteered && steering.dash && ship.cooldown_ticks === 0) {
    ship.dash_ticks = DASH_TICKS
    ship.cooldown_ticks = DASH_COOLDOWN_TICKS
    ship.vx = Math.cos(ship.heading) * DASH_SPEED
    ship.vy = Math.sin(ship.heading) * DASH_SPEED
  }
  if (ship.dash_ticks > 0) {
    ship.dash_ticks -= 1
  } else {
    if (isSteered) {
      ship.vx += steering.x * ACCELERATION * SECONDS
      ship.vy += steering.y * ACCELERATION * SECONDS
    }
    ship.vx -= ship.vx * DRAG * SECONDS
    ship.vy -= ship.vy * DRAG * SECONDS
  }
  ship.x += ship.vx * SECONDS
  ship.y += ship.vy * SECONDS
  for (const bumper of BUMPERS) bounceOff(ship, bumper)
  keepInside(ship)
}

function bounceOff(ship: Ship, bumper: (typeof BUMPERS)[number]): void {
  const dx = ship.x - bumper.x
  const dy = ship.y - bumper.y
  const distance = Math.hypot(dx, dy)
  const distance_min = bumper.radius + SHIP_RADIUS
  if (distance >= distance_min) return
  // A ship exactly in the middle is thrown upwards.
  const nx = distance > 0 ? dx / distance : 0
  const ny = distance > 0 ? dy / distance : -1
  ship.x = bumper.x + nx * distance_min
  ship.y = bumper.y + ny * distance_min
  const inwards = -(ship.vx * nx + ship.vy * ny)
  if (inwards <= 0) return
  const outwards = Math.max(inwards, BUMPER_SPEED_MIN)
  ship.vx += nx * (inwards + outwards)
  ship.vy += ny * (inwards + outwards)
  ship.dash_ticks = 0
}

function keepInside(ship: Ship): void {
  const right = WIDTH - SHIP_RADIUS
  const bottom = HEIGHT - SHIP_RADIUS
  if (ship.x < SHIP_RADIUS || ship.x > right) ship.vx *= -WALL_BOUNCE
  if (ship.y < SHIP_RADIUS || ship.y > bottom) ship.vy *= -WALL_BOUNCE
  ship.x = Math.min(Math.max(ship.x, SHIP_RADIUS), right)
  ship.y = Math.min(Math.max(ship.y, SHIP_RADIUS), bottom)
}
