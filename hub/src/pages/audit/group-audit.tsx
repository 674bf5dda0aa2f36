// The audit log of a group and its games.
import { useParams } from '@tanstack/react-router'
import { listGroupAuditEvents } from '../../api/operations.gen.ts'
import { HOME } from '../../links.ts'
import { Notice } from '../../parts/notice.tsx'
import { Page } from '../../parts/page.tsx'
import { mayCall, useGames, useRole } from '../../shell/person.tsx'
import { AuditList } from './audit-list.tsx'

export default function GroupAudit() {
  const { group_id = '' } = useParams({ strict: false }) as { group_id?: string }
  const role = useRole(group_id)
  const { data } = useGames()
  const name = data?.groups.find((group) => group.group_id === group_id)?.display_name ?? 'Group'
  return (
    <Page
      title="Audit log"
      crumbs={[{ text: 'Home', to: HOME }]}
      lead={`Who changed what in ${name} and its games, and what was refused.`}
    >
      {mayCall(role, listGroupAuditEvents) ? (
        <AuditList
          source={{ operation: listGroupAuditEvents, params: { group_id }, muster: `audit --group ${group_id}` }}
        />
      ) : (
        <Notice tone="warn">Developers and owners of the group may read its audit log.</Notice>
      )}
    </Page>
  )
}
