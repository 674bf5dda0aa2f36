// Notifies the readers of the journal which shards have new rows: at once, then at most every WAKE_EVERY_MS, because each
// NOTIFY is a commit of its own. A reader that misses a notification polls.
import type { Listener } from '../../database/listen.ts'
import { shardOf } from '../../journal/pages.ts'
import { CHANNELS } from '../../wire/channels.ts'
import type { Books } from '../shards/books.ts'

const WAKE_EVERY_MS = 100

export type ReaderWaker = { close: () => void }

export function wakeReaders(listener: Pick<Listener, 'notify'>, books: Pick<Books, 'onCommits'>): ReaderWaker {
  const shards = new Set<number>()
  let resting: NodeJS.Timeout | null = null

  function send(): void {
    resting = null
    if (shards.size === 0) return
    const payload = [...shards].join(',')
    shards.clear()
    resting = setTimeout(send, WAKE_EVERY_MS)
    void listener.notify(CHANNELS.journal, payload)
  }

  const unsubscribe = books.onCommits({
    onCommit(namespace_id) {
      shards.add(shardOf(namespace_id))
      resting ??= setTimeout(send, 0)
    },
    // A takeover appends no decisions.
    onReload() {},
  })
  return {
    close() {
      unsubscribe()
      if (resting !== null) clearTimeout(resting)
      send()
      if (resting !== null) clearTimeout(resting)
    },
  }
}
