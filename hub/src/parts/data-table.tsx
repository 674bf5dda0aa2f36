// Tables: sorted by a click on a heading, and virtual when they are long. A phone shows the columns that matter, and all after a
// press; what is still too wide then scrolls sideways within its frame.
import { useVirtualizer } from '@tanstack/react-virtual'
import { memo, type ReactNode, useMemo, useRef, useState } from 'react'
import { count, plural } from './numbers.ts'

export type Column<R> = {
  id: string
  title: string
  cell: (row: R) => ReactNode
  /** Makes the column sortable. Undefined values come last. */
  sortBy?: (row: R) => string | number | undefined
  is_number?: boolean
  /** Sentences or long values: a phone scrolls sideways before it breaks them into single words. */
  is_text?: boolean
  /** A phone shows it only after the person has asked for all columns. */
  is_secondary?: boolean
  /** Width in rem. A virtual table needs it for each column; one column without it takes the rest. */
  width?: number
}

export type Sort = { column: string; is_down: boolean }

export type DataTableProps<R> = {
  /** What the rows are, for screen readers. */
  label: string
  columns: readonly Column<R>[]
  rows: readonly R[]
  rowId: (row: R) => string
  empty: ReactNode
  initial_sort?: Sort
  /** The rows come sorted, and the caller sorts them when a heading is clicked. */
  sorted?: { sort: Sort; onSort: (sort: Sort) => void }
  /** Rows that this table draws all at once. Longer tables draw only what is visible, with rows of one line. */
  whole_rows_max?: number
  /** Marks rows, for example the selected ones. */
  isMarked?: (row: R) => boolean
}

const WHOLE_ROWS_MAX = 200
const ROW_PX = 37
const OVERSCAN_ROWS = 12

/** Classes of a column that a phone leaves out. */
const ON_WIDE = 'max-sm:hidden'

export function DataTable<R>(props: DataTableProps<R>) {
  const [has_all, setAll] = useState(false)
  const secondary = props.columns.filter((column) => column.is_secondary === true).length
  if (secondary === 0) return <Table {...props} />
  return (
    <>
      <Table {...props} has_all={has_all} />
      {props.rows.length === 0 ? null : (
        <button
          type="button"
          className="w-full cursor-pointer border-t border-line px-3 py-2.5 text-left text-xs text-accent sm:hidden"
          aria-expanded={has_all}
          onClick={() => setAll(!has_all)}
        >
          {has_all ? 'Show fewer columns' : `Show ${plural(secondary, 'more column')}`}
        </button>
      )}
    </>
  )
}

type Shown = {
  /** Whether a phone shows the secondary columns too. */
  has_all?: boolean
}

function classOf<R>({ is_secondary }: Column<R>, has_all: boolean | undefined): string {
  return is_secondary === true && has_all !== true ? ON_WIDE : ''
}

function Table<R>(props: DataTableProps<R> & Shown) {
  const { columns, rows, empty, initial_sort, sorted, whole_rows_max = WHOLE_ROWS_MAX } = props
  const [own_sort, setOwnSort] = useState<Sort | null>(initial_sort ?? null)
  const is_sorted = sorted !== undefined
  const own_rows = useMemo(
    () => (is_sorted ? rows : sortRows(rows, columns, own_sort)),
    [is_sorted, rows, columns, own_sort],
  )
  if (rows.length === 0) return <div className="px-4 py-6 text-soft">{empty}</div>
  const parts = { ...props, rows: own_rows, sort: sorted?.sort ?? own_sort, setSort: sorted?.onSort ?? setOwnSort }
  return rows.length > whole_rows_max ? <VirtualTable {...parts} /> : <WholeTable {...parts} />
}

type Sorted<R> = DataTableProps<R> & Shown & { sort: Sort | null; setSort: (sort: Sort) => void }

function WholeTable<R>({ label, columns, rows, rowId, sort, setSort, isMarked, has_all }: Sorted<R>) {
  return (
    // biome-ignore-start lint/a11y: what scrolls must be reachable by keyboard, and it is no form.
    <div role="group" className="max-w-full overflow-x-auto" aria-label={label} tabIndex={0}>
      <table aria-label={label} className="w-full border-collapse text-left">
        <Headings columns={columns} sort={sort} setSort={setSort} has_all={has_all} />
        <tbody>
          {rows.map((row) => (
            <Row
              key={rowId(row)}
              row={row}
              columns={columns}
              has_all={has_all}
              is_marked={isMarked?.(row) ?? false}
              is_one_line={false}
            />
          ))}
        </tbody>
      </table>
    </div>
    // biome-ignore-end lint/a11y: as above.
  )
}

function VirtualTable<R>({ label, columns, rows, rowId, sort, setSort, isMarked, has_all }: Sorted<R>) {
  const frame = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN_ROWS,
  })
  const items = virtual.getVirtualItems()
  const before = items[0]?.start ?? 0
  const after = virtual.getTotalSize() - (items.at(-1)?.end ?? 0)
  return (
    // biome-ignore-start lint/a11y: what scrolls must be reachable by keyboard, and it is no form.
    <div role="group" ref={frame} className="max-h-[70vh] overflow-auto" aria-label={label} tabIndex={0}>
      <table
        aria-label={label}
        aria-rowcount={rows.length + 1}
        className="w-full table-fixed border-collapse text-left"
      >
        <colgroup>
          {columns.map((column) => (
            <col
              key={column.id}
              // A phone shares its width between the columns that matter. All columns scroll.
              className={has_all === true ? '' : `max-sm:w-auto! ${classOf(column, has_all)}`}
              style={column.width === undefined ? {} : { width: `${column.width}rem` }}
            />
          ))}
        </colgroup>
        <Headings columns={columns} sort={sort} setSort={setSort} has_all={has_all} />
        <tbody>
          <Spacer px={before} />
          {items.map(({ index }) => {
            const row = rows[index]
            // The list became shorter, and the rows to draw are counted anew only afterwards.
            if (row === undefined) return null
            return (
              <Row
                key={rowId(row)}
                row={row}
                row_index={index + 2}
                columns={columns}
                has_all={has_all}
                is_marked={isMarked?.(row) ?? false}
                is_one_line
              />
            )
          })}
          <Spacer px={after} />
        </tbody>
      </table>
    </div>
    // biome-ignore-end lint/a11y: as above.
  )
}

function Spacer({ px }: { px: number }) {
  return px > 0 ? <tr style={{ height: px }} /> : null
}

function Headings<R>({
  columns,
  sort,
  setSort,
  has_all,
}: {
  columns: readonly Column<R>[]
  sort: Sort | null
  setSort: (sort: Sort) => void
  has_all: boolean | undefined
}) {
  return (
    <thead className="sticky top-0 z-10 bg-raised text-xs text-soft">
      <tr>
        {columns.map((column) => {
          const { id, title, sortBy, is_number } = column
          const direction = sort?.column === id ? (sort.is_down ? 'descending' : 'ascending') : undefined
          return (
            <th
              key={id}
              scope="col"
              aria-sort={direction}
              className={`border-b border-line px-2 py-2 font-medium whitespace-nowrap sm:px-3 ${is_number === true ? 'text-right' : ''} ${classOf(column, has_all)}`}
            >
              {sortBy === undefined ? (
                title
              ) : (
                <button
                  type="button"
                  className="cursor-pointer font-medium hover:text-ink"
                  onClick={() =>
                    setSort({ column: id, is_down: sort?.column === id ? !sort.is_down : is_number === true })
                  }
                >
                  {title}
                  <span aria-hidden="true">
                    {direction === undefined ? '' : direction === 'ascending' ? ' ↑' : ' ↓'}
                  </span>
                </button>
              )}
            </th>
          )
        })}
      </tr>
    </thead>
  )
}

type RowProps<R> = {
  row: R
  columns: readonly Column<R>[]
  has_all: boolean | undefined
  row_index?: number
  is_marked: boolean
  /** Long text is cut, so that every row has the same height. */
  is_one_line: boolean
}

/** A row is drawn again only when its record, or the columns, are others. */
const Row = memo(function Row<R>({ row, columns, has_all, row_index, is_marked, is_one_line }: RowProps<R>) {
  // Long names break rather than hide the columns that matter. All columns scroll.
  const breaks = has_all === true ? '' : 'max-sm:wrap-anywhere'
  const cell = is_one_line ? 'h-[37px] truncate py-0' : 'py-2'
  return (
    <tr
      aria-rowindex={row_index}
      className={`border-b border-line last:border-b-0 ${is_marked ? 'bg-mark' : 'hover:bg-raised'}`}
    >
      {columns.map((column) => {
        const { id, cell: content, is_number, is_text } = column
        const kind = is_number === true ? 'numbers text-right whitespace-nowrap' : ''
        const width = is_text === true && !is_one_line ? 'min-w-48' : ''
        return (
          <td
            key={id}
            className={`px-2 align-middle sm:px-3 ${breaks} ${cell} ${kind} ${width} ${classOf(column, has_all)}`}
          >
            {content(row)}
          </td>
        )
      })}
    </tr>
  )
}) as <R>(props: RowProps<R>) => ReactNode

function sortRows<R>(rows: readonly R[], columns: readonly Column<R>[], sort: Sort | null): readonly R[] {
  const sortBy = columns.find(({ id }) => id === sort?.column)?.sortBy
  if (sort === null || sortBy === undefined) return rows
  const sign = sort.is_down ? -1 : 1
  return rows
    .map((row) => ({ row, key: sortBy(row) }))
    .sort((a, b) => {
      if (a.key === undefined || b.key === undefined) return Number(a.key === undefined) - Number(b.key === undefined)
      if (typeof a.key === 'number' && typeof b.key === 'number') return sign * (a.key - b.key)
      return sign * String(a.key).localeCompare(String(b.key), 'en', { numeric: true })
    })
    .map(({ row }) => row)
}

/** Under a list: how many entries there are, and the button that loads more. A list is never cut silently. An empty one has its own text. */
export function ListEnd({
  shown,
  noun,
  has_more,
  is_loading,
  onMore,
}: {
  shown: number
  noun: string
  has_more: boolean
  is_loading: boolean
  onMore: () => void
}) {
  if (shown === 0 && !has_more) return null
  return (
    <div className="flex items-center gap-3 border-t border-line px-3 py-2 text-xs text-soft">
      <span>
        {count(shown)} {noun}
        {has_more ? ' so far' : ''}
      </span>
      {has_more ? (
        <button type="button" className="cursor-pointer text-accent underline" disabled={is_loading} onClick={onMore}>
          {is_loading ? 'Loading …' : 'Load more'}
        </button>
      ) : null}
    </div>
  )
}

/** The result of `usePages`, as far as the end of a list needs it. */
export type PagedRead = { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown }

/** The end of a list that is loaded page by page; nothing when the list is empty. `one`: the noun for one entry. */
export function PagesEnd({ read, shown, one }: { read: PagedRead; shown: number; one: string }) {
  return (
    <ListEnd
      shown={shown}
      noun={shown === 1 ? one : `${one}s`}
      has_more={read.hasNextPage}
      is_loading={read.isFetchingNextPage}
      onMore={() => void read.fetchNextPage()}
    />
  )
}
