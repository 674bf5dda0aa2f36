// The players of a lobby, and removing one.

import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { deleteMatchmakerLobbyPlayer, getRayPerfLogs, listMatchmakerLobbyPlayers } from '../../api/operations.gen.ts'
import { gameLink, rayLink } from '../../links.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { ApiName } from '../../parts/api-name.tsx'
import { Button } from '../../parts/button.tsx'
import { ShortId, shortId } from '../../parts/copy.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Badge } from '../../parts/notice.tsx'
import { Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { useMay } from '../game/game.ts'
import type { LobbyPlayer, SeatOrigin } from './lobby-events.tsx'

type LobbyPlayersProps = {
  game_id: string
  lobby_id: string
  players: readonly LobbyPlayer[]
  seats: ReadonlyMap<string, SeatOrigin>
  is_over: boolean
}

export function LobbyPlayers({ game_id, lobby_id, players, seats, is_over }: LobbyPlayersProps) {
  const may = useMay()
  const may_remove = may(deleteMatchmakerLobbyPlayer)
  const may_explain = may(getRayPerfLogs)
  const [removing, setRemoving] = useState<LobbyPlayer | null>(null)
  const columns: Column<LobbyPlayer>[] = [
    {
      id: 'player',
      title: 'Player',
      cell: ({ player_id, role }) => (
        <>
          <ShortId id={player_id} />
          {role === undefined ? null : <Badge>{role}</Badge>}
        </>
      ),
    },
    {
      id: 'state',
      title: 'State',
      sortBy: ({ connect_ts }) => Number(connect_ts === undefined),
      cell: ({ connect_ts }) =>
        connect_ts === undefined ? (
          <span title="The seat is kept until the player connects, or the deadline passes.">
            <Badge>reserved</Badge>
          </span>
        ) : (
          <Badge tone="good">connected</Badge>
        ),
    },
    {
      id: 'seat',
      is_secondary: true,
      title: 'Seated',
      sortBy: ({ create_ts }) => create_ts,
      cell: ({ create_ts }) => <Ago ts={create_ts} />,
    },
    {
      id: 'connected',
      is_secondary: true,
      title: 'Connected',
      cell: ({ connect_ts }) => (connect_ts === undefined ? '' : <Ago ts={connect_ts} />),
    },
  ]
  if (may_explain) {
    columns.push({
      id: 'why',
      title: 'Seated by',
      cell: ({ player_id }) => <WhyHere game_id={game_id} player_id={player_id} request={seats.get(player_id)} />,
    })
  }
  if (may_remove) {
    columns.push({
      id: 'remove',
      title: 'Actions',
      cell: (player) => (
        <Button
          kind="quiet_danger"
          onClick={() => setRemoving(player)}
          aria-label={`Remove ${shortId(player.player_id)}`}
        >
          Remove
        </Button>
      ),
    })
  }
  return (
    <Section
      title="Players"
      actions={<CopyAs operation={listMatchmakerLobbyPlayers} input={{ params: { game_id, lobby_id } }} />}
    >
      <DataTable
        label="Players"
        columns={columns}
        rows={players}
        rowId={({ player_id }) => player_id}
        empty={is_over ? 'The lobby has ended: no player has a seat.' : 'No player has a seat.'}
      />
      {removing === null ? null : (
        <RemovePlayer params={{ game_id, lobby_id, player_id: removing.player_id }} onClose={() => setRemoving(null)} />
      )}
    </Section>
  )
}

type WhyHereProps = { game_id: string; player_id: string; request: SeatOrigin | undefined }

/** The request that took the seat. Its page explains the decision. */
function WhyHere({ game_id, player_id, request }: WhyHereProps) {
  if (request === 'not kept') return <span title="Of busy moments, only some requests are kept.">not kept</span>
  if (request !== undefined)
    return (
      <Link to={rayLink(game_id, request.ray_id)}>
        <ApiName name={request.operation} />
      </Link>
    )
  return (
    <Link to={gameLink(game_id, 'rays')} search={{ player: player_id } as never}>
      requests
    </Link>
  )
}

type RemovePlayerProps = { params: { game_id: string; lobby_id: string; player_id: string }; onClose: () => void }

function RemovePlayer({ params, onClose }: RemovePlayerProps) {
  return (
    <ActionDialog
      operation={deleteMatchmakerLobbyPlayer}
      input={{ params }}
      words={{
        title: `Remove player ${shortId(params.player_id)}`,
        submit: 'Remove',
        done: ({ did_remove }) => (did_remove ? 'The player was removed.' : 'The player had left before.'),
        is_danger: true,
      }}
      onClose={onClose}
    >
      <p>The seat is free at once, and the player's token is refused from now on.</p>
      <p>An open connection stays open until the game server closes it.</p>
    </ActionDialog>
  )
}
