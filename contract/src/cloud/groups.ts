// Groups: who develops games.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { DisplayName, Id, object, Timestamp } from '../records.ts'
import { Draft, ValidationErrors } from './validation.ts'

export const GROUP_DISPLAY_NAME_LENGTH_MAX = 24

export const GroupSummary = object(
  { group_id: Id, display_name: Type.String(), create_ts: Timestamp },
  'A group in short.',
)

export const createGroup = operation({
  id: 'groups.create',
  method: 'POST',
  path: '/group/groups',
  summary: 'Creates a group.',
  auth: ['admin'],
  rate_limit: 'cloud',
  body: object({ display_name: DisplayName(GROUP_DISPLAY_NAME_LENGTH_MAX) }),
  response: object({ group_id: Id }),
})

export const listGroups = operation({
  id: 'groups.listSuggested',
  method: 'GET',
  path: '/group/groups',
  summary: 'Lists groups, newest first.',
  auth: ['admin'],
  rate_limit: 'cloud',
  response: object({ groups: Type.Array(GroupSummary) }),
})

export const getGroupSummary = operation({
  id: 'groups.getSummary',
  method: 'GET',
  path: '/group/groups/{group_id}/summary',
  summary: 'Gets a group.',
  auth: ['admin'],
  rate_limit: 'cloud',
  params: object({ group_id: Id }),
  response: object({ group: GroupSummary }),
  errors: ['GROUP_NOT_FOUND'],
})

export const validateGroup = operation({
  id: 'groups.validate',
  method: 'POST',
  path: '/cloud/groups/validate',
  summary: 'Validates information used to create a new group.',
  auth: ['admin'],
  rate_limit: 'cloud',
  body: object({ display_name: Draft }),
  response: ValidationErrors,
})
