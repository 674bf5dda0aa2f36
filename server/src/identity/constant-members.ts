// Members of a profile that clients of the reference system require, with the same value for every identity. Identities have
// no pictures, do not follow each other, and have no groups or statistics for players.
import type { getSelfProfile, ResponseOf } from '@musterhost/contract'
import { mainUrl } from '../config/addresses.ts'
import type { Context } from '../context.ts'

export type Profile = ResponseOf<typeof getSelfProfile>['identity']

/** Path of the picture of all identities. The api serves it (http/pages.ts). */
export const AVATAR_PATH = '/images/avatar.svg'

const CONSTANT_MEMBERS = {
  bio: '',
  follower_count: 0,
  following_count: 0,
  following: false,
  is_following_me: false,
  is_mutual_following: false,
  groups: [],
  games: [],
} as const satisfies Partial<Profile>

export function constantMembers({ config }: Context) {
  const url = mainUrl(config)
  return { ...CONSTANT_MEMBERS, groups: [], games: [], avatar_url: `${url}${AVATAR_PATH}`, external: { profile: url } }
}
