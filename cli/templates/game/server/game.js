// The rules: players run after a star, and the first one there gets a point. Nothing here knows about the network.

/** The field is a square from 0 to 1. */
const SPEED_PER_S = 0.45
const CATCH_DISTANCE = 0.045
const HUES = [190, 330, 50, 120, 270, 20, 215, 90]

export function createGame() {
  const players = new Map()
  let star = somewhere()
  let next_id = 1

  return {
    /** Returns the id of the new player. */
    enter() {
      const id = next_id++
      const place = somewhere()
      players.set(id, { id, ...place, target: place, hue: HUES[id % HUES.length], score: 0 })
      console.log(`player ${id} joined, ${players.size} here`)
      return id
    },
    leave(id) {
      if (players.delete(id)) console.log(`player ${id} left, ${players.size} here`)
    },
    /** What strangers send is checked: anything but a place of the field is ignored. */
    steer(id, message) {
      const player = players.get(id)
      const [x, y] = String(message).split(' ').map(Number)
      if (player === undefined || !(x >= 0 && x <= 1 && y >= 0 && y <= 1)) return
      player.target = { x, y }
    },
    /** Moves everybody. */
    step(seconds) {
      for (const player of players.values()) {
        move(player, SPEED_PER_S * seconds)
        if (Math.hypot(player.x - star.x, player.y - star.y) > CATCH_DISTANCE) continue
        player.score += 1
        star = somewhere()
      }
    },
    /** What every page shows. */
    state() {
      return { star, players: [...players.values()].map(({ target: _target, ...shown }) => shown) }
    },
  }
}

function move(player, distance_max) {
  const [dx, dy] = [player.target.x - player.x, player.target.y - player.y]
  const distance = Math.hypot(dx, dy)
  if (distance === 0) return
  const part = Math.min(1, distance_max / distance)
  player.x += dx * part
  player.y += dy * part
}

function somewhere() {
  return { x: 0.1 + 0.8 * Math.random(), y: 0.1 + 0.8 * Math.random() }
}
