// The end of a command that runs until it is ended.
import type { Terminal } from '../terminal.ts'

const ENDING_SIGNALS = ['SIGTERM', 'SIGHUP'] as const

/** Resolves at Ctrl-C, at a signal, or when `end` is called. Ctrl-C is an orderly end here. */
export function whenEnded(terminal: Terminal): { promise: Promise<void>; end: () => void } {
  let end = (): void => {}
  const promise = new Promise<void>((resolve) => {
    end = resolve
  })
  terminal.signal.addEventListener('abort', end, { once: true })
  for (const signal of ENDING_SIGNALS) process.once(signal, end)
  return { promise, end }
}
