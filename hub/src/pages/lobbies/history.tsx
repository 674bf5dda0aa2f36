// The lobbies of a namespace that ran, newest first, with how each ended. The filters apply to the lobbies that are loaded; the
// page says how many those are, and loads more.
import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import { listNamespaceLobbies } from '../../api/operations.gen.ts'
import { useEntries, usePages } from '../../api/queries.ts'
import { gameLink, HOME, lobbyLink, namespaceLink } from '../../links.ts'
import { LinkButton } from '../../parts/button.tsx'
import { shortId } from '../../parts/copy.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable, ListEnd } from '../../parts/data-table.tsx'
import { SelectField } from '../../parts/fields.tsx'
import { Pending } from '../../parts/notice.tsx'
import { count, duration } from '../../parts/numbers.ts'
import { Page } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { useUrlState } from '../../shell/url-state.ts'
import { useNamespace } from '../namespace/namespace.ts'
import { regionName } from './lobby-parts.tsx'
import { exitText, OUTCOMES, OutcomeBadge, outcomeOf, type PastLobby } from './past-lobby.tsx'

const VIEW = ['outcome', 'mode', 'region'] as const
const HISTORY_EVERY_MS = 10_000

export default function LobbyHistory() {
  const { game, namespace, params } = useNamespace()
  const [view, setView] = useUrlState(VIEW)
  const read = usePages(
    listNamespaceLobbies,
    { params },
    ({ is_cut, lobbies }) => {
      const last = lobbies.at(-1)
      return is_cut && last !== undefined ? { params, query: { before_create_ts: last.create_ts } } : null
    },
    { every_ms: HISTORY_EVERY_MS },
  )
  const all = useEntries(read.data?.pages, (page) => page.lobbies)
  const rows = useMemo(() => all.filter((lobby) => passes(lobby, view)), [all, view])
  const columns = useColumns()
  const to = namespaceLink(game.game_id, namespace.namespace_id)
  return (
    <Page
      title="History of lobbies"
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
        { text: namespace.display_name, to },
        { text: 'Lobbies', to: `${to}/lobbies` },
      ]}
      actions={
        <>
          <CopyAs operation={listNamespaceLobbies} input={{ params }} />
          <LinkButton to={`${to}/lobbies`}>Running lobbies</LinkButton>
        </>
      }
    >
      <Filters all={all} view={view} onChange={setView} />
      <Pending read={read} what="Loading the history" />
      {read.data === undefined ? null : (
        <div className="rounded-lg border border-line">
          <DataTable
            label="History of lobbies"
            columns={columns}
            rows={rows}
            rowId={(lobby) => lobby.lobby_id}
            empty={
              all.length === 0
                ? 'No lobby has run in this namespace, or its history is no longer kept.'
                : 'None of the loaded lobbies passes the filters.'
            }
          />
          <ListEnd
            shown={all.length}
            noun={`${all.length === 1 ? 'lobby' : 'lobbies'}${rows.length === all.length ? '' : ` loaded, ${count(rows.length)} shown`}`}
            has_more={read.hasNextPage}
            is_loading={read.isFetchingNextPage}
            onMore={() => void read.fetchNextPage()}
          />
        </div>
      )}
    </Page>
  )
}

type View = Record<(typeof VIEW)[number], string>
type FiltersProps = { all: readonly PastLobby[]; view: View; onChange: (change: Partial<View>) => void }

function Filters({ all, view, onChange }: FiltersProps) {
  const { game } = useNamespace()
  const modes = [...new Set(all.map((lobby) => lobby.lobby_group_name_id))].sort()
  return (
    <div className="flex flex-wrap items-end gap-3">
      <Choice
        label="Outcome"
        all="All outcomes"
        value={view.outcome}
        values={OUTCOMES}
        onChange={(outcome) => onChange({ outcome })}
      />
      <Choice
        label="Game mode"
        all="All modes"
        value={view.mode}
        values={modes}
        onChange={(mode) => onChange({ mode })}
      />
      <Choice
        label="Region"
        all="All regions"
        value={view.region}
        values={game.available_regions.map((region) => region.region_id)}
        textOf={(region_id) => regionName(game, region_id)}
        onChange={(region) => onChange({ region })}
      />
    </div>
  )
}

function passes(lobby: PastLobby, { outcome, mode, region }: View): boolean {
  return (
    (outcome === '' || outcomeOf(lobby) === outcome) &&
    (mode === '' || lobby.lobby_group_name_id === mode) &&
    (region === '' || lobby.region_id === region)
  )
}

type ChoiceProps = {
  label: string
  all: string
  value: string
  values: readonly string[]
  textOf?: (value: string) => string
  onChange: (value: string) => void
}

function Choice({ label, all, value, values, textOf = (text) => text, onChange }: ChoiceProps) {
  const known = value === '' || values.includes(value) ? values : [...values, value]
  return (
    <div className="w-[calc(50%-0.375rem)] sm:w-44">
      <SelectField
        label={label}
        value={value}
        options={[{ value: '', text: all }, ...known.map((one) => ({ value: one, text: textOf(one) }))]}
        onChange={onChange}
      />
    </div>
  )
}

function useColumns(): Column<PastLobby>[] {
  const { game, params } = useNamespace()
  return useMemo(
    () => [
      {
        id: 'lobby',
        title: 'Lobby',
        width: 7,
        cell: ({ lobby_id }) => (
          <Link
            to={lobbyLink(params.game_id, params.namespace_id, lobby_id)}
            title={lobby_id}
            className="font-mono text-xs"
          >
            {shortId(lobby_id)}
          </Link>
        ),
      },
      { id: 'outcome', title: 'Outcome', width: 7, sortBy: outcomeOf, cell: (lobby) => <OutcomeBadge lobby={lobby} /> },
      {
        id: 'exit',
        title: 'How it ended',
        cell: ({ status }) =>
          status.stopped === undefined ? '' : exitText(status.stopped.exit_code, status.stopped.exit_reason),
      },
      {
        id: 'mode',
        is_secondary: true,
        title: 'Mode',
        width: 10,
        sortBy: (lobby) => lobby.lobby_group_name_id,
        cell: (lobby) => lobby.lobby_group_name_id,
      },
      {
        id: 'region',
        is_secondary: true,
        title: 'Region',
        width: 8,
        cell: (lobby) => regionName(game, lobby.region_id),
      },
      {
        id: 'created',
        title: 'Created',
        width: 9,
        sortBy: (lobby) => Date.parse(lobby.create_ts),
        cell: (lobby) => <Ago ts={lobby.create_ts} />,
      },
      {
        id: 'lasted',
        is_secondary: true,
        title: 'Lasted',
        width: 7,
        is_number: true,
        sortBy: (lobby) => lastedMs(lobby),
        cell: (lobby) => {
          const lasted_ms = lastedMs(lobby)
          return lasted_ms === undefined ? '' : duration(lasted_ms)
        },
      },
    ],
    [game, params.game_id, params.namespace_id],
  )
}

function lastedMs({ create_ts, status }: PastLobby): number | undefined {
  return status.stopped === undefined ? undefined : Date.parse(status.stopped.stop_ts) - Date.parse(create_ts)
}
