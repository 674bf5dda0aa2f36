// The frame of a group's pages: it loads the group, and links its pages.
import { Outlet, useParams } from '@tanstack/react-router'
import { getGroupSummary } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { groupLink, HOME } from '../../links.ts'
import { Failure, Loading } from '../../parts/notice.tsx'
import { Page } from '../../parts/page.tsx'
import { useRole } from '../../shell/person.tsx'
import { type Tab, Tabs } from '../../shell/tabs.tsx'
import { GroupContext } from './group.ts'

export default function GroupFrame() {
  const { group_id = '' } = useParams({ strict: false }) as { group_id?: string }
  const read = useCall(getGroupSummary, { params: { group_id } })
  const role = useRole(group_id)
  if (read.data?.group.group_id !== group_id) {
    if (read.error === null) return <Loading what="Loading the group" />
    return (
      <Page title="Group" crumbs={[{ text: 'Home', to: HOME }]}>
        <Failure error={read.error} onRepeat={() => void read.refetch()} />
      </Page>
    )
  }
  return (
    <GroupContext value={{ group: read.data.group, role }}>
      <Tabs label={`Pages of ${read.data.group.display_name}`} tabs={tabsOf(group_id)} />
      <Outlet />
    </GroupContext>
  )
}

function tabsOf(group_id: string): Tab[] {
  return [
    { text: 'Members', to: groupLink(group_id), is_exact: true },
    { text: 'Usage', to: groupLink(group_id, 'billing') },
    { text: 'Notices', to: groupLink(group_id, 'notices') },
    { text: 'Audit log', to: groupLink(group_id, 'audit') },
  ]
}
