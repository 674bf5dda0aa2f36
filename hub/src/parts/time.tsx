// Times: how long ago, with the instant as the title. All of them on a page move together, once a second.
import { useSyncExternalStore } from 'react'
import { duration, instant, roughly } from './numbers.ts'

const TICK_MS = 1_000

let now_ms = Date.now()
const listeners = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined

function listen(listener: () => void): () => void {
  listeners.add(listener)
  timer ??= setInterval(() => {
    now_ms = Date.now()
    for (const each of listeners) each()
  }, TICK_MS)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** The time, which moves once a second. */
export function useNow(): number {
  return useSyncExternalStore(listen, () => now_ms)
}

/** The tick is up to a second old, and the clock of the platform may be ahead. */
const NOW_MS = 2_000

function textOf(passed_ms: number): string {
  if (Math.abs(passed_ms) < NOW_MS) return 'just now'
  return passed_ms < 0 ? `in ${roughly(-passed_ms)}` : `${roughly(passed_ms)} ago`
}

export function Ago({ ts }: { ts: string }) {
  const text = textOf(useNow() - Date.parse(ts))
  return (
    <time dateTime={ts} title={instant(ts)} className="numbers whitespace-nowrap">
      {text}
    </time>
  )
}

/** How long something has lasted. */
export function Age({ since }: { since: string }) {
  return (
    <time dateTime={since} title={instant(since)} className="numbers whitespace-nowrap">
      {duration(Math.max(1_000, useNow() - Date.parse(since)))}
    </time>
  )
}

export function Instant({ ts }: { ts: string }) {
  return (
    <time dateTime={ts} title={ts} className="numbers whitespace-nowrap">
      {instant(ts)}
    </time>
  )
}
