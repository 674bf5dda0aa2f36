// The group whose page is open.
import type { GroupRole, getGroupSummary, ResponseOf } from '@musterhost/contract'
import { createContext, use } from 'react'
import type { Described } from '../../api/describe.ts'
import { mayCall } from '../../shell/person.tsx'

export type Group = ResponseOf<typeof getGroupSummary>['group']
export type OpenGroup = { group: Group; role: GroupRole | null }

export const GroupContext = createContext<OpenGroup | null>(null)

export function useGroup(): OpenGroup & { may: (operation: Pick<Described, 'role'>) => boolean } {
  const open = use(GroupContext)
  if (open === null) throw new Error('This component belongs to the page of a group.')
  return { ...open, may: (operation) => mayCall(open.role, operation) }
}
