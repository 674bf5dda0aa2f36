// Dialogs for a new group and a new game.
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { createGame, createGroup } from '../../api/operations.gen.ts'
import { useChange } from '../../api/queries.ts'
import { gameLink, groupLink } from '../../links.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { SelectField, TextField } from '../../parts/fields.tsx'
import { FormDialog } from '../../parts/lazy-dialogs.tsx'
import { errorAt, nameIdOf } from '../forms.ts'

export function NewGroupDialog({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate()
  const [display_name, setName] = useState('')
  const create = useChange(createGroup, {
    done: `The group ${display_name} is created.`,
    shows_errors: true,
    onDone: ({ group_id }) => void navigate({ to: groupLink(group_id) }),
  })
  const input = { body: { display_name } }
  return (
    <FormDialog
      title="New group"
      submit="Create"
      is_busy={create.isPending}
      is_ready={display_name !== ''}
      error={create.error}
      onSubmit={() => create.mutate(input)}
      onClose={onClose}
    >
      <p>A group is the people who develop games together. Others see nothing of it.</p>
      <TextField
        label="Name"
        autoFocus
        required
        maxLength={24}
        value={display_name}
        onChange={setName}
        error={errorAt(create.error, 'display_name')}
      />
      <div>
        <CopyAs operation={createGroup} input={input} />
      </div>
    </FormDialog>
  )
}

type NewGameProps = { groups: readonly { group_id: string; display_name: string }[]; onClose: () => void }

export function NewGameDialog({ groups, onClose }: NewGameProps) {
  const navigate = useNavigate()
  const [display_name, setName] = useState('')
  const [own_name_id, setNameId] = useState<string | null>(null)
  const [group_id, setGroup] = useState(groups[0]?.group_id ?? '')
  const name_id = own_name_id ?? nameIdOf(display_name)
  const create = useChange(createGame, {
    done: `The game ${display_name} is created.`,
    shows_errors: true,
    onDone: ({ game_id }) => void navigate({ to: gameLink(game_id) }),
  })
  const input = { body: { display_name, name_id, developer_group_id: group_id } }
  return (
    <FormDialog
      title="New game"
      submit="Create"
      is_busy={create.isPending}
      is_ready={display_name !== '' && name_id !== ''}
      error={create.error}
      onSubmit={() => create.mutate(input)}
      onClose={onClose}
    >
      <TextField
        label="Name"
        autoFocus
        required
        maxLength={24}
        value={display_name}
        onChange={setName}
        error={errorAt(create.error, 'display_name')}
      />
      <TextField
        label="Short name"
        hint="Unique on this platform, and part of the address of the game. It cannot be changed."
        required
        maxLength={16}
        value={name_id}
        onChange={setNameId}
        error={errorAt(create.error, 'name_id')}
      />
      <SelectField
        label="Group"
        value={group_id}
        onChange={setGroup}
        options={groups.map((group) => ({ value: group.group_id, text: group.display_name }))}
      />
      <div>
        <CopyAs operation={createGame} input={input} muster={`games create ${name_id}`} />
      </div>
    </FormDialog>
  )
}
