// Tells those who follow the journal which shards have new rows: at once, and then at most every WAKE_EVERY_MS however
// busy the matchmaker is, since each NOTIFY is a commit of its own. Whoever misses a word looks by himself.
import type { Listener } from '../../database/listen.ts'
import { JOURNAL_CHANNEL } from '../../journal/follow.ts'
import { shardOf } from '../../journal/pages.ts'
import type { Books } from '../shards/books.ts'

const WAKE_EVERY_MS = 100

export type ReaderWaker = { close: () => void }

export function wakeReaders(listener: Pick<Listener, 'notify'>, books: Pick<Books, 'onCommits'>): ReaderWaker {
  const shards = new Set<number>()
  let resting: NodeJS.Timeout | null = null

  function tell(): void {
    resting = null
    if (shards.size === 0) return
    const payload = [...shards].join(',')
    shards.clear()
    resting = setTimeout(tell, WAKE_EVERY_MS)
    void listener.notify(JOURNAL_CHANNEL, payload)
  }

  const unsubscribe = books.onCommits({
    onCommit(namespace_id) {
      shards.add(shardOf(namespace_id))
      resting ??= setTimeout(tell, 0)
    },
    // A takeover decides nothing that anybody waits for.
    onReload() {},
  })
  return {
    close() {
      unsubscribe()
      if (resting !== null) clearTimeout(resting)
      tell()
      if (resting !== null) clearTimeout(resting)
    },
  }
}
