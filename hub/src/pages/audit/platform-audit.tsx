// The audit events that belong to no group, for administrators: log-ins, new groups, tokens.
import type { listGroupAuditEvents } from '@musterhost/contract'
import type { Described } from '../../api/describe.ts'
import { listAuditEvents } from '../../api/operations.gen.ts'
import { HOME } from '../../links.ts'
import { Page } from '../../parts/page.tsx'
import { AuditList } from './audit-list.tsx'

/** Both operations have the same filters and the same response. */
const OPERATION = listAuditEvents as unknown as Described<typeof listGroupAuditEvents>

export default function PlatformAudit() {
  return (
    <Page
      title="Audit log"
      crumbs={[{ text: 'Home', to: HOME }]}
      lead="Events that belong to no group, such as log-ins. The events of a group are on the page of the group."
    >
      <AuditList source={{ operation: OPERATION, params: { group_id: '' } }} />
    </Page>
  )
}
