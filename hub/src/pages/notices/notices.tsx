// The targets of notices of a game, a group or the platform: a list, a form for each kind, a test and the last deliveries.
import type { listNoticeTargets as listOperation, NoticeTarget, ResponseOf } from '@musterhost/contract'
import { useState } from 'react'
import { deleteNoticeTarget, listNoticeTargets, testNoticeTarget } from '../../api/operations.gen.ts'
import { useCall, useChange } from '../../api/queries.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Badge, Pending } from '../../parts/notice.tsx'
import { Page, Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { usePageActions } from '../../shell/page-actions.ts'
import { DeliveriesDialog } from './deliveries-dialog.tsx'
import type { NoticeScope } from './scope.ts'
import { TargetDialog } from './target-dialog.tsx'

type Target = ResponseOf<typeof listOperation>['targets'][number]
type Open = { kind: 'set'; target: Target | null } | { kind: 'delete' | 'deliveries'; target: Target }

export function Notices({ scope }: { scope: NoticeScope }) {
  const [open, setOpen] = useState<Open | null>(null)
  const read = useCall(listNoticeTargets, { query: scope.query })
  const add = () => setOpen({ kind: 'set', target: null })
  const close = () => setOpen(null)
  usePageActions(scope.may_change ? [{ id: 'notice-target', title: 'Add a target of notices', run: add }] : [])
  return (
    <Page
      title="Notices"
      crumbs={scope.crumbs}
      lead={
        <>
          Messages about what happens, to a chat, a phone, a mailbox or a program.{' '}
          <a href="/docs/notices">How it works</a>
        </>
      }
      actions={
        <>
          {scope.may_change ? (
            <Button kind="primary" onClick={add}>
              Add a target
            </Button>
          ) : null}
          <CopyAs operation={listNoticeTargets} input={{ query: scope.query }} muster={`notices list${scope.option}`} />
        </>
      }
    >
      <Section title="Targets" lead="Each gets the events that it names, at least once and in order.">
        <Pending read={read} />
        {read.data === undefined ? null : (
          <DataTable
            label="Targets"
            rows={read.data.targets}
            rowId={({ target_id }) => target_id}
            columns={columnsOf(setOpen, scope.may_change)}
            empty={<>There is no target. Nothing is sent.</>}
          />
        )}
      </Section>
      {open?.kind === 'set' ? <TargetDialog scope={scope} target={open.target} onClose={close} /> : null}
      {open?.kind === 'deliveries' ? <DeliveriesDialog target={open.target} scope={scope} onClose={close} /> : null}
      {open?.kind === 'delete' ? <DeleteDialog target={open.target} scope={scope} onClose={close} /> : null}
    </Page>
  )
}

function columnsOf(onOpen: (open: Open) => void, may_change: boolean): Column<Target>[] {
  return [
    {
      id: 'name',
      title: 'Name',
      sortBy: ({ name }) => name,
      cell: ({ name }) => <code className="whitespace-nowrap">{name}</code>,
    },
    {
      id: 'to',
      title: 'To',
      is_secondary: true,
      cell: ({ kind, hint, addresses, chat_id }) =>
        [kind, hint, chat_id, ...(addresses ?? [])].filter((text) => text !== undefined).join(' '),
    },
    { id: 'state', title: 'State', is_text: true, cell: (target) => <State target={target} /> },
    {
      id: 'last',
      title: 'Last taken',
      is_secondary: true,
      cell: ({ delivery_ts }) => (delivery_ts === undefined ? 'never' : <Ago ts={delivery_ts} />),
    },
    {
      id: 'actions',
      title: 'Actions',
      cell: (target) => <Actions target={target} onOpen={onOpen} may_change={may_change} />,
    },
  ]
}

function State({ target: { is_paused, pause_reason, waiting_count, dropped_count } }: { target: NoticeTarget }) {
  return (
    <span className="flex flex-wrap items-center gap-1">
      <Badge tone={is_paused ? 'warn' : 'good'}>{is_paused ? 'paused' : 'on'}</Badge>
      {pause_reason}
      {waiting_count === 0 ? null : ` ${waiting_count} waiting`}
      {dropped_count === 0 ? null : ` ${dropped_count} dropped`}
    </span>
  )
}

type ActionsProps = { target: Target; onOpen: (open: Open) => void; may_change: boolean }

function Actions({ target, onOpen, may_change }: ActionsProps) {
  const { name, target_id } = target
  const test = useChange(testNoticeTarget, {
    done: ({ delivery }) =>
      delivery.state === 'delivered'
        ? `${name} took the test notice.`
        : `${name} did not take it: ${delivery.status ?? ''} ${delivery.response ?? ''}`,
  })
  return (
    <span className="flex flex-wrap gap-1">
      <Button kind="quiet" onClick={() => onOpen({ kind: 'deliveries', target })} aria-label={`Deliveries of ${name}`}>
        Deliveries
      </Button>
      {may_change ? (
        <>
          <Button
            kind="quiet"
            onClick={() => test.mutate({ params: { target_id } })}
            disabled={test.isPending}
            aria-label={`Test ${name}`}
          >
            Test
          </Button>
          <Button kind="quiet" onClick={() => onOpen({ kind: 'set', target })} aria-label={`Change ${name}`}>
            Change
          </Button>
          <Button kind="quiet_danger" onClick={() => onOpen({ kind: 'delete', target })} aria-label={`Delete ${name}`}>
            Delete
          </Button>
        </>
      ) : null}
    </span>
  )
}

type DialogProps = { target: Target; scope: NoticeScope; onClose: () => void }

function DeleteDialog({ target: { name, target_id }, scope, onClose }: DialogProps) {
  return (
    <ActionDialog
      operation={deleteNoticeTarget}
      input={{ params: { target_id } }}
      words={{ title: `Delete ${name}?`, submit: 'Delete', done: `${name} is deleted.`, is_danger: true }}
      muster={`notices remove ${name}${scope.option}`}
      onClose={onClose}
    >
      <p>Notices that wait are not sent, and its secrets are removed.</p>
    </ActionDialog>
  )
}
