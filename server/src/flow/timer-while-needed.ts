// A repeated check that runs only while there is something to check: it does not wake an idle process.

export type TimerWhileNeeded = {
  /** Starts the timer, unless it runs. Cheap. Returns whether it was started. */
  need: () => boolean
  close: () => void
}

/** `check` returns whether to go on; the timer stops when it does not. It never keeps the process alive. */
export function createTimerWhileNeeded(every_ms: number, check: () => boolean): TimerWhileNeeded {
  let timer: NodeJS.Timeout | null = null
  let is_closed = false

  function stop(): void {
    if (timer !== null) clearInterval(timer)
    timer = null
  }

  return {
    need() {
      if (is_closed || timer !== null) return false
      timer = setInterval(() => {
        if (!check()) stop()
      }, every_ms).unref()
      return true
    },
    close() {
      is_closed = true
      stop()
    },
  }
}
