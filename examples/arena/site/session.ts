// From "Play" to a game: requests a seat, opens a socket to the lobby, and waits for the welcome. A member of a party (party.ts)
// already has a seat.
import { type CaptchaRequired, createClient, MusterError, type Seat, socketUrl } from 'musterhost-sdk/browser'
import { CLOSE, type FromBrowser, type FromServer } from '../game/messages.ts'
import { reloadFor } from './reload.ts'

const WELCOME_MS_MAX = 15_000
/** After this time the page says that a server is starting. */
const PATIENCE_MS = 1_200

export type Session = { say(message: FromBrowser): void; leave(): void }

export type SessionEvents = {
  /** What is being done, for the button. */
  progress(sentence: string): void
  /** Shows the captcha that the platform asks for, and answers its response. */
  captcha(required: CaptchaRequired): Promise<string>
  message(message: FromServer): void
  /** The game is over for this player, and why. Called at most once, and only after the welcome. */
  closed(sentence: string): void
}

/** Resolves with the welcome received. Throws a MusterError whose message is for the player. */
export async function enter(name: string, events: SessionEvents, told?: Seat): Promise<Session> {
  const seat = told ?? (await findSeat(events))
  events.progress('Connecting')
  return connect(socketUrl(seat.ports.game, '/', { token: seat.player.token, name }), events)
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
  return patience.whileFinding(() => client.find({ game_modes: ['default'] }))
}

type Patience = {
  whileFinding(find: () => Promise<Seat>): Promise<Seat>
  captcha: SessionEvents['captcha']
}

/** Shows what a find waits for: a lobby, the start of a server, or the player. */
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
  }
}

function connect(url: string, events: SessionEvents): Promise<Session> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url)
    let isWelcome = false
    const timer = setTimeout(() => socket.close(), WELCOME_MS_MAX)
    const say: Session['say'] = (message) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message))
    }
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(String(data)) as FromServer
      events.message(message)
      if (message.type !== 'welcome') return
      isWelcome = true
      clearTimeout(timer)
      resolve({
        say,
        leave: () => {
          socket.onclose = null
          socket.close()
        },
      })
    }
    socket.onclose = (event) => {
      clearTimeout(timer)
      if (isWelcome) events.closed(sentenceFor(event))
      else
        reject(new MusterError('CONNECTION_FAILED', event.reason || 'The lobby cannot be reached. Please try again.'))
    }
  })
}

function sentenceFor(event: CloseEvent): string {
  if (event.code === CLOSE.STOPPING) return 'The lobby was stopped. Another one is a click away.'
  if (event.reason !== '') return event.reason
  return 'The connection to the lobby broke.'
}
