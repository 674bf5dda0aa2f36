// The status page of a game: its settings, what players see now, and its incidents.
import type { StatusIncident, StatusPage } from '@musterhost/contract'
import { useState } from 'react'
import {
  createStatusIncident,
  deleteStatusIncident,
  getStatusPage,
  listStatusIncidents,
  putStatusPage,
} from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { gameLink, HOME } from '../../links.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Badge, Notice, Pending } from '../../parts/notice.tsx'
import { Page, Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { usePageActions } from '../../shell/page-actions.ts'
import { useGame, useMay } from '../game/game.ts'
import { IncidentDialog, SettingsDialog, UpdateDialog } from './dialogs.tsx'

type Open =
  | { kind: 'settings'; page: StatusPage }
  | { kind: 'incident' }
  | { kind: 'update' | 'resolve' | 'delete'; incident: StatusIncident }

const STATES = {
  operational: { tone: 'good', text: 'Players get into games' },
  degraded: { tone: 'warn', text: 'There are problems' },
  outage: { tone: 'bad', text: 'There is an outage' },
  unknown: { tone: 'plain', text: 'Not measured now' },
} as const
const IMPACT_TONES = { none: 'plain', minor: 'warn', major: 'bad' } as const

export default function GameStatusPage() {
  const { game } = useGame()
  const may = useMay()
  const [open, setOpen] = useState<Open | null>(null)
  const params = { game_id: game.game_id }
  const page = useCall(getStatusPage, { params })
  const incidents = useCall(listStatusIncidents, { params })
  const may_change = may(putStatusPage)
  const settings = page.data?.status_page
  const write = () => setOpen({ kind: 'incident' })
  const close = () => setOpen(null)
  usePageActions(may(createStatusIncident) ? [{ id: 'status-incident', title: 'Write an incident', run: write }] : [])
  return (
    <Page
      title="Status page"
      mark={settings?.is_enabled ? <Badge tone="good">on</Badge> : null}
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
      ]}
      lead={
        <>
          Shows players whether they get into games, and what you write about incidents. It is served while the database
          is away. <a href="/docs/status-page">How it works</a>
        </>
      }
      actions={
        <>
          {may_change ? (
            <>
              <Button kind="primary" onClick={write}>
                Write an incident
              </Button>
              <Button
                onClick={() => settings !== undefined && setOpen({ kind: 'settings', page: settings })}
                disabled={settings === undefined}
              >
                Change the page
              </Button>
            </>
          ) : null}
          <CopyAs operation={getStatusPage} input={{ params }} muster="status-page show" />
        </>
      }
    >
      <Section title="The page">
        <Pending read={page} />
        {settings === undefined ? null : <Settings page={settings} />}
      </Section>
      <Section title="Incidents" lead="Open ones are at the top of the page. Resolved ones stay there for 90 days.">
        <Pending read={incidents} />
        {incidents.data === undefined ? null : (
          <DataTable
            label="Incidents"
            rows={incidents.data.incidents}
            rowId={({ incident_id }) => incident_id}
            columns={columnsOf(may_change ? setOpen : null)}
            empty={<>There is no incident.</>}
          />
        )}
      </Section>
      {open?.kind === 'settings' ? <SettingsDialog page={open.page} onClose={close} /> : null}
      {open?.kind === 'incident' ? <IncidentDialog onClose={close} /> : null}
      {open?.kind === 'update' || open?.kind === 'resolve' ? (
        <UpdateDialog incident={open.incident} resolves={open.kind === 'resolve'} onClose={close} />
      ) : null}
      {open?.kind === 'delete' ? <DeleteDialog incident={open.incident} onClose={close} /> : null}
    </Page>
  )
}

function Settings({ page: { is_enabled, namespace_id, title, text, url, state, measured_ts } }: { page: StatusPage }) {
  const { game } = useGame()
  const namespace = game.namespaces.find((one) => one.namespace_id === namespace_id)
  if (!is_enabled) {
    return <Notice>The page is off: nothing is measured, and its address belongs to the site.</Notice>
  }
  return (
    <dl className="grid gap-x-6 gap-y-2 px-4 py-3 sm:grid-cols-[max-content_1fr] wrap-anywhere">
      <dt className="text-soft">Shows</dt>
      <dd>
        <Badge tone={STATES[state].tone}>{STATES[state].text}</Badge>
      </dd>
      <dt className="text-soft">Address</dt>
      <dd>
        <a href={url} target="_blank" rel="noreferrer">
          {url}
        </a>
      </dd>
      <dt className="text-soft">Namespace</dt>
      <dd>{namespace?.display_name ?? namespace_id}</dd>
      {title === undefined ? null : (
        <>
          <dt className="text-soft">Title</dt>
          <dd>{title}</dd>
        </>
      )}
      {text === undefined ? null : (
        <>
          <dt className="text-soft">Text</dt>
          <dd className="whitespace-pre-line">{text}</dd>
        </>
      )}
      <dt className="text-soft">Measured</dt>
      <dd>{measured_ts === undefined ? 'not yet' : <Ago ts={measured_ts} />}</dd>
    </dl>
  )
}

/** `onOpen`: null for people who may only read. */
function columnsOf(onOpen: ((open: Open) => void) | null): Column<StatusIncident>[] {
  return [
    { id: 'title', title: 'Incident', is_text: true, cell: ({ title }) => title },
    {
      id: 'state',
      title: 'State',
      cell: ({ state }) => <Badge tone={state === 'resolved' ? 'good' : 'warn'}>{state}</Badge>,
    },
    {
      id: 'impact',
      title: 'Impact',
      is_secondary: true,
      cell: ({ impact }) => <Badge tone={IMPACT_TONES[impact]}>{impact}</Badge>,
    },
    {
      id: 'last',
      title: 'Last update',
      is_secondary: true,
      is_text: true,
      cell: ({ updates }) => updates[0]?.text ?? '',
    },
    { id: 'written', title: 'Written', is_secondary: true, cell: ({ create_ts }) => <Ago ts={create_ts} /> },
    ...(onOpen === null ? [] : [actionsOf(onOpen)]),
  ]
}

function actionsOf(onOpen: (open: Open) => void): Column<StatusIncident> {
  return {
    id: 'actions',
    title: 'Actions',
    cell: (incident) => (
      <span className="flex flex-wrap gap-1">
        <Button
          kind="quiet"
          onClick={() => onOpen({ kind: 'update', incident })}
          aria-label={`Write an update of ${incident.title}`}
        >
          Update
        </Button>
        {incident.state === 'resolved' ? null : (
          <Button
            kind="quiet"
            onClick={() => onOpen({ kind: 'resolve', incident })}
            aria-label={`Resolve ${incident.title}`}
          >
            Resolve
          </Button>
        )}
        <Button
          kind="quiet_danger"
          onClick={() => onOpen({ kind: 'delete', incident })}
          aria-label={`Delete ${incident.title}`}
        >
          Delete
        </Button>
      </span>
    ),
  }
}

function DeleteDialog({ incident, onClose }: { incident: StatusIncident; onClose: () => void }) {
  const { game } = useGame()
  const { incident_id, title } = incident
  return (
    <ActionDialog
      operation={deleteStatusIncident}
      input={{ params: { game_id: game.game_id, incident_id } }}
      words={{ title: `Delete ${title}?`, submit: 'Delete', done: 'The incident is deleted.', is_danger: true }}
      muster={`status-page delete ${incident_id}`}
      onClose={onClose}
    >
      <p>Its updates are deleted too, and the page shows it no longer. Resolve it to keep it there.</p>
    </ActionDialog>
  )
}
