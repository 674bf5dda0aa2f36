// Where the time of one request was spent: a bar for each service and each of its steps, on one axis.
import type { ServicePerf } from '@musterhost/contract'
import { microsecondsText } from '@musterhost/contract/explanation-words'
import { Link } from '@tanstack/react-router'
import { rayLink } from '../../links.ts'
import { ApiName } from '../../parts/api-name.tsx'
import { shortId } from '../../parts/copy.tsx'

const MS_PER_S = 1_000
const US_PER_MS = 1_000
/** A shorter bar could not be seen. Percent of the axis. */
const BAR_MIN = 0.4

const STEPS: Record<string, string> = {
  http: 'the request is read and checked',
  auth: 'the caller is authenticated',
  handle: 'the operation runs',
  captcha: 'the captcha provider is called',
  verification: 'the endpoint of the game is called',
  choose: 'a lobby is chosen',
  commit: 'the decision becomes durable',
  start: 'the process of the lobby is started',
  wait: 'until the server of the lobby is ready',
  answer: 'the response is made',
  forward: 'the role or the lobby responds',
  row: 'the run is recorded',
  process: 'the process starts',
  listen: 'until the server listens',
  ready: 'until the server is ready',
}

type Row = {
  id: string
  name: string
  meaning: string
  is_service: boolean
  offset_us: number
  duration_us: number | null
  marks: { id: string; offset_us: number; label: string; ray_id: string | undefined }[]
}

export function Waterfall({ game_id, services }: { game_id: string; services: readonly ServicePerf[] }) {
  const start_us = Math.min(...services.map(({ ts }) => microsecondsOf(ts)))
  const rows = services.flatMap((service, at) => rowsOf(service, at, start_us))
  const total_us = Math.max(1, ...rows.map(({ offset_us, duration_us }) => offset_us + (duration_us ?? 0)))
  const part = (us: number): number => Math.min(100, Math.max(0, (us / total_us) * 100))
  return (
    // biome-ignore-start lint/a11y: what scrolls must be reachable by keyboard, and it is no form.
    <div role="group" aria-label="Waterfall" tabIndex={0} className="max-w-full overflow-x-auto">
      <table aria-label="Waterfall" className="w-full table-fixed border-collapse text-left sm:min-w-2xl">
        <colgroup>
          <col className="w-36 sm:w-80" />
          <col />
          <col className="w-24 max-sm:hidden" />
          <col className="w-20 sm:w-24" />
        </colgroup>
        <thead className="bg-raised text-xs text-soft">
          <tr>
            <th scope="col" className="border-b border-line px-3 py-2 font-medium">
              Step
            </th>
            <th scope="col" className="border-b border-line px-3 py-2 font-medium">
              0 to {microsecondsText(total_us)}
            </th>
            <th scope="col" className="border-b border-line px-3 py-2 text-right font-medium max-sm:hidden">
              Begins
            </th>
            <th scope="col" className="border-b border-line px-3 py-2 text-right font-medium">
              Took
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id} className={row.is_service ? 'border-t border-line bg-raised' : ''}>
              <td className={`px-3 py-1 sm:truncate ${row.is_service ? 'font-medium' : 'pl-7'}`} title={row.meaning}>
                {row.name} <span className="text-xs text-soft">{row.meaning}</span>
              </td>
              <td className="px-3 py-1">
                <Bar row={row} part={part} />
                <Marks row={row} game_id={game_id} />
              </td>
              <td className="numbers px-3 py-1 text-right max-sm:hidden">{microsecondsText(row.offset_us)}</td>
              <td className="numbers px-3 py-1 text-right">
                {row.duration_us === null ? 'not ended' : microsecondsText(row.duration_us)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
    // biome-ignore-end lint/a11y: as above.
  )
}

function Bar({ row, part }: { row: Row; part: (us: number) => number }) {
  const left = part(row.offset_us)
  const width = Math.max(BAR_MIN, part(row.duration_us ?? 0))
  return (
    <div aria-hidden="true" className="relative h-3 rounded-sm bg-code">
      <div
        className={`absolute h-3 rounded-sm ${row.is_service ? 'bg-soft' : 'bg-accent'}`}
        style={{ left: `${Math.min(left, 100 - BAR_MIN)}%`, width: `${width}%` }}
      />
      {row.marks.map((mark) => (
        <div
          key={mark.id}
          className="absolute -top-0.5 h-4 w-0.5 bg-bad"
          style={{ left: `${Math.min(part(mark.offset_us), 99.6)}%` }}
        />
      ))}
    </div>
  )
}

function Marks({ row, game_id }: { row: Row; game_id: string }) {
  if (row.marks.length === 0) return null
  return (
    <ul className="flex flex-wrap gap-x-3 text-xs text-soft">
      {row.marks.map(({ id, label, offset_us, ray_id }) => (
        <li key={id}>
          <code>
            <ApiName name={label} />
          </code>{' '}
          at {microsecondsText(offset_us)}
          {ray_id === undefined ? null : (
            <>
              {' '}
              <Link to={rayLink(game_id, ray_id)}>ray {shortId(ray_id)}</Link>
            </>
          )}
        </li>
      ))}
    </ul>
  )
}

function rowsOf(service: ServicePerf, at: number, start_us: number): Row[] {
  const offsetOf = (ts: string): number => Math.max(0, microsecondsOf(ts) - start_us)
  const { svc_name, operation, ts, duration, spans, marks } = service
  return [
    {
      id: String(at),
      name: svc_name,
      meaning: operation,
      is_service: true,
      offset_us: offsetOf(ts),
      duration_us: duration,
      marks: marks.map((mark, index) => ({
        id: String(index),
        label: mark.label,
        offset_us: offsetOf(mark.ts),
        ray_id: mark.ray_id,
      })),
    },
    ...spans.map((span, index) => ({
      id: `${at} ${index}`,
      name: span.label,
      meaning: STEPS[span.label] ?? '',
      is_service: false,
      offset_us: offsetOf(span.start_ts),
      duration_us: span.finish_ts === undefined ? null : microsecondsOf(span.finish_ts) - microsecondsOf(span.start_ts),
      marks: [],
    })),
  ]
}

/** Microseconds since the epoch. A Date has only milliseconds. */
function microsecondsOf(ts: string): number {
  const fraction = /\.(\d+)/.exec(ts)?.[1] ?? ''
  const whole_s = Math.floor(Date.parse(ts) / MS_PER_S)
  return whole_s * MS_PER_S * US_PER_MS + Number(fraction.padEnd(6, '0').slice(0, 6))
}
