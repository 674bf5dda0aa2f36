// The page of an invite: it says which group it leads to, and joins it.
import { useNavigate, useParams } from '@tanstack/react-router'
import { consumeGroupInvite, getGroupInvite } from '../../api/operations.gen.ts'
import { useCall, useChange } from '../../api/queries.ts'
import { groupLink } from '../../links.ts'
import { Button } from '../../parts/button.tsx'
import { Failure, Pending } from '../../parts/notice.tsx'
import { Page } from '../../parts/page.tsx'

export default function Invite() {
  const { code = '' } = useParams({ strict: false }) as { code?: string }
  const navigate = useNavigate()
  const params = { group_invite_code: code }
  const read = useCall(getGroupInvite, { params })
  const join = useChange(consumeGroupInvite, {
    done: 'You are a member now.',
    shows_errors: true,
    onDone: ({ group_id }) => void navigate({ to: groupLink(group_id) }),
  })
  return (
    <Page title="Invite">
      <Pending read={read} what="Reading the invite" />
      {read.data === undefined ? null : (
        <div className="flex flex-col items-start gap-3">
          <p>
            You are invited to the group <strong>{read.data.group.display_name}</strong>.
          </p>
          {join.error === null ? null : <Failure error={join.error} />}
          <Button kind="primary" is_busy={join.isPending} onClick={() => join.mutate({ params })}>
            Join the group
          </Button>
        </div>
      )}
    </Page>
  )
}
