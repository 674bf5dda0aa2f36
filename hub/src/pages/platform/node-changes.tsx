// Dialogs that take a node out of service, or back.
import type { listNodes, ResponseOf } from '@musterhost/contract'
import { useState } from 'react'
import { cancelNodeDrain, drainNode, removeNode } from '../../api/operations.gen.ts'
import { useChange } from '../../api/queries.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { CheckField, SelectField } from '../../parts/fields.tsx'
import { ConfirmDialog, FormDialog } from '../../parts/lazy-dialogs.tsx'
import { plural } from '../../parts/numbers.ts'

export type Node = ResponseOf<typeof listNodes>['nodes'][number]
type Props = { node: Node; onClose: () => void }

const MINUTE_S = 60
const HOUR_S = 60 * MINUTE_S
const DEADLINES = [
  { value: '', text: 'none', command: '' },
  { value: '1', text: 'now', command: ' --deadline 1s' },
  { value: String(15 * MINUTE_S), text: 'in 15 minutes', command: ' --deadline 15m' },
  { value: String(HOUR_S), text: 'in 1 hour', command: ' --deadline 1h' },
  { value: String(2 * HOUR_S), text: 'in 2 hours', command: ' --deadline 2h' },
  { value: String(12 * HOUR_S), text: 'in 12 hours', command: ' --deadline 12h' },
  { value: String(24 * HOUR_S), text: 'in 24 hours', command: ' --deadline 1d' },
]

export function DrainNode({ node, onClose }: Props) {
  const { node_id, lobby_count, player_count } = node
  const [at_match_end, setAtMatchEnd] = useState(false)
  const [deadline, setDeadline] = useState('')
  const drain = useChange(drainNode, { done: `${node_id} gets no new lobbies.`, onDone: onClose, shows_errors: true })
  const body = {
    node_id,
    ...(at_match_end ? { at_match_end } : {}),
    ...(deadline === '' ? {} : { deadline_s: Number(deadline) }),
  }
  const { command = '' } = DEADLINES.find(({ value }) => value === deadline) ?? {}
  return (
    <FormDialog
      title={`Drain ${node_id}`}
      submit="Drain"
      is_busy={drain.isPending}
      error={drain.error}
      onSubmit={() => drain.mutate({ body })}
      onClose={onClose}
    >
      <p>
        It gets no new lobbies, and its empty lobbies end. It runs {lobbiesOf({ lobby_count, player_count })}. You can
        cancel the drain.
      </p>
      <CheckField
        label="Its lobbies take no new players"
        hint="Each lobby ends when its match is over and the last player has left."
        checked={at_match_end}
        onChange={setAtMatchEnd}
      />
      <SelectField
        label="Deadline"
        hint={
          deadline === ''
            ? 'No player is disconnected.'
            : 'Lobbies that are left at the deadline end, and their players lose their seats.'
        }
        value={deadline}
        onChange={setDeadline}
        options={DEADLINES}
      />
      <div>
        <CopyAs
          operation={drainNode}
          input={{ body }}
          muster={`nodes drain ${node_id}${at_match_end ? ' --at-match-end' : ''}${command}`}
        />
      </div>
    </FormDialog>
  )
}

export function CancelDrain({ node: { node_id, state }, onClose }: Props) {
  const cancel = useChange(cancelNodeDrain, {
    done: `${node_id} gets lobbies again.`,
    onDone: onClose,
    shows_errors: true,
  })
  const input = { body: { node_id } }
  return (
    <ConfirmDialog
      title={state === 'removed' ? `Take back ${node_id}` : `Cancel the drain of ${node_id}`}
      submit={state === 'removed' ? 'Take back' : 'Cancel the drain'}
      is_busy={cancel.isPending}
      error={cancel.error}
      onSubmit={() => cancel.mutate(input)}
      onClose={onClose}
    >
      <p>It gets lobbies again, and its lobbies take players.</p>
      <div>
        <CopyAs operation={cancelNodeDrain} input={input} muster={`nodes drain ${node_id} --cancel`} />
      </div>
    </ConfirmDialog>
  )
}

export function RemoveNode({ node, onClose }: Props) {
  const { node_id, lobby_count, link } = node
  const [force, setForce] = useState(false)
  const remove = useChange(removeNode, { done: `${node_id} is removed.`, onDone: onClose, shows_errors: true })
  const input = { body: { node_id, ...(force ? { force } : {}) } }
  return (
    <FormDialog
      title={`Remove ${node_id}`}
      submit="Remove"
      is_danger
      is_busy={remove.isPending}
      is_ready={lobby_count === 0 || force}
      error={remove.error}
      onSubmit={() => remove.mutate(input)}
      onClose={onClose}
    >
      <p>
        It gets no lobbies any more.{' '}
        {link === undefined
          ? 'Stop its processes afterwards.'
          : 'Its link is closed, and the machine needs a new invitation to come back.'}
      </p>
      {lobby_count === 0 ? null : (
        <>
          <p>It still runs {lobbiesOf(node)}. Drain it first to disconnect nobody.</p>
          <CheckField
            label="End its lobbies now"
            hint="Their players lose their seats. This cannot be undone."
            checked={force}
            onChange={setForce}
          />
        </>
      )}
      <div>
        <CopyAs operation={removeNode} input={input} muster={`nodes remove ${node_id}${force ? ' --force' : ''}`} />
      </div>
    </FormDialog>
  )
}

function lobbiesOf({ lobby_count, player_count }: Pick<Node, 'lobby_count' | 'player_count'>): string {
  if (lobby_count === 0) return 'no lobby'
  return `${plural(lobby_count, 'lobby', 'lobbies')} with ${plural(player_count, 'player')}`
}
