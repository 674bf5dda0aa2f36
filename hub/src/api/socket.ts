// A WebSocket of the API that connects again when it is lost. The platform resumes a feed at the index of the last message.
import type { Operation } from '@musterhost/contract'
import { type AnyInput, addressOf } from './call.ts'
import type { Described } from './describe.ts'
import { dropUserToken, userToken } from './session.ts'

/** `connecting`: for the first time. `lost`: it was connected, or could not connect, and tries again. */
export type FeedState = 'connecting' | 'live' | 'lost'

export type FeedOptions<O extends Operation, M> = {
  operation: Described<O>
  /** Is called for each connection, so that it can contain the index of the last message. */
  input: () => AnyInput
  onMessage: (message: M) => void
  onState: (state: FeedState) => void
}

const WAIT_MS_MIN = 500
const WAIT_MS_MAX = 10_000
/** A feed sends a heartbeat at least every 15 seconds. A connection that is silent for longer is lost. */
const SILENCE_MS_MAX = 40_000

/** Returns a function that closes the feed. */
export function openFeed<O extends Operation, M>(options: FeedOptions<O, M>): () => void {
  let socket: WebSocket | null = null
  let wait_ms = WAIT_MS_MIN
  let is_closed = false
  let attempts = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  let silence: ReturnType<typeof setTimeout> | undefined

  function repeat(): void {
    clearTimeout(silence)
    if (is_closed) return
    options.onState('lost')
    clearTimeout(timer)
    timer = setTimeout(connect, wait_ms)
    wait_ms = Math.min(wait_ms * 2, WAIT_MS_MAX)
  }

  function watchSilence(): void {
    clearTimeout(silence)
    silence = setTimeout(() => socket?.close(), SILENCE_MS_MAX)
  }

  async function connect(): Promise<void> {
    const attempt = ++attempts
    const token = await userToken().catch(() => null)
    if (is_closed || attempt !== attempts) return
    if (token === null) return repeat()
    const input = options.input()
    const path = addressOf(options.operation as Described, { ...input, query: { ...input.query, token } })
    const opened = new WebSocket(new URL(path, location.href.replace(/^http/, 'ws')))
    socket = opened
    watchSilence()
    let has_opened = false
    opened.addEventListener('open', () => {
      has_opened = true
      wait_ms = WAIT_MS_MIN
      options.onState('live')
    })
    opened.addEventListener('message', (event) => {
      watchSilence()
      if (!is_closed && socket === opened) options.onMessage(JSON.parse(String(event.data)) as M)
    })
    opened.addEventListener('close', () => {
      // A browser does not say why: the token may have expired, by the clock of the platform.
      if (!has_opened) dropUserToken(token)
      if (socket === opened) repeat()
    })
  }

  /** A browser without a network keeps its sockets open until they time out. */
  function onOffline(): void {
    const cut = socket
    socket = null
    cut?.close()
    repeat()
  }

  function onOnline(): void {
    if (socket !== null && socket.readyState <= WebSocket.OPEN) return
    clearTimeout(timer)
    wait_ms = WAIT_MS_MIN
    void connect()
  }

  addEventListener('offline', onOffline)
  addEventListener('online', onOnline)
  options.onState('connecting')
  void connect()
  return () => {
    is_closed = true
    removeEventListener('offline', onOffline)
    removeEventListener('online', onOnline)
    clearTimeout(timer)
    clearTimeout(silence)
    socket?.close()
  }
}
