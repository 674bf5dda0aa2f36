// The ratings of one player, one for each game mode.
import { getIdentityRatings, resetRatings, searchGame } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { gameLink } from '../../links.ts'
import { Button, LinkButton } from '../../parts/button.tsx'
import { CopyButton } from '../../parts/copy.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { DataTable } from '../../parts/data-table.tsx'
import { Pending } from '../../parts/notice.tsx'
import { count } from '../../parts/numbers.ts'
import { Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { useMay } from '../game/game.ts'
import { useNamespace } from '../namespace/namespace.ts'
import type { Reset } from './reset-dialog.tsx'
import { Strength } from './strength.tsx'

export function PlayerRatings({
  identity_id,
  name,
  namespace_id,
  onReset,
  onClose,
}: {
  identity_id: string
  /** Null: only the id is known. */
  name: string | null
  namespace_id: string
  onReset: (reset: Reset) => void
  onClose: () => void
}) {
  const { game } = useNamespace()
  const may = useMay()
  const may_reset = may(resetRatings)
  const input = { params: { identity_id }, query: { namespace_id } }
  const read = useCall(getIdentityRatings, input)
  const ratings = read.data?.ratings ?? []
  return (
    <Section
      title={name === null ? 'Ratings of a player' : `Ratings of ${name}`}
      actions={
        <>
          <CopyAs operation={getIdentityRatings} input={input} muster={`ratings show ${identity_id}`} />
          {may(searchGame) ? (
            <LinkButton kind="quiet" to={gameLink(game.game_id, 'search')} search={{ text: identity_id } as never}>
              Seats and requests
            </LinkButton>
          ) : null}
          {may_reset && ratings.length > 1 ? (
            <Button kind="danger" onClick={() => onReset({ identity_id })}>
              Reset all of the player …
            </Button>
          ) : null}
          <Button kind="quiet" onClick={onClose}>
            Close
          </Button>
        </>
      }
    >
      <p className="border-b border-line px-3 py-2">
        <code className="wrap-anywhere">{identity_id}</code> <CopyButton text={identity_id} label="Copy the id" />
      </p>
      {read.data === undefined ? (
        <Pending read={read} what="Loading the ratings" />
      ) : (
        <DataTable
          label="Ratings of the player"
          rows={ratings}
          rowId={({ game_mode }) => game_mode}
          empty="No match of this player was rated in this namespace."
          columns={[
            { id: 'mode', title: 'Game mode', cell: ({ game_mode }) => game_mode },
            { id: 'ordinal', title: 'Ordinal', is_number: true, cell: ({ ordinal }) => <Strength value={ordinal} /> },
            { id: 'mu', is_secondary: true, title: 'mu', is_number: true, cell: ({ mu }) => <Strength value={mu} /> },
            {
              id: 'sigma',
              is_secondary: true,
              title: 'sigma',
              is_number: true,
              cell: ({ sigma }) => <Strength value={sigma} />,
            },
            { id: 'matches', title: 'Matches', is_number: true, cell: ({ matches }) => count(matches) },
            { id: 'updated', is_secondary: true, title: 'Last match', cell: (row) => <Ago ts={row.update_ts} /> },
            ...(may_reset
              ? [
                  {
                    id: 'reset',
                    title: 'Reset',
                    cell: ({ game_mode }: { game_mode: string }) => (
                      <Button
                        kind="quiet"
                        aria-label={`Reset ${game_mode}`}
                        onClick={() => onReset({ identity_id, game_mode })}
                      >
                        Reset …
                      </Button>
                    ),
                  },
                ]
              : []),
          ]}
        />
      )}
    </Section>
  )
}
