// Lists that others publish: fetched now and then, looked through, and put into a folder where createAddressFolder() finds
// them. One that cannot be fetched or is no list leaves the one before in force, and is asked for again after a while that
// doubles. What was fetched is there again after a restart.
import { createHash } from 'node:crypto'
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { type FetchRules, safeFetch } from '../../outbound/safe-fetch.ts'
import type { AddressClass } from './classes.ts'
import { readList } from './read.ts'

export type AddressFeed = { list_class: AddressClass; url: string }
export type FeedsOptions = {
  feeds: readonly AddressFeed[]
  /** Made when it is missing; nothing else is kept in it. */
  folder: string
  /** Between two fetches of a feed. */
  interval_ms: number
  rules: FetchRules
  now: () => number
  elapsed: () => number
  log: Logger
}

/** From the name to the last byte. */
const FETCH_MS_MAX = 60_000
/** Size of a published list. */
const FEED_BYTES_MAX = 32 * 1024 ** 2
const BACK_OFF_MS_MIN = 60_000
/** Doublings of the pause after a failed fetch. */
const BACK_OFF_STEPS_MAX = 16

type State = AddressFeed & { name: string; due_ms: number; failures: number }

export type AddressFeeds = { refresh: (signal: AbortSignal) => Promise<void> }

/** Forgets the files of feeds that are not asked for any more. */
export async function openFeeds(options: FeedsOptions): Promise<AddressFeeds> {
  const { folder, interval_ms, now, elapsed, log } = options
  const states: State[] = options.feeds.map((feed) => ({
    ...feed,
    name: fileName(feed),
    due_ms: Number.NEGATIVE_INFINITY,
    failures: 0,
  }))
  if (states.length > 0) await mkdir(folder, { recursive: true, mode: 0o700 })
  for (const name of await readdir(folder).catch(() => [])) {
    if (!states.some((state) => state.name === name)) await rm(join(folder, name), { force: true })
  }
  for (const state of states) {
    const known = await stat(join(folder, state.name)).catch(() => null)
    // A clock that was set back since the file was written does not put the next fetch off.
    if (known !== null) state.due_ms = elapsed() + interval_ms - Math.max(0, now() - known.mtimeMs)
  }

  async function fetchOne(state: State, signal: AbortSignal): Promise<void> {
    const path = join(folder, state.name)
    const { status, body } = await safeFetch(
      { url: state.url, timeout_ms: FETCH_MS_MAX, body_bytes_max: FEED_BYTES_MAX, signal },
      options.rules,
    )
    if (status !== 200) throw new Error(`it was answered with status ${status}`)
    await writeFile(`${path}.new`, body)
    const { list } = await readList(`${path}.new`)
    if (list.entry_count === 0) throw new Error('it is empty')
    await rename(`${path}.new`, path)
  }

  /** Fetches the feeds that are due, one after the other. */
  async function refresh(signal: AbortSignal): Promise<void> {
    for (const state of states) {
      if (signal.aborted || state.due_ms > elapsed()) continue
      try {
        await fetchOne(state, signal)
        state.failures = 0
        state.due_ms = elapsed() + interval_ms
      } catch (error) {
        if (signal.aborted) return
        const { url } = state
        const reason = (error as Error).message
        if (state.failures === 0) log.warn({ url, reason }, 'a feed of addresses cannot be had; what was known stays')
        const wait_ms = BACK_OFF_MS_MIN * 2 ** Math.min(state.failures, BACK_OFF_STEPS_MAX)
        state.failures++
        state.due_ms = elapsed() + Math.min(wait_ms, interval_ms)
      }
    }
  }

  return { refresh }
}

/** As a folder of address data names its lists. */
function fileName({ list_class, url }: AddressFeed): string {
  return `${list_class}-${createHash('sha256').update(url).digest('hex').slice(0, 16)}.txt`
}
