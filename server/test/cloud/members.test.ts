import assert from 'node:assert/strict'
import test from 'node:test'
import {
  consumeGroupInvite,
  createGame,
  createGroup,
  createGroupInvite,
  getGameById,
  getGames,
  getGroupInvite,
  getGroupMembers,
  getGroupSummary,
  getSelfProfile,
  kickGroupMember,
  leaveGroup,
  listGroups,
  NO_OWNER_ID,
  renameGame,
  setGroupMemberRole,
  transferGroupOwnership,
  updateGroupProfile,
  updateProfile,
  validateGroup,
  validateGroupProfile,
} from '@musterhost/contract'
import { startMailServer } from '../identity/mail-server.ts'
import { logIn, type Person } from '../identity/people.ts'
import { startPlatform } from '../support/platform.ts'
import { detailsOf, refused, UNKNOWN_ID, withoutMessages } from './steps.ts'

const HOUR_MS = 3_600_000

test('groups and their members', async (t) => {
  const mail = await startMailServer(t)
  const env = { MUSTER_SMTP_URL: mail.url, MUSTER_RATE_LIMIT_LOGIN: '0', MUSTER_ACCESS: 'public' }
  const platform = await startPlatform(t, { roles: 'api', env })
  let people = 0
  const person = (): Promise<Person> => logIn(platform, mail, `person${people++}@example.com`)
  const owner = await person()

  const newGroup = async (): Promise<{ group_id: string }> =>
    owner.client.call(createGroup, { body: { display_name: 'Group' } })
  const invite = (group_id: string, body: { ttl?: number; use_count?: number; role?: 'developer' | 'viewer' } = {}) =>
    owner.client.call(createGroupInvite, { params: { group_id }, body })
  const consume = (who: Person, code: string) =>
    who.client.call(consumeGroupInvite, { params: { group_invite_code: code } })
  const join = async (group_id: string, who: Person, role: 'developer' | 'viewer'): Promise<Person> => {
    const { code } = await invite(group_id, { role })
    await consume(who, code)
    return who
  }
  const roles = async (group_id: string): Promise<Record<string, string>> => {
    const { members } = await platform.client.call(getGroupMembers, { params: { group_id } })
    return Object.fromEntries(members.map(({ identity, role }) => [identity.email, role]))
  }

  await t.test('the person who makes a group owns it, and sees their own groups only', async () => {
    const stranger = await person()
    const { group_id } = await newGroup()
    const { group } = await owner.client.call(getGroupSummary, { params: { group_id } })
    assert.equal(group.owner_identity_id, owner.user_id)
    assert.equal(group.role, 'owner')
    assert.equal(group.member_count, 1)
    assert.equal(group.is_current_identity_member, true)
    assert.deepEqual((await stranger.client.call(listGroups, {})).groups, [])
    const { watch, ...nothing } = await stranger.client.call(getGames, {})
    assert.deepEqual(nothing, { games: [], groups: [], is_cut: false })
    assert.match(watch.index, /^[\w-]{22}$/)
    await stranger.client.call(createGroup, { body: { display_name: 'Other' } })
    const names = (await stranger.client.call(listGroups, {})).groups.map(({ display_name }) => display_name)
    assert.deepEqual(names, ['Other'])
    const seen = await platform.client.call(getGroupSummary, { params: { group_id } })
    assert.equal(seen.group.is_current_identity_member, false)
    assert.equal(seen.group.role, undefined)
  })

  await t.test('an invite lets in as many as it says, with the role it says', async () => {
    const { group_id } = await newGroup()
    const { code } = await invite(group_id, { use_count: 2, role: 'viewer' })
    assert.match(code, /^[A-NP-Z1-9]{12}$/)
    const [first, second, third] = [await person(), await person(), await person()]
    const shown = await first.client.call(getGroupInvite, { params: { group_invite_code: code } })
    assert.deepEqual([shown.group.group_id, shown.group.display_name], [group_id, 'Group'])
    assert.deepEqual(await consume(first, code), { group_id })
    await refused('GROUP_ALREADY_MEMBER', consume(first, code))
    const answers = await Promise.allSettled([consume(second, code), consume(third, code)])
    assert.deepEqual(answers.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    await refused('GROUP_INVITE_CODE_ALREADY_USED', consume(await person(), code))
    await refused(
      'GROUP_INVITE_CODE_ALREADY_USED',
      first.client.call(getGroupInvite, { params: { group_invite_code: code } }),
    )
    assert.equal(Object.values(await roles(group_id)).filter((role) => role === 'viewer').length, 2)
  })

  await t.test('an invite ends by time, and one that was never made is unknown', async () => {
    const { group_id } = await newGroup()
    const { code } = await invite(group_id, { ttl: 1_000 })
    platform.advance(1_000)
    const late = await person()
    await refused('GROUP_INVITE_CODE_EXPIRED', consume(late, code))
    assert.equal((await refused('GROUP_INVITE_CODE_INVALID', consume(late, 'AAAAAAAAAAAA'))).status, 404)
    await refused('VALIDATION_ERROR', consume(late, 'AAAAAAAAAAA0'))
  })

  await t.test(
    'a member who is removed has no right left at the very next call, and no invite to come back by',
    async () => {
      const { group_id } = await newGroup()
      const { game_id } = await owner.client.call(createGame, {
        body: { display_name: 'Game', developer_group_id: group_id },
      })
      const member = await join(group_id, await person(), 'developer')
      const { code } = await invite(group_id, { use_count: 10 })
      await member.client.call(getGameById, { params: { game_id } })
      const params = { group_id, identity_id: member.user_id }
      await refused('GROUP_INSUFFICIENT_PERMISSIONS', member.client.call(kickGroupMember, { params }))
      await owner.client.call(kickGroupMember, { params })
      await refused('GAME_NOT_FOUND', member.client.call(getGameById, { params: { game_id } }))
      await refused('GROUP_NOT_FOUND', member.client.call(getGroupSummary, { params: { group_id } }))
      await refused('GROUP_INVITE_CODE_REVOKED', consume(member, code))
      await refused('GROUP_NOT_MEMBER', owner.client.call(kickGroupMember, { params }))
      const self = { group_id, identity_id: owner.user_id }
      await refused('GROUP_OWNER_REQUIRED', owner.client.call(kickGroupMember, { params: self }))
    },
  )

  await t.test('a role that is changed holds at the very next call', async () => {
    const { group_id } = await newGroup()
    const member = await join(group_id, await person(), 'viewer')
    const create = () =>
      member.client.call(createGame, { body: { display_name: 'Game', developer_group_id: group_id } })
    const params = { group_id, identity_id: member.user_id }
    const refusal = await refused('GROUP_INSUFFICIENT_PERMISSIONS', create())
    assert.equal(refusal.status, 403)
    assert.deepEqual(refusal.metadata, { role: 'viewer', needed: 'developer', group_id })
    await owner.client.call(setGroupMemberRole, { params, body: { role: 'developer' } })
    await create()
    await refused(
      'GROUP_INSUFFICIENT_PERMISSIONS',
      member.client.call(setGroupMemberRole, { params, body: { role: 'viewer' } }),
    )
    const other = { group_id, identity_id: UNKNOWN_ID }
    await refused(
      'GROUP_NOT_MEMBER',
      owner.client.call(setGroupMemberRole, { params: other, body: { role: 'viewer' } }),
    )
    const self = { group_id, identity_id: owner.user_id }
    await refused(
      'GROUP_OWNER_REQUIRED',
      owner.client.call(setGroupMemberRole, { params: self, body: { role: 'viewer' } }),
    )
    await refused(
      'VALIDATION_ERROR',
      owner.client.call(setGroupMemberRole, { params, body: { role: 'owner' as 'viewer' } }),
    )
  })

  await t.test('a group has one owner, who hands it on before leaving', async () => {
    const { group_id } = await newGroup()
    const next = await join(group_id, await person(), 'viewer')
    const params = { group_id }
    await refused('GROUP_OWNER_REQUIRED', owner.client.call(leaveGroup, { params }))
    await refused(
      'GROUP_NOT_MEMBER',
      owner.client.call(transferGroupOwnership, { params, body: { new_owner_identity_id: UNKNOWN_ID } }),
    )
    const transfer = { params, body: { new_owner_identity_id: next.user_id } }
    await refused('GROUP_INSUFFICIENT_PERMISSIONS', next.client.call(transferGroupOwnership, transfer))
    // Of two transfers at once by the same owner, one comes first; after it that person is no owner any more.
    const both = await Promise.allSettled([
      owner.client.call(transferGroupOwnership, transfer),
      owner.client.call(transferGroupOwnership, transfer),
    ])
    assert.deepEqual(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    assert.deepEqual(await roles(group_id), { [owner.email]: 'developer', [next.email]: 'owner' })
    await owner.client.call(leaveGroup, { params })
    await refused('GROUP_NOT_FOUND', owner.client.call(leaveGroup, { params }))
    assert.deepEqual(await roles(group_id), { [next.email]: 'owner' })
  })

  await t.test('a group that the operator made has no owner until it is handed to a member', async () => {
    const { group_id } = await platform.client.call(createGroup, { body: { display_name: 'Made' } })
    const params = { group_id }
    const { code } = await platform.client.call(createGroupInvite, { params, body: {} })
    const member = await person()
    await consume(member, code)
    assert.deepEqual(await roles(group_id), { [member.email]: 'developer' })
    const { group } = await member.client.call(getGroupSummary, { params })
    assert.equal(group.owner_identity_id, NO_OWNER_ID)
    await platform.client.call(transferGroupOwnership, { params, body: { new_owner_identity_id: member.user_id } })
    assert.deepEqual(await roles(group_id), { [member.email]: 'owner' })
  })

  await t.test('a group has the members that known clients require', async () => {
    const { group_id } = await newGroup()
    const { groups } = await owner.client.call(listGroups, {})
    const { external, is_developer, bio, publicity, owner_identity_id } = groups.find(
      (group) => group.group_id === group_id,
    )!
    assert.deepEqual(
      { is_developer, bio, publicity, owner_identity_id },
      { is_developer: true, bio: '', publicity: 'closed', owner_identity_id: owner.user_id },
    )
    const { pathname } = new URL(external.profile)
    const page = await fetch(`${platform.api_url}${pathname}`, { redirect: 'manual' })
    assert.equal(page.headers.get('location'), external.profile, 'the page is served on the main domain')
    await owner.client.call(createGame, { body: { display_name: 'Game', developer_group_id: group_id } })
    const { games } = await owner.client.call(getGames, {})
    const { developer, url, name_id } = games.find((game) => game.developer.group_id === group_id)!
    const { display_name } = groups.find((group) => group.group_id === group_id)!
    assert.deepEqual(developer, { group_id, display_name, external, is_developer: true })
    assert.equal(new URL(url).hostname, `${name_id}.cdn.localhost`)
    const { code } = await invite(group_id, {})
    const { group } = await (await person()).client.call(getGroupInvite, { params: { group_invite_code: code } })
    assert.deepEqual(group, developer)
  })

  await t.test(
    'who watches groups, games, members or a profile gets the next response once it is another',
    async () => {
      /** Of a person with their own group and game, so that no case changes what another one watches. */
      const watchOf = async (display_name: string) => {
        const { client } = await person()
        const params = await client.call(createGroup, { body: { display_name: 'Watched' } })
        const game = { display_name, developer_group_id: params.group_id }
        const { game_id } = await client.call(createGame, { body: game })
        const calls = {
          groups: (query = {}) => client.call(listGroups, { query }),
          games: (query = {}) => client.call(getGames, { query }),
          game: (query = {}) => client.call(getGameById, { params: { game_id }, query }),
          members: (query = {}) => client.call(getGroupMembers, { params, query }),
          profile: (query = {}) => client.call(getSelfProfile, { query }),
        }
        const changes = {
          groups: () => client.call(updateGroupProfile, { params, body: { display_name: 'Renamed' } }),
          games: () => client.call(createGame, { body: game }),
          game: () => client.call(renameGame, { params: { game_id }, body: { display_name: 'Renamed' } }),
          members: async () => {
            const { code } = await client.call(createGroupInvite, { params, body: {} })
            return consume(await person(), code)
          },
          profile: () => client.call(updateProfile, { body: { display_name: 'Renamed' } }),
        }
        return { calls, changes }
      }
      const watches = async (what: 'groups' | 'games' | 'game' | 'members' | 'profile'): Promise<void> => {
        const { calls, changes } = await watchOf(`Watched ${what}`)
        const { watch } = await calls[what]()
        assert.deepEqual((await calls[what]()).watch, watch, `${what}: the same response has the same index`)
        assert.deepEqual((await calls[what]({ watch_index: 'another' })).watch, watch, `${what}: at once`)
        let is_over = false
        const waiting = calls[what]({ watch_index: watch.index }).finally(() => {
          is_over = true
        })
        // Answered after the other one has come in.
        await calls[what]()
        assert.equal(is_over, false, `${what}: it waits`)
        await changes[what]()
        assert.notEqual((await waiting).watch.index, watch.index, what)
      }
      await Promise.all((['groups', 'games', 'game', 'members', 'profile'] as const).map(watches))
    },
  )

  await t.test('the owner renames a group, by the rules for names', async () => {
    const { group_id } = await newGroup()
    const params = { group_id }
    const member = await join(group_id, await person(), 'developer')
    const rename = (who: Person, display_name: string) =>
      who.client.call(updateGroupProfile, { params, body: { display_name } })
    await rename(owner, '👩‍👩‍👧‍👦 <b> {{7*7}} =1')
    const { group } = await owner.client.call(getGroupSummary, { params })
    assert.equal(group.display_name, '👩‍👩‍👧‍👦 <b> {{7*7}} =1')
    await refused('GROUP_INSUFFICIENT_PERMISSIONS', rename(member, 'Mine'))
    const wrong = ['', ' ', '\u200b\u200d', 'a\u202eb', 'a\tb', 'a\u0000b', 'x'.repeat(25)]
    for (const display_name of wrong) {
      const error = await refused('VALIDATION_ERROR', rename(owner, display_name))
      assert.deepEqual(detailsOf(error)[0]?.path, ['display_name'], JSON.stringify(display_name))
      if (display_name.includes('\u0000')) continue
      for (const operation of [validateGroup, validateGroupProfile]) {
        const { errors } = await owner.client.call(operation, { body: { display_name } })
        assert.deepEqual(withoutMessages(errors)[0]?.path, ['display_name'], JSON.stringify(display_name))
      }
    }
    const { errors } = await owner.client.call(validateGroup, { body: { display_name: 'x'.repeat(24) } })
    assert.deepEqual(errors, [])
  })

  await t.test('a group has 256 members at most', async () => {
    const { group_id } = await newGroup()
    const { ctx } = platform
    const id = (index: number) => `10000000-0000-7000-8000-0000000000${index.toString(16).padStart(2, '0')}`
    const user_ids = Array.from({ length: 254 }, (_, index) => id(index))
    await ctx.db
      .insertInto('users')
      .values(
        user_ids.map((user_id, index) => ({ user_id, email: `crowd${index}@example.com`, display_name: 'Crowd' })),
      )
      .execute()
    await ctx.db
      .insertInto('group_members')
      .values(user_ids.map((user_id) => ({ group_id, user_id, role: 'viewer' as const, join_ts: new Date(ctx.now()) })))
      .execute()
    const { code } = await invite(group_id, { use_count: 5 })
    const [first, second] = [await person(), await person()]
    const answers = await Promise.allSettled([consume(first, code), consume(second, code)])
    assert.deepEqual(answers.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    const late = answers[0]?.status === 'rejected' ? first : second
    const { metadata } = await refused('QUOTA_REACHED', consume(late, code))
    assert.deepEqual(metadata, { quota: 'members', limit: 256, used: 256 })
  })

  await t.test('what a request may not say is not stored', async () => {
    const body = { display_name: 'X', owner_identity_id: UNKNOWN_ID, is_admin: true, create_ts: '2020-01-01T00:00:00Z' }
    await refused('VALIDATION_ERROR', owner.client.call(createGroup, { body }))
    const { group_id } = await newGroup()
    await refused('VALIDATION_ERROR', invite(group_id, { role: 'owner' as 'viewer' }))
    for (const wrong of [{ ttl: 0 }, { ttl: 9e15 }, { use_count: 0 }, { use_count: 257 }, { use_count: 1.5 }]) {
      await refused('VALIDATION_ERROR', invite(group_id, wrong))
    }
    platform.advance(HOUR_MS)
  })
})

test('where access is private only administrators make groups', async (t) => {
  const mail = await startMailServer(t)
  const platform = await startPlatform(t, {
    roles: 'api',
    env: { MUSTER_SMTP_URL: mail.url, MUSTER_RATE_LIMIT_LOGIN: '0' },
  })
  const person = await logIn(platform, mail, 'a@example.com')
  const create = person.client.call(createGroup, { body: { display_name: 'Mine' } })
  assert.equal((await refused('API_FORBIDDEN', create)).status, 403)
  await platform.client.call(createGroup, { body: { display_name: 'Ours' } })
  assert.deepEqual((await person.client.call(listGroups, {})).groups, [])
})
