// What flies about and fades: sparks, rings, words, and the shaking of the stage. Only for the eye; the server knows
// nothing of it.
import { GOLD, SHARD } from './palette.ts'

const SPARKS_MAX = 700

type Spark = {
  x: number
  y: number
  vx: number
  vy: number
  life: number
  life_max: number
  size: number
  colour: string
}
type Ring = { x: number; y: number; life: number; life_max: number; radius: number; colour: string }
type Word = { x: number; y: number; life: number; text: string; colour: string; size: number }

export type Effects = { sparks: Spark[]; rings: Ring[]; words: Word[]; shake: number }

export function createEffects(): Effects {
  return { sparks: [], rings: [], words: [], shake: 0 }
}

type Place = { x: number; y: number }

function spray(effects: Effects, { x, y }: Place, count: number, speed: number, seconds: number, colour: string): void {
  for (let made = 0; made < count && effects.sparks.length < SPARKS_MAX; made++) {
    const angle = Math.random() * Math.PI * 2
    const push = speed * (0.25 + Math.random() * 0.75)
    const life = seconds * (0.5 + Math.random() * 0.5)
    const velocity = { vx: Math.cos(angle) * push, vy: Math.sin(angle) * push }
    effects.sparks.push({ x, y, ...velocity, life, life_max: life, size: 1.5 + Math.random() * 2.5, colour })
  }
}

export function showPick(effects: Effects, place: Place, worth: number, isSelf: boolean): void {
  const colour = worth > 1 ? GOLD : SHARD
  spray(effects, place, worth > 1 ? 26 : 10, worth > 1 ? 300 : 190, 0.5, colour)
  effects.rings.push({ ...place, life: 0.35, life_max: 0.35, radius: worth > 1 ? 70 : 42, colour })
  if (isSelf) effects.words.push({ ...place, life: 0.9, text: `+${worth}`, colour, size: worth > 1 ? 30 : 22 })
}

export function showHit(
  effects: Effects,
  place: Place,
  lost: number,
  colour: string,
  victimColour: string,
  isNear: boolean,
): void {
  spray(effects, place, 46, 620, 0.7, victimColour)
  spray(effects, place, 18, 360, 0.5, '#ffffff')
  effects.rings.push({ ...place, life: 0.5, life_max: 0.5, radius: 150, colour })
  effects.rings.push({ ...place, life: 0.32, life_max: 0.32, radius: 84, colour: '#ffffff' })
  if (lost > 0) effects.words.push({ ...place, life: 1.1, text: `−${lost}`, colour: victimColour, size: 32 })
  effects.shake = Math.max(effects.shake, isNear ? 14 : 4)
}

export function showWin(effects: Effects, place: Place, colour: string): void {
  for (const each of [colour, '#ffffff', GOLD]) spray(effects, place, 60, 820, 1.5, each)
  effects.rings.push({ ...place, life: 1, life_max: 1, radius: 340, colour })
}

/** The flame behind a ship that flies fast; longer while it dashes. */
export function showFlame(
  effects: Effects,
  ship: Place & { heading: number },
  colour: string,
  isDashing: boolean,
): void {
  if (effects.sparks.length >= SPARKS_MAX / 2) return
  const back = ship.heading + Math.PI + (Math.random() - 0.5) * (isDashing ? 0.3 : 0.7)
  const push = isDashing ? 260 : 130
  const life = isDashing ? 0.45 : 0.28
  effects.sparks.push({
    x: ship.x + Math.cos(ship.heading + Math.PI) * 15,
    y: ship.y + Math.sin(ship.heading + Math.PI) * 15,
    vx: Math.cos(back) * push,
    vy: Math.sin(back) * push,
    life,
    life_max: life,
    size: isDashing ? 3.6 : 2.2,
    colour,
  })
}

export function age(effects: Effects, seconds: number): void {
  effects.shake *= Math.exp(-seconds * 9)
  const slow = Math.exp(-seconds * 3.2)
  for (const spark of effects.sparks) {
    spark.life -= seconds
    spark.x += spark.vx * seconds
    spark.y += spark.vy * seconds
    spark.vx *= slow
    spark.vy *= slow
  }
  for (const ring of effects.rings) ring.life -= seconds
  for (const word of effects.words) {
    word.life -= seconds
    word.y -= 46 * seconds
  }
  effects.sparks = effects.sparks.filter((spark) => spark.life > 0)
  effects.rings = effects.rings.filter((ring) => ring.life > 0)
  effects.words = effects.words.filter((word) => word.life > 0)
}
