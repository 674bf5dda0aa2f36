// The page of an invite: it says which group it leads to, and joins it.
import { useNavigate, useParams } from '@tanstack/react-router'
import { consumeGroupInvite, getGroupInvite } from '../../api/operations.gen.ts'
import { useCall, useChange } from '../../api/queries.ts'
import { groupLink } from '../../links.ts'
import { Button } from '../../parts/button.tsx'
import { Failure, Notice, Pending } from '../../parts/notice.tsx'
import { Page } from '../../parts/page.tsx'

/** Errors of an invite that does not exist; the first is that of a malformed code. */
const MISSING: ReadonlySet<string> = new Set(['VALIDATION_ERROR', 'GROUP_INVITE_CODE_INVALID'])

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
      {read.error !== null && MISSING.has(read.error.code) ? (
        <Notice tone="warn">
          There is no such invite. The address may be mistyped: compare it, or ask for a new invite.
        </Notice>
      ) : (
        <Pending read={read} what="Reading the invite" />
      )}
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
