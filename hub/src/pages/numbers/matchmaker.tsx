// The matchmaker at work: the lobbies of each game mode and region, each as a bar of seats; the requests for seats as they
// arrive, and the refusals by code. A click explains a request.
import type { LiveFind, RaySummary } from '@musterhost/contract'
import { microsecondsText } from '@musterhost/contract/explanation-words'
import { Link } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { getAnalytics, listGameRays } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { gameLink, HOME, lobbyLink, namespaceLink, rayLink } from '../../links.ts'
import { ApiName } from '../../parts/api-name.tsx'
import { LinkButton } from '../../parts/button.tsx'
import { shortId } from '../../parts/copy.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { type Figure, Figures } from '../../parts/figures.tsx'
import { Badge, Loading, Notice, Pending } from '../../parts/notice.tsx'
import { count, plural } from '../../parts/numbers.ts'
import { Page, Section } from '../../parts/page.tsx'
import { Ago, useNow } from '../../parts/time.tsx'
import { type Game, useMay } from '../game/game.ts'
import { stateOf } from '../lobbies/arrange.ts'
import { type LiveLobby, useLiveLobbies } from '../lobbies/live-lobbies.ts'
import { regionName } from '../lobbies/lobby-parts.tsx'
import { useNamespace } from '../namespace/namespace.ts'
import { REFUSALS_MAX, useLiveFinds } from './live-finds.ts'
import { WaitingNow } from './waiting.tsx'

/** Lobbies that one cell draws. The list of lobbies has all of them. */
const BARS_MAX = 40
/** Requests of one page of the API. */
const PAGE_RAYS = 100
const HOUR_MS = 3_600_000
/** The rate of finds is a mean over this time. */
const FIND_MINUTES = 10
const FINDS_EVERY_MS = 10_000
const SEAT_OPERATIONS = new Set(['lobbies.find', 'lobbies.join', 'lobbies.create'])

export default function Matchmaker() {
  const { game, namespace, params } = useNamespace()
  const may = useMay()
  const { live, revision } = useLiveLobbies(params.game_id, params.namespace_id)
  return (
    <Page
      title="Matchmaker"
      mark={
        live.feed === 'live' ? (
          <Badge tone="good">live</Badge>
        ) : (
          <Badge tone="bad">{live.feed === 'lost' ? 'not live' : 'connecting'}</Badge>
        )
      }
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
        { text: namespace.display_name, to: namespaceLink(game.game_id, namespace.namespace_id) },
      ]}
      actions={
        <LinkButton to={namespaceLink(params.game_id, params.namespace_id, 'playground')}>Playground</LinkButton>
      }
    >
      {live.feed === 'lost' ? (
        <div role="alert">
          <Notice tone="bad">
            The connection was lost. The lobbies are shown as they were. The page connects again as soon as it can.
          </Notice>
        </div>
      ) : null}
      {live.is_loaded ? <Now lobbies={live.lobbies} revision={revision} /> : null}
      <WaitingNow />
      {live.is_loaded ? <Lobbies lobbies={live.lobbies} revision={revision} /> : <Loading what="Loading the lobbies" />}
      {may(listGameRays) ? <Finds /> : null}
    </Page>
  )
}

function Now({ lobbies, revision }: { lobbies: ReadonlyMap<string, LiveLobby>; revision: number }) {
  const { params } = useNamespace()
  const figures = useMemo((): Figure[] => {
    void revision
    const all = [...lobbies.values()]
    const taken = all.reduce((sum, { total_player_count }) => sum + total_player_count, 0)
    const seats = all.reduce((sum, { max_players_normal }) => sum + max_players_normal, 0)
    return [
      { name: 'Players', value: count(taken) },
      { name: 'Free seats', value: count(Math.max(0, seats - taken)), note: `of ${count(seats)}` },
      { name: 'Lobbies', value: count(all.length) },
    ]
  }, [lobbies, revision])
  return <Figures label="Now" figures={[...figures, ...useFindFigures(params)]} />
}

/** The finds of the last minutes. */
function useFindFigures({ game_id, namespace_id }: { game_id: string; namespace_id: string }): Figure[] {
  const end_ms = Math.ceil(useNow() / FINDS_EVERY_MS) * FINDS_EVERY_MS
  const query = {
    query_start: new Date(end_ms - FIND_MINUTES * 60_000).toISOString(),
    query_end: new Date(end_ms).toISOString(),
    game_ids: [game_id],
    namespace_ids: [namespace_id],
    variants: ['find_duration' as const],
  }
  const finds = useCall(getAnalytics, { query }).data?.data_sets[0]?.find_duration
  if (finds === undefined) return []
  const total = finds.find_count.reduce((sum, one) => sum + one, 0)
  return [
    {
      name: 'Finds a minute',
      value: count(Math.round((total / FIND_MINUTES) * 10) / 10),
      note: `in the last ${FIND_MINUTES} minutes`,
    },
  ]
}

type Cell = { lobbies: LiveLobby[]; players: number; seats: number }

function Lobbies({ lobbies, revision }: { lobbies: ReadonlyMap<string, LiveLobby>; revision: number }) {
  const { game } = useNamespace()
  const { modes, regions, cells } = useMemo(() => {
    void revision
    return cellsOf(lobbies)
  }, [lobbies, revision])
  if (modes.length === 0) {
    return (
      <Section title="Lobbies">
        <p className="px-4 py-6 text-soft">No lobby runs. The first find starts one; the playground can do that.</p>
      </Section>
    )
  }
  return (
    <Section title="Lobbies by game mode and region">
      {/* biome-ignore-start lint/a11y: what scrolls must be reachable by keyboard, and it is no form. */}
      <div role="group" aria-label="Lobbies" tabIndex={0} className="overflow-x-auto">
        <table aria-label="Lobbies" className="w-full border-collapse text-left">
          <thead className="bg-raised text-xs text-soft">
            <tr>
              <th scope="col" className="border-b border-line px-3 py-2 font-medium">
                Game mode
              </th>
              {regions.map((region_id) => (
                <th key={region_id} scope="col" className="border-b border-line px-3 py-2 font-medium">
                  {regionName(game, region_id)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {modes.map((mode) => (
              <tr key={mode} className="border-b border-line align-top last:border-b-0">
                <th scope="row" className="px-3 py-2 font-medium">
                  {mode}
                </th>
                {regions.map((region_id) => (
                  <td key={region_id} className="min-w-60 px-3 py-2">
                    <CellView cell={cells.get(`${mode} ${region_id}`)} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {/* biome-ignore-end lint/a11y: as above. */}
    </Section>
  )
}

function CellView({ cell }: { cell: Cell | undefined }) {
  const { params } = useNamespace()
  if (cell === undefined) return <span className="text-soft">none</span>
  const { lobbies, players, seats } = cell
  const shown = lobbies.slice(0, BARS_MAX)
  return (
    <div className="flex flex-col gap-1.5">
      <p className="numbers text-xs text-soft">
        {plural(lobbies.length, 'lobby', 'lobbies')}, {count(players)} of {plural(seats, 'seat')} taken
      </p>
      <ul className="flex flex-wrap gap-1.5">
        {shown.map((lobby) => (
          <li key={lobby.lobby_id}>
            <SeatBar lobby={lobby} />
          </li>
        ))}
      </ul>
      {shown.length < lobbies.length ? (
        <Link to={namespaceLink(params.game_id, params.namespace_id, 'lobbies')} className="text-xs">
          {count(lobbies.length - shown.length)} more in the list of lobbies
        </Link>
      ) : null}
    </div>
  )
}

function SeatBar({ lobby }: { lobby: LiveLobby }) {
  const { params } = useNamespace()
  const { lobby_id, total_player_count, registered_player_count, max_players_normal } = lobby
  const border = lobby.is_stalled ? 'border-bad' : lobby.is_ready ? 'border-line' : 'border-warn'
  const part = (players: number): string => `${Math.min(100, (players / Math.max(1, max_players_normal)) * 100)}%`
  const text = `Lobby ${shortId(lobby_id)}: ${count(total_player_count)} of ${count(max_players_normal)}, ${stateOf(lobby)}`
  return (
    <Link
      to={lobbyLink(params.game_id, params.namespace_id, lobby_id)}
      aria-label={text}
      title={`${text}; ${count(registered_player_count)} connected`}
      className={`numbers relative block h-6 w-20 overflow-hidden rounded border ${border} bg-page text-center text-xs leading-[22px] text-ink no-underline`}
    >
      <span className="absolute inset-y-0 left-0 bg-mark" style={{ width: part(total_player_count) }} />
      <span className="absolute bottom-0 left-0 h-1 bg-good" style={{ width: part(registered_player_count) }} />
      <span className="relative">{`${count(total_player_count)} of ${count(max_players_normal)}`}</span>
    </Link>
  )
}

function cellsOf(lobbies: ReadonlyMap<string, LiveLobby>) {
  const cells = new Map<string, Cell>()
  const [modes, regions] = [new Set<string>(), new Set<string>()]
  for (const lobby of lobbies.values()) {
    const { lobby_group_name_id: mode, region_id } = lobby
    modes.add(mode)
    regions.add(region_id)
    const key = `${mode} ${region_id}`
    const cell = cells.get(key) ?? { lobbies: [], players: 0, seats: 0 }
    cell.lobbies.push(lobby)
    cell.players += lobby.total_player_count
    cell.seats += lobby.max_players_normal
    cells.set(key, cell)
  }
  // The order of the matchmaker's choice: the fullest first, and the oldest of equal ones.
  for (const { lobbies: list } of cells.values()) {
    list.sort((a, b) => b.total_player_count - a.total_player_count || (a.create_ts < b.create_ts ? -1 : 1))
  }
  return { modes: [...modes].sort(), regions: [...regions].sort(), cells }
}

function Finds() {
  const { game, params } = useNamespace()
  const state = useLiveFinds(params.game_id, params.namespace_id)
  return (
    <>
      <Refusals arrived={state.refusals} />
      <Section
        title="Requests for seats, as they end"
        lead="Refusals and slow requests are kept, and a sample of the seats. A click on a ray explains the request."
        actions={
          <>
            {state.feed === 'lost' ? (
              <span role="alert">
                <Badge tone="bad">not live: connecting again</Badge>
              </span>
            ) : null}
            <LinkButton
              kind="quiet"
              to={gameLink(game.game_id, 'rays')}
              search={{ namespace: params.namespace_id } as never}
            >
              All requests
            </LinkButton>
          </>
        }
      >
        {state.is_loaded ? (
          <DataTable
            label="Requests"
            rows={state.finds}
            rowId={({ ray_id }) => ray_id}
            empty="No request for a seat was kept lately."
            columns={findColumns(game)}
          />
        ) : (
          <Loading what="Loading the requests" />
        )}
        {state.left_out_count === 0 ? null : (
          <p className="border-t border-line px-3 py-2 text-xs text-soft">
            {plural(state.left_out_count, 'request')} left out: more ended than this page could show.
          </p>
        )}
      </Section>
    </>
  )
}

function findColumns(game: Game): Column<LiveFind>[] {
  return [
    {
      id: 'ray',
      title: 'Ray',
      width: 7,
      cell: ({ ray_id }) => (
        <Link to={rayLink(game.game_id, ray_id)} title={ray_id} className="font-mono text-xs">
          {shortId(ray_id)}
        </Link>
      ),
    },
    { id: 'when', title: 'When', width: 8, cell: ({ create_ts }) => <Ago ts={create_ts} /> },
    {
      id: 'operation',
      is_secondary: true,
      title: 'Operation',
      width: 10,
      cell: ({ operation }) => (
        <code>
          <ApiName name={operation} />
        </code>
      ),
    },
    { id: 'mode', is_secondary: true, title: 'Game mode', cell: ({ game_mode }) => game_mode ?? '' },
    {
      id: 'region',
      is_secondary: true,
      title: 'Region',
      cell: ({ region_id }) => (region_id === undefined ? '' : regionName(game, region_id)),
    },
    { id: 'outcome', title: 'Outcome', width: 24, cell: (find) => <Outcome find={find} /> },
    {
      id: 'duration',
      title: 'Took',
      width: 6,
      is_number: true,
      cell: ({ duration }) => microsecondsText(duration),
    },
  ]
}

function Outcome({ find: { outcome, code, lobby_id } }: { find: LiveFind }) {
  const { params } = useNamespace()
  if (outcome !== 'seated')
    return (
      <Badge tone={outcome === 'captcha' ? 'warn' : 'bad'}>
        <ApiName name={code ?? outcome} />
      </Badge>
    )
  return (
    <>
      <Badge tone="good">seated</Badge>{' '}
      {lobby_id === undefined ? null : (
        <Link
          to={lobbyLink(params.game_id, params.namespace_id, lobby_id)}
          title={lobby_id}
          className="font-mono text-xs"
        >
          {shortId(lobby_id)}
        </Link>
      )}
    </>
  )
}

type Refused = { code: string; ray_id: string; ts: string }
type CodeRow = { code: string; requests: number; newest_ray_id: string }

/** Refusals of the last hour. `arrived` has those since the page was opened; the earlier ones are read once. */
function Refusals({ arrived }: { arrived: readonly LiveFind[] }) {
  const { game, params } = useNamespace()
  const [start_ms] = useState(() => Date.now() - HOUR_MS)
  const query = {
    namespace_id: params.namespace_id,
    code: 'any',
    limit: PAGE_RAYS,
    query_start: new Date(start_ms).toISOString(),
  }
  const read = useCall(listGameRays, { params: { game_id: params.game_id }, query })
  const since_ms = useNow() - HOUR_MS
  if (read.data === undefined) return <Pending read={read} what="Loading the refusals" />
  const refused = refusedSince(since_ms, read.data.rays, arrived)
  const is_cut = read.data.next_cursor !== undefined || arrived.length >= REFUSALS_MAX
  return (
    <Section title="Refusals of the last hour, by code">
      <DataTable
        label="Refusals"
        rows={byCode(refused)}
        rowId={({ code }) => code}
        empty="No request was refused in the last hour."
        initial_sort={{ column: 'requests', is_down: true }}
        columns={[
          {
            id: 'code',
            title: 'Code',
            sortBy: ({ code }) => code,
            cell: ({ code }) => (
              <Link
                to={gameLink(game.game_id, 'rays')}
                search={{ code, namespace: params.namespace_id } as never}
                className="wrap-anywhere"
              >
                <ApiName name={code} />
              </Link>
            ),
          },
          {
            id: 'requests',
            title: 'Requests',
            is_number: true,
            sortBy: ({ requests }) => requests,
            cell: ({ requests }) => count(requests),
          },
          {
            id: 'newest',
            title: 'Newest',
            cell: ({ newest_ray_id }) => (
              <Link to={rayLink(game.game_id, newest_ray_id)} title={newest_ray_id} className="font-mono text-xs">
                {shortId(newest_ray_id)}
              </Link>
            ),
          },
        ]}
      />
      {!is_cut ? null : (
        <p className="border-t border-line px-3 py-2 text-xs text-soft">
          These are the newest {count(refused.length)} refusals; there are more.
        </p>
      )}
    </Section>
  )
}

/** A refusal that was read and has arrived too is counted once. The newest comes first. */
function refusedSince(since_ms: number, rays: readonly RaySummary[], arrived: readonly LiveFind[]): Refused[] {
  const refused = new Map<string, Refused>()
  for (const { ray_id, code, create_ts } of arrived.toReversed()) {
    if (code !== undefined) refused.set(ray_id, { ray_id, code, ts: create_ts })
  }
  for (const { ray_id, code, ts, operation } of rays) {
    if (code !== undefined && SEAT_OPERATIONS.has(operation) && !refused.has(ray_id)) {
      refused.set(ray_id, { ray_id, code, ts })
    }
  }
  return [...refused.values()].filter(({ ts }) => Date.parse(ts) >= since_ms)
}

function byCode(refused: readonly Refused[]): CodeRow[] {
  const rows = new Map<string, CodeRow>()
  for (const { code, ray_id } of refused) {
    const row = rows.get(code)
    if (row === undefined) rows.set(code, { code, requests: 1, newest_ray_id: ray_id })
    else row.requests++
  }
  return [...rows.values()]
}
