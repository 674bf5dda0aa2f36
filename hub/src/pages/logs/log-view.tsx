// A log: it follows new lines until the person scrolls up, filters by text, expression and level, and links to lines. The keys
// n and p go to the next and the previous error.
import { useLocation, useNavigate } from '@tanstack/react-router'
import {
  type KeyboardEvent,
  type ReactNode,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react'
import { Button } from '../../parts/button.tsx'
import { CheckField, SelectField, TextField } from '../../parts/fields.tsx'
import { count, plural } from '../../parts/numbers.ts'
import { usePageActions } from '../../shell/page-actions.ts'
import type { LogFilter, LogRow } from './log-messages.ts'
import { EvenRows, LINE_PX, type LogScroller, WrappedRows } from './log-rows.tsx'
import { type LogSource, LogStore } from './log-store.ts'

export type LogViewProps = {
  /** It must stay the same while the log is the same. */
  sources: readonly LogSource[]
  /** Scrolls to this moment. A new object scrolls again. */
  moment?: { ts_ms: number } | null
  /** The server has ended: a short log takes no more room than it needs. */
  is_over: boolean
  /** Shown while there is no line. */
  empty: ReactNode
  /** Buttons beside the filters, for example for the download. */
  actions?: ReactNode
}

/** Nearer to the end than this is at the end. */
const END_PX = 2 * LINE_PX

export default function LogView(props: LogViewProps) {
  const { sources } = props
  const [store, setStore] = useState<LogStore | null>(null)
  useEffect(() => {
    const opened = new LogStore(sources)
    setStore(opened)
    return () => opened.close()
  }, [sources])
  return store === null ? null : <OpenLog {...props} store={store} />
}

type OpenLogProps = LogViewProps & { store: LogStore }

function OpenLog({ store, sources, moment, is_over, empty, actions }: OpenLogProps) {
  const revision = useSyncExternalStore(
    (listener) => store.listen(listener),
    () => store.revision,
  )
  const [filter, setFilter] = useState<LogFilter>(() => ({
    text: '',
    is_expression: false,
    level: 'all',
    streams: sources.map((_, stream) => stream),
  }))
  const [is_wrapped, setWrapped] = useState(false)
  const frame = useRef<HTMLDivElement>(null)
  const scroller = useRef<LogScroller>(null)
  const content = useRef<HTMLDivElement>(null)
  const follow = useFollow(frame, content)
  const mark = useMark(store, scroller, () => follow.set(false))
  useEffect(() => store.filter(filter), [store, filter])
  useLinkedLine(store, sources, revision, mark.goTo)
  useEffect(() => {
    if (moment != null) mark.goTo(store.placeOfMoment(moment.ts_ms))
  }, [moment, mark.goTo, store])

  const errors = useErrorKeys(store, frame, mark)
  usePageActions([
    { id: 'log-next-error', title: 'Log: next error', keys: 'n', run: () => errors.goTo(1) },
    { id: 'log-previous-error', title: 'Log: previous error', keys: 'p', run: () => errors.goTo(-1) },
    { id: 'log-follow', title: 'Log: follow new lines', run: () => follow.set(true) },
  ])
  const letters = sources.map(({ letter }) => letter)
  const onLine = useLineLink(sources, mark.goTo, store)
  const parts = { store, revision, frame, scroller, marked: mark.row, letters, onLine }
  return (
    <div className="flex min-w-0 flex-col rounded-lg border border-line">
      <div className="flex flex-wrap items-end gap-3 border-b border-line bg-raised p-3">
        <Filters filter={filter} sources={sources} error={store.filter_error} onChange={setFilter} />
        <CheckField label="Wrap" checked={is_wrapped} onChange={setWrapped} />
        <ErrorButtons onGo={errors.goTo} />
        {actions}
      </div>
      <div className="relative">
        {/* biome-ignore-start lint/a11y: what scrolls must be reachable by keyboard, and it is no form. */}
        <div
          ref={frame}
          role="group"
          aria-label="Log"
          tabIndex={0}
          onKeyDown={errors.onKey}
          onScroll={follow.onScroll}
          className={`${is_over ? 'max-h-[60vh]' : 'h-[60vh] min-h-64'} overflow-auto font-mono text-xs [overflow-anchor:none] [tab-size:4]`}
        >
          <div ref={content} className={is_wrapped ? 'w-full' : 'w-max min-w-full'}>
            {store.shown.length === 0 ? (
              <p className="p-4 text-soft">{store.count === 0 ? empty : 'No line passes the filters.'}</p>
            ) : is_wrapped ? (
              <WrappedRows {...parts} />
            ) : (
              <EvenRows {...parts} />
            )}
          </div>
        </div>
        {/* biome-ignore-end lint/a11y: as above. */}
        {follow.is_following ? null : (
          <div className="absolute right-4 bottom-3">
            <Button onClick={() => follow.set(true)}>↓ Follow</Button>
          </div>
        )}
      </div>
      <LogEnd store={store} sources={sources} is_following={follow.is_following} />
    </div>
  )
}

/** Goes to the next or the previous error: from the marked line, else from the first one in view. */
function useErrorKeys(store: LogStore, frame: { current: HTMLDivElement | null }, mark: ReturnType<typeof useMark>) {
  function goTo(step: 1 | -1): void {
    const top = Math.floor((frame.current?.scrollTop ?? 0) / LINE_PX)
    const from = mark.index() ?? (step === 1 ? top - 1 : top)
    mark.goTo(store.nextError(from, step))
  }
  function onKey(event: KeyboardEvent<HTMLDivElement>): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    if (event.key === 'n') goTo(1)
    else if (event.key === 'p') goTo(-1)
  }
  return { goTo, onKey }
}

function ErrorButtons({ onGo }: { onGo: (step: 1 | -1) => void }) {
  return (
    <div className="flex items-center">
      <Button kind="quiet" onClick={() => onGo(-1)} title="Key p, in the log" aria-label="Previous error">
        ↑ error
      </Button>
      <Button kind="quiet" onClick={() => onGo(1)} title="Key n, in the log" aria-label="Next error">
        ↓ error
      </Button>
    </div>
  )
}

/** Keeps the end in view until the person scrolls up. */
function useFollow(frame: { current: HTMLDivElement | null }, content: { current: HTMLDivElement | null }) {
  const [is_following, setShown] = useState(true)
  // The lines may grow before React has drawn that the log is paused.
  const is_on = useRef(true)
  const last_top = useRef(0)
  const set = useStable((next: boolean) => {
    is_on.current = next
    setShown(next)
  })
  useLayoutEffect(() => {
    const [element, lines] = [frame.current, content.current]
    if (!is_following || element === null || lines === null) return
    // Also when lines are measured, wrapped or filtered.
    const toEnd = (): void => {
      if (is_on.current) element.scrollTop = element.scrollHeight
    }
    toEnd()
    const resize = new ResizeObserver(toEnd)
    resize.observe(lines)
    return () => resize.disconnect()
  }, [is_following, frame, content])
  return {
    is_following,
    set,
    onScroll() {
      const element = frame.current
      if (element === null) return
      const { scrollTop, scrollHeight, clientHeight } = element
      // A shorter list also lowers the position, but leaves it at the end.
      if (scrollHeight - scrollTop - clientHeight < END_PX) set(true)
      else if (scrollTop < last_top.current - 1) set(false)
      last_top.current = scrollTop
    },
  }
}

/** The line that is marked, and scrolling to it. */
function useMark(store: LogStore, scroller: { current: LogScroller | null }, onGo: () => void) {
  const [row, setRow] = useState<LogRow | null>(null)
  const goTo = useStable((index: number) => {
    const target = store.at(index)
    if (target === undefined) return
    onGo()
    setRow(target)
    scroller.current?.scrollTo(index)
  })
  return {
    row,
    goTo,
    index: () => (row === null ? null : store.indexOfLine(row.stream, row.line)),
  }
}

/** A function that stays the same and calls the newest one. */
function useStable<A extends unknown[]>(newest: (...values: A) => void): (...values: A) => void {
  const latest = useRef(newest)
  latest.current = newest
  return useRef((...values: A) => latest.current(...values)).current
}

/** Scrolls to the line that the address names, once it is there. */
function useLinkedLine(
  store: LogStore,
  sources: readonly LogSource[],
  revision: number,
  goTo: (index: number) => void,
): void {
  const { hash } = useLocation()
  const reached = useRef('')
  useEffect(() => {
    void revision
    const match = /^([A-Z])(\d{1,9})$/.exec(hash)
    const stream = sources.findIndex(({ letter }) => letter === match?.[1])
    if (match === null || stream < 0 || reached.current === hash) return
    const index = store.indexOfLine(stream, Number(match[2]))
    if (index < 0) return
    reached.current = hash
    goTo(index)
  }, [hash, store, sources, revision, goTo])
}

/** Puts a line into the address. */
function useLineLink(
  sources: readonly LogSource[],
  goTo: (index: number) => void,
  store: LogStore,
): (row: LogRow) => void {
  const navigate = useNavigate()
  return useStable((row: LogRow) => {
    goTo(store.indexOfLine(row.stream, row.line))
    const hash = `${sources[row.stream]?.letter ?? ''}${row.line}`
    void navigate({
      to: '.',
      search: true as never,
      hash,
      replace: true,
      resetScroll: false,
      hashScrollIntoView: false,
    })
  })
}

type FiltersProps = {
  filter: LogFilter
  sources: readonly LogSource[]
  error: string | null
  onChange: (filter: LogFilter) => void
}

function Filters({ filter, sources, error, onChange }: FiltersProps) {
  const change = (changes: Partial<LogFilter>): void => onChange({ ...filter, ...changes })
  const all = sources.map((_, stream) => stream)
  return (
    <>
      <div className="w-full sm:w-64">
        <TextField
          label="Lines that contain"
          type="search"
          spellCheck={false}
          value={filter.text}
          error={error ?? undefined}
          onChange={(text) => change({ text })}
        />
      </div>
      <CheckField
        label="Regular expression"
        checked={filter.is_expression}
        onChange={(is_expression) => change({ is_expression })}
      />
      <div className="w-[calc(50%-0.375rem)] sm:w-40">
        <SelectField
          label="Level"
          value={filter.level}
          options={[
            { value: 'all', text: 'All lines' },
            { value: 'warn', text: 'Warnings, errors' },
            { value: 'error', text: 'Errors' },
          ]}
          onChange={(level) => change({ level: level as LogFilter['level'] })}
        />
      </div>
      {sources.length < 2 ? null : (
        <div className="w-[calc(50%-0.375rem)] sm:w-32">
          <SelectField
            label="Stream"
            value={filter.streams.length > 1 ? '' : String(filter.streams[0])}
            options={[
              { value: '', text: 'All streams' },
              ...sources.map(({ name }, stream) => ({ value: String(stream), text: name })),
            ]}
            onChange={(value) => change({ streams: value === '' ? all : [Number(value)] })}
          />
        </div>
      )}
    </>
  )
}

type LogEndProps = { store: LogStore; sources: readonly LogSource[]; is_following: boolean }

function LogEnd({ store, sources, is_following }: LogEndProps) {
  const is_complete = sources.every((_, stream) => store.ended[stream] === true)
  const is_lost = !is_complete && store.states.some((state, stream) => state === 'lost' && store.ended[stream] !== true)
  const shown = store.shown.length
  return (
    <p
      className={`numbers flex flex-wrap gap-x-4 border-t border-line px-3 py-2 text-xs ${is_lost ? 'bg-bad-page text-bad' : 'text-soft'}`}
    >
      <span>{shown === store.count ? plural(shown, 'line') : `${count(shown)} of ${plural(store.count, 'line')}`}</span>
      {store.left_out === 0 ? null : (
        <span>The {count(store.left_out)} oldest lines are left out here. The download has them.</span>
      )}
      <span role="status">
        {is_complete
          ? 'The log is complete: the server has ended.'
          : is_lost
            ? 'The connection was lost. New lines follow as soon as it is back.'
            : is_following
              ? 'New lines follow.'
              : 'Paused: new lines arrive below.'}
      </span>
    </p>
  )
}
