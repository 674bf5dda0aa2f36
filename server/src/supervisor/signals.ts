// When to stop. Ctrl-C, and closing the terminal, ends everything; SIGTERM, from a service manager, leaves the lobbies
// running for the next start. A second signal forces the end.
import type { Terminal } from './terminal.ts'

/** Ctrl-C reaches us from the terminal and may reach us again from npm, which forwards it: that is one wish. */
const ECHO_MS = 1_000
const LOOK_AT_PARENT_MS = 500

export type StopHow = { end_lobbies: boolean }

export type StopWish = {
  how: Promise<StopHow>
  /** Aborted with the wish. */
  signal: AbortSignal
  /** From here on signals do what they do to any program. */
  close(): void
}

export function listenForStop(options: {
  env: NodeJS.ProcessEnv
  terminal: Terminal
  elapsed: () => number
  force: () => void
}): StopWish {
  const { env, terminal, elapsed, force } = options
  const wish = new AbortController()
  const { promise: how, resolve } = Promise.withResolvers<StopHow>()
  let first_ms: number | null = null
  const hear = (heard: StopHow): void => {
    if (first_ms === null) {
      first_ms = elapsed()
      resolve(heard)
      wish.abort()
    } else if (elapsed() - first_ms > ECHO_MS) {
      terminal.warn(
        'stopping',
        'asked again: everything is killed. Lobbies that still run are found by the next start.',
      )
      force()
    }
  }
  const listeners = {
    SIGINT: () => hear({ end_lobbies: true }),
    SIGHUP: () => hear({ end_lobbies: true }),
    SIGTERM: () => hear({ end_lobbies: false }),
  }
  for (const [name, listener] of Object.entries(listeners)) process.on(name, listener)

  // npm starts us through a shell that does not pass on SIGTERM: when npm is told to end we would be left alone.
  const parent = process.ppid
  const watch = setInterval(() => {
    if (process.ppid !== parent && first_ms === null) hear({ end_lobbies: false })
  }, LOOK_AT_PARENT_MS).unref()
  if (env.npm_lifecycle_event === undefined) clearInterval(watch)

  return {
    how,
    signal: wish.signal,
    close() {
      clearInterval(watch)
      for (const [name, listener] of Object.entries(listeners)) process.off(name, listener)
    },
  }
}
