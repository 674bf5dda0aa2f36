// NOTIFY, used only as a wake-up, over a connection of its own that is kept open. It connects again after every break.
// Whenever it begins to listen to a channel, it wakes the subscribers once with an empty payload, because earlier
// notifications were not received. States: connecting -> listening -> connecting ... -> closed.
import { randomInt } from 'node:crypto'
import { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Logger } from 'pino'
import { serversOf } from '../text/database-url.ts'
import { PrimaryClient } from './connect.ts'
import { Primary } from './primary.ts'
import { type DatabaseTarget, readTarget, type UrlSetting } from './tls.ts'

const RETRY_MS_MIN = 50
/** Longest pause before the LISTEN connection is opened again. */
const RETRY_MS_MAX = 5_000
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

export type Listener = Pick<DatabaseListener, 'on' | 'notify' | 'close'>

type ListenerOptions = {
  url: string
  /** Primary of the pool that connects to the same servers. Without one the listener searches for the primary. */
  primary?: Primary
  log: Logger
  /** Where the URL was written. Default: DATABASE_URL. */
  setting?: UrlSetting
}

/** Returns at once and connects on its own. While the database is away it tries again for ever. */
export function createListener(options: ListenerOptions): Listener {
  return new DatabaseListener(options)
}

class DatabaseListener {
  readonly #target: DatabaseTarget
  readonly #setting: UrlSetting
  readonly #primary: Primary
  /** Whether the primary is searched for this listener alone. */
  readonly #is_alone: boolean
  readonly #log: Logger
  readonly #subscribers = new Map<string, Set<Wake>>()
  readonly #unsent = new Map<string, { channel: string; payload: string }>()
  readonly #closing = new AbortController()
  readonly #running: Promise<void>
  #is_connected = false
  /** Resolves when what is unsent now has been sent, or has not. */
  #batch = Promise.withResolvers<void>()
  /** Ends the pause of an idle connection: there is something to do. */
  #poke = (): void => {}

  constructor({ url, primary, log, setting = 'DATABASE_URL' }: ListenerOptions) {
    this.#target = readTarget(serversOf(url)[0]!.url)
    this.#setting = setting
    this.#primary = primary ?? new Primary({ url, log })
    this.#is_alone = primary === undefined
    this.#log = log
    this.#running = this.#run()
  }

  /**
   * `wake` is called with the payload of every notification, and with an empty one whenever listening to the channel
   * has begun, for the first time or again after a break. Returns a function that ends the subscription.
   */
  on(channel: string, wake: Wake): () => void {
    requireChannel(channel)
    // A function of its own, so that the same `wake` subscribed twice is two subscriptions.
    const own: Wake = (payload) => wake(payload)
    const wakes = this.#subscribers.get(channel) ?? new Set()
    this.#subscribers.set(channel, wakes.add(own))
    this.#poke()
    return () => {
      wakes.delete(own)
      if (wakes.size === 0 && this.#subscribers.get(channel) === wakes) this.#subscribers.delete(channel)
      this.#poke()
    }
  }

  /**
   * Resolves when the notification is sent, or kept for the next connection; never rejects because of the database. The
   * same channel and payload twice, before they are sent, are one notification.
   */
  async notify(channel: string, payload = ''): Promise<void> {
    requireChannel(channel)
    if (Buffer.byteLength(payload) > PAYLOAD_BYTES_MAX) throw new RangeError('A payload has at most 7999 bytes.')
    const key = `${channel} ${payload}`
    if (this.#unsent.size >= UNSENT_MAX && !this.#unsent.has(key)) {
      this.#log.warn({ channel }, 'a wake-up is dropped: too many are unsent')
      return
    }
    this.#unsent.set(key, { channel, payload })
    this.#poke()
    if (this.#is_connected) await this.#batch.promise
  }

  /** Sends what is unsent if it is connected, and ends. */
  async close(): Promise<void> {
    this.#closing.abort()
    this.#poke()
    if (this.#is_alone) await this.#primary.close()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing
    let retry_ms = RETRY_MS_MIN
    while (!signal.aborted) {
      try {
        await this.#serve(() => {
          retry_ms = RETRY_MS_MIN
        })
      } catch (error) {
        if (signal.aborted) return
        this.#log.warn({ err: error }, 'not listening to the database; trying again')
        // Half of the pause is random, so that many processes do not come back at the same moment. Only close() ends it.
        const wait_ms = retry_ms / 2 + randomInt(retry_ms / 2)
        await delay(wait_ms, undefined, { signal }).catch(() => undefined)
        retry_ms = Math.min(retry_ms * 2, RETRY_MS_MAX)
      }
    }
  }

  /** One connection from its opening to its end. Returns when the listener is closed, throws when the connection breaks. */
  async #serve(onConnected: () => void): Promise<void> {
    const socket = new Socket()
    const connection = new PrimaryClient({
      ...this.#target,
      primary: this.#primary,
      setting: this.#setting,
      application_name: 'muster-listen',
      stream: () => socket,
      query_timeout: ANSWER_MS_MAX,
    })
    const broken = new AbortController()
    const onBreak = (error?: Error): void => {
      broken.abort(error ?? new Error('The database closed the connection.'))
      this.#poke()
    }
    connection.on('error', onBreak)
    connection.on('end', () => onBreak())
    connection.on('notification', (message) => this.#wakeAll(message.channel, message.payload ?? ''))
    try {
      await connection.connect()
      this.#is_connected = true
      onConnected()
      await this.#work(connection, broken.signal)
      await Promise.race([connection.end(), delay(GOODBYE_MS_MAX, undefined, { ref: false })])
    } finally {
      this.#is_connected = false
      this.#batch.resolve()
      this.#batch = Promise.withResolvers<void>()
      socket.destroy()
    }
  }

  /** Does one thing at a time on an open connection, until it breaks or the listener is closed. */
  async #work(connection: pg.Client, broken: AbortSignal): Promise<void> {
    const heard = new Set<string>()
    for (;;) {
      broken.throwIfAborted()
      const missing = [...this.#subscribers.keys()].find((channel) => !heard.has(channel))
      const unused = [...heard].find((channel) => !this.#subscribers.has(channel))
      if (missing !== undefined) {
        await connection.query(`listen ${connection.escapeIdentifier(missing)}`)
        heard.add(missing)
        this.#wakeAll(missing, '')
      } else if (unused !== undefined) {
        await connection.query(`unlisten ${connection.escapeIdentifier(unused)}`)
        heard.delete(unused)
      } else if (this.#unsent.size > 0) {
        await this.#sendBatch(connection)
      } else if (this.#closing.signal.aborted) {
        return
      } else if (!(await this.#isPokedWithin(HEARTBEAT_MS))) {
        await connection.query('select 1')
      }
    }
  }

  async #sendBatch(connection: pg.Client): Promise<void> {
    const sent = [...this.#unsent.entries()]
    const { resolve } = this.#batch
    this.#batch = Promise.withResolvers<void>()
    this.#unsent.clear()
    try {
      await connection.query(
        'select pg_notify(channel, payload) from unnest($1::text[], $2::text[]) as n(channel, payload)',
        [sent.map(([, { channel }]) => channel), sent.map(([, { payload }]) => payload)],
      )
    } catch (error) {
      for (const [key, notification] of sent) this.#unsent.set(key, notification)
      throw error
    } finally {
      resolve()
    }
  }

  #isPokedWithin(ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), ms)
      this.#poke = () => {
        clearTimeout(timer)
        resolve(true)
      }
    })
  }

  #wakeAll(channel: string, payload: string): void {
    for (const wake of [...(this.#subscribers.get(channel) ?? [])]) {
      try {
        wake(payload)
      } catch (error) {
        this.#log.error({ err: error, channel }, 'a subscriber failed to wake up')
      }
    }
  }
}

function requireChannel(channel: string): void {
  if (!CHANNEL_PATTERN.test(channel)) throw new RangeError(`${JSON.stringify(channel)} cannot name a channel.`)
}
