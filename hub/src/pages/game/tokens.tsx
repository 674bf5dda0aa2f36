// Tokens: cloud tokens of the game for CI, public tokens that game clients contain, and development tokens.
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
import { useChange, usePages } from '../../api/queries.ts'
import { gameLink, HOME } from '../../links.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { CodeLine } from '../../parts/copy.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { SelectField, TextField } from '../../parts/fields.tsx'
import { Dialog } from '../../parts/lazy-dialogs.tsx'
import { Notice } from '../../parts/notice.tsx'
import { Page } from '../../parts/page.tsx'
import { errorAt } from '../forms.ts'
import { type Game, useGame, useMay } from './game.ts'
import { FIRST_TOKENS, nextTokens, TokenSection } from './token-section.tsx'

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

/** The input of the page after a response. */
function pageAfter<P>(params: P) {
  return (response: Parameters<typeof nextTokens>[0]) => {
    const query = nextTokens(response)
    return query === null ? null : { params, query }
  }
}

type CreatedProps = { onCreated: (token: string) => void }

/** Options of the command line for tokens of a namespace. */
function optionsOf(kind: string, game: Game, namespace_id: string): string {
  const namespace = game.namespaces.find((one) => one.namespace_id === namespace_id)
  return `--kind ${kind} --game ${game.name_id} --namespace ${namespace?.name_id ?? namespace_id}`
}

function CloudTokens({ onCreated }: CreatedProps) {
  const { game } = useGame()
  const params = { game_id: game.game_id }
  const read = usePages(listTokens, { params, query: FIRST_TOKENS }, pageAfter(params))
  const [days, setDays] = useState('90')
  const [name, setName] = useState('')
  const create = useChange(createCloudToken, {
    onDone: ({ token }) => {
      setName('')
      onCreated(token)
    },
  })
  const named = name.trim()
  const input = { params, body: { ttl: Number(days) * DAY_MS, ...(named === '' ? {} : { name: named }) } }
  const option = named === '' ? '' : ` --name "${named.replaceAll('"', '\\"')}"`
  return (
    <TokenSection
      kind="cloud"
      title="Cloud tokens"
      lead="For CI and other programs. A cloud token acts for this game only, as a developer."
      read={read}
      revocation={{
        operation: revokeGameCloudToken,
        inputOf: (token_id) => ({ params: { ...params, token_id } }),
        effect: 'Programs that use it are refused within a second.',
        muster: `--game ${game.name_id}`,
      }}
      actions={
        <>
          <TextField
            label="Name of the new cloud token"
            is_hidden_label
            placeholder="Name, for example ci"
            maxLength={64}
            autoComplete="off"
            value={name}
            onChange={setName}
          />
          <SelectField label="Valid for" is_hidden_label value={days} onChange={setDays} options={LIFETIMES} />
          <Button kind="primary" is_busy={create.isPending} onClick={() => create.mutate(input)}>
            Create a cloud token
          </Button>
          <CopyAs operation={createCloudToken} input={input} muster={`tokens create --expires ${days}d${option}`} />
        </>
      }
    />
  )
}

function PublicTokens({ namespace_id, onCreated }: CreatedProps & { namespace_id: string }) {
  const { game } = useGame()
  const params = { game_id: game.game_id, namespace_id }
  const read = usePages(listGameNamespaceTokensPublic, { params, query: FIRST_TOKENS }, pageAfter(params), {
    enabled: namespace_id !== '',
  })
  const create = useChange(createGameNamespaceTokenPublic, { onDone: ({ token }) => onCreated(token) })
  return (
    <TokenSection
      kind="public"
      title="Public tokens"
      lead="Game clients contain them. They find and join lobbies of one namespace, and nothing else."
      read={read}
      revocation={{
        operation: revokeGameNamespaceTokenPublic,
        inputOf: (token_id) => ({ params: { ...params, token_id } }),
        effect: 'Game clients with this token cannot find lobbies any more. Connected players keep playing.',
        muster: optionsOf('public', game, namespace_id),
      }}
      actions={
        <>
          <Button is_busy={create.isPending} onClick={() => create.mutate({ params })}>
            Create a public token
          </Button>
          <CopyAs operation={createGameNamespaceTokenPublic} input={{ params }} />
        </>
      }
    />
  )
}

function DevelopmentTokens({ namespace_id, onCreated }: CreatedProps & { namespace_id: string }) {
  const { game } = useGame()
  const params = { game_id: game.game_id, namespace_id }
  const read = usePages(listGameNamespaceTokensDevelopment, { params, query: FIRST_TOKENS }, pageAfter(params), {
    enabled: namespace_id !== '',
  })
  const [is_new, setNew] = useState(false)
  return (
    <>
      <TokenSection
        kind="development"
        title="Development tokens"
        lead="The matchmaker responds to them as if a lobby ran on your own machine. Real players and lobbies are never touched."
        read={read}
        revocation={{
          operation: revokeGameNamespaceTokenDevelopment,
          inputOf: (token_id) => ({ params: { ...params, token_id } }),
          effect: 'Programs that use it are refused within a second.',
          muster: optionsOf('development', game, namespace_id),
        }}
        actions={<Button onClick={() => setNew(true)}>Create a development token</Button>}
      />
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
    </>
  )
}

type NewDevelopmentProps = CreatedProps & { params: { game_id: string; namespace_id: string }; onClose: () => void }

function NewDevelopmentToken({ params, onCreated, onClose }: NewDevelopmentProps) {
  const [hostname, setHostname] = useState('localhost')
  const [port_name, setPortName] = useState('default')
  const [port, setPort] = useState('8080')
  const ports = { [port_name]: { port: Number(port), protocol: 'http' as const } }
  return (
    <ActionDialog
      operation={createGameNamespaceTokenDevelopment}
      input={{ params, body: { hostname, ports } }}
      words={{ title: 'New development token', submit: 'Create' }}
      muster={null}
      is_ready={hostname !== '' && port_name !== '' && Number.isInteger(Number(port))}
      onDone={({ token }) => onCreated(token)}
      onClose={onClose}
    >
      {({ error }) => (
        <>
          <TextField
            label="Host of your machine"
            value={hostname}
            onChange={setHostname}
            error={errorAt(error, 'hostname')}
          />
          <TextField label="Name of the port" value={port_name} onChange={setPortName} />
          <TextField label="Port" type="number" value={port} onChange={setPort} error={errorAt(error, 'port')} />
        </>
      )}
    </ActionDialog>
  )
}
