// Dialogs that take a node out of service, or back.
import type { listNodes, ResponseOf } from '@musterhost/contract'
import { useState } from 'react'
import { cancelNodeDrain, drainNode, removeNode } from '../../api/operations.gen.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { CheckField, SelectField } from '../../parts/fields.tsx'
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
  const body = {
    node_id,
    ...(at_match_end ? { at_match_end } : {}),
    ...(deadline === '' ? {} : { deadline_s: Number(deadline) }),
  }
  const { command = '' } = DEADLINES.find(({ value }) => value === deadline) ?? {}
  return (
    <ActionDialog
      operation={drainNode}
      input={{ body }}
      words={{ title: `Drain ${node_id}`, submit: 'Drain', done: `${node_id} gets no new lobbies.` }}
      muster={`nodes drain ${node_id}${at_match_end ? ' --at-match-end' : ''}${command}`}
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
    </ActionDialog>
  )
}

export function CancelDrain({ node: { node_id, state }, onClose }: Props) {
  return (
    <ActionDialog
      operation={cancelNodeDrain}
      input={{ body: { node_id } }}
      words={{
        title: state === 'removed' ? `Take back ${node_id}` : `Cancel the drain of ${node_id}`,
        submit: state === 'removed' ? 'Take back' : 'Cancel the drain',
        done: `${node_id} gets lobbies again.`,
      }}
      muster={`nodes drain ${node_id} --cancel`}
      onClose={onClose}
    >
      <p>It gets lobbies again, and its lobbies take players.</p>
    </ActionDialog>
  )
}

export function RemoveNode({ node, onClose }: Props) {
  const { node_id, lobby_count, link } = node
  const [force, setForce] = useState(false)
  return (
    <ActionDialog
      operation={removeNode}
      input={{ body: { node_id, ...(force ? { force } : {}) } }}
      words={{ title: `Remove ${node_id}`, submit: 'Remove', done: `${node_id} is removed.`, is_danger: true }}
      muster={`nodes remove ${node_id}${force ? ' --force' : ''}`}
      is_ready={lobby_count === 0 || force}
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
    </ActionDialog>
  )
}

function lobbiesOf({ lobby_count, player_count }: Pick<Node, 'lobby_count' | 'player_count'>): string {
  if (lobby_count === 0) return 'no lobby'
  return `${plural(lobby_count, 'lobby', 'lobbies')} with ${plural(player_count, 'player')}`
}
