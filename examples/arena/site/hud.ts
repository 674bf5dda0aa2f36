// The elements around the arena: leaderboard, status line, banner, and the start screen with its form. Names are untrusted:
// they are set as text, never as HTML.
import { MusterError } from 'musterhost-sdk/browser'
import { colourOf } from './palette.ts'
import type { PartyView } from './party.ts'
import { latest, type Scene } from './scene.ts'

const PING_SLOW_MS = 150

function find<T extends HTMLElement = HTMLElement>(id: string): T {
  return document.getElementById(id) as T
}

export function showScreen(screen: 'start' | 'game'): void {
  document.body.dataset.screen = screen
}

function element(name: string, className: string, text = ''): HTMLElement {
  const made = document.createElement(name)
  made.className = className
  made.textContent = text
  return made
}

/** The id of the leading player. Null: several lead, or no player has scored. */
export function leaderOf(scene: Scene): number | null {
  const players = latest(scene)?.players ?? []
  const best = Math.max(0, ...players.map((player) => player.score))
  const leaders = players.filter((player) => player.score === best)
  return best > 0 && leaders.length === 1 ? leaders[0]!.id : null
}

export type Hud = { update(scene: Scene, ping_ms: number | null): void }

/** Writes to the page only what changed: layout is dear, and this is asked thirty times a second. */
export function createHud(): Hud {
  const written = new Map<string, string>()
  const isNew = (part: string, key: string): boolean => {
    if (written.get(part) === key) return false
    written.set(part, key)
    return true
  }
  return {
    update(scene, ping_ms) {
      const snapshot = latest(scene)
      if (snapshot === undefined) return
      const rows = snapshot.players
        .map(({ id, score }) => ({ id, score, ...scene.roster.get(id) }))
        .sort((one, other) => other.score - one.score || one.id - other.id)

      if (isNew('board', JSON.stringify([rows, scene.self_id]))) {
        const items = rows.map(({ id, score, name = '', colour = 0, wins = 0 }) => {
          const item = element('li', id === scene.self_id ? 'self' : '')
          item.style.setProperty('--colour', colourOf(colour))
          item.style.setProperty('--part', `${Math.min(100, (score / scene.score_to_win) * 100)}%`)
          item.append(element('span', 'dot'), element('span', 'name', name))
          if (wins > 0) item.append(element('span', 'wins', `★${wins > 1 ? wins : ''}`))
          item.append(element('span', 'score', String(score)))
          return item
        })
        find('board').replaceChildren(...items)
      }

      const ping = ping_ms === null ? '–' : `${Math.round(ping_ms)} ms`
      if (isNew('status', `${scene.lobby_id} ${rows.length} ${ping}`)) {
        const dot = element('i', (ping_ms ?? 0) > PING_SLOW_MS ? 'dot slow' : 'dot')
        const parts = [
          ['Lobby ', scene.lobby_id.slice(-8)],
          ['Players ', `${rows.length}/${scene.players_max}`],
          ['Ping ', ping],
        ].map(([label, value]) => {
          const part = element('span', '', label)
          part.append(element('b', '', value))
          return part
        })
        parts[0]?.prepend(dot)
        find('status').replaceChildren(...parts)
      }

      const count = `${rows.length} ${rows.length === 1 ? 'player' : 'players'}`
      if (isNew('watching', count)) find('watching-players').textContent = count

      const hint =
        scene.self_id !== null && rows.length === 1
          ? 'You are alone: open this page in a second window.'
          : `First to ${scene.score_to_win} wins`
      if (isNew('whisper', hint)) find('whisper').textContent = hint

      const winner = snapshot.winner_id === null ? undefined : scene.roster.get(snapshot.winner_id)
      if (isNew('banner', `${snapshot.winner_id} ${winner?.name}`)) {
        const banner = find('banner')
        banner.classList.toggle('on', winner !== undefined)
        if (winner !== undefined) {
          const sentence = snapshot.winner_id === scene.self_id ? 'You win!' : `${winner.name} wins!`
          banner.replaceChildren(sentence, element('small', '', 'The next round starts in a moment'))
          banner.style.color = colourOf(winner.colour)
        }
      }
    },
  }
}

/** Whether this page only sees the game: it has the line that says so, and no keys. */
export function showWatching(is_watching: boolean): void {
  document.body.classList.toggle('watches', is_watching)
}

let party: PartyView | null = null
let progress: string | null = null
let play_label = 'Play'

/** Shows what the start screen waits for. Null: the form can be used. */
export function showProgress(sentence: string | null): void {
  progress = sentence
  if (sentence !== null) find('trouble').replaceChildren()
  showPlayButton()
}

function showPlayButton(): void {
  const is_led = party !== null && !party.is_leader
  const waiting_for = progress ?? (is_led ? 'Waiting for the leader' : null)
  const button = find<HTMLButtonElement>('play')
  button.disabled = find<HTMLButtonElement>('watch').disabled = waiting_for !== null
  const label = party === null ? play_label : 'Play together'
  button.firstElementChild!.textContent = waiting_for === null ? label : `${waiting_for}…`
}

/** Over the game, while the connection is broken and the seat is kept. */
export function showBroken(is_broken: boolean): void {
  find('broken').classList.toggle('on', is_broken)
}

/** The start screen before the first game. */
export function showStart(): void {
  showScreen('start')
  showProgress(null)
}

/** Shows the party on the start screen. Null: there is none. */
export function showParty(shown: PartyView | null): void {
  party = shown
  find('party').hidden = shown === null
  find('friends').hidden = find('watch').hidden = shown !== null
  showPlayButton()
  if (shown === null) return
  const { size, is_leader, link } = shown
  const what = is_leader
    ? 'Send your friends the link, then start for all of you.'
    : 'Its leader starts for all of you: you are taken along.'
  const title = element('b', '', size === 1 ? 'Your party: only you so far' : `Your party: ${size} pilots`)
  find('party-size').replaceChildren(title, what)
  find('party-invitation').hidden = !is_leader
  find<HTMLInputElement>('party-link').value = link
}

/** The start screen after a game, or after a failed attempt. `label`: of the button that begins a game. */
export function showTrouble(error: unknown, isAfterGame: boolean, label: string): void {
  play_label = label
  showStart()
  const isKnown = error instanceof MusterError
  const message = isKnown ? error.message : 'Something went wrong in the game. Please try again.'
  if (isAfterGame) {
    find('start').classList.add('ended')
    find('title').textContent = 'Connection lost'
    find('lead').textContent = message
    find('trouble').replaceChildren()
  } else {
    const detail = isKnown ? [error.code, error.ray_id].filter((part) => part !== null).join('\n') : ''
    find('trouble').replaceChildren(message, element('small', '', detail))
  }
  find('play').focus()
}
