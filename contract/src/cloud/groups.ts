// Groups: who develops games. Each has members with a role; nobody else knows of it.
import Type from 'typebox'
import { GROUP_ROLES, operation } from '../operation.ts'
import { DisplayName, Empty, Id, IsCut, object, Timestamp, Watch, WatchIndex } from '../records.ts'
import { Draft, ValidationErrors } from './validation.ts'

export const GROUP_DISPLAY_NAME_LENGTH_MAX = 24

export const Role = Type.Enum([...GROUP_ROLES], {
  description: 'What a member may do; each can all that the next can.',
})

/** Owner of a group that has none. */
export const NO_OWNER_ID = '00000000-0000-0000-0000-000000000000'

const handle = {
  group_id: Id,
  display_name: Type.String(),
  external: object({ profile: Type.String({ description: 'Address of the web page that leads to the group.' }) }),
  is_developer: Type.Literal(true, { description: 'Whether the group may develop games. Always true.' }),
}

export const GroupSummary = object(
  {
    ...handle,
    bio: Type.Literal('', { description: 'Text of the group about itself. Always empty.' }),
    publicity: Type.Literal('closed', { description: 'Who may join. Always `closed`: people with an invite.' }),
    create_ts: Timestamp,
    member_count: Type.Integer({ minimum: 0 }),
    owner_identity_id: Type.String({
      format: 'uuid',
      description: `The person who owns the group; \`${NO_OWNER_ID}\` while nobody does.`,
    }),
    is_current_identity_member: Type.Boolean({ description: 'Whether the caller is a member.' }),
    role: Type.Optional(Role),
  },
  "A group in short. `role` is the caller's own, absent when he is no member.",
)

export const GroupHandle = object(handle, 'A group, as it is named.')

const params = object({ group_id: Id })
const defaults = { service: 'api', auth: ['admin', 'user'], rate_limit: 'cloud' } as const

export const createGroup = operation({
  ...defaults,
  id: 'groups.create',
  method: 'POST',
  path: '/group/groups',
  summary: 'Creates a group, with the caller as its owner. Where `access` is private, only administrators may.',
  body: object({ display_name: DisplayName(GROUP_DISPLAY_NAME_LENGTH_MAX) }),
  response: object({ group_id: Id }),
})

export const listGroups = operation({
  ...defaults,
  id: 'groups.listSuggested',
  method: 'GET',
  path: '/group/groups',
  summary: "Lists the caller's groups, newest first; to administrators all groups.",
  query: object({ watch_index: WatchIndex }),
  response: object({ groups: Type.Array(GroupSummary), is_cut: IsCut('It has the 1,000 newest.'), watch: Watch }),
})

export const getGroupSummary = operation({
  ...defaults,
  id: 'groups.getSummary',
  method: 'GET',
  path: '/group/groups/{group_id}/summary',
  summary: 'Gets a group.',
  role: 'viewer',
  params,
  response: object({ group: GroupSummary }),
  errors: ['GROUP_NOT_FOUND'],
})

export const updateGroupProfile = operation({
  ...defaults,
  id: 'groups.updateProfile',
  method: 'POST',
  path: '/group/groups/{group_id}/profile',
  summary: 'Renames a group.',
  role: 'owner',
  params,
  body: object({ display_name: DisplayName(GROUP_DISPLAY_NAME_LENGTH_MAX) }),
  response: Empty,
  errors: ['GROUP_NOT_FOUND'],
})

export const validateGroupProfile = operation({
  ...defaults,
  id: 'groups.validateProfile',
  method: 'POST',
  path: '/group/groups/profile/validate',
  summary: 'Validates information used to rename a group.',
  body: object({ display_name: Draft }),
  response: ValidationErrors,
})

export const validateGroup = operation({
  ...defaults,
  id: 'groups.validate',
  method: 'POST',
  path: '/cloud/groups/validate',
  summary: 'Validates information used to create a new group.',
  body: object({ display_name: Draft }),
  response: ValidationErrors,
})
