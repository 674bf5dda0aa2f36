// How long the finds of the whole platform took in the last hour.
import type { getAdminFinds, ResponseOf } from '@musterhost/contract'
import { useMemo } from 'react'
import { getAdminFinds as getFinds } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Figure, Figures } from '../../parts/figures.tsx'
import { Chart } from '../../parts/lazy-chart.tsx'
import { Pending } from '../../parts/notice.tsx'
import { count, duration } from '../../parts/numbers.ts'
import { Empty, Section } from '../../parts/page.tsx'

type Finds = ResponseOf<typeof getAdminFinds>

const FINDS_EVERY_MS = 10_000
const HOUR_MS = 3_600_000
const SHARES = [
  { member: 'duration_p50', label: 'Half' },
  { member: 'duration_p95', label: '95 %' },
  { member: 'duration_p99', label: '99 %' },
] as const

export function Finds() {
  const read = useCall(getFinds, {}, { every_ms: FINDS_EVERY_MS })
  return (
    <Section
      title="Finds"
      lead="Players who got a seat in the last hour, and within which time: half of them, 95 % and 99 %. A find that started a lobby includes its start."
      actions={<CopyAs operation={getFinds} input={{}} />}
      is_bare
    >
      <Pending read={read} />
      {read.data === undefined ? null : read.data.last_hour === undefined ? (
        <div className="rounded-lg border border-line bg-page">
          <Empty>No player got a seat in the last hour.</Empty>
        </div>
      ) : (
        <div className="flex flex-col gap-3">
          <Figures label="Finds of the last hour" figures={figuresOf(read.data.last_hour)} />
          <FindChart minutes={read.data.minutes} />
        </div>
      )}
    </Section>
  )
}

function figuresOf(hour: NonNullable<Finds['last_hour']>): Figure[] {
  return [
    { name: 'Finds in the last hour', value: count(hour.find_count) },
    ...SHARES.map(({ member, label }) => ({ name: `${label} within`, value: duration(hour[member]) })),
  ]
}

function FindChart({ minutes }: Pick<Finds, 'minutes'>) {
  const lines = useMemo(
    () => SHARES.map(({ member, label }) => ({ label, values: minutes[member], has_gaps: true })),
    [minutes],
  )
  return (
    <div className="rounded-lg border border-line bg-page p-2">
      <Chart label="Duration of finds" times_ms={minutes.ts} lines={lines} format={duration} span_ms_min={HOUR_MS} />
    </div>
  )
}
