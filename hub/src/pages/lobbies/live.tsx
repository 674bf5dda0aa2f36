// The running lobbies of a namespace, live: filtered, sorted, and stopped from here. The view is in the address.
import { Link } from '@tanstack/react-router'
import { useDeferredValue, useEffect, useMemo, useRef, useState } from 'react'
import { deleteMatchmakerLobby, getAnalyticsMatchmakerLive, getGameById } from '../../api/operations.gen.ts'
import { useRefresh } from '../../api/queries.ts'
import { gameLink, HOME, lobbyLink, namespaceLink } from '../../links.ts'
import { Button, LinkButton } from '../../parts/button.tsx'
import { shortId } from '../../parts/copy.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { SelectField, TextField } from '../../parts/fields.tsx'
import { Figures } from '../../parts/figures.tsx'
import { Loading, Notice } from '../../parts/notice.tsx'
import { count, plural, timeOfDay } from '../../parts/numbers.ts'
import { Page } from '../../parts/page.tsx'
import { Age } from '../../parts/time.tsx'
import { usePageActions } from '../../shell/page-actions.ts'
import { useUrlState } from '../../shell/url-state.ts'
import { useMay, versionName } from '../game/game.ts'
import { useNamespace } from '../namespace/namespace.ts'
import { arrange, type LiveLobbyFilter, LOBBY_STATES, SORTS, type Totals, totalsOf } from './arrange.ts'
import { type LiveLobby, type LiveLobbyStore, useLiveLobbies } from './live-lobbies.ts'
import { FeedMark, LobbyStates, regionName, SeatBar, STATE_HELP, UseBar } from './lobby-parts.tsx'
import { StopLobbies } from './stop-lobbies.tsx'

const VIEW = ['state', 'mode', 'region', 'text', 'sort', 'order'] as const
const NO_LOBBIES: ReadonlySet<string> = new Set()

export default function LiveLobbiesPage() {
  const { game, namespace, params } = useNamespace()
  const { live, revision } = useLiveLobbies(params.game_id, params.namespace_id)
  const [view, setView] = useUrlState(VIEW)
  const text = useDeferredValue(view.text)
  const rows = useArranged(live, revision, { ...view, text })
  useVersionNames(live, revision)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the map is changed in place; `revision` says when.
  const totals = useMemo(() => totalsOf(live.lobbies.values()), [live, revision])
  const may_stop = useMay()(deleteMatchmakerLobby)
  const selection = useSelection(live)
  const columns = useColumns(selection, may_stop)
  const reset = (): void => setView({ state: '', mode: '', region: '', text: '' })
  usePageActions([{ id: 'lobbies-all', title: 'Show all lobbies of this namespace', run: reset }])
  const is_filtered = rows.length < live.lobbies.size
  return (
    <Page
      title="Lobbies"
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
        { text: namespace.display_name, to: namespaceLink(game.game_id, namespace.namespace_id) },
      ]}
      mark={<FeedMark live={live} />}
      actions={
        <>
          <CopyAs operation={getAnalyticsMatchmakerLive} input={{ params }} />
          <LinkButton to={namespaceLink(params.game_id, params.namespace_id, 'lobbies/history')}>History</LinkButton>
        </>
      }
    >
      <LostNotice live={live} />
      <Counts totals={totals} state={view.state} onState={(state) => setView({ state })} />
      <Filters live={live} view={view} onChange={setView} />
      {live.is_loaded ? (
        <div className="rounded-lg border border-line">
          <TableHead shown={rows.length} all={live.lobbies.size} onReset={reset}>
            {may_stop ? (
              <SelectionButtons game_id={params.game_id} selection={selection} rows={rows} live={live} />
            ) : null}
          </TableHead>
          <DataTable
            label="Running lobbies"
            columns={columns}
            rows={rows}
            rowId={(lobby) => lobby.lobby_id}
            isMarked={(lobby) => selection.selected.has(lobby.lobby_id)}
            sorted={{
              sort: { column: view.sort || 'age', is_down: view.order === 'down' },
              onSort: ({ column, is_down }) => setView({ sort: column, order: is_down ? 'down' : '' }),
            }}
            empty={is_filtered ? 'No running lobby passes the filters.' : 'No lobby runs. The first find starts one.'}
          />
        </div>
      ) : (
        <Loading what="Loading the lobbies" />
      )}
    </Page>
  )
}

type View = Record<(typeof VIEW)[number], string>

function useArranged(live: LiveLobbyStore, revision: number, view: View): LiveLobby[] {
  const { state, mode, region, text, sort, order } = view
  const before = useRef<readonly string[]>([])
  const rows = useMemo(() => {
    void revision
    const filter: LiveLobbyFilter = { state, mode, region, text: text.trim().toLowerCase() }
    return arrange(live.lobbies, filter, { column: sort, is_down: order === 'down' }, before.current)
  }, [live, revision, state, mode, region, text, sort, order])
  before.current = rows.map(({ lobby_id }) => lobby_id)
  return rows
}

/** Reads the game again when a lobby runs a version that is newer than the record of the game. */
function useVersionNames(live: LiveLobbyStore, revision: number): void {
  const { game } = useNamespace()
  const refresh = useRefresh()
  const unknown = useMemo(() => {
    void revision
    const known = new Set(game.versions.map(({ version_id }) => version_id))
    const running = new Set([...live.lobbies.values()].map(({ version_id }) => version_id))
    const unknown_ids = [...running].filter((version_id) => !known.has(version_id))
    return unknown_ids.sort().join()
  }, [live, revision, game])
  useEffect(() => {
    if (unknown !== '') refresh(getGameById)
  }, [unknown, refresh])
}

function LostNotice({ live }: { live: LiveLobbyStore }) {
  if (live.feed !== 'lost') return null
  return (
    <div role="alert">
      <Notice tone="bad">
        {live.is_loaded
          ? `The connection was lost at ${timeOfDay(live.lost_ms)}. The lobbies are shown as they were then.`
          : 'The platform does not accept the connection.'}{' '}
        The page connects again as soon as it can.
      </Notice>
    </div>
  )
}

/** How many lobbies there are in each state. A click filters by it. */
function Counts({ totals, state, onState }: { totals: Totals; state: string; onState: (state: string) => void }) {
  return (
    <>
      <Figures
        label="Now"
        figures={[
          { name: 'Players connected', value: count(totals.connected) },
          { name: 'Seats reserved', value: count(totals.reserved) },
          { name: 'Lobbies', value: count(totals.lobbies) },
        ]}
      />
      {/* biome-ignore lint/a11y/useSemanticElements: the group has a name, and no legend that is shown. */}
      <div role="group" aria-label="States" className="flex flex-wrap gap-1.5">
        {LOBBY_STATES.map((one) => (
          <button
            key={one}
            type="button"
            title={STATE_HELP[one]}
            aria-pressed={state === one}
            onClick={() => onState(state === one ? '' : one)}
            className={`numbers cursor-pointer rounded-full border px-2.5 py-0.5 text-xs max-sm:py-1.5 ${state === one ? 'border-accent bg-mark' : 'border-line bg-page hover:bg-raised'}`}
          >
            {count(totals[one])} {one}
          </button>
        ))}
      </div>
    </>
  )
}

type FiltersProps = {
  live: LiveLobbyStore
  view: View
  onChange: (changes: Partial<View>, how?: { is_step?: boolean }) => void
}

function Filters({ live, view, onChange }: FiltersProps) {
  const { game } = useNamespace()
  const modes = new Set([...live.lobbies.values()].map((lobby) => lobby.lobby_group_name_id))
  if (view.mode !== '') modes.add(view.mode)
  return (
    <div className="flex flex-wrap items-end gap-3">
      <div className="w-full sm:w-64">
        <TextField
          label="Lobby or mode contains"
          type="search"
          value={view.text}
          onChange={(text) => onChange({ text }, { is_step: false })}
        />
      </div>
      <div className="w-[calc(50%-0.375rem)] sm:w-44">
        <SelectField
          label="Game mode"
          value={view.mode}
          options={[
            { value: '', text: 'All modes' },
            ...[...modes].sort().map((mode) => ({ value: mode, text: mode })),
          ]}
          onChange={(mode) => onChange({ mode })}
        />
      </div>
      <div className="w-[calc(50%-0.375rem)] sm:w-44">
        <SelectField
          label="Region"
          value={view.region}
          options={[
            { value: '', text: 'All regions' },
            ...game.available_regions.map((region) => ({ value: region.region_id, text: region.region_display_name })),
          ]}
          onChange={(region) => onChange({ region })}
        />
      </div>
    </div>
  )
}

type Selection = {
  selected: ReadonlySet<string>
  toggle: (lobby_id: string) => void
  set: (lobby_ids: Iterable<string>) => void
}

/** The selected lobbies. Those that have stopped meanwhile are left out when the selection is used. */
function useSelection(live: LiveLobbyStore): Selection {
  const [{ of, selected }, setSelected] = useState({ of: live, selected: NO_LOBBIES })
  return useMemo(() => {
    const current = of === live ? selected : NO_LOBBIES
    return {
      selected: current,
      toggle(lobby_id) {
        const next = new Set(current)
        if (!next.delete(lobby_id)) next.add(lobby_id)
        setSelected({ of: live, selected: next })
      },
      set: (lobby_ids) => setSelected({ of: live, selected: new Set(lobby_ids) }),
    }
  }, [of, live, selected])
}

function useColumns({ selected, toggle }: Selection, may_stop: boolean): Column<LiveLobby>[] {
  const { game, params } = useNamespace()
  return useMemo(() => {
    const select: Column<LiveLobby> = {
      id: 'select',
      title: 'Select',
      width: 4,
      cell: ({ lobby_id }) => (
        <input
          type="checkbox"
          className="size-4 align-middle accent-accent"
          aria-label={`Select lobby ${shortId(lobby_id)}`}
          checked={selected.has(lobby_id)}
          onChange={() => toggle(lobby_id)}
        />
      ),
    }
    const columns: Column<LiveLobby>[] = [
      {
        id: 'lobby',
        title: 'Lobby',
        width: 7,
        cell: ({ lobby_id }) => (
          <Link
            to={lobbyLink(params.game_id, params.namespace_id, lobby_id)}
            preload={false}
            title={lobby_id}
            className="font-mono text-xs"
          >
            {shortId(lobby_id)}
          </Link>
        ),
      },
      { id: 'state', title: 'State', width: 10, cell: (lobby) => <LobbyStates lobby={lobby} /> },
      { id: 'players', title: 'Players', width: 12, cell: (lobby) => <SeatBar lobby={lobby} /> },
      { id: 'mode', is_secondary: true, title: 'Mode', width: 10, cell: (lobby) => lobby.lobby_group_name_id },
      {
        id: 'version',
        is_secondary: true,
        title: 'Version',
        width: 9,
        cell: ({ version_id }) => <span className="wrap-anywhere">{versionName(game, version_id)}</span>,
      },
      {
        id: 'region',
        is_secondary: true,
        title: 'Region',
        width: 8,
        cell: (lobby) => regionName(game, lobby.region_id),
      },
      {
        id: 'cpu',
        is_secondary: true,
        title: 'CPU',
        width: 9,
        cell: (lobby) => <UseBar lobby={lobby} of="cpu_cores" />,
      },
      {
        id: 'memory',
        is_secondary: true,
        title: 'Memory',
        width: 10,
        cell: (lobby) => <UseBar lobby={lobby} of="memory_bytes" />,
      },
      {
        id: 'age',
        is_secondary: true,
        title: 'Age',
        width: 7,
        is_number: true,
        cell: (lobby) => <Age since={lobby.create_ts} />,
      },
    ]
    const sortable = columns.map((column) => ({ ...column, sortBy: SORTS[column.id]! }))
    return may_stop ? [select, ...sortable] : sortable
  }, [game, params.game_id, params.namespace_id, selected, toggle, may_stop])
}

type SelectionButtonsProps = { game_id: string; selection: Selection; rows: readonly LiveLobby[]; live: LiveLobbyStore }

function SelectionButtons({ game_id, selection, rows, live }: SelectionButtonsProps) {
  const [stopping, setStopping] = useState<LiveLobby[] | null>(null)
  const selected = [...selection.selected].flatMap((lobby_id) => live.lobbies.get(lobby_id) ?? [])
  return (
    <>
      {selected.length === 0 ? null : (
        <>
          <span className="numbers">{count(selected.length)} selected</span>
          <Button kind="danger" onClick={() => setStopping(selected)}>
            Stop {plural(selected.length, 'lobby', 'lobbies')}
          </Button>
          <Button kind="quiet" onClick={() => selection.set([])}>
            Select none
          </Button>
        </>
      )}
      {selected.length < rows.length ? (
        <Button kind="quiet" onClick={() => selection.set(rows.map(({ lobby_id }) => lobby_id))}>
          Select all {count(rows.length)} shown
        </Button>
      ) : null}
      {stopping === null ? null : (
        <StopLobbies
          game_id={game_id}
          lobby_ids={stopping.map(({ lobby_id }) => lobby_id)}
          players={stopping.reduce((sum, lobby) => sum + lobby.total_player_count, 0)}
          onDone={(stopped) => selection.set([...selection.selected].filter((id) => !stopped.includes(id)))}
          onClose={() => setStopping(null)}
        />
      )}
    </>
  )
}

type TableHeadProps = { shown: number; all: number; onReset: () => void; children: React.ReactNode }

function TableHead({ shown, all, onReset, children }: TableHeadProps) {
  return (
    <div className="flex min-h-12 flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-3 py-1.5 text-xs text-soft">
      <span className="numbers">
        {shown === all ? plural(all, 'lobby', 'lobbies') : `${count(shown)} of ${plural(all, 'lobby', 'lobbies')}`}
      </span>
      {shown === all ? null : (
        <Button kind="quiet" onClick={onReset}>
          Show all
        </Button>
      )}
      {children}
    </div>
  )
}
