// The providers with which people sign in: a list, a form, and the addresses to register at each of them.
import type { SignInProvider } from '@musterhost/contract'
import { useState } from 'react'
import { deleteSignInProvider, listSignInProviders } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { HOME } from '../../links.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { CodeLine } from '../../parts/copy.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Dialog } from '../../parts/lazy-dialogs.tsx'
import { Pending } from '../../parts/notice.tsx'
import { count } from '../../parts/numbers.ts'
import { Page, Section } from '../../parts/page.tsx'
import { usePageActions } from '../../shell/page-actions.ts'
import { SignInProviderDialog } from './sign-in-provider-dialog.tsx'

type Open =
  | { kind: 'set'; provider: SignInProvider | null }
  | { kind: 'addresses' | 'remove'; provider: SignInProvider }

export default function SignInProviders() {
  const [open, setOpen] = useState<Open | null>(null)
  const read = useCall(listSignInProviders, {})
  const add = () => setOpen({ kind: 'set', provider: null })
  const close = () => setOpen(null)
  usePageActions([{ id: 'sign-in-provider', title: 'Add a provider of sign-ins', run: add }])
  return (
    <Page
      title="Sign-in"
      crumbs={[{ text: 'Home', to: HOME }]}
      lead={
        <>
          People sign in with their account elsewhere, by OpenID Connect. <a href="/docs/sign-in">How it works</a>
        </>
      }
      actions={
        <>
          <Button kind="primary" onClick={add}>
            Add a provider
          </Button>
          <CopyAs operation={listSignInProviders} input={{}} />
        </>
      }
    >
      <Section title="Providers" lead="Each has a button on the sign-in page.">
        <Pending read={read} />
        {read.data === undefined ? null : (
          <DataTable
            label="Providers"
            rows={read.data.providers}
            rowId={({ provider_id }) => provider_id}
            columns={columnsOf(setOpen)}
            empty={<>There is no provider. People sign in by e-mail, by a link or by the access token.</>}
          />
        )}
      </Section>
      {open?.kind === 'set' ? (
        <SignInProviderDialog
          provider={open.provider}
          onSaved={(provider) => setOpen({ kind: 'addresses', provider })}
          onClose={close}
        />
      ) : null}
      {open?.kind === 'addresses' ? <AddressesDialog provider={open.provider} onClose={close} /> : null}
      {open?.kind === 'remove' ? <RemoveDialog provider={open.provider} onClose={close} /> : null}
    </Page>
  )
}

function columnsOf(onOpen: (open: Open) => void): Column<SignInProvider>[] {
  return [
    { id: 'title', title: 'Provider', sortBy: ({ title }) => title, cell: ({ title }) => title },
    { id: 'name', title: 'Name', is_secondary: true, cell: ({ name }) => <code>{name}</code> },
    {
      id: 'issuer',
      title: 'Issuer',
      is_secondary: true,
      cell: ({ issuer }) => <span className="wrap-anywhere">{issuer}</span>,
    },
    {
      id: 'accounts',
      title: 'Accounts',
      is_number: true,
      is_secondary: true,
      sortBy: ({ account_count }) => account_count,
      cell: ({ account_count }) => count(account_count),
    },
    { id: 'actions', title: 'Actions', cell: (provider) => <Actions provider={provider} onOpen={onOpen} /> },
  ]
}

function Actions({ provider, onOpen }: { provider: SignInProvider; onOpen: (open: Open) => void }) {
  const { title } = provider
  return (
    <span className="flex flex-wrap gap-1">
      <Button kind="quiet" onClick={() => onOpen({ kind: 'addresses', provider })} aria-label={`Addresses of ${title}`}>
        Addresses
      </Button>
      <Button kind="quiet" onClick={() => onOpen({ kind: 'set', provider })} aria-label={`Change ${title}`}>
        Change
      </Button>
      <Button kind="quiet_danger" onClick={() => onOpen({ kind: 'remove', provider })} aria-label={`Remove ${title}`}>
        Remove
      </Button>
    </span>
  )
}

function AddressesDialog({ provider, onClose }: { provider: SignInProvider; onClose: () => void }) {
  const { title, redirect_url, sign_out_url, backchannel_logout_url } = provider
  return (
    <Dialog title={`Addresses to register at ${title}`} onClose={onClose}>
      <p>Redirect URI. Without it, no person can sign in.</p>
      <CodeLine text={redirect_url} />
      <p>Post-logout redirect URI. A sign-out of the hub leads to the provider, and back to this address.</p>
      <CodeLine text={sign_out_url} />
      <p>
        Back-channel logout URL. A sign-out at the provider then ends the sessions here. The provider must reach it.
      </p>
      <CodeLine text={backchannel_logout_url} />
    </Dialog>
  )
}

function RemoveDialog({ provider: { name, title }, onClose }: { provider: SignInProvider; onClose: () => void }) {
  return (
    <ActionDialog
      operation={deleteSignInProvider}
      input={{ params: { provider_name: name } }}
      words={{
        title: `Remove ${title}?`,
        submit: 'Remove',
        done: ({ ended_count }) => `${title} is removed. ${ended_count} sessions ended.`,
        is_danger: true,
      }}
      muster={`sign-in-providers remove ${name}`}
      onClose={onClose}
    >
      <p>People who signed in with it are signed out. The users and their memberships of groups stay.</p>
    </ActionDialog>
  )
}
