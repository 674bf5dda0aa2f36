// The next times of a schedule, in its zone and the viewer's, and its last runs.
import type { listScheduleRuns as listOperation, ResponseOf, Schedule } from '@musterhost/contract'
import { listScheduleRuns } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Dialog } from '../../parts/lazy-dialogs.tsx'
import { Badge, Pending } from '../../parts/notice.tsx'
import { roughly } from '../../parts/numbers.ts'
import { Ago } from '../../parts/time.tsx'
import type { Game } from '../game/game.ts'
import { ownZone, timeIn } from './times.ts'
import { OUTCOME_TONES } from './tones.ts'

type Run = ResponseOf<typeof listOperation>['runs'][number]
type RunsProps = { game: Game; schedule: Schedule; onClose: () => void }

const READ_EVERY_MS = 5_000

export function RunsDialog({ game, schedule: { name, schedule_id, next, time_zone, is_paused }, onClose }: RunsProps) {
  const params = { game_id: game.game_id, schedule_id }
  const read = useCall(listScheduleRuns, { params }, { every_ms: READ_EVERY_MS })
  const own = ownZone()
  return (
    <Dialog title={`Times and runs of ${name}`} onClose={onClose} is_wide>
      {is_paused ? <p>It is paused. It would begin at these times:</p> : null}
      <DataTable
        label="Next times"
        rows={next.map((ts) => ({ ts }))}
        rowId={({ ts }) => ts}
        columns={[
          { id: 'zone', title: `Next, in ${time_zone}`, cell: ({ ts }) => timeIn(ts, time_zone) },
          { id: 'own', title: `Here, in ${own}`, cell: ({ ts }) => timeIn(ts, own) },
          { id: 'in', title: 'When', is_secondary: true, cell: ({ ts }) => <Ago ts={ts} /> },
        ]}
        empty={<>It never begins.</>}
      />
      <Pending read={read} />
      {read.data === undefined ? null : (
        <DataTable
          label="Last runs"
          rows={read.data.runs}
          rowId={({ run_id }) => run_id}
          columns={COLUMNS}
          empty={<>It has not run yet.</>}
        />
      )}
      <div>
        <CopyAs operation={listScheduleRuns} input={{ params }} muster={`schedules runs ${name}`} />
      </div>
    </Dialog>
  )
}

const COLUMNS: Column<Run>[] = [
  { id: 'due', title: 'Due', cell: ({ due_ts }) => <Ago ts={due_ts} /> },
  { id: 'what', title: 'What', is_text: true, cell: whatOf },
  {
    id: 'outcome',
    title: 'Outcome',
    cell: ({ outcome }) => <Badge tone={OUTCOME_TONES[outcome]}>{outcome}</Badge>,
  },
  { id: 'lobbies', title: 'Lobbies', is_secondary: true, cell: ({ lobby_count }) => String(lobby_count) },
  { id: 'note', title: 'Note', is_text: true, is_secondary: true, cell: noteOf },
]

function whatOf({ before_s, is_requested }: Run): string {
  if (before_s > 0) return `announcement ${roughly(before_s * 1_000)} before`
  return is_requested ? 'by hand' : 'at its time'
}

function noteOf({ message = '', failed_count, missed_count }: Run): string {
  const failed = failed_count === 0 ? '' : `${failed_count} did not take the line.`
  const missed = missed_count < 2 ? '' : `${missed_count} times in a row.`
  return [missed, failed, message].filter((part) => part !== '').join(' ')
}
