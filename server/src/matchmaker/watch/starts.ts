// Notifications between runner and matchmaker about the start of a lobby that a request waits for, for its ray: the process
// runs, the server is ready. A lost notification is not sent again: the phase before it then lasts to the end.
import type { Context } from '../../context.ts'
import { CHANNELS, channelOf } from '../../wire/channels.ts'
import type { Books } from '../shards/books.ts'

export type RunStarts = {
  /** Calls `onStart` once. The returned function ends it, whether it was called or not. */
  follow: (lobby_id: string, onStart: () => void) => () => void
  close: () => void
}

export function watchRunStarts({ listener }: Pick<Context, 'listener'>, books: Books): RunStarts {
  const followers = new Map<string, () => void>()
  const unsubscribe = listener.on(CHANNELS.lobby_runs, (lobby_id) => {
    followers.get(lobby_id)?.()
    followers.delete(lobby_id)
  })
  const unwatch = books.onCommits({
    onCommit(namespace_id, changes) {
      for (const change of changes) {
        if (change.kind !== 'lobby_ready') continue
        const lobby = books.lobby(namespace_id, change.lobby_id)
        if (lobby?.ray_id) void listener.notify(channelOf('lobby_ready', lobby.node_id), change.lobby_id)
      }
    },
    onReload() {},
  })
  return {
    follow(lobby_id, onStart) {
      followers.set(lobby_id, onStart)
      return () => void followers.delete(lobby_id)
    },
    close() {
      unsubscribe()
      unwatch()
    },
  }
}
