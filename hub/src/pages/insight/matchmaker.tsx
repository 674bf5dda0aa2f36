// The matchmaker at work: the lobbies of each game mode and region, each as a bar of seats; the requests for seats as they
// arrive, and the refusals by code. A click explains a request.
import type { RaySummary } from '@muster/contract'
import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import { listGameRays } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { gameLink, HOME, lobbyLink, namespaceLink } from '../../links.ts'
import { LinkButton } from '../../parts/button.tsx'
import { shortId } from '../../parts/copy.tsx'
import { DataTable } from '../../parts/data-table.tsx'
import { Badge, Loading, Notice, Pending } from '../../parts/notice.tsx'
import { count, plural } from '../../parts/numbers.ts'
import { Page, Section } from '../../parts/page.tsx'
import { useNow } from '../../parts/time.tsx'
import { useMay } from '../game/game.ts'
import { stateOf } from '../lobbies/arrange.ts'
import { type LiveLobby, useLiveLobbies } from '../lobbies/live-lobbies.ts'
import { regionName } from '../lobbies/lobby-parts.tsx'
import { useNamespace } from '../namespace/namespace.ts'
import { RayTable } from './ray-table.tsx'

/** Lobbies that one cell draws. The list of lobbies has all of them. */
const BARS_MAX = 40
const REQUESTS_EVERY_MS = 1_000
const REFUSALS_EVERY_MS = 5_000
/** Requests of one page of the API. */
const PAGE_RAYS = 100
const SHOWN_RAYS_MAX = 30
const HOUR_MS = 3_600_000
/** The window of the refusals moves on in these steps. */
const STEP_MS = 60_000
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
      {live.is_loaded ? <Lobbies lobbies={live.lobbies} revision={revision} /> : <Loading what="Loading the lobbies" />}
      {may(listGameRays) ? (
        <>
          <Refusals />
          <Requests />
        </>
      ) : null}
    </Page>
  )
}

type Cell = { lobbies: LiveLobby[]; players: number; places: number }

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
  const { lobbies, players, places } = cell
  const shown = lobbies.slice(0, BARS_MAX)
  return (
    <div className="flex flex-col gap-1.5">
      <p className="numbers text-xs text-soft">
        {plural(lobbies.length, 'lobby', 'lobbies')}, {count(players)} of {plural(places, 'place')} taken
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
    const cell = cells.get(key) ?? { lobbies: [], players: 0, places: 0 }
    cell.lobbies.push(lobby)
    cell.players += lobby.total_player_count
    cell.places += lobby.max_players_normal
    cells.set(key, cell)
  }
  // The order of the matchmaker's choice: the fullest first, and the oldest of equal ones.
  for (const { lobbies: list } of cells.values()) {
    list.sort((a, b) => b.total_player_count - a.total_player_count || (a.create_ts < b.create_ts ? -1 : 1))
  }
  return { modes: [...modes].sort(), regions: [...regions].sort(), cells }
}

function Requests() {
  const { game, params } = useNamespace()
  const query = { namespace_id: params.namespace_id, limit: PAGE_RAYS }
  const read = useCall(listGameRays, { params: { game_id: params.game_id }, query }, { every_ms: REQUESTS_EVERY_MS })
  if (read.data === undefined) return <Pending read={read} what="Loading the requests" />
  const rays = read.data.rays.filter(({ operation }) => SEAT_OPERATIONS.has(operation)).slice(0, SHOWN_RAYS_MAX)
  return (
    <Section
      title="Requests for seats, as they arrive"
      lead="Failed and slow requests are kept, and a sample of the others. A click on a ray explains the request."
      actions={
        <LinkButton
          kind="quiet"
          to={gameLink(game.game_id, 'rays')}
          search={{ namespace: params.namespace_id } as never}
        >
          All requests
        </LinkButton>
      }
    >
      <RayTable game={game} rays={rays} empty="No request for a seat was kept lately." />
    </Section>
  )
}

type CodeRow = { code: string; requests: number; newest: RaySummary }

function Refusals() {
  const { game, params } = useNamespace()
  const start_ms = Math.floor(useNow() / STEP_MS) * STEP_MS - HOUR_MS
  const query = {
    namespace_id: params.namespace_id,
    code: 'any',
    limit: PAGE_RAYS,
    query_start: new Date(start_ms).toISOString(),
  }
  const read = useCall(listGameRays, { params: { game_id: params.game_id }, query }, { every_ms: REFUSALS_EVERY_MS })
  if (read.data === undefined) return <Pending read={read} what="Loading the refusals" />
  return (
    <Section title="Refusals of the last hour, by code">
      <DataTable
        label="Refusals"
        rows={byCode(read.data.rays)}
        rowId={({ code }) => code}
        empty="No request was refused in the last hour."
        initial_sort={{ column: 'requests', is_down: true }}
        columns={[
          {
            id: 'code',
            title: 'Code',
            sortBy: ({ code }) => code,
            cell: ({ code }) => (
              <Link to={gameLink(game.game_id, 'rays')} search={{ code, namespace: params.namespace_id } as never}>
                {code}
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
            cell: ({ newest }) => (
              <Link
                to={gameLink(game.game_id, `rays/${newest.ray_id}`)}
                title={newest.ray_id}
                className="font-mono text-xs"
              >
                {shortId(newest.ray_id)}
              </Link>
            ),
          },
        ]}
      />
      {read.data.next_cursor === undefined ? null : (
        <p className="border-t border-line px-3 py-2 text-xs text-soft">
          These are the newest {count(PAGE_RAYS)} refusals; there are more.
        </p>
      )}
    </Section>
  )
}

function byCode(rays: readonly RaySummary[]): CodeRow[] {
  const rows = new Map<string, CodeRow>()
  for (const ray of rays) {
    const { code } = ray
    if (code === undefined || !SEAT_OPERATIONS.has(ray.operation)) continue
    const row = rows.get(code)
    if (row === undefined) rows.set(code, { code, requests: 1, newest: ray })
    else row.requests++
  }
  return [...rows.values()]
}
