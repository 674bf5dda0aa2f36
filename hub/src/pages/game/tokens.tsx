// Tokens: cloud tokens of the game for CI, public tokens that game clients contain, and development tokens.
import type { listGameCloudTokens, ResponseOf } from '@muster/contract'
import { useState } from 'react'
import {
  createCloudToken,
  createGameNamespaceTokenDevelopment,
  createGameNamespaceTokenPublic,
  listGameNamespaceTokensDevelopment,
  listGameNamespaceTokensPublic,
  listGameCloudTokens as listTokens,
  revokeGameCloudToken,
  revokeGameNamespaceTokenDevelopment,
  revokeGameNamespaceTokenPublic,
} from '../../api/operations.gen.ts'
import { useCall, useChange } from '../../api/queries.ts'
import { gameLink, HOME } from '../../links.ts'
import { Button } from '../../parts/button.tsx'
import { CodeLine, ShortId } from '../../parts/copy.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { SelectField, TextField } from '../../parts/fields.tsx'
import { ConfirmDialog, Dialog, FormDialog } from '../../parts/lazy-dialogs.tsx'
import { Badge, Notice, Pending } from '../../parts/notice.tsx'
import { Page, Section } from '../../parts/page.tsx'
import { Ago, useNow } from '../../parts/time.tsx'
import { errorAt } from '../forms.ts'
import { useGame, useMay } from './game.ts'

type Token = ResponseOf<typeof listGameCloudTokens>['tokens'][number]
type Kind = 'cloud' | 'public' | 'development'

const DAY_MS = 86_400_000
const LIFETIMES = [
  { value: '1', text: '1 day' },
  { value: '30', text: '30 days' },
  { value: '90', text: '90 days' },
  { value: '365', text: '365 days' },
]

export default function Tokens() {
  const { game } = useGame()
  const may = useMay()
  const [created, setCreated] = useState<string | null>(null)
  const [namespace_id, setNamespace] = useState(game.namespaces[0]?.namespace_id ?? '')
  const is_allowed = may(listTokens)
  return (
    <Page
      title="Tokens"
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
      ]}
      lead="A token is shown once, when it is created. The platform keeps only its id."
    >
      {is_allowed ? (
        <>
          <CloudTokens onCreated={setCreated} />
          <div className="max-w-xs">
            <SelectField
              label="Namespace of the tokens below"
              value={namespace_id}
              onChange={setNamespace}
              options={game.namespaces.map((one) => ({ value: one.namespace_id, text: one.display_name }))}
            />
          </div>
          <PublicTokens namespace_id={namespace_id} onCreated={setCreated} />
          <DevelopmentTokens namespace_id={namespace_id} onCreated={setCreated} />
        </>
      ) : (
        <Notice>Developers and owners of the group see its tokens.</Notice>
      )}
      {created === null ? null : (
        <Dialog title="The new token" onClose={() => setCreated(null)}>
          <p>Copy it now: it is not shown again.</p>
          <CodeLine text={created} />
        </Dialog>
      )}
    </Page>
  )
}

type CreatedProps = { onCreated: (token: string) => void }

function CloudTokens({ onCreated }: CreatedProps) {
  const { game } = useGame()
  const params = { game_id: game.game_id }
  const read = useCall(listTokens, { params })
  const [days, setDays] = useState('90')
  const [revoked, setRevoked] = useState<Token | null>(null)
  const create = useChange(createCloudToken, { onDone: ({ token }) => onCreated(token) })
  const revoke = useChange(revokeGameCloudToken, {
    done: 'The token is revoked.',
    onDone: () => setRevoked(null),
    shows_errors: true,
  })
  const input = { params, body: { ttl: Number(days) * DAY_MS } }
  return (
    <Section
      title="Cloud tokens"
      lead="For CI and other programs. A cloud token acts for this game only, as a developer."
      actions={
        <>
          <SelectField label="Valid for" is_hidden_label value={days} onChange={setDays} options={LIFETIMES} />
          <Button kind="primary" is_busy={create.isPending} onClick={() => create.mutate(input)}>
            Create a cloud token
          </Button>
          <CopyAs operation={createCloudToken} input={input} muster={`tokens create --expires ${days}d`} />
        </>
      }
    >
      <Pending read={read} />
      <TokenTable kind="cloud" tokens={read.data?.tokens ?? []} onRevoke={setRevoked} />
      {read.data?.is_cut === true ? <Notice>Only the 1,000 newest tokens are shown.</Notice> : null}
      {revoked === null ? null : (
        <Revoke
          what="Programs that use it are refused within a second."
          is_busy={revoke.isPending}
          error={revoke.error}
          onSubmit={() => revoke.mutate({ params: { ...params, token_id: revoked.token_id } })}
          onClose={() => setRevoked(null)}
        />
      )}
    </Section>
  )
}

function PublicTokens({ namespace_id, onCreated }: CreatedProps & { namespace_id: string }) {
  const { game } = useGame()
  const params = { game_id: game.game_id, namespace_id }
  const read = useCall(listGameNamespaceTokensPublic, { params }, { enabled: namespace_id !== '' })
  const [revoked, setRevoked] = useState<Token | null>(null)
  const create = useChange(createGameNamespaceTokenPublic, { onDone: ({ token }) => onCreated(token) })
  const revoke = useChange(revokeGameNamespaceTokenPublic, {
    done: 'The token is revoked.',
    onDone: () => setRevoked(null),
    shows_errors: true,
  })
  return (
    <Section
      title="Public tokens"
      lead="Game clients contain them. They find and join lobbies of one namespace, and nothing else."
      actions={
        <>
          <Button is_busy={create.isPending} onClick={() => create.mutate({ params })}>
            Create a public token
          </Button>
          <CopyAs operation={createGameNamespaceTokenPublic} input={{ params }} />
        </>
      }
    >
      <Pending read={read} />
      <TokenTable kind="public" tokens={read.data?.tokens ?? []} onRevoke={setRevoked} />
      {revoked === null ? null : (
        <Revoke
          what="Game clients with this token cannot find lobbies any more. Connected players keep playing."
          is_busy={revoke.isPending}
          error={revoke.error}
          onSubmit={() => revoke.mutate({ params: { ...params, token_id: revoked.token_id } })}
          onClose={() => setRevoked(null)}
        />
      )}
    </Section>
  )
}

function DevelopmentTokens({ namespace_id, onCreated }: CreatedProps & { namespace_id: string }) {
  const { game } = useGame()
  const params = { game_id: game.game_id, namespace_id }
  const read = useCall(listGameNamespaceTokensDevelopment, { params }, { enabled: namespace_id !== '' })
  const [is_new, setNew] = useState(false)
  const [revoked, setRevoked] = useState<Token | null>(null)
  const revoke = useChange(revokeGameNamespaceTokenDevelopment, {
    done: 'The token is revoked.',
    onDone: () => setRevoked(null),
    shows_errors: true,
  })
  return (
    <Section
      title="Development tokens"
      lead="The matchmaker responds to them as if a lobby ran on your own machine. Real players and lobbies are never touched."
      actions={<Button onClick={() => setNew(true)}>Create a development token</Button>}
    >
      <Pending read={read} />
      <TokenTable kind="development" tokens={read.data?.tokens ?? []} onRevoke={setRevoked} />
      {is_new ? (
        <NewDevelopmentToken
          params={params}
          onCreated={(token) => {
            setNew(false)
            onCreated(token)
          }}
          onClose={() => setNew(false)}
        />
      ) : null}
      {revoked === null ? null : (
        <Revoke
          what="Programs that use it are refused within a second."
          is_busy={revoke.isPending}
          error={revoke.error}
          onSubmit={() => revoke.mutate({ params: { ...params, token_id: revoked.token_id } })}
          onClose={() => setRevoked(null)}
        />
      )}
    </Section>
  )
}

type NewDevelopmentProps = CreatedProps & { params: { game_id: string; namespace_id: string }; onClose: () => void }

function NewDevelopmentToken({ params, onCreated, onClose }: NewDevelopmentProps) {
  const [hostname, setHostname] = useState('localhost')
  const [port_name, setPortName] = useState('default')
  const [port, setPort] = useState('8080')
  const create = useChange(createGameNamespaceTokenDevelopment, {
    onDone: ({ token }) => onCreated(token),
    shows_errors: true,
  })
  const ports = { [port_name]: { port: Number(port), protocol: 'http' as const } }
  const input = { params, body: { hostname, ports } }
  return (
    <FormDialog
      title="New development token"
      submit="Create"
      is_busy={create.isPending}
      is_ready={hostname !== '' && port_name !== '' && Number.isInteger(Number(port))}
      error={create.error}
      onSubmit={() => create.mutate(input)}
      onClose={onClose}
    >
      <TextField
        label="Host of your machine"
        value={hostname}
        onChange={setHostname}
        error={errorAt(create.error, 'hostname')}
      />
      <TextField label="Name of the port" value={port_name} onChange={setPortName} />
      <TextField label="Port" type="number" value={port} onChange={setPort} error={errorAt(create.error, 'port')} />
      <div>
        <CopyAs operation={createGameNamespaceTokenDevelopment} input={input} />
      </div>
    </FormDialog>
  )
}

type TokenTableProps = { kind: Kind; tokens: readonly Token[]; onRevoke: (token: Token) => void }

function TokenTable({ kind, tokens, onRevoke }: TokenTableProps) {
  const columns: Column<Token>[] = [
    { id: 'id', title: 'Id', cell: ({ token_id }) => <ShortId id={token_id} />, width: 10 },
    { id: 'created', title: 'Created', cell: ({ create_ts }) => <Ago ts={create_ts} />, width: 12 },
    { id: 'state', title: 'State', cell: (token) => <State token={token} /> },
    {
      id: 'revoke',
      title: 'Actions',
      width: 8,
      cell: (token) =>
        token.revoke_ts === undefined ? (
          <Button
            kind="quiet"
            onClick={() => onRevoke(token)}
            aria-label={`Revoke the ${kind} token ${token.token_id}`}
          >
            Revoke
          </Button>
        ) : null,
    },
  ]
  return (
    <DataTable
      label={`${kind} tokens`}
      rows={tokens}
      rowId={(token) => token.token_id}
      columns={columns}
      empty={`There is no ${kind} token.`}
    />
  )
}

function State({ token: { revoke_ts, expire_ts } }: { token: Token }) {
  const now = useNow()
  if (revoke_ts !== undefined) return <Badge tone="bad">revoked</Badge>
  if (expire_ts === undefined) return <Badge tone="good">valid</Badge>
  if (Date.parse(expire_ts) < now) return <Badge>expired</Badge>
  return (
    <>
      <Badge tone="good">valid</Badge> expires <Ago ts={expire_ts} />
    </>
  )
}

type RevokeProps = {
  what: string
  is_busy: boolean
  error: Parameters<typeof errorAt>[0]
  onSubmit: () => void
  onClose: () => void
}

function Revoke({ what, ...rest }: RevokeProps) {
  return (
    <ConfirmDialog title="Revoke the token" submit="Revoke" is_danger {...rest}>
      <p>{what} This cannot be undone.</p>
    </ConfirmDialog>
  )
}
