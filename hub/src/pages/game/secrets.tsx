// Secrets of a game: environment variables of its lobbies. They can be set, replaced and removed here, and read nowhere.
import type { listGameSecrets as listGameSecretsOperation, ResponseOf } from '@musterhost/contract'
import { useState } from 'react'
import { listGameSecrets, removeGameSecret, setGameSecret } from '../../api/operations.gen.ts'
import { useCall, useChange } from '../../api/queries.ts'
import { gameLink, HOME } from '../../links.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { SelectField, TextArea, TextField } from '../../parts/fields.tsx'
import { FormDialog } from '../../parts/lazy-dialogs.tsx'
import { Pending } from '../../parts/notice.tsx'
import { Page, Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { usePageActions } from '../../shell/page-actions.ts'
import { errorAt } from '../forms.ts'
import { type Game, useGame, useMay } from './game.ts'

type Secret = ResponseOf<typeof listGameSecretsOperation>['secrets'][number]
/** `set`: without a secret, a new one is set; with one, its value is replaced. */
type Open = { kind: 'set'; secret: Secret | null } | { kind: 'remove'; secret: Secret }

const ALL_NAMESPACES = 'All namespaces'
/** Stands for the value in commands, which others could read in the history of a shell. */
const VALUE = 'THE VALUE'

export default function Secrets() {
  const { game } = useGame()
  const may = useMay()
  const [open, setOpen] = useState<Open | null>(null)
  const params = { game_id: game.game_id }
  const read = useCall(listGameSecrets, { params })
  const secrets = read.data?.secrets ?? []
  const may_set = may(setGameSecret)
  const add = () => setOpen({ kind: 'set', secret: null })
  usePageActions(may_set ? [{ id: 'secret-set', title: 'Set a secret', run: add }] : [])
  return (
    <Page
      title="Secrets"
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
      ]}
      lead={
        <>
          Keys that game servers need and no build contains: of a payment service, of a database. Lobbies have them as
          environment variables. <a href="/docs/secrets">How secrets work</a>
        </>
      }
      actions={
        <>
          {may_set ? (
            <Button kind="primary" onClick={add}>
              Set a secret
            </Button>
          ) : null}
          <CopyAs operation={listGameSecrets} input={{ params }} muster="secrets list" />
        </>
      }
    >
      <Section
        title="All secrets"
        lead="Nobody can read a value again, here or elsewhere. A secret of one namespace takes precedence over one of all namespaces."
      >
        <Pending read={read} />
        {read.data === undefined ? null : (
          <DataTable
            label="Secrets"
            rows={secrets}
            rowId={({ name, namespace_id }) => `${name} ${namespace_id ?? ''}`}
            columns={columnsOf(game, may_set ? setOpen : null)}
            empty={<NoSecret may_set={may_set} />}
          />
        )}
      </Section>
      {open === null ? null : open.kind === 'set' ? (
        <SetDialog secret={open.secret} onClose={() => setOpen(null)} />
      ) : (
        <RemoveDialog secret={open.secret} onClose={() => setOpen(null)} />
      )}
    </Page>
  )
}

function NoSecret({ may_set }: { may_set: boolean }) {
  return (
    <>
      The game has no secret. {may_set ? 'Set one here, or with ' : 'Developers of the group set them here, or with '}
      <code>muster secrets set PAYMENT_KEY</code>.
    </>
  )
}

function scopeName(game: Game, namespace_id: string | undefined): string {
  if (namespace_id === undefined) return ALL_NAMESPACES
  return game.namespaces.find((one) => one.namespace_id === namespace_id)?.display_name ?? namespace_id
}

/** The option of the command line for the scope, after a blank. */
function scopeOption(game: Game, namespace_id: string | undefined): string {
  if (namespace_id === undefined) return ''
  const namespace = game.namespaces.find((one) => one.namespace_id === namespace_id)
  return ` --namespace ${namespace?.name_id ?? namespace_id}`
}

/** `onOpen`: null for people who may only read. */
function columnsOf(game: Game, onOpen: ((open: Open) => void) | null): Column<Secret>[] {
  const scopeOf = ({ namespace_id }: Secret): string => scopeName(game, namespace_id)
  return [
    {
      id: 'name',
      title: 'Name',
      sortBy: ({ name }) => name,
      cell: ({ name }) => <code className="whitespace-nowrap">{name}</code>,
    },
    { id: 'scope', title: 'Namespace', sortBy: scopeOf, cell: scopeOf },
    {
      id: 'by',
      is_secondary: true,
      title: 'Set by',
      cell: ({ set_by }) => set_by?.name ?? (set_by?.kind === 'cloud' ? 'a cloud token' : (set_by?.kind ?? '')),
    },
    {
      id: 'set',
      is_secondary: true,
      title: 'When',
      sortBy: ({ update_ts }) => update_ts,
      cell: ({ update_ts }) => <Ago ts={update_ts} />,
    },
    ...(onOpen === null ? [] : [actionsOf(onOpen, scopeOf)]),
  ]
}

function actionsOf(onOpen: (open: Open) => void, scopeOf: (secret: Secret) => string): Column<Secret> {
  return {
    id: 'actions',
    title: 'Actions',
    cell: (secret) => (
      <span className="flex flex-wrap gap-1">
        <Button
          kind="quiet"
          onClick={() => onOpen({ kind: 'set', secret })}
          aria-label={`Replace the value of ${secret.name}, ${scopeOf(secret)}`}
        >
          Replace
        </Button>
        <Button
          kind="quiet_danger"
          onClick={() => onOpen({ kind: 'remove', secret })}
          aria-label={`Remove ${secret.name}, ${scopeOf(secret)}`}
        >
          Remove
        </Button>
      </span>
    ),
  }
}

type SecretDialogProps<S> = { secret: S; onClose: () => void }

function SetDialog({ secret, onClose }: SecretDialogProps<Secret | null>) {
  const { game } = useGame()
  const [name, setName] = useState(secret?.name ?? '')
  const [namespace_id, setNamespace] = useState(secret?.namespace_id ?? '')
  const [text, setText] = useState('')
  const set = useChange(setGameSecret, {
    done: `${name} is set. Lobbies that start from now on have it.`,
    onDone: onClose,
    shows_errors: true,
  })
  const value = text.trim()
  const params = { game_id: game.game_id, name: name.trim() }
  const scope = namespace_id === '' ? {} : { namespace_id }
  const error_at = { name: errorAt(set.error, 'name'), value: errorAt(set.error, 'value') }
  const is_at_field = error_at.name !== undefined || error_at.value !== undefined
  return (
    <FormDialog
      title={secret === null ? 'Set a secret' : `Replace the value of ${secret.name}`}
      submit={secret === null ? 'Set' : 'Replace'}
      is_busy={set.isPending}
      is_ready={params.name !== '' && value !== ''}
      error={is_at_field ? null : set.error}
      onSubmit={() => set.mutate({ params, body: { value, ...scope } })}
      onClose={onClose}
    >
      {secret === null ? (
        <>
          <TextField
            label="Name"
            hint="Of the environment variable: letters, digits and underscores."
            placeholder="PAYMENT_KEY"
            maxLength={64}
            autoComplete="off"
            autoCapitalize="characters"
            spellCheck={false}
            value={name}
            onChange={setName}
            error={error_at.name}
          />
          <SelectField
            label="Namespace"
            value={namespace_id}
            onChange={setNamespace}
            options={[
              { value: '', text: ALL_NAMESPACES },
              ...game.namespaces.map((one) => ({ value: one.namespace_id, text: one.display_name })),
            ]}
          />
        </>
      ) : (
        <p>
          It holds in: {scopeName(game, secret.namespace_id)}. Running lobbies keep the value before until they end.
        </p>
      )}
      <TextArea
        label="Value"
        hint="It is stored encrypted and not shown again. White space around it is removed."
        rows={4}
        autoComplete="off"
        spellCheck={false}
        value={text}
        onChange={setText}
        error={error_at.value}
      />
      <div>
        <CopyAs
          operation={setGameSecret}
          input={{ params, body: { value: VALUE, ...scope } }}
          muster={`secrets set ${params.name}${scopeOption(game, scope.namespace_id)} < FILE`}
        />
      </div>
    </FormDialog>
  )
}

function RemoveDialog({ secret, onClose }: SecretDialogProps<Secret>) {
  const { game } = useGame()
  const { name, namespace_id } = secret
  const query = namespace_id === undefined ? {} : { namespace_id }
  return (
    <ActionDialog
      operation={removeGameSecret}
      input={{ params: { game_id: game.game_id, name }, query }}
      words={{ title: `Remove ${name}?`, submit: 'Remove', done: `${name} is removed.`, is_danger: true }}
      muster={`secrets remove ${name}${scopeOption(game, namespace_id)}`}
      onClose={onClose}
    >
      <p>
        It holds in: {scopeName(game, namespace_id)}. Lobbies that start from now on do not have it; running lobbies
        keep it. Its value cannot be restored.
      </p>
    </ActionDialog>
  )
}
