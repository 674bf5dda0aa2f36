// The targets of notices of a group and all its games.
import { putNoticeTarget } from '../../api/operations.gen.ts'
import { HOME } from '../../links.ts'
import { useGroup } from '../group/group.ts'
import { Notices } from './notices.tsx'

export default function GroupNotices() {
  const { group, may } = useGroup()
  const { group_id } = group
  const crumbs = [{ text: 'Home', to: HOME }]
  return (
    <Notices
      scope={{ query: { group_id }, option: ` --group ${group_id}`, crumbs, may_change: may(putNoticeTarget) }}
    />
  )
}
