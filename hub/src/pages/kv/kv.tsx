// The key-value entries of a namespace: by directory, each with its value, which developers may change.
import { useState } from 'react'
import { getGameVersionById, listKvDirectories, listKvEntries, putKvEntry } from '../../api/operations.gen.ts'
import { useCall, useEntries, usePages } from '../../api/queries.ts'
import { gameLink, HOME, namespaceLink } from '../../links.ts'
import { Button } from '../../parts/button.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable, ListEnd } from '../../parts/data-table.tsx'
import { Loading, Pending } from '../../parts/notice.tsx'
import { bytes } from '../../parts/numbers.ts'
import { Page, Section } from '../../parts/page.tsx'
import { type Filter, Filters } from '../../shell/filters.tsx'
import { usePageActions } from '../../shell/page-actions.ts'
import { useUrlState } from '../../shell/url-state.ts'
import { useMay, versionName } from '../game/game.ts'
import { MissingSection } from '../namespace/missing-section.tsx'
import { useNamespace } from '../namespace/namespace.ts'
import { DeleteDialog, EditDialog, type KvEntry } from './entry-dialogs.tsx'

type Open = { kind: 'edit'; entry: KvEntry | null } | { kind: 'delete'; key: string } | null

const FILTERS: Filter<'directory'>[] = [
  { name: 'directory', label: 'Directory', placeholder: 'players; empty for the top' },
]
/** Characters of a value in the list. The dialog shows all of it. */
const PREVIEW_MAX = 120

export default function KvBrowser() {
  const { game, namespace, params } = useNamespace()
  const may = useMay()
  const { version_id } = namespace
  const version = useCall(getGameVersionById, { params: { game_id: game.game_id, version_id } })
  // Without the version, the list of the entries says what is wrong.
  const has_kv = version.data === undefined || version.data.version.config.kv !== undefined
  const may_put = may(putKvEntry) && has_kv
  const [state, change] = useUrlState(['directory'])
  const [open, setOpen] = useState<Open>(null)
  const create = (): void => setOpen({ kind: 'edit', entry: null })
  usePageActions(may_put ? [{ id: 'kv-put', title: 'Write an entry', run: create }] : [])
  const query = { directory: state.directory, namespace_id: params.namespace_id }
  return (
    <Page
      title="Key-value entries"
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
        { text: namespace.display_name, to: namespaceLink(game.game_id, namespace.namespace_id) },
      ]}
      lead="JSON values that outlive lobbies. The part of a key before its last slash is its directory."
      actions={
        <>
          <CopyAs operation={listKvEntries} input={{ query }} muster={`kv list ${state.directory}`.trim()} />
          {may_put ? (
            <Button kind="primary" onClick={create}>
              Write an entry
            </Button>
          ) : null}
        </>
      }
    >
      {version.isPending ? <Loading /> : null}
      {has_kv ? null : <NoKv />}
      {version.isPending || !has_kv ? null : (
        <>
          <Filters label="Choose a directory" filters={FILTERS} state={state} onApply={change} />
          <Path directory={state.directory} onOpen={(directory) => change({ directory })} />
          <Directories
            key={`below ${state.directory}`}
            directory={state.directory}
            namespace_id={params.namespace_id}
            onOpen={(directory) => change({ directory })}
          />
          <List key={state.directory} query={query} may_put={may_put} onOpen={setOpen} />
        </>
      )}
      {open?.kind === 'edit' ? (
        <EditDialog
          entry={open.entry}
          directory={state.directory}
          namespace_id={params.namespace_id}
          may_put={may_put}
          onClose={() => setOpen(null)}
        />
      ) : null}
      {open?.kind === 'delete' ? (
        <DeleteDialog name={open.key} namespace_id={params.namespace_id} onClose={() => setOpen(null)} />
      ) : null}
    </Page>
  )
}

/** The deployed version keeps no entries: what to change, and where. */
function NoKv() {
  const { game, namespace } = useNamespace()
  return (
    <MissingSection title="Entries">
      {versionName(game, namespace.version_id)}, the version of {namespace.display_name}, has no <code>kv</code>{' '}
      section, so this namespace keeps no entries. Add <code>{'"kv": {}'}</code> to the config of a version, and deploy
      it.
    </MissingSection>
  )
}

/** The directories above, each a step back. */
function Path({ directory, onOpen }: { directory: string; onOpen: (directory: string) => void }) {
  const parts = directory.split('/').filter((part) => part !== '')
  return (
    <nav aria-label="Directories" className="flex flex-wrap items-center gap-1">
      <Button kind="quiet" onClick={() => onOpen('')}>
        top
      </Button>
      {parts.map((part, at) => {
        const path = parts.slice(0, at + 1).join('/')
        return (
          <span key={path}>
            /{' '}
            <Button kind="quiet" onClick={() => onOpen(path)}>
              {part}
            </Button>
          </span>
        )
      })}
    </nav>
  )
}

/** All directories below this one that have entries. */
function Directories({
  directory,
  namespace_id,
  onOpen,
}: {
  directory: string
  namespace_id: string
  onOpen: (directory: string) => void
}) {
  const query = { namespace_id, ...(directory === '' ? {} : { prefix: `${directory}/` }) }
  const read = usePages(listKvDirectories, { query }, ({ anchor }) =>
    anchor === undefined ? null : { query: { ...query, anchor } },
  )
  const all = useEntries(read.data?.pages, (page) => page.directories)
  const below = all.filter((name) => name !== '')
  if (read.data === undefined) return <Pending read={read} what="Loading the directories" />
  if (below.length === 0 && !read.hasNextPage) return null
  return (
    <Section title="Directories">
      <DataTable
        label="Directories"
        rows={below}
        rowId={(name) => name}
        empty="No directory on this page of the list."
        columns={[
          {
            id: 'name',
            title: 'Directory',
            sortBy: (name) => name,
            cell: (name) => (
              <button
                type="button"
                className="cursor-pointer text-left font-mono text-xs wrap-anywhere text-accent underline"
                onClick={() => onOpen(name)}
              >
                {name}
              </button>
            ),
          },
        ]}
      />
      <ListEnd
        shown={below.length}
        noun={below.length === 1 ? 'directory' : 'directories'}
        has_more={read.hasNextPage}
        is_loading={read.isFetchingNextPage}
        onMore={() => void read.fetchNextPage()}
      />
    </Section>
  )
}

function List({
  query,
  may_put,
  onOpen,
}: {
  query: { directory: string; namespace_id: string }
  may_put: boolean
  onOpen: (open: Open) => void
}) {
  const read = usePages(listKvEntries, { query }, ({ anchor }) =>
    anchor === undefined ? null : { query: { ...query, anchor } },
  )
  const entries = useEntries(read.data?.pages, (page): readonly KvEntry[] => page.entries)
  if (read.data === undefined) return <Pending read={read} what="Loading the entries" />
  return (
    <Section title={query.directory === '' ? 'Entries without a directory' : `Entries of ${query.directory}`}>
      <DataTable
        label="Entries"
        rows={entries}
        rowId={({ key }) => key}
        empty="No entry is directly in this directory."
        columns={columnsOf(may_put, onOpen)}
      />
      {entries.length === 0 && !read.hasNextPage ? null : (
        <ListEnd
          shown={entries.length}
          noun={entries.length === 1 ? 'entry' : 'entries'}
          has_more={read.hasNextPage}
          is_loading={read.isFetchingNextPage}
          onMore={() => void read.fetchNextPage()}
        />
      )}
    </Section>
  )
}

function columnsOf(may_put: boolean, onOpen: (open: Open) => void): Column<KvEntry>[] {
  return [
    {
      id: 'key',
      title: 'Key',
      width: 22,
      sortBy: ({ key }) => key,
      cell: (entry) => (
        <button
          type="button"
          className="max-w-80 cursor-pointer truncate text-left font-mono text-xs text-accent underline"
          onClick={() => onOpen({ kind: 'edit', entry })}
        >
          {entry.key}
        </button>
      ),
    },
    {
      id: 'value',
      title: 'Value',
      cell: ({ value }) => <code className="wrap-anywhere">{previewOf(value)}</code>,
    },
    {
      id: 'size',
      title: 'Size',
      width: 6,
      is_number: true,
      sortBy: ({ value }) => sizeOf(value),
      cell: ({ value }) => bytes(sizeOf(value)),
    },
    ...(may_put
      ? [
          {
            id: 'delete',
            title: 'Delete',
            width: 6,
            cell: ({ key }: KvEntry) => (
              <Button kind="quiet_danger" aria-label={`Delete ${key}`} onClick={() => onOpen({ kind: 'delete', key })}>
                Delete
              </Button>
            ),
          },
        ]
      : []),
  ]
}

function previewOf(value: unknown): string {
  const text = JSON.stringify(value) ?? ''
  return text.length > PREVIEW_MAX ? `${text.slice(0, PREVIEW_MAX)} …` : text
}

function sizeOf(value: unknown): number {
  return new TextEncoder().encode(JSON.stringify(value) ?? '').length
}
