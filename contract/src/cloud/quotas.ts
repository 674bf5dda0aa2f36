// Quotas of a group: limits of the operator, and their use.
import Type, { type Static } from 'typebox'
import { Bytes, object } from '../records.ts'

export const QUOTA_NAMES = ['games', 'namespaces', 'builds', 'sites', 'bytes', 'domains', 'members'] as const

export const QuotaUse = object(
  {
    quota: Type.Enum([...QUOTA_NAMES], {
      description: 'What is counted. `bytes`: stored bytes of uploads; all others are numbers of things.',
    }),
    used: Bytes('How much the group uses.'),
    limit: Type.Optional(Bytes('Most that it may use. Absent without a limit.')),
  },
  'A quota of a group and its use.',
)
export type QuotaUse = Static<typeof QuotaUse>
