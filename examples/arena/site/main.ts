// The page: the start screen, the game, and the loop that paints each frame.
import { type CaptchaRequired, MusterError, type Seat } from 'musterhost-sdk/browser'
import type { FromServer } from '../game/messages.ts'
import { AT_REST, TICKS_PER_SECOND } from '../game/motion.ts'
import { solveCaptcha } from './captcha.ts'
import { createControls } from './controls.ts'
import { age, createEffects, showFlame, showHit, showPick, showWin } from './effects.ts'
import {
  createHud,
  leaderOf,
  showBroken,
  showParty,
  showProgress,
  showScreen,
  showStart,
  showTrouble,
  showWatching,
} from './hud.ts'
import { colourOf } from './palette.ts'
import { invitation, type Membership, openParty, type PartyView } from './party.ts'
import {
  advance,
  createScene,
  latest,
  receive,
  type Scene,
  type ShownPlayer,
  shownPlayers,
  shownShards,
  tick,
} from './scene.ts'
import { enter, ownSeat, type Session, type Watched } from './session.ts'
import { createSound } from './sound.ts'
import { createStage } from './stage.ts'
import { device } from './storage.ts'

const TICK_S = 1 / TICKS_PER_SECOND
/** After a hidden tab comes back, the own ship does not fly what it missed. */
const CATCH_UP_TICKS_MAX = 5
const PING_EVERY_MS = 2_000
const FLAME_SPEED_MIN = 2.2
const REMEMBERED_NAME = 'arena.name'

/** For end-to-end tests and for the curious: what this window sees, in the arena's units. */
type ArenaWindow = {
  lobby_id: string | null
  /** Null for a window that only watches. */
  self_id: number | null
  players(): { id: number; name: string; x: number; y: number; score: number }[]
}

declare global {
  interface Window {
    arena: ArenaWindow
  }
}

let scene: Scene | null = null
let session: Session | null = null
let is_entering = false
let membership: Membership | null = null
let ping_ms: number | null = null

const stage = createStage(document.getElementById('stage') as HTMLCanvasElement)
const hud = createHud()
const effects = createEffects()
const sound = createSound()
const controls = createControls(stage.toWorld, () => session !== null && !isWatching())
const nameField = document.getElementById('name') as HTMLInputElement

window.arena = {
  get lobby_id() {
    return scene?.lobby_id ?? null
  },
  get self_id() {
    return scene?.self_id ?? null
  },
  players() {
    if (scene === null) return []
    const { roster } = scene
    const players = latest(scene)?.players ?? []
    return players.map(({ id, x, y, score }) => ({ id, name: roster.get(id)?.name ?? '', x, y, score }))
  },
}

function isWatching(): boolean {
  return scene !== null && scene.self_id === null
}

/** With the seat that the leader of the party has got for this page, one of its own, or one to watch. */
async function play(seat?: Seat | Watched): Promise<void> {
  const name = nameField.value.trim()
  device.setItem(REMEMBERED_NAME, name)
  session?.leave()
  is_entering = true
  try {
    const broken = (): void => showBroken(true)
    const events = { progress: showProgress, captcha: showCaptcha, message: hear, broken, closed: leave }
    session = await enter(name, events, seat)
    nameField.blur()
    controls.release()
    showWatching(isWatching())
    showScreen('game')
    measure()
  } catch (error) {
    fail(error, seat !== undefined && 'lobby_id' in seat ? 'Play' : 'Try again')
  } finally {
    is_entering = false
  }
}

/** From watching to playing: the seat of the spectator is free before the player asks for one. */
function playInstead(): void {
  session?.leave()
  end()
  showStart()
  void play()
}

function fail(error: unknown, label = 'Try again'): void {
  if (!(error instanceof MusterError)) console.error(error)
  session = null
  scene = null
  showTrouble(error, false, label)
}

async function playWithFriends(code: string | null): Promise<void> {
  showProgress(code === null ? 'Making a party' : 'Joining the party')
  try {
    membership = await openParty(code, {
      progress: showProgress,
      captcha: showCaptcha,
      seat: (seat) => void play(seat),
      changed,
      failed(error) {
        changed(null)
        if (session === null) fail(error)
      },
    })
    showProgress(null)
  } catch (error) {
    fail(error)
  }
}

function changed(party: PartyView | null): void {
  if (party === null) membership = null
  showParty(party)
}

function showCaptcha(required: CaptchaRequired): Promise<string> {
  return solveCaptcha(required, document.getElementById('captcha')!)
}

function measure(): void {
  session?.say({ type: 'ping', sent_ms: performance.now() })
}

function hear(message: FromServer): void {
  if (message.type === 'welcome') {
    scene = createScene(message)
    showBroken(false)
  } else if (message.type === 'pong') ping_ms = performance.now() - message.sent_ms
  else if (scene !== null) receive(scene, message)
}

function end(): void {
  session = null
  scene = null
  ping_ms = null
  places.clear()
  controls.release()
  showBroken(false)
}

function leave(sentence: string): void {
  const label = isWatching() ? 'Play' : 'Play again'
  end()
  showTrouble(new MusterError('CONNECTION_FAILED', sentence), true, label)
}

let last_ms = performance.now()
let unspent_s = 0

function frame(now_ms: number): void {
  requestAnimationFrame(frame)
  const seconds = Math.min(0.25, Math.max(0, (now_ms - last_ms) / 1000))
  last_ms = now_ms
  age(effects, seconds)
  if (scene === null || latest(scene) === undefined) {
    stage.paint({
      players: [],
      shards: driftingShards(now_ms),
      effects,
      cooldown_ticks: null,
      leader_id: null,
      seconds: now_ms / 1000,
    })
    return
  }
  const is_watching = isWatching()
  unspent_s = is_watching ? 0 : Math.min(unspent_s + seconds, CATCH_UP_TICKS_MAX * TICK_S)
  for (; unspent_s >= TICK_S; unspent_s -= TICK_S) {
    const input = tick(scene, controls.read(scene.own.now))
    if (input.dash && scene.own.now.cooldown_ticks > 0 && scene.own.before.cooldown_ticks === 0) sound.dash()
    session?.say({ type: 'input', ...input })
  }
  advance(scene, seconds)
  const players = shownPlayers(scene, unspent_s / TICK_S)
  showEvents(scene, players)
  for (const player of players) {
    const speed = speedOf(player)
    if (speed > FLAME_SPEED_MIN || player.is_dashing)
      showFlame(effects, player, colourOf(player.colour), player.is_dashing)
  }
  stage.paint({
    players,
    shards: shownShards(scene),
    effects,
    cooldown_ticks: is_watching ? null : scene.own.now.cooldown_ticks,
    leader_id: leaderOf(scene),
    seconds: now_ms / 1000,
  })
  hud.update(scene, ping_ms)
}

const places = new Map<number, { x: number; y: number }>()

/** Units since the last frame. */
function speedOf({ id, x, y }: ShownPlayer): number {
  const before = places.get(id) ?? { x, y }
  places.set(id, { x, y })
  return Math.hypot(x - before.x, y - before.y)
}

function showEvents(shown: Scene, players: ShownPlayer[]): void {
  const colour = (id: number) => colourOf(shown.roster.get(id)?.colour ?? 0)
  for (const event of shown.events) {
    const isSelf = event.player_id === shown.self_id
    if (event.type === 'picked') {
      showPick(effects, event, event.worth, isSelf)
      if (isSelf) sound.pick(event.worth)
    } else if (event.type === 'hit') {
      const isNear = isSelf || event.victim_id === shown.self_id
      showHit(effects, event, event.lost, colour(event.player_id), colour(event.victim_id), isNear)
      if (isNear) sound.hit()
    } else {
      const winner = players.find((player) => player.id === event.player_id)
      if (winner !== undefined) showWin(effects, winner, colourOf(winner.colour))
      if (isSelf) sound.win()
    }
  }
  shown.events = []
}

/** Moving shards behind the start screen. */
function driftingShards(now_ms: number): { id: number; x: number; y: number; worth: number }[] {
  return Array.from({ length: 14 }, (_, id) => ({
    id,
    x: 800 + Math.cos(id * 2.4 + now_ms / 9_000) * (240 + (id % 5) * 110),
    y: 450 + Math.sin(id * 2.4 + now_ms / 7_000) * (150 + (id % 4) * 75),
    worth: id % 7 === 0 ? 5 : 1,
  }))
}

function showSound(): void {
  document.getElementById('sound')!.textContent = sound.is_on ? 'Sound on' : 'Sound off'
}

document.getElementById('start')!.addEventListener('submit', (event) => {
  event.preventDefault()
  void (membership === null ? play() : membership.start().catch((error: unknown) => fail(error)))
})
document.getElementById('watch')!.addEventListener('click', () => void play({ lobby_id: null }))
document.getElementById('play-instead')!.addEventListener('click', playInstead)
document.getElementById('friends')!.addEventListener('click', () => void playWithFriends(null))
document.getElementById('party-leave')!.addEventListener('click', () => void membership?.leave().catch(console.error))
document.getElementById('party-copy')!.addEventListener('click', async (event) => {
  const field = document.getElementById('party-link') as HTMLInputElement
  field.select()
  // A page that came without TLS has no clipboard: then the link is chosen, and a key away.
  await navigator.clipboard?.writeText(field.value).catch(() => {})
  ;(event.target as HTMLElement).textContent = navigator.clipboard ? 'Copied' : 'Copy it'
})
document.getElementById('sound')!.addEventListener('click', (event) => {
  sound.toggle()
  showSound()
  ;(event.currentTarget as HTMLElement).blur()
})
addEventListener('keydown', (event) => {
  if (event.code !== 'KeyM' || session === null || event.repeat) return
  sound.toggle()
  showSound()
})
// A hidden tab paints no frames and sends no inputs: better to say "I rest" than to fly on.
document.addEventListener('visibilitychange', () => {
  controls.release()
  if (document.hidden && scene !== null && !isWatching()) session?.say({ type: 'input', ...tick(scene, AT_REST) })
})
setInterval(measure, PING_EVERY_MS)

const query = new URLSearchParams(location.search)
nameField.value = query.get('name') ?? device.getItem(REMEMBERED_NAME) ?? ''
showSound()
showStart()
nameField.focus()
requestAnimationFrame(frame)
void begin()

/** A page that is loaded again is back in its lobby. */
async function begin(): Promise<void> {
  if (invitation() !== null) return playWithFriends(invitation())
  const seat = await ownSeat()
  // The player may have pressed Play meanwhile.
  if (session !== null || is_entering) return
  const watched = query.get('watch')
  if (watched !== null && seat?.player.role !== 'spectator') await play({ lobby_id: watched || null })
  else if (seat !== null) await play(seat)
  else if (query.has('autoplay')) await play()
}
