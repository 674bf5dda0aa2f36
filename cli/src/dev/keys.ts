// Keys of `muster dev` on a terminal. Elsewhere there are none, and a signal ends the command.

const CTRL_C = '\u0003'

/** Calls `onKey` for each key in `names`, and `onEnd` for q and Ctrl-C. Returns what gives the terminal back. */
export function readKeys(onKey: (key: string) => void, onEnd: () => void): () => void {
  const stdin = process.stdin
  const read = (text: string): void => {
    for (const key of text) {
      if (key === CTRL_C || key === 'q') onEnd()
      else onKey(key)
    }
  }
  stdin.setRawMode(true)
  stdin.setEncoding('utf8').on('data', read).resume()
  return () => {
    stdin.off('data', read)
    stdin.setRawMode(false)
    stdin.pause()
  }
}
