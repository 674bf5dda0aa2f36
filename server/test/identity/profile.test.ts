import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  consumeGroupInvite,
  createGroup,
  createGroupInvite,
  getGroupMembers,
  getSelfProfile,
  updateProfile,
  validateProfile,
} from '@musterhost/contract'
import { detailsOf, refused, withoutMessages } from '../cloud/steps.ts'
import { startPlatform } from '../support/platform.ts'
import { startMailServer } from './mail-server.ts'
import { logIn } from './people.ts'

test('a user reads and changes their profile, and their groups see the new name', async (t) => {
  const mail = await startMailServer(t)
  const platform = await startPlatform(t, { roles: 'api', env: { MUSTER_SMTP_URL: mail.url } })
  const { client } = platform
  const [ada, bob] = [await logIn(platform, mail, 'ada@example.com'), await logIn(platform, mail, 'bob@example.com')]
  const { identity } = await ada.client.call(getSelfProfile, {})
  const { join_ts, account_number, avatar_url, external, ...rest } = identity
  assert.deepEqual(rest, {
    identity_id: ada.user_id,
    display_name: 'ada',
    is_registered: true,
    is_admin: false,
    linked_accounts: [{ email: { email: 'ada@example.com' } }],
    bio: '',
    groups: [],
    games: [],
    follower_count: 0,
    following_count: 0,
    following: false,
    is_following_me: false,
    is_mutual_following: false,
  })
  assert.ok(account_number >= 1 && account_number <= 9_999)
  assert.equal(new URL(avatar_url).origin, new URL(external.profile).origin)
  assert.match(join_ts, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

  const { group_id } = await client.call(createGroup, { body: { display_name: 'Group' } })
  for (const person of [ada, bob]) {
    const { code } = await client.call(createGroupInvite, { params: { group_id }, body: {} })
    await person.client.call(consumeGroupInvite, { params: { group_invite_code: code } })
  }
  await ada.client.call(updateProfile, { body: { display_name: 'Countess Ada' } })
  assert.equal((await ada.client.call(getSelfProfile, {})).identity.display_name, 'Countess Ada')
  const { members } = await bob.client.call(getGroupMembers, { params: { group_id } })
  assert.deepEqual(
    members.map((member) => member.identity.display_name),
    ['Countess Ada', 'bob'],
  )

  for (const display_name of ['', 'x'.repeat(25), ' ', 'a\u0000b']) {
    const body = { display_name }
    const { errors } = await ada.client.call(validateProfile, { body }).catch(() => ({ errors: null }))
    const error = await refused('VALIDATION_ERROR', ada.client.call(updateProfile, { body }))
    // A text that no name may contain is refused by both operations.
    if (errors !== null) assert.deepEqual(withoutMessages(errors), detailsOf(error), JSON.stringify(display_name))
    assert.deepEqual(detailsOf(error)[0]?.path, ['display_name'])
  }
  assert.deepEqual(await ada.client.call(validateProfile, { body: { display_name: 'Ada' } }), { errors: [] })
  await refused('API_FORBIDDEN', client.call(getSelfProfile, {}))
})
