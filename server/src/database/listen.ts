// NOTIFY, used only as a wake-up, over a connection of its own that is kept open. It connects again after every break.
// Whenever it begins to listen to a channel, it wakes the subscribers once with an empty payload, because earlier
// notifications were not received. States: connecting -> listening -> connecting ... -> closed.
import { randomInt } from 'node:crypto'
import { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Logger } from 'pino'

const RETRY_MS_MIN = 50
/** Longest pause before the LISTEN connection is opened again. */
const RETRY_MS_MAX = 5_000
/** To open the LISTEN connection. */
const CONNECT_MS_MAX = 5_000
/** A connection that a firewall forgot is silent for ever, so it is asked now and then. */
const HEARTBEAT_MS = 30_000
/** For the response to a statement on the LISTEN connection. */
const ANSWER_MS_MAX = 10_000
/** To end the LISTEN connection in order. */
const GOODBYE_MS_MAX = 1_000
/** PostgreSQL's limits. */
const CHANNEL_PATTERN = /^[a-z_][a-z0-9_]{0,62}$/
/** PostgreSQL's own limit of a NOTIFY payload. */
const PAYLOAD_BYTES_MAX = 7_999
/** Different notifications kept for the next connection. Beyond it they are dropped: readers also poll. */
const UNSENT_MAX = 1_000

type Wake = (payload: string) => void

export type Listener = {
  /**
   * `wake` is called with the payload of every notification, and with an empty one whenever listening to the channel
   * has begun, for the first time or again after a break. Returns what ends the subscription.
   */
  on: (channel: string, wake: Wake) => () => void
  /**
   * Resolves when the wake-up is sent, or kept for the next connection; never rejects because of the database. The
   * same channel and payload, said twice before they are sent, are one notification.
   */
  notify: (channel: string, payload?: string) => Promise<void>
  /** Sends what is unsent if it is connected, and ends. */
  close: () => Promise<void>
}

/** Returns at once and connects on its own; while the database is away it tries again for ever. */
export function createListener(options: { url: string; log: Logger }): Listener {
  const { log } = options
  const subscribers = new Map<string, Set<Wake>>()
  const unsent = new Map<string, { channel: string; payload: string }>()
  const closing = new AbortController()
  let connected = false
  let batch = Promise.withResolvers<void>()
  let poke = (): void => {}

  const wakeAll = (channel: string, payload: string): void => {
    for (const wake of [...(subscribers.get(channel) ?? [])]) {
      try {
        wake(payload)
      } catch (error) {
        log.error({ err: error, channel }, 'a subscriber failed to wake up')
      }
    }
  }

  const sendBatch = async (connection: pg.Client): Promise<void> => {
    const sent = [...unsent.entries()]
    const { resolve } = batch
    batch = Promise.withResolvers<void>()
    unsent.clear()
    try {
      await connection.query(
        'select pg_notify(channel, payload) from unnest($1::text[], $2::text[]) as n(channel, payload)',
        [sent.map(([, { channel }]) => channel), sent.map(([, { payload }]) => payload)],
      )
    } catch (error) {
      for (const [key, notification] of sent) unsent.set(key, notification)
      throw error
    } finally {
      resolve()
    }
  }

  /** Does what is to be done on an open connection, one thing at a time, until it breaks or the listener is closed. */
  const work = async (connection: pg.Client, broken: AbortSignal): Promise<void> => {
    const heard = new Set<string>()
    for (;;) {
      broken.throwIfAborted()
      const missing = [...subscribers.keys()].find((channel) => !heard.has(channel))
      const idle = [...heard].find((channel) => !subscribers.has(channel))
      if (missing !== undefined) {
        await connection.query(`listen ${connection.escapeIdentifier(missing)}`)
        heard.add(missing)
        wakeAll(missing, '')
      } else if (idle !== undefined) {
        await connection.query(`unlisten ${connection.escapeIdentifier(idle)}`)
        heard.delete(idle)
      } else if (unsent.size > 0) {
        await sendBatch(connection)
      } else if (closing.signal.aborted) {
        return
      } else if (!(await pokedWithin(HEARTBEAT_MS))) {
        await connection.query('select 1')
      }
    }
  }

  const pokedWithin = (ms: number): Promise<boolean> =>
    new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), ms)
      poke = () => {
        clearTimeout(timer)
        resolve(true)
      }
    })

  /** One connection from its opening to its end. Returns when the listener is closed, throws when the connection breaks. */
  const serve = async (onConnected: () => void): Promise<void> => {
    const socket = new Socket()
    const connection = new pg.Client({
      connectionString: options.url,
      application_name: 'muster-listen',
      stream: () => socket,
      connectionTimeoutMillis: CONNECT_MS_MAX,
      query_timeout: ANSWER_MS_MAX,
    })
    const broken = new AbortController()
    const onBreak = (error?: Error): void => {
      broken.abort(error ?? new Error('The database closed the connection.'))
      poke()
    }
    connection.on('error', onBreak)
    connection.on('end', () => onBreak())
    connection.on('notification', (message) => wakeAll(message.channel, message.payload ?? ''))
    try {
      await connection.connect()
      connected = true
      onConnected()
      await work(connection, broken.signal)
      await Promise.race([connection.end(), delay(GOODBYE_MS_MAX, undefined, { ref: false })])
    } finally {
      connected = false
      batch.resolve()
      batch = Promise.withResolvers<void>()
      socket.destroy()
    }
  }

  const run = async (): Promise<void> => {
    let retry_ms = RETRY_MS_MIN
    while (!closing.signal.aborted) {
      try {
        await serve(() => {
          retry_ms = RETRY_MS_MIN
        })
      } catch (error) {
        if (closing.signal.aborted) return
        log.warn({ err: error }, 'not listening to the database; trying again')
        // Half of it by chance, so that many processes do not come back at the same moment. Only close interrupts it.
        const wait_ms = retry_ms / 2 + randomInt(retry_ms / 2)
        await delay(wait_ms, undefined, { signal: closing.signal }).catch(() => undefined)
        retry_ms = Math.min(retry_ms * 2, RETRY_MS_MAX)
      }
    }
  }
  const running = run()

  return {
    on(channel, wake) {
      requireChannel(channel)
      // A function of its own, so that the same `wake` subscribed twice is two subscriptions.
      const own: Wake = (payload) => wake(payload)
      const wakes = subscribers.get(channel) ?? new Set()
      subscribers.set(channel, wakes.add(own))
      poke()
      return () => {
        wakes.delete(own)
        if (wakes.size === 0 && subscribers.get(channel) === wakes) subscribers.delete(channel)
        poke()
      }
    },
    async notify(channel, payload = '') {
      requireChannel(channel)
      if (Buffer.byteLength(payload) > PAYLOAD_BYTES_MAX) throw new RangeError('A payload has at most 7999 bytes.')
      const key = `${channel} ${payload}`
      if (unsent.size >= UNSENT_MAX && !unsent.has(key)) {
        log.warn({ channel }, 'a wake-up is dropped: too many are unsent')
        return
      }
      unsent.set(key, { channel, payload })
      poke()
      if (connected) await batch.promise
    },
    async close() {
      closing.abort()
      poke()
      await running
    },
  }
}

function requireChannel(channel: string): void {
  if (!CHANNEL_PATTERN.test(channel)) throw new RangeError(`${JSON.stringify(channel)} cannot name a channel.`)
}
