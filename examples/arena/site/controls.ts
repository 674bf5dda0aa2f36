// Hands to steering. Keys: WASD or arrows fly, space or shift dashes. Mouse and fingers: hold to fly there, tap to dash
// there.
import type { Steering } from '../game/motion.ts'

const KEYS: Record<string, [number, number]> = {
  KeyW: [0, -1],
  ArrowUp: [0, -1],
  KeyS: [0, 1],
  ArrowDown: [0, 1],
  KeyA: [-1, 0],
  ArrowLeft: [-1, 0],
  KeyD: [1, 0],
  ArrowRight: [1, 0],
}
const DASH_KEYS = ['Space', 'ShiftLeft', 'ShiftRight']
const TAP_MS_MAX = 180
/** Nearer to the ship than this a held pointer means: stay. */
const NEAR_UNITS = 26

type Place = { x: number; y: number }

export type Controls = {
  /** What the hands want now; a dash is reported once. `ship` is where the own ship is shown. */
  read(ship: Place): Steering
  /** Lets go of everything. */
  release(): void
}

/** `toWorld` turns a point of the page into one of the arena; `isPlaying` says whether keys are the game's. */
export function createControls(toWorld: (x: number, y: number) => Place, isPlaying: () => boolean): Controls {
  const held = new Set<string>()
  let isDashWanted = false
  let pointer: { id: number; at: Place; begin_ms: number } | null = null
  let tapped: Place | null = null

  addEventListener('keydown', (event) => {
    if (!isPlaying() || event.ctrlKey || event.metaKey || event.altKey) return
    const isDash = DASH_KEYS.includes(event.code)
    if (!isDash && KEYS[event.code] === undefined) return
    event.preventDefault()
    if (event.repeat) return
    if (isDash) isDashWanted = true
    else held.add(event.code)
  })
  addEventListener('keyup', (event) => held.delete(event.code))
  addEventListener('pointerdown', (event) => {
    if (!isPlaying() || event.target instanceof HTMLButtonElement) return
    // A second finger, or the other button, dashes where the first one flies.
    if (pointer !== null || event.button !== 0) isDashWanted = true
    else pointer = { id: event.pointerId, at: toWorld(event.clientX, event.clientY), begin_ms: event.timeStamp }
  })
  addEventListener('pointermove', (event) => {
    if (pointer?.id === event.pointerId) pointer.at = toWorld(event.clientX, event.clientY)
  })
  const lift = (event: PointerEvent) => {
    if (pointer?.id !== event.pointerId) return
    if (event.type === 'pointerup' && event.timeStamp - pointer.begin_ms <= TAP_MS_MAX) tapped = pointer.at
    pointer = null
  }
  addEventListener('pointerup', lift)
  addEventListener('pointercancel', lift)
  addEventListener('contextmenu', (event) => isPlaying() && event.preventDefault())

  const release = () => {
    held.clear()
    isDashWanted = false
    pointer = null
    tapped = null
  }
  addEventListener('blur', release)

  return {
    release,
    read(ship) {
      const goal = tapped ?? pointer?.at
      const direction = held.size > 0 || goal === undefined ? keysDirection(held) : towards(ship, goal)
      const dash = isDashWanted || tapped !== null
      isDashWanted = false
      tapped = null
      return { ...direction, dash }
    },
  }
}

function keysDirection(held: Set<string>): Place {
  let x = 0
  let y = 0
  for (const code of held) {
    x += KEYS[code]?.[0] ?? 0
    y += KEYS[code]?.[1] ?? 0
  }
  const length = Math.hypot(Math.sign(x), Math.sign(y)) || 1
  return { x: Math.sign(x) / length, y: Math.sign(y) / length }
}

function towards(ship: Place, goal: Place): Place {
  const dx = goal.x - ship.x
  const dy = goal.y - ship.y
  const distance = Math.hypot(dx, dy)
  return distance < NEAR_UNITS ? { x: 0, y: 0 } : { x: dx / distance, y: dy / distance }
}
