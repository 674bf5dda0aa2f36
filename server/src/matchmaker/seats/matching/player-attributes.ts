// The attributes of the players of one request.
import type { Attributes } from '@musterhost/contract'

/** Members of a party by their identity; all others have `attributes`. */
export type RequestAttributes = { attributes: Attributes; member_attributes: Readonly<Record<string, Attributes>> }

/** The attributes of a member of the party; null: of a caller without an identity. */
export function attributesIn(all: RequestAttributes, identity_id: string | null): Attributes {
  const own = identity_id === null ? undefined : all.member_attributes[identity_id]
  return own === undefined ? all.attributes : { ...all.attributes, ...own }
}
