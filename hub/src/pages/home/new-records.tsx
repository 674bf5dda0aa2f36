// Dialogs for a new group and a new game.
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { createGame, createGroup } from '../../api/operations.gen.ts'
import { gameLink, groupLink } from '../../links.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { SelectField, TextField } from '../../parts/fields.tsx'
import { errorAt, nameIdOf } from '../forms.ts'

export function NewGroupDialog({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate()
  const [display_name, setName] = useState('')
  return (
    <ActionDialog
      operation={createGroup}
      input={{ body: { display_name } }}
      words={{ title: 'New group', submit: 'Create', done: `The group ${display_name} is created.` }}
      muster={null}
      is_ready={display_name !== ''}
      onDone={({ group_id }) => void navigate({ to: groupLink(group_id) })}
      onClose={onClose}
    >
      {({ error }) => (
        <>
          <p>A group is the people who develop games together. Others see nothing of it.</p>
          <TextField
            label="Name"
            autoFocus
            required
            maxLength={24}
            value={display_name}
            onChange={setName}
            error={errorAt(error, 'display_name')}
          />
        </>
      )}
    </ActionDialog>
  )
}

type NewGameProps = { groups: readonly { group_id: string; display_name: string }[]; onClose: () => void }

export function NewGameDialog({ groups, onClose }: NewGameProps) {
  const navigate = useNavigate()
  const [display_name, setName] = useState('')
  const [own_name_id, setNameId] = useState<string | null>(null)
  const [group_id, setGroup] = useState(groups[0]?.group_id ?? '')
  const name_id = own_name_id ?? nameIdOf(display_name)
  return (
    <ActionDialog
      operation={createGame}
      input={{ body: { display_name, name_id, developer_group_id: group_id } }}
      words={{ title: 'New game', submit: 'Create', done: `The game ${display_name} is created.` }}
      muster={`games create ${name_id}`}
      is_ready={display_name !== '' && name_id !== ''}
      onDone={({ game_id }) => void navigate({ to: gameLink(game_id) })}
      onClose={onClose}
    >
      {({ error }) => (
        <>
          <TextField
            label="Name"
            autoFocus
            required
            maxLength={24}
            value={display_name}
            onChange={setName}
            error={errorAt(error, 'display_name')}
          />
          <TextField
            label="Short name"
            hint="Unique on this platform, and part of the address of the game. It cannot be changed."
            required
            maxLength={16}
            value={name_id}
            onChange={setNameId}
            error={errorAt(error, 'name_id')}
          />
          <SelectField
            label="Group"
            value={group_id}
            onChange={setGroup}
            options={groups.map((group) => ({ value: group.group_id, text: group.display_name }))}
          />
        </>
      )}
    </ActionDialog>
  )
}
