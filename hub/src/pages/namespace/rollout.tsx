// The roll-out of a namespace: both versions side by side, a larger part, and its end.
import type { getRollout as getOperation, ResponseOf } from '@musterhost/contract'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { endRollout, getRollout, setRollout } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { versionLink } from '../../links.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { SelectField } from '../../parts/fields.tsx'
import { Notice } from '../../parts/notice.tsx'
import { count, percent } from '../../parts/numbers.ts'
import { Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { useMay, versionName } from '../game/game.ts'
import { PARTS } from '../game/rollout-parts.ts'
import { useNamespace } from './namespace.ts'

const EVERY_MS = 5_000
/** How long the page says that a roll-out was rolled back. */
const SHOWN_MS = 24 * 60 * 60_000

type Shown = NonNullable<ResponseOf<typeof getOperation>['rollout']>
type Row = { part: number; figures: Shown['figures']['rollout'] }

export function Rollout() {
  const { game, namespace, params } = useNamespace()
  const may_end = useMay()(endRollout)
  const [opened, setOpened] = useState<'percent' | 'promoted' | 'rolled_back' | null>(null)
  const { data } = useCall(getRollout, { params }, { every_ms: EVERY_MS })
  const rollout = data?.rollout
  if (rollout === undefined) return null
  if (rollout.end_ts !== undefined) return <RolledBack rollout={rollout} />
  const name = versionName(game, rollout.version_id)
  return (
    <Section
      title="Roll-out"
      actions={
        <>
          <CopyAs operation={getRollout} input={{ params }} muster={`rollout --namespace ${namespace.name_id}`} />
          {may_end ? (
            <>
              <Button onClick={() => setOpened('percent')}>Change the part</Button>
              <Button onClick={() => setOpened('rolled_back')}>Roll back</Button>
              <Button onClick={() => setOpened('promoted')}>Promote</Button>
            </>
          ) : null}
        </>
      }
    >
      <p className="px-3 py-2 text-soft">
        {rollout.percent} % of the clients get {name}, since <Ago ts={rollout.begin_ts} />. {limitText(rollout)}
      </p>
      <FigureTable rollout={rollout} />
      {opened === null ? null : opened === 'percent' ? (
        <PartDialog rollout={rollout} name={name} onClose={() => setOpened(null)} />
      ) : (
        <EndDialog rollout={rollout} outcome={opened} name={name} onClose={() => setOpened(null)} />
      )}
    </Section>
  )
}

function limitText(rollout: Shown): string {
  const { failed_lobbies_percent_max: failed, refused_finds_percent_max: refused } = rollout
  const limits = [
    ...(failed === undefined ? [] : [`more than ${failed} % of its lobbies fail`]),
    ...(refused === undefined ? [] : [`more than ${refused} % of its finds are refused`]),
  ]
  return limits.length === 0 ? 'No limit ends it.' : `It is rolled back when ${limits.join(', or ')}.`
}

/** A roll-out that the platform or a person has ended, for a day. */
function RolledBack({ rollout: { version_id, outcome, reason, end_ts = '' } }: { rollout: Shown }) {
  const { game } = useNamespace()
  if (outcome !== 'rolled_back' || Date.now() - Date.parse(end_ts) > SHOWN_MS) return null
  return (
    <Notice tone="warn">
      The roll-out of{' '}
      <Link className="underline" to={versionLink(game.game_id, version_id)}>
        {versionName(game, version_id)}
      </Link>{' '}
      was rolled back <Ago ts={end_ts} />. {reason}
    </Notice>
  )
}

function FigureTable({ rollout }: { rollout: Shown }) {
  const { game } = useNamespace()
  const { figures } = rollout
  const rows: Row[] = [
    { part: rollout.percent, figures: figures.rollout },
    { part: 100 - rollout.percent, figures: figures.deployed },
  ]
  const columns: Column<Row>[] = [
    {
      id: 'version',
      title: 'Version',
      cell: ({ figures: { version_id } }) => (
        <Link to={versionLink(game.game_id, version_id)}>{versionName(game, version_id)}</Link>
      ),
    },
    { id: 'part', title: 'Clients', is_number: true, cell: ({ part }) => `${part} %` },
    {
      id: 'lobbies',
      title: 'Lobbies',
      is_number: true,
      is_secondary: true,
      cell: (row) => count(row.figures.lobby_count),
    },
    {
      id: 'failed',
      title: 'Failed',
      is_number: true,
      cell: ({ figures: of }) => partOf(of.failed_lobby_count, of.lobby_count),
    },
    { id: 'finds', title: 'Finds', is_number: true, is_secondary: true, cell: (row) => count(row.figures.find_count) },
    {
      id: 'refused',
      title: 'Refused',
      is_number: true,
      cell: ({ figures: of }) => partOf(of.refused_find_count, of.find_count),
    },
  ]
  return (
    <DataTable
      label="Versions of the roll-out"
      rows={rows}
      rowId={({ figures: { version_id } }) => version_id}
      columns={columns}
      empty=""
    />
  )
}

const partOf = (part: number, all: number): string => (part === 0 ? '0' : `${count(part)} (${percent(part / all)})`)

type DialogProps = { rollout: Shown; name: string; onClose: () => void }

function PartDialog({ rollout, name, onClose }: DialogProps) {
  const { namespace, params } = useNamespace()
  const { version_id, failed_lobbies_percent_max: failed, refused_finds_percent_max: refused } = rollout
  const [part, setPart] = useState(String(rollout.percent))
  const parts = [...new Set([...PARTS, rollout.percent])].sort((a, b) => a - b)
  const body = {
    version_id,
    percent: Number(part),
    ...(failed === undefined ? {} : { failed_lobbies_percent_max: failed }),
    ...(refused === undefined ? {} : { refused_finds_percent_max: refused }),
  }
  return (
    <ActionDialog
      operation={setRollout}
      input={{ params, body }}
      words={{ title: `Roll out ${name}`, submit: 'Change', done: `${part} % of the clients get ${name}.` }}
      muster={`rollout --percent ${part} --namespace ${namespace.name_id}`}
      onClose={onClose}
    >
      <SelectField
        label="Clients"
        hint="A larger part has all clients of a smaller one."
        value={part}
        onChange={setPart}
        options={parts.map((one) => ({ value: String(one), text: `${one} %` }))}
      />
    </ActionDialog>
  )
}

function EndDialog({ rollout, outcome, name, onClose }: DialogProps & { outcome: 'promoted' | 'rolled_back' }) {
  const { game, namespace, params } = useNamespace()
  const is_promoted = outcome === 'promoted'
  const chosen = is_promoted ? name : versionName(game, rollout.deployed_version_id)
  return (
    <ActionDialog
      operation={endRollout}
      input={{ params, body: { outcome } }}
      words={{
        title: is_promoted ? `Promote ${name}` : `Roll back ${name}`,
        submit: is_promoted ? 'Promote' : 'Roll back',
        done: `All clients of ${namespace.display_name} get ${chosen}.`,
      }}
      muster={`${is_promoted ? 'promote' : 'rollback'} --namespace ${namespace.name_id}`}
      onClose={onClose}
    >
      <p>All clients get {chosen} from now on. Lobbies of the other version play on until they end.</p>
    </ActionDialog>
  )
}
