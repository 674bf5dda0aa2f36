// The lobby server: listens, reports that it is ready, and runs the world thirty times a second while players or spectators
// are connected. It is the only file that reads a clock.
import { createServer } from 'node:http'
import { openLobby } from 'musterhost-sdk/server'
import { type RawData, type WebSocket, WebSocketServer } from 'ws'
import { CLOSE, type FromServer, readFromBrowser } from '../game/messages.ts'
import { TICKS_PER_SECOND } from '../game/motion.ts'
import { admit, type Guest, readGuest, returnMs } from './admission.ts'
import {
  addPlayer,
  createWorld,
  ownView,
  type Player,
  removePlayer,
  returnPlayer,
  roster,
  SCORE_TO_WIN,
  sharedView,
  steer,
  step,
} from './world.ts'

const TICK_MS = 1000 / TICKS_PER_SECOND
/** After a pause of the process, the world runs at most this many ticks to catch up. */
const CATCH_UP_TICKS_MAX = 5
const MESSAGE_BYTES_MAX = 512
/** A browser sends 30 inputs and a few pings a second. A client that sends more is not our page. */
const MESSAGES_PER_SECOND_MAX = 90
/** A spectator sends a few pings. What else it sends is counted and has no effect. */
const SPECTATOR_MESSAGES_PER_SECOND_MAX = 10
/** Players and sockets that are not yet admitted. The platform limits the spectators. */
const SOCKETS_PER_SEAT_MAX = 4
/** Above BEHIND_BYTES_MAX of unsent data a player misses snapshots; above LOST_BYTES_MAX the connection is closed. */
const BEHIND_BYTES_MAX = 64 * 1024
const LOST_BYTES_MAX = 1024 * 1024
const HEARTBEAT_MS = 5_000
const GOODBYE_MS = 1_000

/** `player`: null for a spectator, who is not in the world. */
type Seat = { player: Player | null; socket: WebSocket; message_count: number; is_alive: boolean }

const lobby = openLobby()
const world = createWorld(Date.now())
const seats = new Set<Seat>()
/** Players who may be back, by their token. */
const away = new Map<string, { player: Player; timer: NodeJS.Timeout }>()
let sockets_open = 0
let spectator_count = 0
let loop: NodeJS.Timeout | null = null

const sockets = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: MESSAGE_BYTES_MAX,
})
const http = createServer((_request, response) => response.writeHead(426).end('Arena speaks WebSocket here.\n'))

http.on('upgrade', (request, connection, head) => {
  if (sockets_open - spectator_count >= lobby.max_players * SOCKETS_PER_SEAT_MAX) {
    connection.end('HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
    return
  }
  sockets.handleUpgrade(request, connection, head, (socket) => {
    sockets_open += 1
    socket.once('close', () => {
      sockets_open -= 1
    })
    // A frame that is not WebSocket, or too long: ws closes the socket, and that is all there is to do.
    socket.on('error', () => {})
    void welcome(socket, readGuest(request.url ?? ''))
  })
})

// Players come through the platform's edge, which is on the same machine.
http.listen(lobby.port('game'), '127.0.0.1', async () => {
  await lobby.ready()
  console.log(`Arena is open, lobby ${lobby.id}.`)
})

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, stop)

async function welcome(socket: WebSocket, guest: Guest): Promise<void> {
  const role = await admit(lobby, socket, guest)
  if (role === null) return
  const player = role === 'spectator' ? null : (takeBack(guest.token) ?? addPlayer(world, guest.name))
  const seat: Seat = { player, socket, message_count: 0, is_alive: true }
  seats.add(seat)
  if (player === null) spectator_count += 1
  socket.on('message', (data) => listen(seat, data))
  socket.on('pong', () => {
    seat.is_alive = true
  })
  socket.once('close', (code) => {
    seats.delete(seat)
    if (player === null) spectator_count -= 1
    else removeFromWorld(guest, player, code)
    if (seats.size === 0) rest()
  })
  const { id: lobby_id, max_players: players_max } = lobby
  const self_id = player?.id ?? null
  say(seat, { type: 'welcome', lobby_id, self_id, players_max, score_to_win: SCORE_TO_WIN })
  const players: FromServer = { type: 'roster', players: roster(world) }
  if (player === null) say(seat, players)
  else sayToAll(players)
  run()
}

function removeFromWorld({ token }: Guest, player: Player, close_code: number): void {
  keepAway(token, player, returnMs(close_code))
  removePlayer(world, player.id)
  sayToAll({ type: 'roster', players: roster(world) })
}

/** Each has a seat that the platform keeps, so there are at most as many as seats. */
function keepAway(token: string, player: Player, kept_ms: number): void {
  if (kept_ms === 0) return
  away.set(token, { player, timer: setTimeout(() => away.delete(token), kept_ms).unref() })
}

/** Null: no player with this token is away. */
function takeBack(token: string): Player | null {
  const back = away.get(token)
  if (back === undefined) return null
  clearTimeout(back.timer)
  away.delete(token)
  return returnPlayer(world, back.player)
}

function listen(seat: Seat, data: RawData): void {
  seat.message_count += 1
  const message = readFromBrowser(String(data))
  const count_max = seat.player === null ? SPECTATOR_MESSAGES_PER_SECOND_MAX : MESSAGES_PER_SECOND_MAX
  if (seat.message_count > count_max) seat.socket.close(CLOSE.TOO_FAST, 'Too many messages.')
  else if (message === null) seat.socket.close(CLOSE.BAD_MESSAGE, 'A message was not understood.')
  else if (message.type === 'ping') say(seat, { type: 'pong', sent_ms: message.sent_ms })
  else if (seat.player !== null) steer(seat.player, message)
}

/** Runs the world until `rest`. An empty arena costs no processor time. */
function run(): void {
  if (loop !== null) return
  let next_ms = performance.now() + TICK_MS
  let heartbeat_ms = next_ms + HEARTBEAT_MS
  let second_ms = next_ms + 1000
  loop = setInterval(() => {
    const now_ms = performance.now()
    next_ms = Math.max(next_ms, now_ms - CATCH_UP_TICKS_MAX * TICK_MS)
    for (; next_ms <= now_ms; next_ms += TICK_MS) {
      step(world)
      showWorld()
    }
    if (now_ms >= second_ms) {
      second_ms = now_ms + 1000
      for (const seat of seats) seat.message_count = 0
    }
    if (now_ms >= heartbeat_ms) {
      heartbeat_ms = now_ms + HEARTBEAT_MS
      for (const seat of seats) checkHeartbeat(seat)
    }
  }, TICK_MS / 3)
}

function rest(): void {
  if (loop !== null) clearInterval(loop)
  loop = null
}

function showWorld(): void {
  // The part that all share is written once; each player's own part goes in front of it.
  const view = JSON.stringify(sharedView(world))
  const shared = view.slice(1)
  for (const { player, socket } of seats) {
    if (socket.bufferedAmount > LOST_BYTES_MAX) socket.terminate()
    else if (socket.bufferedAmount <= BEHIND_BYTES_MAX) {
      socket.send(player === null ? view : `${JSON.stringify(ownView(player)).slice(0, -1)},${shared}`)
    }
  }
  if (world.events.some((event) => event.type === 'won')) sayToAll({ type: 'roster', players: roster(world) })
}

/** A suspended computer closes no connection: a player or spectator without a response to the last ping is disconnected. */
function checkHeartbeat(seat: Seat): void {
  if (seat.is_alive) seat.socket.ping()
  else seat.socket.terminate()
  seat.is_alive = false
}

function say(seat: Seat, message: FromServer): void {
  seat.socket.send(JSON.stringify(message))
}

function sayToAll(message: FromServer): void {
  const text = JSON.stringify(message)
  for (const { socket } of seats) socket.send(text)
}

/** Stops listening and closes every socket; then the process ends. */
function stop(): void {
  rest()
  http.close()
  for (const { socket } of seats) socket.close(CLOSE.STOPPING, 'The lobby has stopped.')
  // A browser that does not close its side in time is cut off.
  setTimeout(() => {
    for (const { socket } of seats) socket.terminate()
  }, GOODBYE_MS).unref()
}
