// A new namespace of the open game.
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { createGameNamespace } from '../../api/operations.gen.ts'
import { useChange } from '../../api/queries.ts'
import { namespaceLink } from '../../links.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { SelectField, TextField } from '../../parts/fields.tsx'
import { FormDialog } from '../../parts/lazy-dialogs.tsx'
import { errorAt, nameIdOf } from '../forms.ts'
import { useGame } from './game.ts'

export function NewNamespaceDialog({ onClose }: { onClose: () => void }) {
  const { game } = useGame()
  const navigate = useNavigate()
  const [display_name, setName] = useState('')
  const [own_name_id, setNameId] = useState<string | null>(null)
  const [version_id, setVersion] = useState(game.versions[0]?.version_id ?? '')
  const name_id = own_name_id ?? nameIdOf(display_name)
  const create = useChange(createGameNamespace, {
    done: `The namespace ${display_name} is created.`,
    shows_errors: true,
    onDone: ({ namespace_id }) => void navigate({ to: namespaceLink(game.game_id, namespace_id) }),
  })
  const input = { params: { game_id: game.game_id }, body: { display_name, name_id, version_id } }
  return (
    <FormDialog
      title="New namespace"
      submit="Create"
      is_busy={create.isPending}
      is_ready={display_name !== '' && name_id !== '' && version_id !== ''}
      error={create.error}
      onSubmit={() => create.mutate(input)}
      onClose={onClose}
    >
      <TextField
        label="Name"
        autoFocus
        required
        maxLength={128}
        value={display_name}
        onChange={setName}
        error={errorAt(create.error, 'display_name')}
      />
      <TextField
        label="Short name"
        hint="Part of the address of the site. It cannot be changed."
        required
        maxLength={16}
        value={name_id}
        onChange={setNameId}
        error={errorAt(create.error, 'name_id')}
      />
      <SelectField
        label="Version"
        value={version_id}
        onChange={setVersion}
        options={game.versions.map((version) => ({ value: version.version_id, text: version.display_name }))}
      />
      <div>
        <CopyAs operation={createGameNamespace} input={input} muster={`namespaces create ${name_id}`} />
      </div>
    </FormDialog>
  )
}
