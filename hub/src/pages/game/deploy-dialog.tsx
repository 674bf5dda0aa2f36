// Deploying a version to a namespace, forwards or back: what changes, a message, and what stays as it is. Forwards, a lobby of
// the version is started first.
import { changeLines, changesBetween } from '@musterhost/contract/differences'
import { readableConfig } from '@musterhost/contract/readable-config'
import { Link, useNavigate } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { getGameVersionById, setRollout, updateGameNamespaceVersion } from '../../api/operations.gen.ts'
import { useCall, useChange } from '../../api/queries.ts'
import { gameLink, namespaceLink } from '../../links.ts'
import { CodeBlock } from '../../parts/code-block.tsx'
import { CodeLine } from '../../parts/copy.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { CheckField, SelectField, TextField } from '../../parts/fields.tsx'
import { Dialog, FormDialog } from '../../parts/lazy-dialogs.tsx'
import { Loading, LogLines, Notice } from '../../parts/notice.tsx'
import { type CheckedDeploy, useCheckedDeploy } from './checked-deploy.ts'
import { PARTS } from './rollout-parts.ts'

/** The part of its lobbies that may fail before a roll-out is rolled back automatically, in percent. */
const FAILED_LOBBIES_PERCENT_MAX = 20

export type DeployDialogProps = {
  game_id: string
  namespace: { namespace_id: string; name_id: string; display_name: string; version_id: string }
  /** Versions to choose from, newest first. */
  versions: readonly { version_id: string; display_name: string }[]
  /** The version that is chosen at first. */
  version_id?: string
  is_rollback?: boolean
  onClose: () => void
}

export default function DeployDialog(props: DeployDialogProps) {
  const { game_id, namespace, versions, is_rollback = false, onClose } = props
  const others = versions.filter((version) => version.version_id !== namespace.version_id)
  const navigate = useNavigate()
  const [version_id, setVersion] = useState(props.version_id ?? others[0]?.version_id ?? '')
  const current = versions.find((version) => version.version_id === namespace.version_id)
  const [message, setMessage] = useState(
    is_rollback ? `Rollback from ${current?.display_name ?? 'a deleted version'}` : '',
  )
  /** Empty: all clients. */
  const [part, setPart] = useState('')
  const [is_checked, setChecked] = useState(!is_rollback)
  const name = versions.find((version) => version.version_id === version_id)?.display_name ?? version_id
  const onDone = (): void => {
    onClose()
    // The page of the namespace shows the progress of the deploy.
    void navigate({ to: namespaceLink(game_id, namespace.namespace_id) })
  }
  const done = `${namespace.display_name} runs ${name} from now on.`
  const deploy = useChange(updateGameNamespaceVersion, { done, onDone, shows_errors: true })
  const begun = `${part} % of the clients of ${namespace.display_name} get ${name} from now on.`
  const rollout = useChange(setRollout, { done: begun, onDone, shows_errors: true })
  const params = { game_id, namespace_id: namespace.namespace_id }
  const input = {
    params,
    body: { version_id, ...(message === '' ? {} : { message }), ...(is_rollback ? { is_rollback } : {}) },
  }
  const limits = { failed_lobbies_percent_max: FAILED_LOBBIES_PERCENT_MAX }
  const part_input = { params, body: { version_id, percent: Number(part), ...limits } }
  const run = () => (part === '' ? deploy.mutateAsync(input) : rollout.mutateAsync(part_input))
  const checked = useCheckedDeploy(name, run)
  const option = message === '' ? '' : ` -m "${message.replaceAll('"', '\\"')}"`
  if (others.length === 0) return <NoOtherVersion game_id={game_id} namespace={namespace} onClose={onClose} />
  return (
    <FormDialog
      title={is_rollback ? `Roll back ${namespace.display_name}` : `Deploy to ${namespace.display_name}`}
      submit={is_rollback ? `Roll back to ${name}` : part === '' ? `Deploy ${name}` : `Roll out ${name}`}
      is_wide
      is_busy={deploy.isPending || rollout.isPending || checked.waiting !== null}
      is_ready={version_id !== ''}
      error={checked.error ?? deploy.error ?? rollout.error}
      onSubmit={() => (is_checked ? checked.start(input) : void run().catch(() => undefined))}
      onClose={onClose}
    >
      <SelectField
        label="Version"
        value={version_id}
        onChange={setVersion}
        options={others.map((version) => ({ value: version.version_id, text: version.display_name }))}
      />
      {is_rollback ? null : <PartField value={part} onChange={setPart} />}
      {part === '' ? (
        <TextField
          label="Message"
          hint="Optional. The history of the namespace shows it."
          maxLength={500}
          value={message}
          onChange={setMessage}
        />
      ) : null}
      <CheckField
        label="Start a lobby first"
        hint="The namespace keeps its version when the server does not become ready."
        checked={is_checked}
        disabled={checked.waiting !== null}
        onChange={setChecked}
      />
      {checked.waiting === null ? null : <CheckProgress name={name} {...checked.waiting} />}
      {version_id === '' ? null : <Difference game_id={game_id} from_id={namespace.version_id} to_id={version_id} />}
      <p className="text-xs text-soft">
        Lobbies that run play on until they end; {part === '' ? 'new players' : `${part} % of the clients`} get the
        chosen version. Stored data, limits, domains and users of the site stay as they are.
      </p>
      {checked.error === null ? null : (
        <p>
          Nothing was deployed: {namespace.display_name} still runs {current?.display_name ?? 'its version'}.
        </p>
      )}
      <div>
        {part === '' ? (
          <CopyAs
            operation={updateGameNamespaceVersion}
            input={input}
            muster={`rollback ${name} --namespace ${namespace.name_id}${option}`}
          />
        ) : (
          <CopyAs operation={setRollout} input={part_input} />
        )}
      </div>
    </FormDialog>
  )
}

function PartField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const rolled = `It is rolled back automatically when more than ${FAILED_LOBBIES_PERCENT_MAX} % of its lobbies fail.`
  return (
    <SelectField
      label="Clients"
      hint={value === '' ? 'A part of the clients can get the version first: a roll-out.' : rolled}
      value={value}
      onChange={onChange}
      options={[{ value: '', text: 'All' }, ...PARTS.map((one) => ({ value: String(one), text: `${one} %` }))]}
    />
  )
}

function NoOtherVersion({ game_id, namespace, onClose }: Pick<DeployDialogProps, 'game_id' | 'namespace' | 'onClose'>) {
  return (
    <Dialog title={`Deploy to ${namespace.display_name}`} onClose={onClose}>
      <p>The game has no other version yet. Deploy one from the folder of the game:</p>
      <CodeLine text={`muster deploy --namespace ${namespace.name_id}`} />
      <p>
        Or upload its <Link to={gameLink(game_id, 'builds')}>build</Link> and{' '}
        <Link to={gameLink(game_id, 'sites')}>site</Link> here, and create a{' '}
        <Link to={gameLink(game_id, 'versions/new')}>new version</Link> that names them.
      </p>
    </Dialog>
  )
}

function CheckProgress({ name, message, log_lines }: NonNullable<CheckedDeploy['waiting']> & { name: string }) {
  return (
    <div role="status">
      <Notice>
        <p className="font-medium">A lobby of {name} is started first …</p>
        <p>{message}</p>
        <LogLines lines={log_lines} />
      </Notice>
    </div>
  )
}

/** The lines of the config that differ between two versions. */
export function Difference({ game_id, from_id, to_id }: { game_id: string; from_id: string; to_id: string }) {
  const from = useCall(getGameVersionById, { params: { game_id, version_id: from_id } })
  const to = useCall(getGameVersionById, { params: { game_id, version_id: to_id } })
  const lines = useMemo(() => {
    if (from.data === undefined || to.data === undefined) return null
    return changeLines(changesBetween(readableConfig(from.data.version.config), readableConfig(to.data.version.config)))
  }, [from.data, to.data])
  if (from.error !== null || to.error !== null) {
    return <Notice>The versions cannot be compared: one of them no longer exists.</Notice>
  }
  if (lines === null) return <Loading what="Comparing the versions" />
  if (lines.length === 0) {
    return <Notice>The config is the same. The build or the site may differ.</Notice>
  }
  return (
    <div className="rounded-md bg-code">
      <CodeBlock label="What changes in the config">
        {lines.map((line) => (
          <span key={line} className={`block ${TONES[line[0] ?? ''] ?? ''}`}>
            {line}
          </span>
        ))}
      </CodeBlock>
    </div>
  )
}

const TONES: Readonly<Record<string, string>> = { '+': 'text-good', '-': 'text-bad', '~': 'text-warn' }
