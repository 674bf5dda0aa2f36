// Groups: the developers of games. Each has members, each with a role. A group is visible to its members only.
import Type from 'typebox'
import { GroupId } from '../ids.ts'
import { GROUP_ROLES, operation } from '../operation.ts'
import { DisplayName, described, Empty, IsCut, object, Timestamp, Watch, WatchIndex } from '../records.ts'
import { QuotaUse } from './quotas.ts'
import { Draft, ValidationErrors } from './validation.ts'

/** Characters of the display name of a group. */
export const GROUP_DISPLAY_NAME_LENGTH_MAX = 24

export const Role = Type.Enum([...GROUP_ROLES], {
  description:
    'Role of a member. An owner may do everything that a developer may, a developer everything that a viewer may.',
})

/** Owner id of a group without an owner. */
export const NO_OWNER_ID = '00000000-0000-0000-0000-000000000000'

const handle = {
  group_id: GroupId,
  display_name: Type.String({ description: 'Name for people.' }),
  external: object(
    { profile: Type.String({ description: 'URL of the web page of the group.' }) },
    'Links to the group.',
  ),
  is_developer: Type.Literal(true, { description: 'Whether the group may have games. Always true.' }),
}

export const GroupSummary = object(
  {
    ...handle,
    bio: Type.Literal('', { description: 'Description of the group. Always empty.' }),
    publicity: Type.Literal('closed', { description: 'Who may join. Always `closed`: only people with an invite.' }),
    create_ts: Timestamp('When the group was created.'),
    member_count: Type.Integer({ minimum: 0, description: 'Number of members.' }),
    owner_identity_id: Type.String({
      format: 'uuid',
      description: `Id of the owner; \`${NO_OWNER_ID}\` when the group has none.`,
    }),
    is_current_identity_member: Type.Boolean({ description: 'Whether the caller is a member.' }),
    role: Type.Optional(described(Role, 'Role of the caller. Absent when the caller is not a member.')),
  },
  'A group.',
)

export const GroupHandle = object(handle, 'A group without its members.')

const params = object({ group_id: GroupId })
const defaults = { service: 'api', auth: ['admin', 'user'], rate_limit: 'cloud' } as const

export const createGroup = operation({
  ...defaults,
  id: 'groups.create',
  method: 'POST',
  path: '/group/groups',
  summary:
    'Creates a group, with the caller as its owner. When `access` of bootstrap is `private`, only administrators may call it.',
  body: object({ display_name: DisplayName(GROUP_DISPLAY_NAME_LENGTH_MAX) }),
  response: object({ group_id: GroupId }),
})

export const listGroups = operation({
  ...defaults,
  id: 'groups.listSuggested',
  method: 'GET',
  path: '/group/groups',
  summary: "Lists the caller's groups, newest first. Administrators get all groups.",
  query: object({ watch_index: WatchIndex }),
  response: object({
    groups: Type.Array(GroupSummary, { description: 'The groups, newest first.' }),
    is_cut: IsCut('It contains the 1,000 newest groups.'),
    watch: Watch,
  }),
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
  summary: 'Checks a new name for a group without renaming it.',
  body: object({ display_name: Draft('Display name to check.') }),
  response: ValidationErrors,
})

export const validateGroup = operation({
  ...defaults,
  id: 'groups.validate',
  method: 'POST',
  path: '/cloud/groups/validate',
  summary: 'Checks the name for a new group without creating it.',
  body: object({ display_name: Draft('Display name to check.') }),
  response: ValidationErrors,
})

export const getGroupQuotas = operation({
  ...defaults,
  id: 'groups.getQuotas',
  method: 'GET',
  path: '/group/groups/{group_id}/quotas',
  summary: 'Gets the quotas of a group, and how much of each it uses.',
  role: 'viewer',
  params,
  response: object({ quotas: Type.Array(QuotaUse, { description: 'Each quota with its use.' }) }),
  errors: ['GROUP_NOT_FOUND'],
})
