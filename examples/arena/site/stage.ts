// The canvas: where the arena lies in the window, and everything that is painted on it, from the back to the front.
import type { ShardView } from '../game/messages.ts'
import { BUMPERS, DASH_COOLDOWN_TICKS, HEIGHT, SHIP_RADIUS, WIDTH } from '../game/motion.ts'
import type { Effects } from './effects.ts'
import { colourOf, createGlows, GOLD, SHARD } from './palette.ts'
import type { ShownPlayer } from './scene.ts'

const TRAIL_MAX = 16
const GRID = 80
/** Above and below the arena, for the bars. */
const MARGIN_TOP = 56
const MARGIN_BOTTOM = 44
const MARGIN_SIDE = 18
const PIXEL_RATIO_MAX = 2
const FONT = 'Inter, "SF Pro Text", "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'

export type Picture = {
  players: ShownPlayer[]
  shards: ShardView[]
  effects: Effects
  /** Ticks until the own ship can dash again; null without an own ship. */
  cooldown_ticks: number | null
  leader_id: number | null
  seconds: number
}

export type Stage = { paint(picture: Picture): void; toWorld(x: number, y: number): { x: number; y: number } }

type Trail = { x: number; y: number }[]

export function createStage(canvas: HTMLCanvasElement): Stage {
  const brush = canvas.getContext('2d')!
  const glow = createGlows()
  const backdrop = document.createElement('canvas')
  const trails = new Map<number, Trail>()
  let view = { scale: 1, left: 0, top: 0, ratio: 1 }

  const fit = () => {
    const ratio = Math.min(devicePixelRatio, PIXEL_RATIO_MAX)
    canvas.width = backdrop.width = Math.round(innerWidth * ratio)
    canvas.height = backdrop.height = Math.round(innerHeight * ratio)
    const room = { width: innerWidth - MARGIN_SIDE * 2, height: innerHeight - MARGIN_TOP - MARGIN_BOTTOM }
    const scale = Math.max(0.1, Math.min(room.width / WIDTH, room.height / HEIGHT))
    const left = (innerWidth - WIDTH * scale) / 2
    const top = MARGIN_TOP + (room.height - HEIGHT * scale) / 2
    view = { scale, left, top, ratio }
    paintBackdrop(backdrop, view)
  }
  addEventListener('resize', fit)
  fit()

  return {
    toWorld: (x, y) => ({ x: (x - view.left) / view.scale, y: (y - view.top) / view.scale }),
    paint({ players, shards, effects, cooldown_ticks, leader_id, seconds }) {
      brush.setTransform(1, 0, 0, 1, 0, 0)
      brush.globalAlpha = 1
      brush.globalCompositeOperation = 'source-over'
      brush.drawImage(backdrop, 0, 0)
      const shakeX = (Math.random() - 0.5) * effects.shake
      const shakeY = (Math.random() - 0.5) * effects.shake
      const scale = view.scale * view.ratio
      brush.setTransform(
        scale,
        0,
        0,
        scale,
        view.left * view.ratio + shakeX * scale,
        view.top * view.ratio + shakeY * scale,
      )

      for (const [index, bumper] of BUMPERS.entries()) paintBumper(brush, glow, bumper, seconds + index)
      for (const shard of shards) paintShard(brush, glow, shard, seconds)
      followTrails(trails, players)
      for (const player of players) paintTrail(brush, trails.get(player.id) ?? [], player)
      paintSparks(brush, effects)
      for (const player of players) paintShip(brush, glow, player, seconds)
      const self = players.find((player) => player.is_self)
      if (self !== undefined && cooldown_ticks !== null) paintCooldown(brush, self, cooldown_ticks)
      for (const player of players) paintName(brush, player, player.id === leader_id)
      paintWords(brush, effects)
    },
  }
}

function paintBackdrop(
  canvas: HTMLCanvasElement,
  { scale, left, top, ratio }: { scale: number; left: number; top: number; ratio: number },
): void {
  const brush = canvas.getContext('2d')!
  brush.setTransform(1, 0, 0, 1, 0, 0)
  brush.fillStyle = '#070a14'
  brush.fillRect(0, 0, canvas.width, canvas.height)
  const wash = (x: number, y: number, radius: number, colour: string) => {
    const light = brush.createRadialGradient(x, y, 0, x, y, radius)
    light.addColorStop(0, colour)
    light.addColorStop(1, 'rgba(0, 0, 0, 0)')
    brush.fillStyle = light
    brush.fillRect(0, 0, canvas.width, canvas.height)
  }
  const long = Math.max(canvas.width, canvas.height)
  wash(canvas.width * 0.15, 0, long * 0.6, 'rgba(36, 70, 150, 0.35)')
  wash(canvas.width * 0.9, canvas.height, long * 0.6, 'rgba(120, 34, 110, 0.26)')

  brush.setTransform(scale * ratio, 0, 0, scale * ratio, left * ratio, top * ratio)
  const floor = brush.createRadialGradient(WIDTH / 2, HEIGHT / 2, 60, WIDTH / 2, HEIGHT / 2, WIDTH * 0.6)
  floor.addColorStop(0, '#141c3a')
  floor.addColorStop(0.6, '#0c1126')
  floor.addColorStop(1, '#080c1b')
  brush.fillStyle = floor
  brush.beginPath()
  brush.roundRect(0, 0, WIDTH, HEIGHT, 26)
  brush.fill()
  brush.save()
  brush.clip()
  brush.lineWidth = 1
  brush.strokeStyle = 'rgba(130, 155, 255, 0.07)'
  brush.beginPath()
  for (let x = GRID; x < WIDTH; x += GRID) {
    brush.moveTo(x, 0)
    brush.lineTo(x, HEIGHT)
  }
  for (let y = GRID / 2 + 10; y < HEIGHT; y += GRID) {
    brush.moveTo(0, y)
    brush.lineTo(WIDTH, y)
  }
  brush.stroke()
  brush.strokeStyle = 'rgba(130, 155, 255, 0.1)'
  brush.lineWidth = 2
  for (const radius of [190, 320]) {
    brush.setLineDash([6, 14])
    brush.beginPath()
    brush.arc(WIDTH / 2, HEIGHT / 2, radius, 0, Math.PI * 2)
    brush.stroke()
  }
  brush.setLineDash([])
  brush.restore()

  const edge = brush.createLinearGradient(0, 0, WIDTH, HEIGHT)
  edge.addColorStop(0, '#4de8ff')
  edge.addColorStop(0.5, '#7d8bff')
  edge.addColorStop(1, '#ff5fa2')
  brush.strokeStyle = edge
  brush.globalAlpha = 0.16
  brush.lineWidth = 12
  brush.stroke(roundedEdge())
  brush.globalAlpha = 0.8
  brush.lineWidth = 2.5
  brush.stroke(roundedEdge())
  brush.globalAlpha = 1
}

function roundedEdge(): Path2D {
  const path = new Path2D()
  path.roundRect(0, 0, WIDTH, HEIGHT, 26)
  return path
}

type Glow = (colour: string) => HTMLCanvasElement

function paintGlow(
  brush: CanvasRenderingContext2D,
  glow: Glow,
  x: number,
  y: number,
  radius: number,
  colour: string,
  alpha: number,
): void {
  brush.globalCompositeOperation = 'lighter'
  brush.globalAlpha = alpha
  brush.drawImage(glow(colour), x - radius, y - radius, radius * 2, radius * 2)
  brush.globalAlpha = 1
  brush.globalCompositeOperation = 'source-over'
}

function paintBumper(
  brush: CanvasRenderingContext2D,
  glow: Glow,
  bumper: (typeof BUMPERS)[number],
  seconds: number,
): void {
  const { x, y, radius } = bumper
  const pulse = 0.5 + 0.5 * Math.sin(seconds * 1.7)
  paintGlow(brush, glow, x, y, radius * 2.1, '#6f7dff', 0.5 + pulse * 0.25)
  const body = brush.createRadialGradient(x, y - radius * 0.4, radius * 0.1, x, y, radius)
  body.addColorStop(0, '#3a478f')
  body.addColorStop(1, '#111836')
  brush.fillStyle = body
  brush.beginPath()
  brush.arc(x, y, radius, 0, Math.PI * 2)
  brush.fill()
  brush.lineWidth = 3
  brush.strokeStyle = '#8f9dff'
  brush.stroke()
  // Three arcs that turn slowly: it looks like something that throws ships back.
  brush.globalAlpha = 0.45 + pulse * 0.4
  brush.lineWidth = 3
  brush.strokeStyle = '#b7c0ff'
  for (let arc = 0; arc < 3; arc++) {
    const begin = seconds * 0.5 + (arc * Math.PI * 2) / 3
    brush.beginPath()
    brush.arc(x, y, radius * 0.66, begin, begin + 1.2)
    brush.stroke()
  }
  brush.globalAlpha = 1
}

function paintShard(
  brush: CanvasRenderingContext2D,
  glow: Glow,
  { id, x, y, worth }: ShardView,
  seconds: number,
): void {
  const isGolden = worth > 1
  const colour = isGolden ? GOLD : SHARD
  const beat = 1 + Math.sin(seconds * 3.2 + id) * 0.1
  const size = (isGolden ? 19 : 12.5) * beat
  paintGlow(brush, glow, x, y, size * 3.4, colour, isGolden ? 0.85 : 0.6)
  brush.save()
  brush.translate(x, y)
  brush.rotate(seconds * (isGolden ? 1.4 : 0.7) + id)
  brush.beginPath()
  if (isGolden) star(brush, size)
  else {
    brush.moveTo(0, -size * 1.2)
    brush.lineTo(size * 0.8, 0)
    brush.lineTo(0, size * 1.2)
    brush.lineTo(-size * 0.8, 0)
  }
  brush.closePath()
  brush.fillStyle = colour
  brush.fill()
  brush.fillStyle = 'rgba(255, 255, 255, 0.65)'
  brush.beginPath()
  brush.arc(0, 0, size * 0.3, 0, Math.PI * 2)
  brush.fill()
  brush.restore()
}

function star(brush: CanvasRenderingContext2D, size: number): void {
  for (let point = 0; point < 10; point++) {
    const radius = point % 2 === 0 ? size * 1.15 : size * 0.55
    const angle = (point * Math.PI) / 5 - Math.PI / 2
    brush.lineTo(Math.cos(angle) * radius, Math.sin(angle) * radius)
  }
}

/** Keeps where everybody was; somebody who jumps starts a new trail. */
function followTrails(trails: Map<number, Trail>, players: ShownPlayer[]): void {
  const present = new Set(players.map((player) => player.id))
  for (const id of trails.keys()) if (!present.has(id)) trails.delete(id)
  for (const { id, x, y } of players) {
    const trail = trails.get(id) ?? []
    const last = trail.at(-1)
    if (last !== undefined && Math.hypot(last.x - x, last.y - y) > 260) trail.length = 0
    trail.push({ x, y })
    if (trail.length > TRAIL_MAX) trail.shift()
    trails.set(id, trail)
  }
}

function paintTrail(brush: CanvasRenderingContext2D, trail: Trail, player: ShownPlayer): void {
  brush.globalCompositeOperation = 'lighter'
  brush.strokeStyle = colourOf(player.colour)
  brush.lineCap = 'round'
  for (let index = 1; index < trail.length; index++) {
    const part = index / trail.length
    const from = trail[index - 1]!
    const to = trail[index]!
    if (Math.hypot(to.x - from.x, to.y - from.y) < 0.4) continue
    brush.globalAlpha = part * part * (player.is_dashing ? 0.85 : 0.42)
    brush.lineWidth = part * (player.is_dashing ? 30 : 15)
    brush.beginPath()
    brush.moveTo(from.x, from.y)
    brush.lineTo(to.x, to.y)
    brush.stroke()
  }
  brush.globalAlpha = 1
  brush.globalCompositeOperation = 'source-over'
}

function paintShip(brush: CanvasRenderingContext2D, glow: Glow, player: ShownPlayer, seconds: number): void {
  const colour = colourOf(player.colour)
  const radius = SHIP_RADIUS
  paintGlow(
    brush,
    glow,
    player.x,
    player.y,
    radius * (player.is_dashing ? 4.6 : 3.3),
    colour,
    player.is_dashing ? 1 : 0.75,
  )
  if (player.is_shielded) {
    brush.strokeStyle = colour
    brush.globalAlpha = 0.35 + 0.3 * Math.sin(seconds * 14)
    brush.lineWidth = 2
    brush.beginPath()
    brush.arc(player.x, player.y, radius * 1.45, 0, Math.PI * 2)
    brush.stroke()
    brush.globalAlpha = 1
  }
  brush.save()
  brush.translate(player.x, player.y)
  brush.rotate(player.heading + (player.is_stunned ? seconds * 22 : 0))
  brush.beginPath()
  brush.moveTo(radius * 1.25, 0)
  brush.quadraticCurveTo(radius * 0.1, radius * 0.45, -radius * 0.9, radius * 0.95)
  brush.lineTo(-radius * 0.5, 0)
  brush.lineTo(-radius * 0.9, -radius * 0.95)
  brush.quadraticCurveTo(radius * 0.1, -radius * 0.45, radius * 1.25, 0)
  brush.closePath()
  const hull = brush.createLinearGradient(-radius, 0, radius, 0)
  hull.addColorStop(0, '#0d1330')
  hull.addColorStop(0.45, colour)
  hull.addColorStop(1, '#ffffff')
  brush.fillStyle = hull
  brush.fill()
  brush.lineWidth = 2.2
  brush.lineJoin = 'round'
  brush.strokeStyle = colour
  brush.stroke()
  brush.restore()
}

/** A ring around the own ship that fills until it can dash again. */
function paintCooldown(brush: CanvasRenderingContext2D, self: ShownPlayer, cooldown_ticks: number): void {
  const part = 1 - cooldown_ticks / DASH_COOLDOWN_TICKS
  brush.lineWidth = 3
  brush.lineCap = 'round'
  brush.strokeStyle = '#ffffff'
  brush.globalAlpha = part >= 1 ? 0.4 : 0.16
  brush.beginPath()
  brush.arc(self.x, self.y, SHIP_RADIUS * 1.7, 0, Math.PI * 2)
  brush.stroke()
  if (part < 1) {
    brush.globalAlpha = 0.85
    brush.beginPath()
    brush.arc(self.x, self.y, SHIP_RADIUS * 1.7, -Math.PI / 2, -Math.PI / 2 + part * Math.PI * 2)
    brush.stroke()
  }
  brush.globalAlpha = 1
}

function paintName(brush: CanvasRenderingContext2D, player: ShownPlayer, isLeader: boolean): void {
  brush.textAlign = 'center'
  brush.textBaseline = 'middle'
  brush.font = `600 21px ${FONT}`
  const y = player.y + SHIP_RADIUS * 1.75 + 20
  brush.lineWidth = 5
  brush.lineJoin = 'round'
  brush.strokeStyle = 'rgba(6, 9, 20, 0.8)'
  brush.strokeText(player.name, player.x, y)
  brush.fillStyle = player.is_self ? '#ffffff' : '#d3dcf7'
  brush.fillText(player.name, player.x, y)
  if (isLeader) paintCrown(brush, player.x, player.y - SHIP_RADIUS * 1.75 - 16)
}

function paintCrown(brush: CanvasRenderingContext2D, x: number, y: number): void {
  brush.beginPath()
  brush.moveTo(x - 13, y + 7)
  brush.lineTo(x - 15, y - 7)
  brush.lineTo(x - 6, y - 1)
  brush.lineTo(x, y - 11)
  brush.lineTo(x + 6, y - 1)
  brush.lineTo(x + 15, y - 7)
  brush.lineTo(x + 13, y + 7)
  brush.closePath()
  brush.fillStyle = GOLD
  brush.fill()
}

function paintSparks(brush: CanvasRenderingContext2D, effects: Effects): void {
  brush.globalCompositeOperation = 'lighter'
  for (const { x, y, life, life_max, size, colour } of effects.sparks) {
    brush.globalAlpha = Math.max(0, life / life_max)
    brush.fillStyle = colour
    brush.fillRect(x - size / 2, y - size / 2, size, size)
  }
  for (const { x, y, life, life_max, radius, colour } of effects.rings) {
    const part = 1 - life / life_max
    brush.globalAlpha = (1 - part) * 0.8
    brush.lineWidth = 6 * (1 - part) + 1
    brush.strokeStyle = colour
    brush.beginPath()
    brush.arc(x, y, radius * (1 - (1 - part) ** 3), 0, Math.PI * 2)
    brush.stroke()
  }
  brush.globalAlpha = 1
  brush.globalCompositeOperation = 'source-over'
}

function paintWords(brush: CanvasRenderingContext2D, effects: Effects): void {
  brush.textAlign = 'center'
  brush.textBaseline = 'middle'
  for (const { x, y, life, text, colour, size } of effects.words) {
    brush.globalAlpha = Math.min(1, life * 2)
    brush.font = `800 ${size}px ${FONT}`
    brush.lineWidth = 6
    brush.strokeStyle = 'rgba(6, 9, 20, 0.75)'
    brush.strokeText(text, x, y - 34)
    brush.fillStyle = colour
    brush.fillText(text, x, y - 34)
  }
  brush.globalAlpha = 1
}
