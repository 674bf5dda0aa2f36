// Listens for signals that stop the platform. Ctrl-C, or closing the terminal, ends everything. SIGTERM, from a service
// manager, leaves the lobbies running for the next start. A second signal forces the end.
import type { SupervisorTerminal } from './terminal.ts'

/** Ctrl-C arrives from the terminal and again from npm, which forwards it. Within this time both count as one request. */
const REPEATED_MS = 1_000
const CHECK_PARENT_MS = 500

export type StopHow = { end_lobbies: boolean }

export type StopRequest = {
  how: Promise<StopHow>
  /** Aborted by the request. */
  signal: AbortSignal
  /** Requests the stop from within. */
  stop(how: StopHow): void
  /** Removes the handlers, so that signals have their default effect again. */
  close(): void
}

export function listenForStop(options: {
  env: NodeJS.ProcessEnv
  terminal: SupervisorTerminal
  elapsed: () => number
  force: () => void
}): StopRequest {
  const { env, terminal, elapsed, force } = options
  const requested = new AbortController()
  const { promise: how, resolve } = Promise.withResolvers<StopHow>()
  let first_ms: number | null = null
  const onSignal = (received: StopHow): void => {
    if (first_ms === null) {
      first_ms = elapsed()
      resolve(received)
      requested.abort()
    } else if (elapsed() - first_ms > REPEATED_MS) {
      terminal.warn('stopping', 'asked again: everything is killed. The next start takes over lobbies that still run.')
      force()
    }
  }
  const listeners = {
    SIGINT: () => onSignal({ end_lobbies: true }),
    SIGHUP: () => onSignal({ end_lobbies: true }),
    SIGTERM: () => onSignal({ end_lobbies: false }),
  }
  for (const [name, listener] of Object.entries(listeners)) process.on(name, listener)

  // npm starts this process through a shell that does not forward SIGTERM. The end of the shell shows as another parent.
  const parent = process.ppid
  const watch = setInterval(() => {
    if (process.ppid !== parent && first_ms === null) onSignal({ end_lobbies: false })
  }, CHECK_PARENT_MS).unref()
  if (env.npm_lifecycle_event === undefined) clearInterval(watch)

  return {
    how,
    signal: requested.signal,
    stop(received) {
      if (first_ms === null) onSignal(received)
    },
    close() {
      clearInterval(watch)
      for (const [name, listener] of Object.entries(listeners)) process.off(name, listener)
    },
  }
}
