// What the machine of a node used over time, all its programs together.
import type { getNodeUse, ResponseOf } from '@musterhost/contract'
import { useMemo, useState } from 'react'
import { getNodeUse as getUse } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import type { ChartProps } from '../../parts/chart.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { SelectField } from '../../parts/fields.tsx'
import { Chart } from '../../parts/lazy-chart.tsx'
import { Pending } from '../../parts/notice.tsx'
import { bytes, count } from '../../parts/numbers.ts'
import { Empty, Section } from '../../parts/page.tsx'

type Use = ResponseOf<typeof getNodeUse>['nodes'][number]

const USE_EVERY_MS = 60_000
const HOUR_MS = 3_600_000
const MEBIBYTE = 1024 * 1024
const WINDOWS = [
  { value: '1', text: 'last hour' },
  { value: '24', text: 'last 24 hours' },
  { value: '168', text: 'last 7 days' },
]

export function NodeUse() {
  const [hours, setHours] = useState('24')
  const [chosen, setChosen] = useState<string | null>(null)
  const input = { query: { hours: Number(hours) } }
  const read = useCall(getUse, input, { every_ms: USE_EVERY_MS })
  const nodes = read.data?.nodes ?? []
  const node = nodes.find(({ node_id }) => node_id === chosen) ?? nodes[0]
  return (
    <Section
      title="Use of machines"
      lead="Cores and memory that all programs of a machine used together, a mean of each point."
      actions={<CopyAs operation={getUse} input={input} />}
    >
      <Pending read={read} />
      {read.data === undefined ? null : node === undefined ? (
        <Empty>
          No machine has reported what it uses yet. The first report comes a minute after its runner started.
        </Empty>
      ) : (
        <div className="flex flex-col gap-3 p-4">
          <div className="flex flex-wrap gap-3">
            <SelectField
              label="Node"
              value={node.node_id}
              options={nodes.map(({ node_id }) => ({ value: node_id, text: node_id }))}
              onChange={setChosen}
            />
            <SelectField label="Time" value={hours} options={WINDOWS} onChange={setHours} />
          </div>
          <UseCharts use={node} span_ms={Number(hours) * HOUR_MS} />
          {read.data.is_complete ? null : (
            <p>There are more nodes: these are the first {count(nodes.length)} by name.</p>
          )}
        </div>
      )}
    </Section>
  )
}

function UseCharts({ use, span_ms }: { use: Use; span_ms: number }) {
  const memory = useMemo(() => use.memory_mb.map((value) => value * MEBIBYTE), [use])
  const shared = { times_ms: use.ts, span_ms_min: Math.min(span_ms, HOUR_MS) }
  return (
    <>
      <UseChart {...shared} name="Cores" values={use.cpu_cores} max={use.cpu_cores_max} format={count} />
      <UseChart {...shared} name="Memory" values={memory} max={use.memory_mb_max * MEBIBYTE} format={bytes} />
    </>
  )
}

type UseChartProps = Pick<ChartProps, 'times_ms' | 'span_ms_min' | 'format'> & {
  name: string
  values: readonly number[]
  max: number
}

function UseChart({ name, values, max, format, ...rest }: UseChartProps) {
  const lines = useMemo(() => [{ label: name, values }], [name, values])
  return (
    <>
      <h3 className="text-sm font-medium">
        {name}, of {format(max)}
      </h3>
      <Chart label={`Used ${name.toLowerCase()}`} lines={lines} format={format} {...rest} />
    </>
  )
}
