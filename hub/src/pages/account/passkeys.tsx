// The passkeys of the person: added, renamed and removed.
import type { Passkey } from '@musterhost/contract'
import { useState } from 'react'
import { confirmed } from '../../api/confirmed.ts'
import { listPasskeys, removePasskey, renamePasskey } from '../../api/operations.gen.ts'
import { hasPasskeys, makePasskey } from '../../api/passkeys.ts'
import { useCall, useRefresh } from '../../api/queries.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { TextField } from '../../parts/fields.tsx'
import { FormDialog } from '../../parts/lazy-dialogs.tsx'
import { Badge, Pending } from '../../parts/notice.tsx'
import { plural } from '../../parts/numbers.ts'
import { Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { showToast } from '../../toasts.ts'
import { useStep } from '../sign-in/use-step.ts'

const NAME_LENGTH_MAX = 48
const PASSKEYS_MAX = 10

type Open = { kind: 'add' } | { kind: 'rename' | 'remove'; passkey: Passkey }

export function Passkeys() {
  const [open, setOpen] = useState<Open | null>(null)
  const read = useCall(listPasskeys, {})
  const passkeys = read.data?.passkeys ?? []
  const close = () => setOpen(null)
  return (
    <Section
      title="Passkeys"
      lead={
        <>
          A passkey signs you in without a code, and confirms what destroys. <a href="/docs/sign-in">How it works</a>
        </>
      }
      actions={
        <>
          {hasPasskeys() && passkeys.length < PASSKEYS_MAX ? (
            <Button onClick={() => setOpen({ kind: 'add' })}>Add a passkey</Button>
          ) : null}
          <CopyAs operation={listPasskeys} input={{}} />
        </>
      }
    >
      <Pending read={read} />
      {read.data === undefined ? null : (
        <DataTable
          label="Passkeys"
          rows={passkeys}
          rowId={({ passkey_id }) => passkey_id}
          columns={columnsOf(setOpen)}
          empty={hasPasskeys() ? 'You have no passkey.' : 'You have no passkey. This browser has none at this address.'}
        />
      )}
      {open?.kind === 'add' ? <AddDialog onClose={close} /> : null}
      {open?.kind === 'rename' ? <RenameDialog passkey={open.passkey} onClose={close} /> : null}
      {open?.kind === 'remove' ? <RemoveDialog passkey={open.passkey} onClose={close} /> : null}
    </Section>
  )
}

function columnsOf(onOpen: (open: Open) => void): Column<Passkey>[] {
  return [
    {
      id: 'name',
      title: 'Name',
      cell: ({ name, signs_in }) => (
        <>
          <span className="wrap-anywhere">{name}</span> {signs_in ? null : <Badge>confirms only</Badge>}
        </>
      ),
    },
    { id: 'added', title: 'Added', is_secondary: true, cell: ({ create_ts }) => <Ago ts={create_ts} /> },
    { id: 'used', title: 'Last used', cell: ({ use_ts }) => (use_ts === undefined ? 'never' : <Ago ts={use_ts} />) },
    {
      id: 'actions',
      title: 'Actions',
      cell: (passkey) => (
        <span className="flex flex-wrap gap-1">
          <Button
            kind="quiet"
            onClick={() => onOpen({ kind: 'rename', passkey })}
            aria-label={`Rename ${passkey.name}`}
          >
            Rename
          </Button>
          <Button
            kind="quiet_danger"
            onClick={() => onOpen({ kind: 'remove', passkey })}
            aria-label={`Remove ${passkey.name}`}
          >
            Remove
          </Button>
        </span>
      ),
    },
  ]
}

function AddDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('')
  const { is_busy, error, run } = useStep()
  const refresh = useRefresh()
  const add = (): void =>
    run(async () => {
      await confirmed(() => makePasskey(name.trim()))
      refresh(listPasskeys)
      showToast('good', 'The passkey is added.')
      onClose()
    })
  return (
    <FormDialog
      title="Add a passkey"
      submit="Continue"
      is_busy={is_busy}
      is_ready={name.trim() !== ''}
      error={error}
      onSubmit={add}
      onClose={onClose}
    >
      <p>Your browser then asks where to keep the passkey: on this device, a phone, or a security key.</p>
      <TextField
        label="Name"
        hint="So that you know it again. Example: Laptop"
        required
        autoFocus
        autoComplete="off"
        maxLength={NAME_LENGTH_MAX}
        value={name}
        onChange={setName}
      />
    </FormDialog>
  )
}

function RenameDialog({ passkey, onClose }: { passkey: Passkey; onClose: () => void }) {
  const [name, setName] = useState(passkey.name)
  return (
    <ActionDialog
      operation={renamePasskey}
      input={{ params: { passkey_id: passkey.passkey_id }, body: { name: name.trim() } }}
      words={{ title: `Rename ${passkey.name}`, submit: 'Rename', done: 'The passkey is renamed.' }}
      is_ready={name.trim() !== '' && name.trim() !== passkey.name}
      onClose={onClose}
    >
      <TextField label="Name" required autoFocus maxLength={NAME_LENGTH_MAX} value={name} onChange={setName} />
    </ActionDialog>
  )
}

function RemoveDialog({ passkey, onClose }: { passkey: Passkey; onClose: () => void }) {
  return (
    <ActionDialog
      operation={removePasskey}
      input={{ params: { passkey_id: passkey.passkey_id } }}
      words={{
        title: `Remove ${passkey.name}?`,
        submit: 'Remove',
        done: ({ ended_count }) => `The passkey is removed. ${plural(ended_count, 'other session')} ended.`,
        is_danger: true,
      }}
      onClose={onClose}
    >
      <p>
        It signs in and confirms no more, and other sessions that it opened end. Then remove it from the device or the
        key too.
      </p>
    </ActionDialog>
  )
}
