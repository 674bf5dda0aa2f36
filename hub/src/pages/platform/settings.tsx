// The settings in force, and where each comes from.

import type { listAdminSettings, ResponseOf } from '@musterhost/contract'
import { listAdminSettings as listSettings } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { HOME } from '../../links.ts'
import { ApiName } from '../../parts/api-name.tsx'
import { CodeMarks } from '../../parts/code-marks.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { CheckField, TextField } from '../../parts/fields.tsx'
import { Badge, Pending } from '../../parts/notice.tsx'
import { Page, Section } from '../../parts/page.tsx'
import { useUrlState } from '../../shell/url-state.ts'

type Setting = ResponseOf<typeof listAdminSettings>['settings'][number]

/** All settings are drawn at once, because their descriptions take several lines. */
const WHOLE_ROWS_MAX = 500

const COLUMNS: readonly Column<Setting>[] = [
  {
    id: 'name',
    title: 'Setting',
    sortBy: ({ name }) => name,
    cell: ({ name }) => (
      <code>
        <ApiName name={name} />
      </code>
    ),
  },
  { id: 'value', title: 'Value', is_text: true, cell: (setting) => <Value setting={setting} /> },
  {
    id: 'source',
    is_secondary: true,
    title: 'From',
    sortBy: ({ source }) => source,
    cell: ({ source }) => (source === 'environment' ? <Badge tone="good">environment</Badge> : <Badge>default</Badge>),
  },
  {
    id: 'description',
    is_secondary: true,
    title: 'What it does',
    is_text: true,
    cell: ({ description }) => <CodeMarks text={description} />,
  },
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
  const [{ text, set }, change] = useUrlState(['text', 'set'])
  const is_set_only = set === 'true'
  const read = useCall(listSettings, {})
  const wanted = text.toLowerCase()
  const settings = (read.data?.settings ?? []).filter(
    ({ name, description, source }) =>
      (!is_set_only || source === 'environment') && `${name} ${description}`.toLowerCase().includes(wanted),
  )
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
            value={text}
            onChange={(value) => change({ text: value }, { is_step: false })}
          />
        </div>
        <CheckField
          label="Only those that are set"
          checked={is_set_only}
          onChange={(is_on) => change({ set: is_on ? 'true' : '' }, { is_step: false })}
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
