// Namespaces with players and lobbies, now and over the last hour.
import type { getOverview, ResponseOf } from '@musterhost/contract'
import { Link } from '@tanstack/react-router'
import { gameLink, namespaceLink, versionLink } from '../../links.ts'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { count, plural } from '../../parts/numbers.ts'
import { Sparkline } from '../../parts/sparkline.tsx'

type OverviewNamespace = ResponseOf<typeof getOverview>['namespaces'][number]

const COLUMNS: readonly Column<OverviewNamespace>[] = [
  {
    id: 'name',
    title: 'Namespace',
    sortBy: (namespace) => namespace.display_name,
    cell: ({ game_id, namespace_id, display_name }) => (
      <Link to={namespaceLink(game_id, namespace_id)}>{display_name}</Link>
    ),
  },
  {
    id: 'version',
    is_secondary: true,
    title: 'Version',
    cell: ({ game_id, version_id, version_display_name }) => (
      <Link to={versionLink(game_id, version_id)}>{version_display_name}</Link>
    ),
  },
  {
    id: 'players',
    title: 'Players',
    is_number: true,
    sortBy: (namespace) => namespace.player_count,
    cell: ({ player_count }) => count(player_count),
  },
  {
    id: 'hour',
    is_secondary: true,
    title: 'Last hour',
    cell: ({ display_name, last_hour }) => (
      <Sparkline
        values={last_hour.player_counts}
        label={`Players in ${display_name} over the last hour: at most ${count(Math.max(0, ...last_hour.player_counts))}`}
      />
    ),
  },
  {
    id: 'lobbies',
    title: 'Lobbies',
    is_number: true,
    sortBy: (namespace) => namespace.lobby_count,
    cell: ({ game_id, namespace_id, lobby_count }) => (
      <Link to={namespaceLink(game_id, namespace_id, 'lobbies')} aria-label={plural(lobby_count, 'lobby', 'lobbies')}>
        {count(lobby_count)}
      </Link>
    ),
  },
]

/** `games`: with the name of the game in front, for lists of several games. */
export function NamespaceTable({
  namespaces,
  games,
}: {
  namespaces: readonly OverviewNamespace[]
  games?: ReadonlyMap<string, string>
}) {
  const of_game: Column<OverviewNamespace>[] =
    games === undefined
      ? []
      : [
          {
            id: 'game',
            title: 'Game',
            sortBy: (namespace) => games.get(namespace.game_id),
            cell: ({ game_id }) => <Link to={gameLink(game_id)}>{games.get(game_id)}</Link>,
          },
        ]
  return (
    <DataTable
      label="Namespaces"
      rows={namespaces}
      rowId={(namespace) => namespace.namespace_id}
      columns={[...of_game, ...COLUMNS]}
      empty="There is no namespace yet."
    />
  )
}
