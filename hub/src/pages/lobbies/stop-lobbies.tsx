// Stopping lobbies: one request for each, a few at a time, after a confirmation.
import { useRef, useState } from 'react'
import { call } from '../../api/call.ts'
import { CallError } from '../../api/call-error.ts'
import { deleteMatchmakerLobby } from '../../api/operations.gen.ts'
import { FormDialog } from '../../parts/lazy-dialogs.tsx'
import { count, plural } from '../../parts/numbers.ts'
import { showToast } from '../../toasts.ts'

/** Lobbies that one confirmation stops. */
const STOPS_MAX = 1_000
/** Requests at a time. */
const STOPS_AT_ONCE_MAX = 6

export type StopLobbiesProps = {
  game_id: string
  lobby_ids: readonly string[]
  /** Players with a seat in these lobbies. */
  players: number
  /** `stopped`: the lobbies that no longer run. */
  onDone: (stopped: readonly string[]) => void
  onClose: () => void
}

export function StopLobbies({ game_id, lobby_ids, players, onDone, onClose }: StopLobbiesProps) {
  const [done, setDone] = useState<number | null>(null)
  const [error, setError] = useState<CallError | null>(null)
  const is_over = useRef(false)
  const ids = lobby_ids.slice(0, STOPS_MAX)

  async function stopAll(): Promise<void> {
    setError(null)
    setDone(0)
    const stopped: string[] = []
    const waiting = [...ids]
    let failure: CallError | null = null
    async function stopNext(): Promise<void> {
      for (let lobby_id = waiting.pop(); lobby_id !== undefined && !is_over.current; lobby_id = waiting.pop()) {
        try {
          await call(deleteMatchmakerLobby, { params: { game_id, lobby_id } })
          stopped.push(lobby_id)
        } catch (caught) {
          if (!(caught instanceof CallError)) throw caught
          failure = caught
        }
        setDone(stopped.length)
      }
    }
    await Promise.all(Array.from({ length: STOPS_AT_ONCE_MAX }, stopNext))
    setDone(null)
    onDone(stopped)
    if (failure !== null) return setError(failure)
    showToast('good', `${plural(stopped.length, 'lobby', 'lobbies')} stopped.`)
    onClose()
  }

  return (
    <FormDialog
      title={`Stop ${plural(ids.length, 'lobby', 'lobbies')}`}
      submit={done === null ? 'Stop' : `Stopped ${count(done)} of ${count(ids.length)}`}
      is_danger
      is_busy={done !== null}
      error={error}
      onSubmit={() => void stopAll()}
      onClose={() => {
        is_over.current = true
        onClose()
      }}
    >
      <p>
        {seatsText(players)} {ids.length === 1 ? 'Its server is ended.' : 'Their servers are ended.'} This cannot be
        undone.
      </p>
      {lobby_ids.length > STOPS_MAX ? (
        <p>Only the first {count(STOPS_MAX)} of the selected lobbies are stopped. Select the others afterwards.</p>
      ) : null}
    </FormDialog>
  )
}

function seatsText(players: number): string {
  if (players === 0) return 'No player has a seat there.'
  return players === 1 ? '1 player loses the seat there.' : `${count(players)} players lose their seats.`
}
