// Charts of values over time, drawn by uPlot. A screen reader gets the range and the last value of each line. A slider over the
// instants shows the values at each by keyboard, and reads them out. Pages offer a table beside it. The module is loaded with the first chart: see lazy-chart.tsx.
import { useEffect, useRef, useState } from 'react'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { instant } from './numbers.ts'

type Line = {
  label: string
  values: readonly (number | null)[]
  is_dashed?: boolean
  /** Values are missing at some instants. The line joins the others, and each of them has a point. */
  has_gaps?: boolean
}

/** An event at an instant: a line across the chart, with its text at the top. */
export type ChartMark = { at_ms: number; text: string }

export type ChartProps = {
  /** What is shown. */
  label: string
  /** Instants of the values, in milliseconds. */
  times_ms: readonly number[]
  lines: readonly Line[]
  /** The page says them in words too: a screen reader does not read them here. */
  marks?: readonly ChartMark[]
  format: (value: number) => string
  /** The least step of the axis. Counts take 1. Default: any. */
  step_min?: number
  height?: number
  /** Least length of the time axis, for values that have only begun. */
  span_ms_min?: number
  /** The person has marked a range with the pointer. */
  onRange?: (from_ms: number, to_ms: number) => void
}

const HEIGHT_PX = 220
/** A marked range of fewer pixels is a click. */
const RANGE_PX_MIN = 4
const AXIS_PX = 68
/** Least distance of two labels of the time axis: room for "12:34:56" and for "23 Nov". */
const TIME_LABEL_PX = 72
const DAY_S = 86_400
/** Length of the time axis for a single instant, where uPlot would take two years. */
const SPAN_MS_MIN = 60_000
/** Labels of the time axis in 24 hours, by the least step in seconds. The second line shows what changed since the label before. */
const TIME_LABELS = [
  timeLabels(365 * DAY_S, '{YYYY}'),
  timeLabels(28 * DAY_S, '{MMM}', '\n{YYYY}'),
  timeLabels(DAY_S, '{D} {MMM}', '\n{YYYY}'),
  timeLabels(60, '{HH}:{mm}', '\n{D} {MMM}', '\n{D} {MMM}'),
  timeLabels(1, '{HH}:{mm}:{ss}', '\n{D} {MMM}', '\n{D} {MMM}'),
  timeLabels(0.001, '{ss}.{fff}', '\n{HH}:{mm}', '\n{HH}:{mm}', '\n{HH}:{mm}'),
]
const COLORS = ['--accent', '--good', '--warn', '--bad', '--soft'] as const

export default function Chart(props: ChartProps) {
  const { label, times_ms, lines, marks } = props
  const frame = useRef<HTMLDivElement>(null)
  const chart = useRef<uPlot | null>(null)
  const latest = useRef(props)
  latest.current = props
  const shape = lines.map((line) => `${line.label}:${line.is_dashed === true}`).join('|')

  // biome-ignore lint/correctness/useExhaustiveDependencies: the chart is made anew for other lines; values come by setData.
  useEffect(() => {
    const element = frame.current
    if (element === null) return
    const made = new uPlot(optionsOf(latest, element), dataOf(latest.current), element)
    chart.current = made
    const resize = new ResizeObserver(() =>
      made.setSize({ width: element.clientWidth, height: latest.current.height ?? HEIGHT_PX }),
    )
    resize.observe(element)
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    const redraw = (): void => made.redraw(false)
    const theme = new MutationObserver(redraw)
    theme.observe(document.documentElement, { attributeFilter: ['data-theme'] })
    scheme.addEventListener('change', redraw)
    return () => {
      scheme.removeEventListener('change', redraw)
      theme.disconnect()
      resize.disconnect()
      made.destroy()
      chart.current = null
    }
  }, [shape])

  useEffect(() => {
    chart.current?.setData(dataOf({ times_ms, lines }))
  }, [times_ms, lines])

  // biome-ignore lint/correctness/useExhaustiveDependencies: drawing reads the marks from `latest`.
  useEffect(() => {
    chart.current?.redraw(false)
  }, [marks])

  return (
    <div className="relative rounded-md outline-accent has-focus-visible:outline-2">
      <div
        ref={frame}
        role="img"
        aria-label={`${label}: ${summaryOf(props)}`}
        className="w-full min-w-0 overflow-hidden"
      />
      {hasValues(lines) ? null : (
        <p className="pointer-events-none absolute inset-x-0 top-16 text-center text-soft">No value in this time.</p>
      )}
      <InstantSlider {...props} chart={chart} />
    </div>
  )
}

/** It is seen only by its effect: the values of the chosen instant in the legend. */
function InstantSlider({ chart, label, times_ms, lines, format }: ChartProps & { chart: { current: uPlot | null } }) {
  const [chosen, setChosen] = useState<number | null>(null)
  const last = Math.max(0, times_ms.length - 1)
  const at = Math.min(chosen ?? last, last)
  function show(next: number): void {
    setChosen(next)
    const shown = chart.current
    const at_ms = times_ms[next]
    if (shown === null || at_ms === undefined) return
    shown.setCursor({ left: shown.valToPos(at_ms / 1_000, 'x'), top: shown.over.clientHeight / 2 })
  }
  function hide(): void {
    setChosen(null)
    chart.current?.setCursor({ left: -1, top: -1 })
  }
  return (
    <input
      type="range"
      className="sr-only"
      aria-label={`${label} at an instant`}
      aria-valuetext={valuesAt(at, { times_ms, lines, format })}
      min={0}
      max={last}
      value={at}
      onChange={(event) => show(Number(event.target.value))}
      onFocus={() => show(at)}
      onBlur={hide}
    />
  )
}

function hasValues(lines: readonly Line[]): boolean {
  return lines.some(({ values }) => values.some((value) => value !== null))
}

function valuesAt(at: number, { times_ms, lines, format }: Pick<ChartProps, 'times_ms' | 'lines' | 'format'>): string {
  const at_ms = times_ms[at]
  if (at_ms === undefined) return 'no values'
  const values = lines.map(({ label, values }) => {
    const value = values[at]
    return `${label} ${value === null || value === undefined ? 'unknown' : format(value)}`
  })
  return `${instant(at_ms)}: ${values.join(', ')}`
}

function dataOf({ times_ms, lines }: Pick<ChartProps, 'times_ms' | 'lines'>): uPlot.AlignedData {
  return [times_ms.map((ms) => ms / 1_000), ...lines.map(({ values }) => [...values])]
}

function summaryOf({ times_ms, lines, format }: ChartProps): string {
  const first = times_ms[0]
  const last = times_ms.at(-1)
  if (first === undefined || last === undefined) return 'no values'
  const ends = lines.map(({ label, values }) => {
    const value = values.at(-1)
    return `${label} ${value === null || value === undefined ? 'unknown' : format(value)}`
  })
  return `from ${instant(first)} to ${instant(last)}; at the end ${ends.join(', ')}`
}

function optionsOf(latest: { current: ChartProps }, element: HTMLElement): uPlot.Options {
  const { lines, height = HEIGHT_PX, step_min } = latest.current
  const color = (name: string) => () => getComputedStyle(element).getPropertyValue(name)
  const axis = {
    stroke: color('--soft'),
    grid: { stroke: color('--line'), width: 1 },
    ticks: { stroke: color('--line'), width: 1 },
  }
  const format = (value: number): string => latest.current.format(value)
  return {
    width: element.clientWidth,
    height,
    cursor: { drag: { x: true, y: false, setScale: false } },
    legend: { live: true },
    scales: {
      x: { range: (self, min, max) => spanOf(self.data[0].length, min, max, latest.current.span_ms_min) },
      y: { range: (_, __, max) => [0, Math.max(max, step_min ?? 0) * 1.1 || 1] },
    },
    axes: [
      { ...axis, space: TIME_LABEL_PX, values: TIME_LABELS },
      {
        ...axis,
        size: AXIS_PX,
        values: (_, splits) => (hasValues(latest.current.lines) ? labelsOf(splits, format) : splits.map(() => '')),
        ...(step_min === undefined ? {} : { incrs: stepsFrom(step_min) }),
      },
    ],
    series: [
      { label: 'Time', value: (_, seconds) => (seconds === null ? '' : instant(seconds * 1_000)) },
      ...lines.map((line, at) => ({
        label: line.label,
        stroke: color(line.is_dashed === true ? '--soft' : COLORS[at % COLORS.length]!),
        width: 1.5,
        spanGaps: line.has_gaps === true,
        points: { show: (self: uPlot) => line.has_gaps === true || self.data[0].length === 1, size: 4 },
        ...(line.is_dashed === true ? { dash: [4, 4] } : {}),
        value: (_: uPlot, value: number | null) => (value === null ? '–' : format(value)),
      })),
    ],
    hooks: {
      ready: [showLast],
      setData: [showLast],
      setCursor: [showLast],
      draw: [(self) => drawMarks(self, latest.current.marks ?? [], element)],
      setSelect: [(self) => reportRange(self, latest.current.onRange)],
    },
  }
}

/** The labels of the axis of values. One that says the same as the label below it, as values are rounded, is left out. */
function labelsOf(splits: readonly number[], format: ChartProps['format']): string[] {
  const texts = splits.map(format)
  return texts.map((text, at) => (text === texts[at - 1] ? '' : text))
}

/** The ends of the time axis, in seconds. A short span ends with its last value. For a single value, uPlot's `max_s` is years later. */
function spanOf(count: number, min_s: number, max_s: number, span_ms_min: number | undefined): [number, number] {
  if (count === 0) return [min_s, max_s]
  const last_s = count < 2 ? min_s : max_s
  const least_s = (span_ms_min ?? (count < 2 ? SPAN_MS_MIN : 0)) / 1_000
  return [Math.min(min_s, last_s - least_s), last_s]
}

const MARK_FONT_PX = 11
const MARK_GAP_PX = 4

/** Marks within the time axis, as dashed lines. The newest has its text; one that would cover it is left out. */
function drawMarks(
  { ctx, bbox, scales, data: [times] }: uPlot,
  marks: readonly ChartMark[],
  element: HTMLElement,
): void {
  const { min, max } = scales.x ?? {}
  if (min == null || max == null) return
  const style = getComputedStyle(element)
  const ratio = devicePixelRatio
  // The axis ends where the last value begins, which covers the time after it.
  const width_s = times.length < 2 ? 0 : times[1]! - times[0]!
  ctx.save()
  ctx.strokeStyle = style.getPropertyValue('--soft')
  ctx.fillStyle = style.getPropertyValue('--soft')
  ctx.font = `${MARK_FONT_PX * ratio}px ${style.fontFamily}`
  ctx.textBaseline = 'top'
  ctx.setLineDash([2 * ratio, 3 * ratio])
  let free_until = bbox.left + bbox.width
  for (const { at_ms, text } of marks.toSorted((one, other) => other.at_ms - one.at_ms)) {
    const at_s = at_ms / 1_000
    if (at_s < min || at_s > max + width_s) continue
    const x = bbox.left + ((Math.min(at_s, max) - min) / (max - min)) * bbox.width
    ctx.beginPath()
    ctx.moveTo(x, bbox.top)
    ctx.lineTo(x, bbox.top + bbox.height)
    ctx.stroke()
    const { width } = ctx.measureText(text)
    // The text is beside its line, on the side with room.
    const left =
      x + MARK_GAP_PX * ratio + width > bbox.left + bbox.width
        ? x - width - MARK_GAP_PX * ratio
        : x + MARK_GAP_PX * ratio
    if (left < bbox.left || left + width > free_until) continue
    ctx.fillText(text, left, bbox.top)
    free_until = Math.min(x, left) - MARK_GAP_PX * ratio
  }
  ctx.restore()
}

/** Without a pointer on the chart, the legend has the last values. */
function showLast(self: uPlot): void {
  const last = self.data[0].length - 1
  if (self.cursor.idx === null && last >= 0) self.setLegend({ idx: last }, false)
}

function reportRange(self: uPlot, onRange: ChartProps['onRange']): void {
  const { left, width } = self.select
  if (width < RANGE_PX_MIN) return
  const from = self.posToVal(left, 'x') * 1_000
  const to = self.posToVal(left + width, 'x') * 1_000
  self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
  onRange?.(from, to)
}

/** A row of uPlot's table of labels. `day`, `minute`: what follows the label when the day or the minute has changed. */
function timeLabels(
  step_s: number,
  label: string,
  year?: string,
  day?: string,
  minute?: string,
): (string | number | null)[] {
  const ADDED = 1
  return [step_s, label, year ?? null, null, day ?? null, null, minute ?? null, null, ADDED]
}

/** 1, 2, 5, 10, ... times the least step. */
function stepsFrom(step_min: number): number[] {
  return Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power * step_min)).flat()
}
