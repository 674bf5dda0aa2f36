// The log of a lobby's server: standard output and standard error in one view, from the first line that is kept, followed live.
import type { LogMessage, getLobbyLogs as OfLog } from '@musterhost/contract'
import { lazy, Suspense, useMemo } from 'react'
import { call } from '../../api/call.ts'
import { exportLobbyLogs, getLobbyLogs } from '../../api/operations.gen.ts'
import { openFeed } from '../../api/socket.ts'
import { Button } from '../../parts/button.tsx'
import { startDownload } from '../../parts/download.ts'
import { Loading } from '../../parts/notice.tsx'
import { showToast } from '../../toasts.ts'
import type { LogSource } from './log-store.ts'

const LogView = lazy(() => import('./log-view.tsx'))

const STREAMS = [
  { stream: 'std_out', name: 'stdout', letter: 'L' },
  { stream: 'std_err', name: 'stderr', letter: 'E' },
] as const
/** The place before the first line. */
const START_INDEX = '0.0'

export type LobbyLogProps = {
  game_id: string
  lobby_id: string
  is_over: boolean
  /** Scrolls to this moment. A new object scrolls again. */
  moment?: { ts_ms: number } | null
}

export function LobbyLog({ game_id, lobby_id, is_over, moment = null }: LobbyLogProps) {
  const sources = useMemo(() => STREAMS.map((one) => sourceOf(game_id, lobby_id, one)), [game_id, lobby_id])
  return (
    <Suspense fallback={<Loading what="Loading the log" />}>
      <LogView
        sources={sources}
        moment={moment}
        is_over={is_over}
        empty={
          is_over ? 'The server wrote nothing, or its log is no longer kept.' : 'The server has written nothing yet.'
        }
        actions={
          <div className="flex items-center">
            {STREAMS.map(({ stream, name }) => (
              <Button key={stream} kind="quiet" onClick={() => void download(game_id, lobby_id, stream)}>
                Download {name}
              </Button>
            ))}
          </div>
        }
      />
    </Suspense>
  )
}

function sourceOf(game_id: string, lobby_id: string, { stream, name, letter }: (typeof STREAMS)[number]): LogSource {
  return {
    name,
    letter,
    open({ lines, state, end }) {
      let watch_index = START_INDEX
      const close = openFeed<typeof OfLog, LogMessage>({
        operation: getLobbyLogs,
        input: () => ({ params: { game_id, lobby_id }, query: { stream, watch_index } }),
        onState: state,
        onMessage(message) {
          watch_index = message.index
          if (message.kind === 'heartbeat') return
          lines(message.lines)
          if (!message.is_complete) return
          end()
          close()
        },
      })
      return close
    },
  }
}

/** The address is of this origin, and its response is a file to be saved. */
async function download(game_id: string, lobby_id: string, stream: 'std_out' | 'std_err'): Promise<void> {
  try {
    const { url } = await call(exportLobbyLogs, { params: { game_id, lobby_id }, body: { stream } })
    startDownload(url)
  } catch (error) {
    showToast('bad', error instanceof Error ? error.message : String(error))
  }
}
