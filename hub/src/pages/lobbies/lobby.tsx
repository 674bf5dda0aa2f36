// One lobby: what it is, what happened to it, its players, what it uses, its log at any of these moments, and its console.
import { reportedText } from '@musterhost/contract/protocol-words'
import { useParams } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import {
  deleteMatchmakerLobby,
  getLobbyLogs,
  getNamespaceLobby,
  listMatchmakerLobbyPlayers,
  listNamespaceLobbies,
  writeLobbyInput,
} from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { gameLink, HOME, namespaceLink } from '../../links.ts'
import { Button } from '../../parts/button.tsx'
import { CopyButton, shortId } from '../../parts/copy.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Notice, Pending } from '../../parts/notice.tsx'
import { duration } from '../../parts/numbers.ts'
import { Facts, Page, Section } from '../../parts/page.tsx'
import { Age, Ago, Instant } from '../../parts/time.tsx'
import { usePageActions } from '../../shell/page-actions.ts'
import { useMay } from '../game/game.ts'
import { LobbyLog } from '../logs/lobby-log.tsx'
import { useNamespace } from '../namespace/namespace.ts'
import { LobbyConsole, useHasConsole } from './lobby-console.tsx'
import { type LobbyEvent, type LobbyPlayer, Timeline, useTimeline } from './lobby-events.tsx'
import { LobbyStates, regionName } from './lobby-parts.tsx'
import { LobbyPlayers } from './lobby-players.tsx'
import { LobbyUsage } from './lobby-usage.tsx'
import { exitText, OutcomeBadge, type PastLobby } from './past-lobby.tsx'
import { StopLobbies } from './stop-lobbies.tsx'

const LOBBY_EVERY_MS = 2_000
const NO_PLAYERS: readonly LobbyPlayer[] = []

export default function LobbyPage() {
  const { lobby_id = '' } = useParams({ strict: false }) as { lobby_id?: string }
  const { game, namespace } = useNamespace()
  const { read, lobby } = useLobby(lobby_id)
  const to = namespaceLink(game.game_id, namespace.namespace_id)
  const crumbs = [
    { text: 'Home', to: HOME },
    { text: game.display_name, to: gameLink(game.game_id) },
    { text: namespace.display_name, to },
    { text: 'Lobbies', to: `${to}/lobbies` },
  ]
  const title = `Lobby ${shortId(lobby_id)}`
  const is_missing = read.error?.status === 404
  if (lobby !== undefined) return <Lobby key={lobby_id} title={title} crumbs={crumbs} lobby={lobby} />
  return (
    <Page title={title} crumbs={crumbs}>
      {is_missing ? null : <Pending read={read} what="Loading the lobby" />}
      {read.data === undefined && !is_missing ? null : (
        <Notice tone="warn">There is no such lobby. The history of one that ended long ago is no longer kept.</Notice>
      )}
    </Page>
  )
}

/** Developers get the whole record. Viewers find it in the list, whose order follows from the time in the id. */
function useLobby(lobby_id: string) {
  const { params } = useNamespace()
  const may = useMay()(getNamespaceLobby)
  const every_ms = LOBBY_EVERY_MS
  const whole = useCall(getNamespaceLobby, { params: { ...params, lobby_id } }, { every_ms, enabled: may })
  const query = { before_create_ts: momentAfter(lobby_id) }
  const list = useCall(listNamespaceLobbies, { params, query }, { every_ms, enabled: !may })
  const listed = list.data?.lobbies.find((one) => one.lobby_id === lobby_id)
  const found = may ? whole.data?.lobby : listed
  return {
    read: may ? whole : list,
    // After a change of the page, the record of the lobby before may still be there.
    lobby: found?.lobby_id === lobby_id ? found : undefined,
  }
}

/** The first 48 bits of the id (UUIDv7) are the millisecond of its creation. */
function momentAfter(lobby_id: string): string {
  const ms = Number.parseInt(lobby_id.replaceAll('-', '').slice(0, 12), 16)
  return new Date((Number.isNaN(ms) ? 0 : ms) + 1).toISOString()
}

type LobbyProps = { title: string; crumbs: { text: string; to: string }[]; lobby: PastLobby }

function Lobby({ title, crumbs, lobby }: LobbyProps) {
  const { game } = useNamespace()
  const may = useMay()
  const { game_id } = game
  const { lobby_id, lobby_group_name_id: mode } = lobby
  const is_over = lobby.status.stopped !== undefined
  const params = { game_id, lobby_id }
  const read = useCall(listMatchmakerLobbyPlayers, { params }, { every_ms: LOBBY_EVERY_MS, enabled: !is_over })
  const players = is_over ? NO_PLAYERS : (read.data?.players ?? NO_PLAYERS)
  const { events, seats, read: timeline } = useTimeline(game_id, lobby_id)
  const [selected, setSelected] = useState<LobbyEvent | null>(null)
  const moment = useMemo(() => (selected === null ? null : { ts_ms: selected.ts_ms }), [selected])
  const [is_stopping, setStopping] = useState(false)
  const may_stop = may(deleteMatchmakerLobby) && !is_over
  const may_read = may(getLobbyLogs)
  const has_console = useHasConsole(mode, may(writeLobbyInput) && !is_over)
  usePageActions(may_stop ? [{ id: 'lobby-stop', title: `Stop ${title}`, run: () => setStopping(true) }] : [])
  return (
    <Page
      title={title}
      crumbs={crumbs}
      mark={<StateMark lobby={lobby} />}
      actions={
        <>
          {may_stop ? (
            <CopyAs operation={deleteMatchmakerLobby} input={{ params }} muster={`stop ${lobby_id}`} />
          ) : null}
          {may_stop ? (
            <Button kind="danger" onClick={() => setStopping(true)}>
              Stop
            </Button>
          ) : null}
        </>
      }
    >
      <div className="grid min-w-0 gap-5 lg:grid-cols-2">
        <Section title="Facts">
          <LobbyFacts
            lobby={lobby}
            stop_reason={events.find((event) => event.stop_reason !== undefined)?.stop_reason}
          />
        </Section>
        <Section title="Timeline">
          <Timeline
            game_id={game_id}
            events={events}
            selected={selected?.id ?? null}
            onSelect={may_read ? (event) => setSelected({ ...event }) : null}
          />
          {timeline.hasNextPage ? (
            <Button kind="quiet" onClick={() => void timeline.fetchNextPage()}>
              Show later events
            </Button>
          ) : null}
          {timeline.data === undefined ? <Pending read={timeline} what="Loading the timeline" /> : null}
        </Section>
      </div>
      {may_read ? (
        <Section title="Log" is_bare>
          <LobbyLog game_id={game_id} lobby_id={lobby_id} is_over={is_over} moment={moment} />
        </Section>
      ) : null}
      {has_console ? <LobbyConsole game_id={game_id} lobby_id={lobby_id} mode={mode} /> : null}
      <LobbyPlayers game_id={game_id} lobby_id={lobby_id} players={players} seats={seats} is_over={is_over} />
      <LobbyUsage game_id={game_id} lobby_id={lobby_id} is_over={is_over} />
      {is_stopping ? (
        <StopLobbies
          game_id={game_id}
          lobby_ids={[lobby_id]}
          players={players.length}
          onDone={() => undefined}
          onClose={() => setStopping(false)}
        />
      ) : null}
    </Page>
  )
}

/** What the lobby does now, or how it ended. */
function StateMark({ lobby }: { lobby: PastLobby }) {
  const { live } = lobby.status
  if (live === undefined) return <OutcomeBadge lobby={lobby} />
  return <LobbyStates lobby={{ ...live, is_ready: lobby.ready_ts !== undefined }} />
}

/** Example: Agones: Allocated, last health 2 s ago. */
function ProtocolFact({ protocol }: { protocol: NonNullable<PastLobby['protocol']> }) {
  const { health_ts } = protocol
  return (
    <span>
      {reportedText(protocol)}
      {health_ts === undefined ? null : (
        <>
          , last health <Ago ts={health_ts} />
        </>
      )}
    </span>
  )
}

/** `stop_reason`: undefined until the end of the timeline is loaded. */
function LobbyFacts({ lobby, stop_reason }: { lobby: PastLobby; stop_reason: string | undefined }) {
  const { game } = useNamespace()
  const { lobby_id, create_ts, start_ts, ready_ts, status, protocol } = lobby
  const facts: [name: string, value: React.ReactNode][] = [
    [
      'Id',
      <span key="id" className="flex flex-wrap items-center gap-2">
        <code>{lobby_id}</code>
        <CopyButton text={lobby_id} />
      </span>,
    ],
    ['Game mode', lobby.lobby_group_name_id],
    ['Region', regionName(game, lobby.region_id)],
    ['Created', <Ago key="created" ts={create_ts} />],
  ]
  if (start_ts !== undefined && ready_ts !== undefined) {
    facts.push(['Ready after', duration(Date.parse(ready_ts) - Date.parse(create_ts))])
  }
  if (protocol !== undefined) facts.push(['Speaks', <ProtocolFact key="protocol" protocol={protocol} />])
  if (status.stopped === undefined) facts.push(['Age', <Age key="age" since={create_ts} />])
  else {
    facts.push(
      ['Ended', <Instant key="ended" ts={status.stopped.stop_ts} />],
      ['Why', stop_reason ?? 'see the end of the timeline'],
      ['Server', exitText(status.stopped.exit_code, status.stopped.exit_reason)],
      ['Lasted', duration(Date.parse(status.stopped.stop_ts) - Date.parse(create_ts))],
    )
  }
  return <Facts facts={facts} />
}
