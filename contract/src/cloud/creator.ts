// The caller who made a record, as lists of tokens and secrets show it.
import Type from 'typebox'
import { object } from '../records.ts'

/** `description`: which caller it is, and when it is absent. */
export const Creator = (description: string) =>
  object(
    {
      kind: Type.String({ description: 'Kind of the caller: `user`, `admin` or `cloud`.' }),
      name: Type.Optional(
        Type.String({
          description: 'Display name of the user now, or name of the access token. Absent for cloud tokens.',
        }),
      ),
    },
    description,
  )
