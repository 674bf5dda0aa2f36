// A new namespace of the open game.
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { createGameNamespace } from '../../api/operations.gen.ts'
import { namespaceLink } from '../../links.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { SelectField, TextField } from '../../parts/fields.tsx'
import { errorAt, nameIdOf } from '../forms.ts'
import { useGame } from './game.ts'

export function NewNamespaceDialog({ onClose }: { onClose: () => void }) {
  const { game } = useGame()
  const navigate = useNavigate()
  const [display_name, setName] = useState('')
  const [own_name_id, setNameId] = useState<string | null>(null)
  const [version_id, setVersion] = useState(game.versions[0]?.version_id ?? '')
  const name_id = own_name_id ?? nameIdOf(display_name)
  return (
    <ActionDialog
      operation={createGameNamespace}
      input={{ params: { game_id: game.game_id }, body: { display_name, name_id, version_id } }}
      words={{ title: 'New namespace', submit: 'Create', done: `The namespace ${display_name} is created.` }}
      muster={`namespaces create ${name_id}`}
      is_ready={display_name !== '' && name_id !== '' && version_id !== ''}
      onDone={({ namespace_id }) => void navigate({ to: namespaceLink(game.game_id, namespace_id) })}
      onClose={onClose}
    >
      {({ error }) => (
        <>
          <TextField
            label="Name"
            autoFocus
            required
            maxLength={128}
            value={display_name}
            onChange={setName}
            error={errorAt(error, 'display_name')}
          />
          <TextField
            label="Short name"
            hint="Part of the address of the site. It cannot be changed."
            required
            maxLength={16}
            value={name_id}
            onChange={setNameId}
            error={errorAt(error, 'name_id')}
          />
          <SelectField
            label="Version"
            value={version_id}
            onChange={setVersion}
            options={game.versions.map((version) => ({ value: version.version_id, text: version.display_name }))}
          />
        </>
      )}
    </ActionDialog>
  )
}
