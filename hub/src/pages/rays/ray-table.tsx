// Kept requests as a table: each leads to its ray.
import type { RaySummary } from '@musterhost/contract'
import { microsecondsText } from '@musterhost/contract/explanation-words'
import { Link } from '@tanstack/react-router'
import { gameLink, rayLink } from '../../links.ts'
import { ApiName } from '../../parts/api-name.tsx'
import { shortId } from '../../parts/copy.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Badge } from '../../parts/notice.tsx'
import { Ago } from '../../parts/time.tsx'
import type { Game } from '../game/game.ts'

export function RayTable({ game, rays, empty }: { game: Game; rays: readonly RaySummary[]; empty: string }) {
  return (
    <DataTable
      label="Requests"
      rows={rays}
      rowId={(ray) => `${ray.ray_id} ${ray.ts} ${ray.service}`}
      empty={empty}
      columns={columnsOf(game)}
    />
  )
}

function columnsOf(game: Game): Column<RaySummary>[] {
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
    {
      id: 'when',
      is_secondary: true,
      title: 'When',
      width: 8,
      sortBy: ({ ts }) => ts,
      cell: ({ ts }) => <Ago ts={ts} />,
    },
    {
      id: 'operation',
      title: 'Operation',
      sortBy: ({ operation }) => operation,
      cell: ({ operation, has_explanation }) => (
        <>
          <code>
            <ApiName name={operation} />
          </code>{' '}
          {has_explanation ? <Badge tone="plain">explained</Badge> : null}
        </>
      ),
    },
    {
      id: 'duration',
      is_secondary: true,
      title: 'Took',
      width: 6,
      is_number: true,
      sortBy: ({ duration }) => duration,
      cell: ({ duration }) => microsecondsText(duration),
    },
    {
      id: 'code',
      title: 'Result',
      width: 22,
      sortBy: ({ code }) => code ?? '',
      cell: ({ code }) => <Result code={code} />,
    },
    {
      id: 'namespace',
      is_secondary: true,
      title: 'Namespace',
      width: 9,
      sortBy: ({ namespace_id }) => namespaceName(game, namespace_id),
      cell: ({ namespace_id }) => namespaceName(game, namespace_id),
    },
    {
      id: 'player',
      is_secondary: true,
      title: 'Player',
      width: 7,
      cell: ({ player_id }) => <PlayerLink game={game} player_id={player_id} />,
    },
  ]
}

function Result({ code }: { code: string | undefined }) {
  if (code === undefined) return <Badge tone="good">ok</Badge>
  return (
    <Badge tone="bad">
      <ApiName name={code} />
    </Badge>
  )
}

function PlayerLink({ game, player_id }: { game: Game; player_id: string | undefined }) {
  if (player_id === undefined) return null
  return (
    <Link
      to={gameLink(game.game_id, 'search')}
      search={{ text: player_id } as never}
      title={player_id}
      className="font-mono text-xs"
    >
      {shortId(player_id)}
    </Link>
  )
}

/** A namespace that was deleted keeps its id. */
export function namespaceName(game: Game, namespace_id: string | undefined): string {
  if (namespace_id === undefined) return ''
  return game.namespaces.find((namespace) => namespace.namespace_id === namespace_id)?.display_name ?? namespace_id
}
