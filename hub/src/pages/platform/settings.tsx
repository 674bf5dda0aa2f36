// The settings in force, and where each comes from.
import type { listAdminSettings, ResponseOf } from '@muster/contract'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { listAdminSettings as listSettings } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { HOME } from '../../links.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { CheckField, TextField } from '../../parts/fields.tsx'
import { Badge, Pending } from '../../parts/notice.tsx'
import { Page, Section } from '../../parts/page.tsx'

type Setting = ResponseOf<typeof listAdminSettings>['settings'][number]

/** All settings are drawn at once, because their descriptions take several lines. */
const WHOLE_ROWS_MAX = 500

const COLUMNS: readonly Column<Setting>[] = [
  {
    id: 'name',
    title: 'Setting',
    sortBy: ({ name }) => name,
    cell: ({ name }) => <code className="wrap-anywhere">{name}</code>,
  },
  { id: 'value', title: 'Value', cell: (setting) => <Value setting={setting} /> },
  {
    id: 'source',
    title: 'From',
    sortBy: ({ source }) => source,
    cell: ({ source }) => (source === 'environment' ? <Badge tone="good">environment</Badge> : <Badge>default</Badge>),
  },
  { id: 'description', title: 'What it does', cell: ({ description }) => description },
]

function Value({ setting: { value, is_secret, source } }: { setting: Setting }) {
  if (is_secret) return <span className="text-soft">{source === 'environment' ? 'secret' : ''}</span>
  return value === undefined ? (
    <span className="text-soft">follows from others</span>
  ) : (
    <code className="wrap-anywhere">{value}</code>
  )
}

export default function Settings() {
  const navigate = useNavigate()
  const { text = '', set = false } = useSearch({ strict: false }) as { text?: string; set?: boolean }
  const read = useCall(listSettings, {})
  const wanted = String(text).toLowerCase()
  const settings = (read.data?.settings ?? []).filter(
    ({ name, description, source }) =>
      (!set || source === 'environment') && `${name} ${description}`.toLowerCase().includes(wanted),
  )
  const choose = (search: { text: string; set: boolean }): void =>
    void navigate({
      to: '.',
      search: { ...(search.text === '' ? {} : { text: search.text }), ...(search.set ? { set: true } : {}) } as never,
      replace: true,
    })
  return (
    <Page
      title="Settings"
      crumbs={[{ text: 'Home', to: HOME }]}
      lead="They come from the environment of the platform, and are read at its start."
    >
      <div className="flex flex-wrap items-end gap-4">
        <div className="w-72 max-w-full">
          <TextField
            label="Search"
            type="search"
            value={String(text)}
            onChange={(value) => choose({ text: value, set })}
          />
        </div>
        <CheckField
          label="Only those that are set"
          checked={set}
          onChange={(is_on) => choose({ text: String(text), set: is_on })}
        />
      </div>
      <Section title="Settings in force" actions={<CopyAs operation={listSettings} input={{}} />}>
        <Pending read={read} />
        {read.data === undefined ? null : (
          <DataTable
            label="Settings"
            rows={settings}
            rowId={({ name }) => name}
            columns={COLUMNS}
            whole_rows_max={WHOLE_ROWS_MAX}
            empty="No setting matches."
          />
        )}
      </Section>
    </Page>
  )
}
