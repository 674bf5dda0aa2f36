// What a lobby uses over its life: processor, memory, traffic and players, each with its limit.
import { getLobbyUsage } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { Chart } from '../../parts/lazy-chart.tsx'
import { Pending } from '../../parts/notice.tsx'
import { bytes, count, duration, plural } from '../../parts/numbers.ts'
import { Empty, Section } from '../../parts/page.tsx'

const USAGE_EVERY_MS = 5_000
const CHART_PX = 150
/** A lobby that has only begun shows its first minute. */
const SPAN_MS_MIN = 60_000

export function LobbyUsage({ game_id, lobby_id, is_over }: { game_id: string; lobby_id: string; is_over: boolean }) {
  const params = { game_id, lobby_id }
  const read = useCall(getLobbyUsage, { params }, is_over ? {} : { every_ms: USAGE_EVERY_MS })
  const usage = read.data
  if (usage === undefined) return <Section title="Use of the machine">{<Pending read={read} />}</Section>
  const { points, step_ms } = usage
  if (points.length === 0) {
    return (
      <Section title="Use of the machine">
        <Empty>Nothing was measured yet. The first values come a few seconds after the start of the server.</Empty>
      </Section>
    )
  }
  const times_ms = points.map(({ ts }) => Date.parse(ts))
  const perSecond = (value: number | undefined): number | null =>
    value === undefined ? null : (value * 1_000) / step_ms
  return (
    <Section title="Use of the machine" lead={`Each value covers ${duration(step_ms)}.`} is_bare>
      <div className="grid gap-4 lg:grid-cols-2">
        <Panel title="Processor" limit={plural(usage.cpu_cores, 'core')}>
          <Chart
            label="Busy cores"
            height={CHART_PX}
            span_ms_min={SPAN_MS_MIN}
            times_ms={times_ms}
            lines={[
              { label: 'Busy cores', values: points.map(({ cpu_cores }) => cpu_cores) },
              ...limitLine(
                usage.cpu_cores,
                points.map(({ cpu_cores }) => cpu_cores),
              ),
            ]}
            format={(value) => value.toFixed(2)}
          />
        </Panel>
        <Panel title="Memory" limit={bytes(usage.memory_bytes)}>
          <Chart
            label="Memory"
            height={CHART_PX}
            span_ms_min={SPAN_MS_MIN}
            times_ms={times_ms}
            lines={[
              { label: 'Memory', values: points.map(({ memory_bytes }) => memory_bytes) },
              ...limitLine(
                usage.memory_bytes,
                points.map(({ memory_bytes }) => memory_bytes),
              ),
            ]}
            format={bytes}
          />
        </Panel>
        <Panel title="Traffic">
          <Chart
            label="Traffic per second"
            height={CHART_PX}
            span_ms_min={SPAN_MS_MIN}
            times_ms={times_ms}
            lines={[
              { label: 'To players', values: points.map(({ bytes_out }) => perSecond(bytes_out)) },
              { label: 'From players', values: points.map(({ bytes_in }) => perSecond(bytes_in)) },
            ]}
            step_min={1}
            format={(value) => `${bytes(value)}/s`}
          />
        </Panel>
        <Panel title="Players">
          <Chart
            label="Players"
            height={CHART_PX}
            span_ms_min={SPAN_MS_MIN}
            times_ms={times_ms}
            lines={[{ label: 'Players', values: points.map(({ player_count }) => player_count ?? null) }]}
            step_min={1}
            format={count}
          />
        </Panel>
      </div>
    </Section>
  )
}

/** Above this share of its limit, the use and the limit are readable in one chart. */
const LIMIT_SHARE_MIN = 0.2

function limitLine(limit: number, values: readonly number[]) {
  if (values.every((value) => value < limit * LIMIT_SHARE_MIN)) return []
  return [{ label: 'Limit', values: values.map(() => limit), is_dashed: true }]
}

function Panel({ title, limit, children }: { title: string; limit?: string; children: React.ReactNode }) {
  return (
    <div className="min-w-0 rounded-lg border border-line p-3">
      <h3>
        {title} {limit === undefined ? null : <span className="font-normal text-soft">of {limit}</span>}
      </h3>
      {children}
    </div>
  )
}
