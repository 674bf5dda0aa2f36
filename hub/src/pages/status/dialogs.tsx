// The forms of a status page: its settings, a new incident, and an update of one.
import type { StatusIncident, StatusPage } from '@musterhost/contract'
import { useState } from 'react'
import { createStatusIncident, putStatusPage, updateStatusIncident } from '../../api/operations.gen.ts'
import { useChange } from '../../api/queries.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { CheckField, SelectField, TextArea, TextField } from '../../parts/fields.tsx'
import { FormDialog } from '../../parts/lazy-dialogs.tsx'
import { errorAt } from '../forms.ts'
import { useGame } from '../game/game.ts'

type State = StatusIncident['state']
type Impact = StatusIncident['impact']

const STATES: Readonly<Record<State, string>> = {
  investigating: 'Investigating: the cause is searched',
  identified: 'Identified: the cause is known',
  monitoring: 'Monitoring: a fix is in place',
  resolved: 'Resolved: it is over',
}
const IMPACTS: Readonly<Record<Impact, string>> = {
  none: 'None: players notice nothing',
  minor: 'Minor: the page shows problems',
  major: 'Major: the page shows an outage',
}
const TITLE_LENGTH_MAX = 120
const TEXT_LENGTH_MAX = 2_000

function optionsOf(texts: Readonly<Record<string, string>>) {
  return Object.entries(texts).map(([value, text]) => ({ value, text }))
}

export function SettingsDialog({ page, onClose }: { page: StatusPage; onClose: () => void }) {
  const { game } = useGame()
  const [is_enabled, setEnabled] = useState(page.is_enabled)
  const [namespace_id, setNamespace] = useState(page.namespace_id)
  const [title, setTitle] = useState(page.title ?? '')
  const [text, setText] = useState(page.text ?? '')
  const [domain, setDomain] = useState(page.domain ?? '')
  const put = useChange(putStatusPage, {
    done: is_enabled ? 'The page is on.' : 'The page is off.',
    onDone: onClose,
    shows_errors: true,
  })
  const params = { game_id: game.game_id }
  const name = domain.trim().toLowerCase()
  const body = {
    ...{ is_enabled, namespace_id },
    ...(title.trim() === '' ? {} : { title: title.trim() }),
    ...(text.trim() === '' ? {} : { text: text.trim() }),
    ...(name === '' ? {} : { domain: name }),
  }
  return (
    <FormDialog
      title="Change the status page"
      submit="Save"
      is_busy={put.isPending}
      error={put.error}
      onSubmit={() => put.mutate({ params, body })}
      onClose={onClose}
    >
      <CheckField
        label="Serve the page"
        hint="At /status of the site, before a file of this name."
        checked={is_enabled}
        onChange={setEnabled}
      />
      <SelectField
        label="Namespace"
        value={namespace_id}
        onChange={setNamespace}
        options={game.namespaces.map((one) => ({ value: one.namespace_id, text: one.display_name }))}
        error={errorAt(put.error, 'namespace_id')}
      />
      <TextField
        label="Title"
        hint={`Empty: Status of ${game.display_name}.`}
        maxLength={TITLE_LENGTH_MAX}
        autoComplete="off"
        value={title}
        onChange={setTitle}
        error={errorAt(put.error, 'title')}
      />
      <TextArea
        label="Text"
        hint="Plain text below the title, for example where players get help."
        rows={3}
        maxLength={TEXT_LENGTH_MAX}
        value={text}
        onChange={setText}
        error={errorAt(put.error, 'text')}
      />
      <TextField
        label="Domain of its own"
        hint="A domain of the namespace that serves only this page. Empty: /status of the site."
        placeholder="status.example.com"
        autoComplete="off"
        spellCheck={false}
        value={domain}
        onChange={setDomain}
        error={errorAt(put.error, 'domain')}
      />
      <div>
        <CopyAs
          operation={putStatusPage}
          input={{ params, body }}
          muster={`status-page ${is_enabled ? 'on' : 'off'}`}
        />
      </div>
    </FormDialog>
  )
}

export function IncidentDialog({ onClose }: { onClose: () => void }) {
  const { game } = useGame()
  const [title, setTitle] = useState('')
  const [impact, setImpact] = useState<Impact>('minor')
  const [state, setState] = useState<State>('investigating')
  const [text, setText] = useState('')
  const create = useChange(createStatusIncident, {
    done: 'The incident is written.',
    onDone: onClose,
    shows_errors: true,
  })
  const params = { game_id: game.game_id }
  const body = { title: title.trim(), impact, state, text: text.trim() }
  return (
    <FormDialog
      title="Write an incident"
      submit="Write"
      is_busy={create.isPending}
      is_ready={body.title !== '' && body.text !== ''}
      error={create.error}
      onSubmit={() => create.mutate({ params, body })}
      onClose={onClose}
    >
      <TextField
        label="Title"
        placeholder="Games in Frankfurt start slowly"
        maxLength={TITLE_LENGTH_MAX}
        autoComplete="off"
        value={title}
        onChange={setTitle}
        error={errorAt(create.error, 'title')}
      />
      <ImpactField value={impact} onChange={setImpact} />
      <StateField value={state} onChange={setState} />
      <UpdateText value={text} onChange={setText} error={errorAt(create.error, 'text')} />
    </FormDialog>
  )
}

type UpdateProps = { incident: StatusIncident; resolves: boolean; onClose: () => void }

export function UpdateDialog({ incident, resolves, onClose }: UpdateProps) {
  const { game } = useGame()
  const { incident_id, title } = incident
  const [state, setState] = useState<State>(resolves ? 'resolved' : incident.state)
  const [impact, setImpact] = useState<Impact>(incident.impact)
  const [text, setText] = useState('')
  const update = useChange(updateStatusIncident, {
    done: state === 'resolved' ? 'The incident is resolved.' : 'The update is written.',
    onDone: onClose,
    shows_errors: true,
  })
  const params = { game_id: game.game_id, incident_id }
  const body = { state, impact, text: text.trim() }
  return (
    <FormDialog
      title={resolves ? `Resolve ${title}` : `Update ${title}`}
      submit={resolves ? 'Resolve' : 'Write'}
      is_busy={update.isPending}
      is_ready={body.text !== ''}
      error={update.error}
      onSubmit={() => update.mutate({ params, body })}
      onClose={onClose}
    >
      {resolves ? null : (
        <>
          <StateField value={state} onChange={setState} />
          <ImpactField value={impact} onChange={setImpact} />
        </>
      )}
      <UpdateText value={text} onChange={setText} error={errorAt(update.error, 'text')} />
      <div>
        <CopyAs
          operation={updateStatusIncident}
          input={{ params, body }}
          muster={`status-page update ${incident_id} --state ${state} --text "What is new"`}
        />
      </div>
    </FormDialog>
  )
}

type FieldProps<Value> = { value: Value; onChange: (value: Value) => void }

function StateField({ value, onChange }: FieldProps<State>) {
  const options = optionsOf(STATES)
  return <SelectField label="State" value={value} onChange={(chosen) => onChange(chosen as State)} options={options} />
}

function ImpactField({ value, onChange }: FieldProps<Impact>) {
  const options = optionsOf(IMPACTS)
  return (
    <SelectField label="Impact" value={value} onChange={(chosen) => onChange(chosen as Impact)} options={options} />
  )
}

type TextProps = { value: string; onChange: (text: string) => void; error: string | undefined }

function UpdateText({ value, onChange, error }: TextProps) {
  return (
    <TextArea
      label="What players should know"
      hint="Plain text. The page shows it unchanged."
      rows={4}
      maxLength={TEXT_LENGTH_MAX}
      value={value}
      onChange={onChange}
      error={error}
    />
  )
}
