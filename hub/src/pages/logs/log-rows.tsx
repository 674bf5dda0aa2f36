// The lines of a log that are visible. Without wrapping, every line is as high as the others, and the visible ones follow from
// the scroll position alone. With wrapping, lines are measured.
import { useVirtualizer } from '@tanstack/react-virtual'
import { memo, type ReactNode, type RefObject, useEffect, useImperativeHandle, useState } from 'react'
import type { LogColor, LogLevel, LogSpan } from './log-lines.ts'
import type { LogRow } from './log-messages.ts'
import type { LogStore } from './log-store.ts'

export type LogScroller = { scrollTo: (index: number) => void }

export type LogRowsProps = {
  store: LogStore
  /** Grows when the store has changed. */
  revision: number
  frame: RefObject<HTMLDivElement | null>
  scroller: RefObject<LogScroller | null>
  /** The row that a link, a search or a moment leads to. */
  marked: LogRow | null
  /** The letters of the streams. With more than one, each line has that of its stream. */
  letters: readonly string[]
  onLine: (row: LogRow) => void
}

export const LINE_PX = 20
/** Lines that are drawn before and after the visible ones. */
const OVERSCAN_LINES = 10
/** Scrolling by fewer lines draws nothing anew. */
const STEP_LINES = 8

export function EvenRows(props: LogRowsProps) {
  const { store, frame, scroller } = props
  const [{ top, height }, setView] = useState({ top: 0, height: 800 })
  useEffect(() => {
    const element = frame.current
    if (element === null) return
    const measure = (): void => {
      const step_px = LINE_PX * STEP_LINES
      const next = { top: Math.floor(element.scrollTop / step_px) * step_px, height: element.clientHeight }
      setView((before) => (before.top === next.top && before.height === next.height ? before : next))
    }
    measure()
    const resize = new ResizeObserver(measure)
    resize.observe(element)
    element.addEventListener('scroll', measure, { passive: true })
    return () => {
      resize.disconnect()
      element.removeEventListener('scroll', measure)
    }
  }, [frame])
  useImperativeHandle(scroller, () => ({
    scrollTo(index) {
      const element = frame.current
      if (element !== null) element.scrollTop = index * LINE_PX - element.clientHeight / 3
    },
  }))
  const from = Math.max(0, Math.floor(top / LINE_PX) - OVERSCAN_LINES)
  const to = Math.min(store.shown.length, Math.ceil((top + height) / LINE_PX) + STEP_LINES + OVERSCAN_LINES)
  const rows: ReactNode[] = []
  for (let index = from; index < to; index++) rows.push(<LineAt key={store.shown[index]} {...props} index={index} />)
  return (
    <div className="relative w-max min-w-full" style={{ height: store.shown.length * LINE_PX }}>
      <div className="absolute top-0 left-0 min-w-full" style={{ transform: `translateY(${from * LINE_PX}px)` }}>
        {rows}
      </div>
    </div>
  )
}

export function WrappedRows(props: LogRowsProps) {
  const { store, frame, scroller } = props
  const virtual = useVirtualizer({
    count: store.shown.length,
    getScrollElement: () => frame.current,
    estimateSize: () => LINE_PX,
    overscan: OVERSCAN_LINES,
    initialOffset: () => frame.current?.scrollTop ?? 0,
  })
  useImperativeHandle(scroller, () => ({ scrollTo: (index) => virtual.scrollToIndex(index, { align: 'center' }) }))
  const items = virtual.getVirtualItems()
  return (
    <div className="relative w-full" style={{ height: virtual.getTotalSize() }}>
      <div className="absolute top-0 left-0 w-full" style={{ transform: `translateY(${items[0]?.start ?? 0}px)` }}>
        {items.map(({ index, key }) => (
          <div key={key} data-index={index} ref={virtual.measureElement}>
            <LineAt {...props} index={index} is_wrapped />
          </div>
        ))}
      </div>
    </div>
  )
}

function LineAt({
  store,
  index,
  marked,
  letters,
  onLine,
  is_wrapped = false,
}: LogRowsProps & { index: number; is_wrapped?: boolean }) {
  const row = store.at(index)
  if (row === undefined) return <div style={{ height: LINE_PX }} />
  const letter = letters.length > 1 ? letters[row.stream] : undefined
  return <Line row={row} letter={letter} is_marked={row === marked} is_wrapped={is_wrapped} onLine={onLine} />
}

const COLORS: Record<LogColor, string> = {
  bad: 'text-bad',
  good: 'text-good',
  warn: 'text-warn',
  blue: 'text-accent',
  cyan: 'text-cyan',
  magenta: 'text-magenta',
  soft: 'text-soft',
}
const EDGES: Record<LogLevel, string> = {
  error: 'border-bad',
  warn: 'border-warn',
  info: 'border-transparent',
  debug: 'border-transparent',
  none: 'border-transparent',
}

type LineProps = {
  row: LogRow
  letter: string | undefined
  is_marked: boolean
  is_wrapped: boolean
  onLine: (row: LogRow) => void
}

const Line = memo(function Line({ row, letter, is_marked, is_wrapped, onLine }: LineProps) {
  const instant_text = new Date(row.ts_ms).toISOString()
  const back = is_marked ? 'bg-mark' : row.is_gap ? 'bg-warn-page' : ''
  return (
    <div
      data-line={`${letter ?? ''}${row.line}`}
      className={`flex border-l-3 ${EDGES[row.level]} ${back} ${is_wrapped ? 'min-h-5' : 'h-5'} leading-5`}
    >
      <button
        type="button"
        tabIndex={-1}
        title={`Link to line ${row.line}`}
        onClick={() => onLine(row)}
        className="numbers w-16 shrink-0 cursor-pointer pr-2 text-right text-soft select-none hover:underline"
      >
        {letter}
        {row.line}
      </button>
      <time dateTime={instant_text} title={instant_text} className="shrink-0 pr-3 text-soft select-none max-sm:hidden">
        {timeText(row.ts_ms)}
      </time>
      <span className={`pr-3 ${is_wrapped ? 'min-w-0 wrap-anywhere whitespace-pre-wrap' : 'whitespace-pre'}`}>
        {row.is_gap ? <strong className="text-warn">{row.text}</strong> : <LineText row={row} />}
        {row.folds === 0 ? null : (
          <span className="text-soft select-none" title={`The server wrote this line ${row.folds + 1} times.`}>
            {' '}
            ⟲{row.folds + 1}
          </span>
        )}
      </span>
    </div>
  )
})

function LineText({ row }: { row: LogRow }) {
  if (row.spans === undefined) return row.text
  return row.spans.map((span, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the spans of a line never change.
    <span key={at} className={classOf(span)}>
      {span.text}
    </span>
  ))
}

function classOf({ color, is_bold, is_italic, is_underlined, is_marked }: LogSpan): string {
  return [
    color === undefined ? '' : COLORS[color],
    is_bold === true ? 'font-bold' : '',
    is_italic === true ? 'italic' : '',
    is_underlined === true ? 'underline' : '',
    is_marked === true ? 'bg-code' : '',
  ].join(' ')
}

/** The time of day with milliseconds. Intl takes too long for each line of a scroll. */
function timeText(ts_ms: number): string {
  const date = new Date(ts_ms)
  const two = (value: number): string => String(value).padStart(2, '0')
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, '0')}`
}
