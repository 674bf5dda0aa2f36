// Removes ratings, after a confirmation.
import { resetRatings } from '../../api/operations.gen.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { plural } from '../../parts/numbers.ts'

/** Ratings of a player, of a game mode, or of a player in a game mode. */
export type Reset = { identity_id: string; game_mode?: string } | { identity_id?: never; game_mode: string }

export function ResetDialog({
  reset,
  namespace_id,
  onClose,
}: {
  reset: Reset
  namespace_id: string
  onClose: () => void
}) {
  const { identity_id, game_mode } = reset
  const options = [
    ...(identity_id === undefined ? [] : [`--identity ${identity_id}`]),
    ...(game_mode === undefined ? [] : [`--game-mode ${game_mode}`]),
  ]
  return (
    <ActionDialog
      operation={resetRatings}
      input={{ body: { namespace_id, ...reset } }}
      muster={`ratings reset ${options.join(' ')}`}
      words={{
        title: identity_id === undefined ? `Reset all ratings of ${game_mode}?` : 'Reset the ratings of this player?',
        submit: 'Reset',
        done: ({ removed_count }) => `${plural(removed_count, 'rating')} removed.`,
        is_danger: true,
      }}
      {...(identity_id === undefined ? { typed_name: game_mode } : {})}
      onClose={onClose}
    >
      {identity_id === undefined ? (
        <p>
          The rating of every player in <strong>{game_mode}</strong> is removed. The next match of each begins with the
          rating of a new player. This cannot be undone.
        </p>
      ) : (
        <p className="wrap-anywhere">
          {game_mode === undefined ? 'The ratings in all game modes' : `The rating in ${game_mode}`} of the player{' '}
          <code>{identity_id}</code> {game_mode === undefined ? 'are' : 'is'} removed. The next match begins with the
          rating of a new player. This cannot be undone.
        </p>
      )}
    </ActionDialog>
  )
}
