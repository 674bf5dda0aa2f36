// Times: how long ago, with the instant as the title. All of them on a page move together, once a second.
import { useSyncExternalStore } from 'react'
import { duration, instant } from './numbers.ts'

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

export function Ago({ ts }: { ts: string }) {
  const at = useNow() - Date.parse(ts)
  const text = at < 0 ? `in ${duration(-at)}` : at < 2_000 ? 'just now' : `${duration(at)} ago`
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
