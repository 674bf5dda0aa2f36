// The last notices of a target and what became of each, with a button that sends one again.
import type { listNoticeDeliveries as listOperation, NoticeTarget, ResponseOf } from '@musterhost/contract'
import { listNoticeDeliveries, resendNotice } from '../../api/operations.gen.ts'
import { useCall, useChange } from '../../api/queries.ts'
import { Button } from '../../parts/button.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Dialog } from '../../parts/lazy-dialogs.tsx'
import { Badge, Pending } from '../../parts/notice.tsx'
import { Ago } from '../../parts/time.tsx'
import type { NoticeScope } from './scope.ts'

type Delivery = ResponseOf<typeof listOperation>['deliveries'][number]
const TONES = { waiting: 'warn', delivered: 'good', failed: 'bad' } as const

type DeliveriesProps = { target: NoticeTarget; scope: NoticeScope; onClose: () => void }

export function DeliveriesDialog({ target: { name, target_id }, scope, onClose }: DeliveriesProps) {
  const params = { target_id }
  const read = useCall(listNoticeDeliveries, { params })
  const resend = useChange(resendNotice, { done: 'The notice is sent again.' })
  const columns: Column<Delivery>[] = [
    { id: 'notice', title: 'Notice', is_text: true, cell: ({ title }) => title },
    { id: 'when', title: 'When', cell: ({ create_ts }) => <Ago ts={create_ts} /> },
    { id: 'state', title: 'State', cell: ({ state }) => <Badge tone={TONES[state]}>{state}</Badge> },
    {
      id: 'response',
      title: 'Response',
      is_text: true,
      is_secondary: true,
      cell: ({ status, response = '' }) => `${status ?? ''} ${response}`.trim(),
    },
    {
      id: 'again',
      title: 'Again',
      cell: ({ notice_id, state, title }) =>
        scope.may_change && state !== 'waiting' ? (
          <Button
            kind="quiet"
            onClick={() => resend.mutate({ params: { target_id, notice_id } })}
            aria-label={`Send again: ${title}`}
          >
            Send again
          </Button>
        ) : null,
    },
  ]
  return (
    <Dialog title={`Last notices of ${name}`} onClose={onClose} is_wide>
      <Pending read={read} />
      {read.data === undefined ? null : (
        <DataTable
          label="Deliveries"
          rows={read.data.deliveries}
          rowId={({ notice_id }) => notice_id}
          columns={columns}
          empty={<>There is no notice yet.</>}
        />
      )}
      <div>
        <CopyAs
          operation={listNoticeDeliveries}
          input={{ params }}
          muster={`notices deliveries ${name}${scope.option}`}
        />
      </div>
    </Dialog>
  )
}
