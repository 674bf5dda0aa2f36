// Who is signed in, which games and groups this person sees, and what each role may do.
import type { GroupRole } from '@musterhost/contract'
import { createContext, type ReactNode, use, useSyncExternalStore } from 'react'
import type { Described } from '../api/describe.ts'
import { getGames, getSelfProfile } from '../api/operations.gen.ts'
import { useCall } from '../api/queries.ts'
import { onSessionChange, readSession, type SignInState } from '../api/session.ts'

/** Games and groups change seldom. */
const GAMES_EVERY_MS = 30_000
/** The highest first. */
const ROLES: readonly GroupRole[] = ['owner', 'developer', 'viewer']

export type Person = { identity_id: string; display_name: string; is_admin: boolean }

const PersonContext = createContext<Person | null>(null)

export function useSession(): SignInState {
  return useSyncExternalStore(onSessionChange, readSession)
}

export function useProfile() {
  return useCall(getSelfProfile, {})
}

export function PersonProvider({ person, children }: { person: Person; children: ReactNode }) {
  return <PersonContext value={person}>{children}</PersonContext>
}

export function usePerson(): Person {
  const person = use(PersonContext)
  if (person === null) throw new Error('This component is shown to people who are signed in.')
  return person
}

export function useGames() {
  return useCall(getGames, {}, { every_ms: GAMES_EVERY_MS })
}

/** The role of the person in a group: that of an owner for administrators, null for strangers. */
export function useRole(group_id: string | undefined): GroupRole | null {
  const { is_admin } = usePerson()
  const { data } = useGames()
  if (is_admin) return 'owner'
  return data?.groups.find((group) => group.group_id === group_id)?.role ?? null
}

/** Whether a role may call an operation. */
export function mayCall(role: GroupRole | null, operation: Pick<Described, 'role'>): boolean {
  if (operation.role === null) return true
  return role !== null && ROLES.indexOf(role) <= ROLES.indexOf(operation.role)
}
