// The caller who made a record, in columns beside it. A user is kept by id, so lists show the name of today; the columns refer to
// nothing, because records outlive users.
import type { Caller } from '../tokens/caller.ts'
import { userOf } from '../tokens/caller.ts'

type CreatorColumns = { creator_kind: string; creator_name: string | null; creator_user_id: string | null }

export function creatorColumns(caller: Caller): CreatorColumns {
  return {
    creator_kind: caller.kind,
    creator_name: 'name' in caller ? caller.name : null,
    creator_user_id: userOf(caller),
  }
}

/** `creator_name`: of the columns, or of the user. Undefined for records from before the columns existed. */
export function creatorOf({
  creator_kind: kind,
  creator_name: name,
}: {
  creator_kind: string | null
  creator_name: string | null
}): { kind: string; name?: string } | undefined {
  if (kind === null) return undefined
  return name === null ? { kind } : { kind, name }
}
