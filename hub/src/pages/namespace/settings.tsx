// Settings of a namespace: domains, who may open its site, limits, name, expiry, and deletion.
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { deleteGameNamespace, renameGameNamespace, updateGameNamespaceExpiry } from '../../api/operations.gen.ts'
import { useChange } from '../../api/queries.ts'
import { gameLink, HOME, namespaceLink } from '../../links.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { SelectField } from '../../parts/fields.tsx'
import { Failure } from '../../parts/notice.tsx'
import { Page, Section } from '../../parts/page.tsx'
import { Ago, useNow } from '../../parts/time.tsx'
import { useMay } from '../game/game.ts'
import { RenameForm } from '../rename-form.tsx'
import { Domains } from './domains.tsx'
import { Limits } from './limits.tsx'
import { useNamespace } from './namespace.ts'
import { SiteAccess } from './site-access.tsx'
import { SiteHeaders } from './site-headers.tsx'

const DAY_MS = 86_400_000
const EXPIRIES = [
  { value: '0', text: 'never' },
  { value: '1', text: 'in 1 day' },
  { value: '7', text: 'in 7 days' },
  { value: '30', text: 'in 30 days' },
]

export default function NamespaceSettings() {
  const { game, namespace, params } = useNamespace()
  const may = useMay()
  const [is_deleting, setDeleting] = useState(false)
  const rename = useChange(renameGameNamespace, { done: 'The namespace is renamed.', shows_errors: true })
  return (
    <Page
      title="Settings"
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
        { text: namespace.display_name, to: namespaceLink(game.game_id, namespace.namespace_id) },
      ]}
    >
      <Domains />
      <SiteAccess />
      <SiteHeaders />
      <Limits />
      {may(renameGameNamespace) ? (
        <RenameForm
          name={namespace.display_name}
          length_max={128}
          is_busy={rename.isPending}
          error={rename.error}
          onSubmit={(display_name) => rename.mutate({ params, body: { display_name } })}
          copyAs={(display_name) => (
            <CopyAs
              operation={renameGameNamespace}
              input={{ params, body: { display_name } }}
              muster={`namespaces rename ${namespace.name_id} "${display_name}"`}
            />
          )}
        />
      ) : null}
      {may(updateGameNamespaceExpiry) ? <Expiry /> : null}
      {may(deleteGameNamespace) ? (
        <Section title="Delete the namespace">
          <div className="flex flex-wrap items-center justify-between gap-3 p-4">
            <p>Its lobbies stop, its site goes, and its stored data are deleted.</p>
            <Button kind="danger" onClick={() => setDeleting(true)}>
              Delete the namespace
            </Button>
          </div>
        </Section>
      ) : null}
      {is_deleting ? <Delete onClose={() => setDeleting(false)} /> : null}
    </Page>
  )
}

function Expiry() {
  const { namespace, params } = useNamespace()
  const [days, setDays] = useState('0')
  const now = useNow()
  const update = useChange(updateGameNamespaceExpiry, { done: 'The expiry is set.', shows_errors: true })
  const body = days === '0' ? {} : { expire_ts: new Date(now + Number(days) * DAY_MS).toISOString() }
  return (
    <Section title="Expiry" lead="For previews: the platform deletes an expired namespace.">
      <div className="flex flex-col gap-3 p-4">
        <p>
          {namespace.expire_ts === undefined ? (
            'It does not expire.'
          ) : (
            <>
              It expires <Ago ts={namespace.expire_ts} />.
            </>
          )}
        </p>
        <div className="flex flex-wrap items-end gap-2">
          <SelectField label="Expires" value={days} onChange={setDays} options={EXPIRIES} />
          <Button is_busy={update.isPending} onClick={() => update.mutate({ params, body })}>
            Set the expiry
          </Button>
          <CopyAs operation={updateGameNamespaceExpiry} input={{ params, body }} />
        </div>
        {update.error === null ? null : <Failure error={update.error} />}
      </div>
    </Section>
  )
}

function Delete({ onClose }: { onClose: () => void }) {
  const { game, namespace, params } = useNamespace()
  const navigate = useNavigate()
  return (
    <ActionDialog
      operation={deleteGameNamespace}
      input={{ params }}
      words={{
        title: `Delete ${namespace.display_name}`,
        submit: 'Delete the namespace',
        done: `The namespace ${namespace.display_name} is deleted.`,
        is_danger: true,
      }}
      muster={`namespaces delete ${namespace.name_id}`}
      typed_name={namespace.name_id}
      onDone={() => void navigate({ to: gameLink(game.game_id) })}
      onClose={onClose}
    >
      <p>Players are disconnected, and the stored data of the namespace are deleted. This cannot be undone.</p>
    </ActionDialog>
  )
}
