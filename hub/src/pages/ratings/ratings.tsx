// The ratings of a namespace: the leaderboard of a game mode, and the ratings of one player. Developers may reset them.
import type { listRatings as listRatingsOperation, ResponseOf } from '@musterhost/contract'
import { useState } from 'react'
import { getGameVersionById, listRatings, resetRatings } from '../../api/operations.gen.ts'
import { useCall, useEntries, usePages } from '../../api/queries.ts'
import { gameLink, HOME, namespaceLink } from '../../links.ts'
import { Button } from '../../parts/button.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable, ListEnd } from '../../parts/data-table.tsx'
import { Pending } from '../../parts/notice.tsx'
import { count } from '../../parts/numbers.ts'
import { Page, Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { type Filter, Filters } from '../../shell/filters.tsx'
import { useUrlState } from '../../shell/url-state.ts'
import { useMay, versionName } from '../game/game.ts'
import { MissingSection } from '../namespace/missing-section.tsx'
import { useNamespace } from '../namespace/namespace.ts'
import { PlayerRatings } from './player-ratings.tsx'
import { type Reset, ResetDialog } from './reset-dialog.tsx'
import { Strength } from './strength.tsx'

type Rated = ResponseOf<typeof listRatingsOperation>['ratings'][number]
/** `rank`: from 1. */
type Ranked = Rated & { rank: number }

export default function Ratings() {
  const { game, namespace, params } = useNamespace()
  const { version_id } = namespace
  const version = useCall(getGameVersionById, { params: { game_id: game.game_id, version_id } })
  const [state, change] = useUrlState(['mode', 'identity'])
  const [reset, setReset] = useState<Reset | null>(null)
  const [opened, setOpened] = useState<Rated | null>(null)
  const modes = Object.entries(version.data?.version.config.matchmaker?.game_modes ?? {})
    .filter(([, { ratings }]) => ratings !== undefined)
    .map(([name]) => name)
  const game_mode = state.mode === '' ? modes[0] : state.mode
  return (
    <Page
      title="Ratings"
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
        { text: namespace.display_name, to: namespaceLink(game.game_id, namespace.namespace_id) },
      ]}
      lead={
        <>
          How strong each player is, from the results that lobby servers report. The ordinal,{' '}
          <code>mu - 3 * sigma</code>, ranks them. <a href="/docs/ratings">The guide</a> explains the numbers.
        </>
      }
    >
      {version.data === undefined ? <Pending read={version} what="Loading the game modes" /> : null}
      {version.data === undefined ? null : (
        <>
          <Filters label="Choose ratings" filters={filtersOf(modes, state.mode)} state={state} onApply={change} />
          {state.identity === '' ? null : (
            <PlayerRatings
              key={state.identity}
              identity_id={state.identity}
              name={opened?.identity_id === state.identity ? nameOf(opened) : null}
              namespace_id={params.namespace_id}
              onReset={setReset}
              onClose={() => change({ identity: '' })}
            />
          )}
          {game_mode === undefined ? (
            <NoRatings />
          ) : (
            <Leaderboard
              key={`leaders of ${game_mode}`}
              game_mode={game_mode}
              onOpen={(rated) => {
                setOpened(rated)
                change({ identity: rated.identity_id })
              }}
              onReset={setReset}
            />
          )}
        </>
      )}
      {reset === null ? null : (
        <ResetDialog reset={reset} namespace_id={params.namespace_id} onClose={() => setReset(null)} />
      )}
    </Page>
  )
}

/** Equal names differ by their numbers. */
function nameOf({ display_name, account_number }: Rated): string {
  return `${display_name}#${account_number}`
}

function filtersOf(modes: readonly string[], chosen: string): Filter<'mode' | 'identity'>[] {
  const names = chosen === '' || modes.includes(chosen) ? modes : [...modes, chosen]
  const options = names.map((name, at) => ({ value: at === 0 ? '' : name, text: name }))
  return [
    ...(names.length > 1 ? [{ name: 'mode' as const, label: 'Game mode', options }] : []),
    { name: 'identity', label: 'Player', placeholder: 'id of an identity' },
  ]
}

/** No game mode of the deployed version has ratings: what to change, and where. */
function NoRatings() {
  const { game, namespace } = useNamespace()
  return (
    <MissingSection title="Leaderboard">
      No game mode of {versionName(game, namespace.version_id)}, the version of {namespace.display_name}, has ratings.
      Add <code>{'"ratings": {}'}</code> to a game mode, deploy the version, and let the lobby's server report results.
    </MissingSection>
  )
}

function Leaderboard({
  game_mode,
  onOpen,
  onReset,
}: {
  game_mode: string
  onOpen: (rated: Rated) => void
  onReset: (reset: Reset) => void
}) {
  const { params } = useNamespace()
  const may_reset = useMay()(resetRatings)
  const query = { game_mode, namespace_id: params.namespace_id }
  const read = usePages(listRatings, { query }, ({ anchor }) =>
    anchor === undefined ? null : { query: { ...query, anchor } },
  )
  const ratings = useEntries(read.data?.pages, (page) => page.ratings)
  return (
    <Section
      title={`Leaderboard of ${game_mode}`}
      actions={
        <>
          <CopyAs operation={listRatings} input={{ query }} muster={`ratings list ${game_mode}`} />
          {may_reset && ratings.length > 0 ? (
            <Button kind="danger" onClick={() => onReset({ game_mode })}>
              Reset all of {game_mode} …
            </Button>
          ) : null}
        </>
      }
    >
      {read.data === undefined ? (
        <Pending read={read} what="Loading the ratings" />
      ) : (
        <>
          <DataTable
            label="Leaderboard"
            rows={ratings.map((rating, at) => ({ ...rating, rank: at + 1 }))}
            rowId={({ identity_id }) => identity_id}
            empty="No match was rated yet. The lobby's server reports the result of each match."
            columns={columnsOf(onOpen)}
          />
          <ListEnd
            shown={ratings.length}
            noun={ratings.length === 1 ? 'player' : 'players'}
            has_more={read.hasNextPage}
            is_loading={read.isFetchingNextPage}
            onMore={() => void read.fetchNextPage()}
          />
        </>
      )}
    </Section>
  )
}

function columnsOf(onOpen: (rated: Rated) => void): Column<Ranked>[] {
  return [
    { id: 'rank', title: 'Rank', width: 5, is_number: true, cell: ({ rank }) => count(rank) },
    {
      id: 'player',
      title: 'Player',
      cell: (row) => (
        <button
          type="button"
          title={`Show the ratings of ${row.identity_id}`}
          className="cursor-pointer text-left wrap-anywhere text-accent underline"
          onClick={() => onOpen(row)}
        >
          {nameOf(row)}
        </button>
      ),
    },
    { id: 'ordinal', title: 'Ordinal', width: 7, is_number: true, cell: (row) => <Strength value={row.ordinal} /> },
    {
      id: 'mu',
      is_secondary: true,
      title: 'mu',
      width: 7,
      is_number: true,
      cell: (row) => <Strength value={row.mu} />,
    },
    {
      id: 'sigma',
      is_secondary: true,
      title: 'sigma',
      width: 7,
      is_number: true,
      cell: (row) => <Strength value={row.sigma} />,
    },
    { id: 'matches', title: 'Matches', width: 7, is_number: true, cell: ({ matches }) => count(matches) },
    { id: 'updated', is_secondary: true, title: 'Last match', width: 9, cell: (row) => <Ago ts={row.update_ts} /> },
  ]
}
