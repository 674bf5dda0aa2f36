// One version: its config, where it runs, and what can be done with it.
import type { getGameVersionById as getVersion, ResponseOf } from '@musterhost/contract'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { lazy, Suspense, useState } from 'react'
import {
  createGameVersion,
  deleteGameVersion,
  getGameVersionById,
  renameGameVersion,
  updateGameNamespaceVersion,
} from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { gameLink, HOME, namespaceLink } from '../../links.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Button, LinkButton } from '../../parts/button.tsx'
import { CodeBlock } from '../../parts/code-block.tsx'
import { CopyButton, ShortId } from '../../parts/copy.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { TextField } from '../../parts/fields.tsx'
import { Pending } from '../../parts/notice.tsx'
import { Facts, Page, Section } from '../../parts/page.tsx'
import { Instant } from '../../parts/time.tsx'
import { usePageActions } from '../../shell/page-actions.ts'
import { errorAt } from '../forms.ts'
import { type Game, useGame, useMay } from './game.ts'

const DeployDialog = lazy(() => import('./deploy-dialog.tsx'))

type Opened = 'rename' | 'delete' | { namespace_id: string }

export default function Version() {
  const { game } = useGame()
  const may = useMay()
  const { version_id = '' } = useParams({ strict: false }) as { version_id?: string }
  const [opened, setOpened] = useState<Opened | null>(null)
  const params = { game_id: game.game_id, version_id }
  const read = useCall(getGameVersionById, { params })
  const version = read.data?.version
  const runs_in = game.namespaces.filter((namespace) => namespace.version_id === version_id)
  const others = game.namespaces.filter((namespace) => namespace.version_id !== version_id)
  const may_deploy = may(updateGameNamespaceVersion)
  usePageActions(
    may_deploy
      ? others.map(({ namespace_id, display_name }) => ({
          id: `deploy-${namespace_id}`,
          title: `Deploy this version to ${display_name}`,
          run: () => setOpened({ namespace_id }),
        }))
      : [],
  )
  const chosen = game.namespaces.find(
    ({ namespace_id }) => typeof opened === 'object' && namespace_id === opened?.namespace_id,
  )
  const close = (): void => setOpened(null)
  return (
    <Page
      title={version?.display_name ?? 'Version'}
      mark={<ShortId id={version_id} />}
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
        { text: 'Versions', to: gameLink(game.game_id, 'versions') },
      ]}
      actions={
        may(renameGameVersion) && version !== undefined ? (
          <>
            <Button onClick={() => setOpened('rename')}>Rename</Button>
            {runs_in.length === 0 && may(deleteGameVersion) ? (
              <Button kind="danger" onClick={() => setOpened('delete')}>
                Delete
              </Button>
            ) : null}
          </>
        ) : undefined
      }
    >
      <Pending read={read} />
      {version === undefined ? null : (
        <>
          <About version={version} runs_in={runs_in} others={may_deploy ? others : []} onDeploy={setOpened} />
          <Config version={version} />
          {opened === 'rename' ? <Rename name={version.display_name} version_id={version_id} onClose={close} /> : null}
          {opened === 'delete' ? <Delete name={version.display_name} version_id={version_id} onClose={close} /> : null}
        </>
      )}
      {chosen === undefined ? null : (
        <Suspense>
          <DeployDialog
            game_id={game.game_id}
            namespace={chosen}
            versions={game.versions}
            version_id={version_id}
            onClose={close}
          />
        </Suspense>
      )}
    </Page>
  )
}

type GameVersion = ResponseOf<typeof getVersion>['version']
type Namespaces = Game['namespaces']
type AboutProps = {
  version: GameVersion
  runs_in: Namespaces
  /** Where it can be deployed. */
  others: Namespaces
  onDeploy: (to: { namespace_id: string }) => void
}

function About({ version, runs_in, others, onDeploy }: AboutProps) {
  const { game } = useGame()
  return (
    <Section title="About">
      <Facts
        facts={[
          ['Created', <Instant key="create" ts={version.create_ts} />],
          [
            'Runs in',
            runs_in.length === 0
              ? 'no namespace'
              : runs_in.map(({ namespace_id, display_name }) => (
                  <Link key={namespace_id} to={namespaceLink(game.game_id, namespace_id)} className="mr-2">
                    {display_name}
                  </Link>
                )),
          ],
        ]}
      />
      {others.length > 0 ? (
        <p className="flex flex-wrap gap-2 border-t border-line p-4">
          {others.map(({ namespace_id, display_name }) => (
            <Button key={namespace_id} onClick={() => onDeploy({ namespace_id })}>
              Deploy to {display_name}
            </Button>
          ))}
        </p>
      ) : null}
    </Section>
  )
}

function Config({ version: { version_id, config } }: { version: GameVersion }) {
  const { game } = useGame()
  const may = useMay()
  const text = JSON.stringify(config, null, 2)
  return (
    <Section
      title="Config"
      actions={
        <>
          <CopyButton text={text} label="Copy the config" is_large />
          {may(createGameVersion) ? (
            <LinkButton to={gameLink(game.game_id, 'versions/new')} search={{ from: version_id } as never}>
              New version from it
            </LinkButton>
          ) : null}
          <CopyAs operation={getGameVersionById} input={{ params: { game_id: game.game_id, version_id } }} />
        </>
      }
    >
      <CodeBlock label="Config">{text}</CodeBlock>
    </Section>
  )
}

type DialogProps = { name: string; version_id: string; onClose: () => void }

function Rename({ name, version_id, onClose }: DialogProps) {
  const { game } = useGame()
  const [display_name, setName] = useState(name)
  return (
    <ActionDialog
      operation={renameGameVersion}
      input={{ params: { game_id: game.game_id, version_id }, body: { display_name } }}
      words={{ title: `Rename ${name}`, submit: 'Rename', done: 'The version is renamed.' }}
      is_ready={display_name !== '' && display_name !== name}
      onClose={onClose}
    >
      {({ error }) => (
        <TextField
          label="Name"
          autoFocus
          maxLength={128}
          value={display_name}
          onChange={setName}
          error={errorAt(error, 'display_name')}
        />
      )}
    </ActionDialog>
  )
}

function Delete({ name, version_id, onClose }: DialogProps) {
  const { game } = useGame()
  const navigate = useNavigate()
  return (
    <ActionDialog
      operation={deleteGameVersion}
      input={{ params: { game_id: game.game_id, version_id } }}
      words={{ title: `Delete ${name}`, submit: 'Delete', done: `The version ${name} is deleted.`, is_danger: true }}
      muster={null}
      typed_name={name}
      onDone={() => void navigate({ to: gameLink(game.game_id, 'versions') })}
      onClose={onClose}
    >
      <p>The version can no longer be deployed. This cannot be undone.</p>
    </ActionDialog>
  )
}
