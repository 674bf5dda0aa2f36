// From "Play" or "Watch" to a game: requests a seat, opens a socket to the lobby, and waits for the welcome. A member of a party (party.ts)
// already has a seat. When the connection breaks, the player is back in the same seat once the network is.
import {
  type CaptchaRequired,
  createClient,
  MusterError,
  type QueueWait,
  type Seat,
  socketUrl,
} from 'musterhost-sdk/browser'
import { BROKEN_RETURN_MS, CLOSE, type FromBrowser, type FromServer } from '../game/messages.ts'
import { reloadFor } from './reload.ts'

const WELCOME_MS_MAX = 15_000
/** After this time the page says that a server is starting. */
const PATIENCE_MS = 1_200
/** A lobby that sends nothing for this long is out of reach: it sends thirty snapshots a second. */
const SILENCE_MS_MAX = 3_000
const RETURN_EVERY_MS = 500

export type Session = { say(message: FromBrowser): void; leave(): void }

export type SessionEvents = {
  /** What is being done, for the button. */
  progress(sentence: string): void
  /** Shows the captcha that the platform asks for, and answers its response. */
  captcha(required: CaptchaRequired): Promise<string>
  message(message: FromServer): void
  /** The connection broke, and the seat is kept. A welcome follows, or the end of the game. */
  broken(): void
  /** The game is over for this player, and why. Called at most once, and only after the welcome. */
  closed(sentence: string): void
}

/** What a page watches. `lobby_id`: null for the running lobby with most players. */
export type Watched = { lobby_id: string | null }

/** Resolves with the welcome received. Throws a MusterError whose message is for the player. */
export async function enter(name: string, events: SessionEvents, told?: Seat | Watched): Promise<Session> {
  const seat = told === undefined ? await findSeat(events) : 'lobby_id' in told ? await watchSeat(told, events) : told
  events.progress('Connecting')
  return stay(name, seat, events)
}

/** A connection that breaks is opened again, while the seat is kept. */
async function stay(name: string, seat: Seat, events: SessionEvents): Promise<Session> {
  let has_left = false
  const open = ({ ports, player }: Seat): Promise<Connection> =>
    connect(socketUrl(ports.game, '/', { token: player.token, name }), events, (end) => void onEnd(end))
  let connection = await open(seat)

  async function onEnd(end: SocketEnd): Promise<void> {
    if (has_left) return
    if (end.code !== CLOSE.BROKEN) return events.closed(sentenceFor(end))
    events.broken()
    const again = await comeBack(open, () => has_left)
    if (has_left) again?.close()
    else if (again === null) events.closed(sentenceFor(end))
    else connection = again
  }

  return {
    say: (message) => connection.say(message),
    leave() {
      has_left = true
      connection.close()
    },
  }
}

/** Null: the seat has ended, or the time is over. */
async function comeBack(open: (seat: Seat) => Promise<Connection>, hasLeft: () => boolean): Promise<Connection | null> {
  const until_ms = performance.now() + BROKEN_RETURN_MS
  while (performance.now() < until_ms && !hasLeft()) {
    try {
      const seat = await createClient().resume()
      return seat === null ? null : await open(seat)
    } catch {
      await new Promise((resolve) => setTimeout(resolve, RETURN_EVERY_MS))
    }
  }
  return null
}

/** The seat that this tab has still, after the page was loaded again. Null: the player begins. */
export async function ownSeat(): Promise<Seat | null> {
  // A platform that cannot be reached now says so when the player presses Play.
  return createClient()
    .resume()
    .catch(() => null)
}

async function findSeat(events: SessionEvents): Promise<Seat> {
  const patience = createPatience(events)
  const client = createClient({ captcha: patience.captcha, onVersionReplaced: reloadFor })
  return patience.whileFinding(() => client.find({ game_modes: ['default'] }, { onWaiting: patience.onWaiting }))
}

/** A seat of a spectator. It waits for no match and starts no lobby. */
async function watchSeat({ lobby_id }: Watched, events: SessionEvents): Promise<Seat> {
  const patience = createPatience(events)
  const client = createClient({ captcha: patience.captcha, onVersionReplaced: reloadFor })
  const role = 'spectator'
  events.progress('Looking for a game')
  try {
    if (lobby_id !== null) return await client.join({ lobby_id, role })
    return await client.find({ game_modes: ['default'], role })
  } catch (error) {
    if (!(error instanceof MusterError) || error.code !== 'MATCHMAKER_NO_AVAILABLE_LOBBIES') throw error
    throw new MusterError(error.code, 'No game is running that you can watch. Press Play to begin one.', error)
  }
}

type Patience = {
  whileFinding(find: () => Promise<Seat>): Promise<Seat>
  captcha: SessionEvents['captcha']
  onWaiting(waiting: QueueWait): void
}

/** Shows what a find waits for: a lobby, other players, the start of a server, or the player. */
export function createPatience(events: Pick<SessionEvents, 'progress' | 'captcha'>): Patience {
  let timer: ReturnType<typeof setTimeout> | undefined
  const begin = () => {
    events.progress('Finding a lobby')
    timer = setTimeout(() => events.progress('Starting a server'), PATIENCE_MS)
  }
  const end = () => clearTimeout(timer)
  return {
    async whileFinding(find) {
      begin()
      try {
        return await find()
      } finally {
        end()
      }
    },
    async captcha(required) {
      end()
      events.progress('Waiting for you')
      const response = await events.captcha(required)
      begin()
      return response
    },
    onWaiting({ players_missing }) {
      end()
      const who = players_missing === undefined ? 'other' : `${players_missing} more`
      events.progress(`Waiting for ${who} ${players_missing === 1 ? 'player' : 'players'}`)
    },
  }
}

type SocketEnd = Pick<CloseEvent, 'code' | 'reason'>
type Connection = { say(message: FromBrowser): void; close(): void }

/** Resolves with the welcome received. `onEnd`: called once, after the welcome, unless this page closes the connection. */
function connect(url: string, events: SessionEvents, onEnd: (end: SocketEnd) => void): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url)
    let isWelcome = false
    const end = ({ code, reason }: SocketEnd): void => {
      clearTimeout(timer)
      socket.onclose = socket.onmessage = null
      // The network may be back at once, and carry this to the server.
      socket.close(CLOSE.AWAY)
      if (isWelcome) onEnd({ code, reason })
      else reject(new MusterError('CONNECTION_FAILED', reason || 'The lobby cannot be reached. Please try again.'))
    }
    const onSilence = (): void => end({ code: CLOSE.BROKEN, reason: '' })
    let timer = setTimeout(onSilence, WELCOME_MS_MAX)
    const say: Connection['say'] = (message) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message))
    }
    socket.onmessage = ({ data }) => {
      clearTimeout(timer)
      timer = setTimeout(onSilence, SILENCE_MS_MAX)
      const message = JSON.parse(String(data)) as FromServer
      events.message(message)
      if (message.type !== 'welcome') return
      isWelcome = true
      resolve({
        say,
        close() {
          clearTimeout(timer)
          socket.onclose = null
          socket.close()
        },
      })
    }
    socket.onclose = end
  })
}

function sentenceFor({ code, reason }: SocketEnd): string {
  if (code === CLOSE.STOPPING) return 'The lobby was stopped. Another one is a click away.'
  if (reason !== '') return reason
  return 'The connection to the lobby broke.'
}
