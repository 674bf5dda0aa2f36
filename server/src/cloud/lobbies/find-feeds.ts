// Requests for seats of a namespace, for everyone who listens: the newest explanations in memory, read after each batch that
// the matchmaker writes. A reader that is slower than the list keeps only the newest, and learns how many are missing.
import {
  FINDS_MAX,
  type FindsMessage,
  type getAnalyticsMatchmakerFinds,
  type LiveFind,
  type ResponseOf,
} from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { watchChannel } from '../../database/poller.ts'
import { idOfName } from '../../ids.ts'
import type { Caller } from '../../tokens/caller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { timestamp } from '../times.ts'
import { type FeedWish, type OpenFeed, requireFeed } from './shared-feeds.ts'

/** Requests that a feed keeps in memory. */
const KEPT_MAX = 400
/** Rows of one read. A full read is followed by another one. */
const ROWS_MAX = 500
/** What a lost notification costs. */
const CHECK_EVERY_MS = 2_000
const INDEX = {
  form: /^\d{1,18}$/,
  message: 'watch_index must be the watch.index of a response, or the index of a message.',
}

type Entry = { seq: number; find: LiveFind }
type Row = {
  seq: string
  ray_id: string
  operation: string
  create_ts: Date
  duration_us: string
  code: string | null
  explanation: string
}

/** The newest requests of a namespace, in the order in which they were written. */
export class LiveFinds {
  readonly #entries: Entry[] = []
  /** Requests that have been in the list. */
  #total = 0
  #seq = 0

  get total(): number {
    return this.#total
  }

  get seq(): number {
    return this.#seq
  }

  add(entry: Entry): void {
    this.#entries.push(entry)
    this.#seq = entry.seq
    this.#total++
    if (this.#entries.length > KEPT_MAX) this.#entries.shift()
  }

  snapshot(): Extract<FindsMessage, { kind: 'snapshot' }> {
    return { kind: 'snapshot', index: String(this.#seq), finds: this.#newest(FINDS_MAX) }
  }

  /** What follows the first `total` requests of the list. */
  since(total: number): FindsMessage {
    const missed = this.#total - total
    const finds = this.#newest(Math.min(missed, FINDS_MAX))
    return { kind: 'finds', index: String(this.#seq), finds, left_out_count: missed - finds.length }
  }

  /** How many requests were in the list at an index. Null: the list does not reach back to it. */
  totalAt(index: number): number | null {
    const [oldest] = this.#entries
    const reaches = oldest === undefined ? index === this.#seq : index >= oldest.seq
    if (!reaches || index > this.#seq) return null
    return this.#total - this.#entries.filter(({ seq }) => seq > index).length
  }

  #newest(count: number): LiveFind[] {
    return count === 0 ? [] : this.#entries.slice(-count).map(({ find }) => find)
  }
}

export async function openFindFeed(ctx: Context, namespace_id: string): Promise<OpenFeed<LiveFinds>> {
  const finds = await loadFinds(ctx, namespace_id)
  const wakes = new Set<() => void>()
  const watch = watchChannel(ctx, {
    channel: CHANNELS.explanations,
    concerns: (payload) => payload === '' || payload === namespace_id,
    every_ms: CHECK_EVERY_MS,
    async run() {
      const before = finds.total
      while (await readAfter(ctx, namespace_id, finds)) {
        // A full read: there may be more.
      }
      if (finds.total !== before) for (const wake of wakes) wake()
    },
    failure: 'requests for seats could not be read; trying again',
  })
  return {
    live: () => finds,
    wakes,
    close: () => void watch.close(),
  }
}

/** Throws as `requireFinds`. */
export async function newestFinds(
  ctx: Context,
  caller: Caller,
  wish: FeedWish,
): Promise<ResponseOf<typeof getAnalyticsMatchmakerFinds>> {
  await requireFinds(ctx, caller, wish)
  const { index, finds } = (await loadFinds(ctx, wish.namespace_id)).snapshot()
  return { finds, watch: { index } }
}

/** Throws what a call without a WebSocket would be refused with. */
export function requireFinds(ctx: Context, caller: Caller, wish: FeedWish): Promise<void> {
  return requireFeed(ctx, caller, wish, INDEX)
}

const COLUMNS = 'explanation_seq::text as seq, ray_id, operation, create_ts, duration_us, code, explanation'

async function loadFinds({ pool }: Context, namespace_id: string): Promise<LiveFinds> {
  const finds = new LiveFinds()
  const { rows } = await pool.query<Row>(
    `select ${COLUMNS} from explanations where namespace_id = $1 order by explanation_seq desc limit ${FINDS_MAX}`,
    [namespace_id],
  )
  for (const row of rows.toReversed()) finds.add(entryOf(row))
  return finds
}

/** Returns whether there may be more rows. */
async function readAfter({ pool }: Context, namespace_id: string, finds: LiveFinds): Promise<boolean> {
  const { rows } = await pool.query<Row>(
    `select ${COLUMNS} from explanations where namespace_id = $1 and explanation_seq > $2
      order by explanation_seq limit ${ROWS_MAX}`,
    [namespace_id, finds.seq],
  )
  for (const row of rows) finds.add(entryOf(row))
  return rows.length === ROWS_MAX
}

function entryOf({ seq, create_ts, duration_us, code, explanation, ...row }: Row): Entry {
  const find: LiveFind = {
    ...{ ray_id: row.ray_id, operation: row.operation },
    create_ts: timestamp(create_ts),
    duration: Number(duration_us),
    outcome: code === null ? 'seated' : code.startsWith('CAPTCHA_') ? 'captcha' : 'refused',
    ...(code === null ? {} : { code }),
    ...lobbyOf(explanation, code === null),
  }
  return { seq: Number(seq), find }
}

type Explained = {
  asked?: { game_modes?: unknown; game_mode?: unknown }
  attempts?: {
    lobby_id?: string
    places?: { game_mode: string; region: string }[]
    candidates?: { lobby_id: string; game_mode: string; region: string }[]
  }[]
}

/** Where the seat is, or where it was searched for. */
function lobbyOf(explanation: string, is_seated: boolean): Pick<LiveFind, 'lobby_id' | 'game_mode' | 'region_id'> {
  const { asked, attempts = [] } = JSON.parse(explanation) as Explained
  const { lobby_id, candidates = [], places = [] } = attempts.at(-1) ?? {}
  const chosen = lobby_id === undefined ? undefined : candidates.find((candidate) => candidate.lobby_id === lobby_id)
  const { game_mode, region } = chosen ?? places[0] ?? { game_mode: askedMode(asked), region: undefined }
  return {
    ...(is_seated && lobby_id !== undefined ? { lobby_id } : {}),
    ...(game_mode === undefined ? {} : { game_mode }),
    ...(region === undefined ? {} : { region_id: idOfName(region) }),
  }
}

function askedMode(asked: Explained['asked']): string | undefined {
  const mode = Array.isArray(asked?.game_modes) ? (asked.game_modes[0] as unknown) : asked?.game_mode
  return typeof mode === 'string' ? mode : undefined
}
