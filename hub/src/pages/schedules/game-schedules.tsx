// The schedules of a game: a list with the last run and the next times, a form for each kind, and the last runs.
import type { Schedule } from '@musterhost/contract'
import { scheduleSettings } from '@musterhost/contract/schedule-settings'
import { useState } from 'react'
import { deleteSchedule, listSchedules, putSchedule, runSchedule } from '../../api/operations.gen.ts'
import { useCall, useChange } from '../../api/queries.ts'
import { gameLink, HOME } from '../../links.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Badge, Pending } from '../../parts/notice.tsx'
import { Page, Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { usePageActions } from '../../shell/page-actions.ts'
import { type Game, useGame, useMay } from '../game/game.ts'
import { RunsDialog } from './runs-dialog.tsx'
import { ScheduleDialog } from './schedule-dialog.tsx'
import { timeIn } from './times.ts'
import { OUTCOME_TONES } from './tones.ts'

type Open = { kind: 'set'; schedule: Schedule | null } | { kind: 'delete' | 'run' | 'runs'; schedule: Schedule }

/** How often runs are read again. */
const READ_EVERY_MS = 5_000

export default function GameSchedules() {
  const { game } = useGame()
  const may_change = useMay()(putSchedule)
  const [open, setOpen] = useState<Open | null>(null)
  const params = { game_id: game.game_id }
  const read = useCall(listSchedules, { params, query: {} }, { every_ms: READ_EVERY_MS })
  const add = () => setOpen({ kind: 'set', schedule: null })
  const close = () => setOpen(null)
  usePageActions(may_change ? [{ id: 'schedule', title: 'Add a schedule', run: add }] : [])
  return (
    <Page
      title="Schedules"
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
      ]}
      lead={
        <>
          What happens in a namespace at planned times: idle lobbies, announcements, restarts and drains.{' '}
          <a href="/docs/schedules">How schedules work</a>
        </>
      }
      actions={
        <>
          {may_change ? (
            <Button kind="primary" onClick={add}>
              Add a schedule
            </Button>
          ) : null}
          <CopyAs operation={listSchedules} input={{ params, query: {} }} muster="schedules list" />
        </>
      }
    >
      <Section title="All schedules" lead="Times are in the zone of each schedule.">
        <Pending read={read} />
        {read.data === undefined ? null : (
          <DataTable
            label="Schedules"
            rows={read.data.schedules}
            rowId={({ schedule_id }) => schedule_id}
            columns={columnsOf(game, setOpen, may_change)}
            empty={<>There is no schedule. Nothing is planned.</>}
          />
        )}
      </Section>
      {open === null ? null : <OpenDialog open={open} game={game} onClose={close} />}
    </Page>
  )
}

function OpenDialog({ open, game, onClose }: { open: Open; game: Game; onClose: () => void }) {
  if (open.kind === 'set') return <ScheduleDialog game={game} schedule={open.schedule} onClose={onClose} />
  const { schedule } = open
  if (open.kind === 'runs') return <RunsDialog game={game} schedule={schedule} onClose={onClose} />
  const { name, schedule_id } = schedule
  const input = { params: { game_id: game.game_id, schedule_id } }
  const option = namespaceOption(game, schedule)
  if (open.kind === 'run') {
    return (
      <ActionDialog
        operation={runSchedule}
        input={input}
        words={{ title: `Run ${name} now?`, submit: 'Run now', done: `${name} begins.` }}
        muster={`schedules run ${name}${option}`}
        onClose={onClose}
      >
        <p>{EFFECTS[schedule.kind]} Its announcements beforehand are left out.</p>
      </ActionDialog>
    )
  }
  return (
    <ActionDialog
      operation={deleteSchedule}
      input={input}
      words={{ title: `Delete ${name}?`, submit: 'Delete', done: `${name} is deleted.`, is_danger: true }}
      muster={`schedules remove ${name}${option}`}
      onClose={onClose}
    >
      <p>Its runs are deleted too. A window that is under way ends.</p>
    </ActionDialog>
  )
}

const EFFECTS: Readonly<Record<Schedule['kind'], string>> = {
  idle_lobbies: 'More lobbies wait for players until its window ends.',
  announce: 'All its lobbies get the line.',
  restart: 'Lobbies take no new players and end when they are empty, at the latest at its deadline. New ones start.',
  drain: 'Lobbies end when they are empty, and players find none until its window ends.',
}

/** The option of the command line, after a blank. */
function namespaceOption(game: Game, { namespace_id }: Schedule): string {
  const namespace = game.namespaces.find((one) => one.namespace_id === namespace_id)
  return ` --namespace ${namespace?.name_id ?? namespace_id}`
}

function columnsOf(game: Game, onOpen: (open: Open) => void, may_change: boolean): Column<Schedule>[] {
  const namespaceOf = ({ namespace_id }: Schedule): string =>
    game.namespaces.find((one) => one.namespace_id === namespace_id)?.display_name ?? namespace_id
  return [
    {
      id: 'name',
      title: 'Name',
      sortBy: ({ name }) => name,
      cell: ({ name, kind }) => (
        <span className="flex flex-col">
          <code className="whitespace-nowrap">{name}</code>
          <span className="text-xs text-soft">{kind.replace('_', ' ')}</span>
        </span>
      ),
    },
    { id: 'namespace', title: 'Namespace', sortBy: namespaceOf, cell: namespaceOf, is_secondary: true },
    { id: 'state', title: 'State', cell: (schedule) => <State schedule={schedule} /> },
    { id: 'last', title: 'Last', is_secondary: true, cell: ({ last_run }) => <Last run={last_run} /> },
    { id: 'next', title: 'Next', cell: (schedule) => <Next schedule={schedule} /> },
    {
      id: 'actions',
      title: 'Actions',
      cell: (schedule) => <Actions schedule={schedule} onOpen={onOpen} may_change={may_change} />,
    },
  ]
}

function State({ schedule: { is_paused, active_run } }: { schedule: Schedule }) {
  if (active_run !== undefined) return <Badge tone="good">under way</Badge>
  return <Badge tone={is_paused ? 'warn' : 'plain'}>{is_paused ? 'paused' : 'on'}</Badge>
}

function Last({ run }: { run: Schedule['last_run'] }) {
  if (run === undefined) return 'never'
  return (
    <span className="flex flex-wrap items-center gap-1">
      <Badge tone={OUTCOME_TONES[run.outcome]}>{run.outcome}</Badge>
      <Ago ts={run.due_ts} />
    </span>
  )
}

function Next({ schedule: { is_paused, next, time_zone, cron } }: { schedule: Schedule }) {
  const first = next[0]
  if (is_paused || first === undefined) return <span className="whitespace-nowrap">none</span>
  return (
    <span className="flex flex-col">
      <time dateTime={first} className="numbers whitespace-nowrap">
        {timeIn(first, time_zone)}
      </time>
      <span className="text-xs text-soft">
        <code>{cron}</code> {time_zone}
      </span>
    </span>
  )
}

type ActionsProps = { schedule: Schedule; onOpen: (open: Open) => void; may_change: boolean }

function Actions({ schedule, onOpen, may_change }: ActionsProps) {
  const { game } = useGame()
  const { name, is_paused } = schedule
  const put = useChange(putSchedule, { done: is_paused ? `${name} goes on.` : `${name} is paused.` })
  const body = { ...scheduleSettings(schedule), is_paused: !is_paused }
  return (
    <span className="flex flex-wrap gap-1">
      <Button kind="quiet" onClick={() => onOpen({ kind: 'runs', schedule })} aria-label={`Times and runs of ${name}`}>
        Times
      </Button>
      {may_change ? (
        <>
          <Button kind="quiet" onClick={() => onOpen({ kind: 'run', schedule })} aria-label={`Run ${name} now`}>
            Run now
          </Button>
          <Button
            kind="quiet"
            disabled={put.isPending}
            onClick={() => put.mutate({ params: { game_id: game.game_id }, body })}
            aria-label={`${is_paused ? 'Resume' : 'Pause'} ${name}`}
          >
            {is_paused ? 'Resume' : 'Pause'}
          </Button>
          <Button kind="quiet" onClick={() => onOpen({ kind: 'set', schedule })} aria-label={`Change ${name}`}>
            Change
          </Button>
          <Button
            kind="quiet_danger"
            onClick={() => onOpen({ kind: 'delete', schedule })}
            aria-label={`Delete ${name}`}
          >
            Delete
          </Button>
        </>
      ) : null}
    </span>
  )
}
