// The kept requests of a game, newest first, with filters in the address.
import { useState } from 'react'
import { listGameRays } from '../../api/operations.gen.ts'
import { useEntries, usePages } from '../../api/queries.ts'
import { gameLink, HOME } from '../../links.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { ListEnd } from '../../parts/data-table.tsx'
import { Notice, Pending } from '../../parts/notice.tsx'
import { plural } from '../../parts/numbers.ts'
import { Page, Section } from '../../parts/page.tsx'
import { type Filter, Filters, instantOf } from '../../shell/filters.tsx'
import { usePageActions } from '../../shell/page-actions.ts'
import { type UrlState, useUrlState } from '../../shell/url-state.ts'
import { type Game, useGame, useMay } from '../game/game.ts'
import { RayTable } from './ray-table.tsx'

const NAMES = ['namespace', 'code', 'operation', 'slower_ms', 'player', 'from', 'to'] as const
type Name = (typeof NAMES)[number]
const NO_FILTERS = Object.fromEntries(NAMES.map((name) => [name, ''])) as UrlState<Name>
const US_PER_MS = 1_000
/** Players notice it. */
const SLOW_MS = 100
/** The first page is read again while it is the only one. */
const EVERY_MS = 5_000
const PAGE_RAYS = 100

export default function Rays() {
  const { game } = useGame()
  const may = useMay()
  const [state, change] = useUrlState(NAMES)
  const show = (some: Partial<UrlState<Name>>) => () => change({ ...NO_FILTERS, ...some })
  usePageActions([
    { id: 'rays-failed', title: 'Show failed requests', run: show({ code: 'any' }) },
    { id: 'rays-slow', title: `Show requests of at least ${SLOW_MS} ms`, run: show({ slower_ms: String(SLOW_MS) }) },
    { id: 'rays-all', title: 'Show all requests', run: show({}) },
  ])
  return (
    <Page
      title="Requests"
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
      ]}
      lead="Failed and slow requests are kept, and a sample of the others. Each has a ray: where its time was spent, and why it ended as it did."
    >
      {may(listGameRays) ? (
        <>
          <Filters label="Filter requests" filters={filtersOf(game)} state={state} onApply={change} />
          <List key={JSON.stringify(state)} state={state} />
        </>
      ) : (
        <Notice tone="warn">Developers and owners of the group may see requests.</Notice>
      )}
    </Page>
  )
}

function filtersOf(game: Game): Filter<Name>[] {
  return [
    {
      name: 'namespace',
      label: 'Namespace',
      options: [
        { value: '', text: 'All' },
        ...game.namespaces.map(({ namespace_id, display_name }) => ({ value: namespace_id, text: display_name })),
      ],
    },
    {
      name: 'code',
      label: 'Error code',
      placeholder: 'any or a code',
      suggestions: ['any', 'none', 'MATCHMAKER_TOO_MANY_LOBBIES', 'MATCHMAKER_LOBBY_NOT_STARTED'],
    },
    {
      name: 'operation',
      label: 'Operation',
      placeholder: 'lobbies.find',
      suggestions: ['lobbies.find', 'lobbies.join', 'lobbies.create', 'players.connected', 'lobbies.ready'],
    },
    { name: 'slower_ms', label: 'At least (ms)', type: 'number' },
    { name: 'player', label: 'Player id' },
    { name: 'from', label: 'From', type: 'datetime-local' },
    { name: 'to', label: 'Until', type: 'datetime-local' },
  ]
}

function queryOf(state: UrlState<Name>) {
  const { namespace, code, operation, slower_ms, player } = state
  const [query_start, query_end] = [instantOf(state.from), instantOf(state.to)]
  return {
    limit: PAGE_RAYS,
    ...(namespace === '' ? {} : { namespace_id: namespace }),
    ...(code === '' ? {} : { code }),
    ...(operation === '' ? {} : { operation }),
    ...(slower_ms === '' ? {} : { duration_min: Math.round(Number(slower_ms) * US_PER_MS) }),
    ...(player === '' ? {} : { player_id: player }),
    ...(query_start === undefined ? {} : { query_start }),
    ...(query_end === undefined ? {} : { query_end }),
  }
}

function List({ state }: { state: UrlState<Name> }) {
  const { game } = useGame()
  const [is_long, setLong] = useState(false)
  const params = { game_id: game.game_id }
  const query = queryOf(state)
  const read = usePages(
    listGameRays,
    { params, query },
    ({ next_cursor }) => (next_cursor === undefined ? null : { params, query: { ...query, cursor: next_cursor } }),
    is_long ? {} : { every_ms: EVERY_MS },
  )
  const rays = useEntries(read.data?.pages, (page) => page.rays)
  return (
    <Section
      title={`Newest first${is_long ? '' : ', live'}`}
      actions={<CopyAs operation={listGameRays} input={{ params, query }} muster={`rays --game ${game.name_id}`} />}
    >
      {read.data === undefined ? (
        <Pending read={read} what="Loading requests" />
      ) : (
        <>
          <RayTable
            game={game}
            rays={rays}
            empty={
              read.hasNextPage
                ? 'None of the newest requests matches. Load more to search in older ones.'
                : 'No kept request matches.'
            }
          />
          <ListEnd
            shown={rays.length}
            noun={plural(rays.length, 'request').replace(/^\S+ /, '')}
            has_more={read.hasNextPage}
            is_loading={read.isFetchingNextPage}
            onMore={() => {
              setLong(true)
              void read.fetchNextPage()
            }}
          />
        </>
      )}
    </Section>
  )
}
