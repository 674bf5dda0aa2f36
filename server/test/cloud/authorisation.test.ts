import assert from 'node:assert/strict'
import test from 'node:test'
import {
  type ApiError,
  completeDeviceLink,
  completeUpload,
  consumeGroupInvite,
  createCloudToken,
  createGame,
  createGameBuild,
  createGameCdnSite,
  createGameNamespace,
  createGameNamespaceTokenPublic,
  createGameVersion,
  createGroup,
  createGroupInvite,
  GROUP_ROLES,
  getGameById,
  getGameNamespaceById,
  getGames,
  getGameVersionById,
  getGroupMembers,
  getGroupSummary,
  kickGroupMember,
  listGameBuilds,
  listGameCdnSites,
  listGameCloudTokens,
  listGameNamespaceTokensPublic,
  listGroups,
  type Operation,
  prepareDeviceLink,
  revokeGameCloudToken,
  revokeGameNamespaceTokenPublic,
  revokeToken,
  setGroupMemberRole,
  transferGroupOwnership,
  updateGameNamespaceMatchmakerConfig,
  updateGameNamespaceVersion,
  updateGroupProfile,
  validateGame,
  validateGameNamespace,
  validateGameVersion,
  validateGroup,
} from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { startMailServer } from '../identity/mail-server.ts'
import { logIn } from '../identity/people.ts'
import { MANAGEMENT_TABLES } from '../support/management-tables.ts'
import { startPlatform } from '../support/platform.ts'
import { newGame, refused, type TestGame, UNKNOWN_ID } from './steps.ts'

const call = (operation: Operation, input: Call['input'] = {}): Call => ({ operation, input })

type Call = { operation: Operation; input: { params?: Record<string, string>; body?: unknown } }

/** One call of each operation that would succeed, on the game (with ids of it) or on none. */
function callsOf(
  game: TestGame,
  upload_id: string,
  token_ids: { cloud: string; public: string },
): { of_game: Call[]; of_operator: Call[] } {
  const { game_id, version_id, group_id } = game
  const params = { game_id }
  const namespace = { game_id, namespace_id: game.prod_id }
  const file = { path: 'a', content_length: 1 }
  return {
    of_game: [
      call(getGameById, { params }),
      call(createCloudToken, { params }),
      call(listGameCloudTokens, { params }),
      call(revokeGameCloudToken, { params: { game_id, token_id: token_ids.cloud } }),
      call(createGameNamespace, { params, body: { display_name: 'N', name_id: 'n', version_id } }),
      call(validateGameNamespace, { params, body: { display_name: 'N', name_id: 'm' } }),
      call(getGameNamespaceById, { params: namespace }),
      call(updateGameNamespaceVersion, { params: namespace, body: { version_id } }),
      call(updateGameNamespaceMatchmakerConfig, { params: namespace, body: { lobby_count_max: 0 } }),
      call(createGameNamespaceTokenPublic, { params: namespace }),
      call(listGameNamespaceTokensPublic, { params: namespace }),
      call(revokeGameNamespaceTokenPublic, { params: { ...namespace, token_id: token_ids.public } }),
      call(createGameVersion, { params, body: { display_name: 'V', config: {} } }),
      call(validateGameVersion, { params, body: { display_name: 'W', config: {} } }),
      call(getGameVersionById, { params: { game_id, version_id } }),
      call(createGameBuild, { params, body: { display_name: 'B', image_tag: 'b:1', image_file: file } }),
      call(listGameBuilds, { params }),
      call(createGameCdnSite, { params, body: { display_name: 'S', files: [file] } }),
      call(listGameCdnSites, { params }),
      call(completeUpload, { params: { upload_id } }),
    ],
    of_operator: [
      call(createGroup, { body: { display_name: 'G' } }),
      call(listGroups),
      call(getGroupSummary, { params: { group_id } }),
      call(validateGroup, { body: { display_name: 'G' } }),
      call(createGame, { body: { display_name: 'A', developer_group_id: group_id } }),
      call(validateGame, { body: { display_name: 'A' } }),
      call(revokeToken, { params: { token_id: UNKNOWN_ID } }),
    ],
  }
}

test('who may do what on the management side', async (t) => {
  const mail = await startMailServer(t)
  const platform = await startPlatform(t, {
    roles: 'api',
    env: { MUSTER_SMTP_URL: mail.url, MUSTER_RATE_LIMIT_LOGIN: '0' },
  })
  const { ctx } = platform
  const own = await newGame(platform)
  const other = await newGame(platform)
  const site = await platform.client.call(createGameCdnSite, {
    params: { game_id: own.game_id },
    body: { display_name: 'S', files: [{ path: 'a', content_length: 1 }] },
  })
  const given = {
    cloud: await platform.client.call(createCloudToken, { params: { game_id: own.game_id } }),
    public: await platform.client.call(createGameNamespaceTokenPublic, {
      params: { game_id: own.game_id, namespace_id: own.prod_id },
    }),
  }
  const idOf = ({ token }: { token: string }): string => ctx.keys.verify(token, ctx.now()).token_id
  const token_ids = { cloud: idOf(given.cloud), public: idOf(given.public) }
  const { of_game, of_operator } = callsOf(own, site.upload_id, token_ids)
  const all = [...of_game, ...of_operator, { operation: getGames as Operation, input: {} }]

  const issue = (subject: Parameters<typeof ctx.keys.issue>[0], now_ms = ctx.now()) =>
    ctx.keys.issue(subject, { now_ms, lifetime_ms: 60_000, name: 'prod' })
  const snapshot = async () => {
    const tables = await Promise.all(MANAGEMENT_TABLES.map((table) => ctx.db.selectFrom(table).selectAll().execute()))
    // The use of a cloud token is written a few seconds late. A table has no order, and that write changes the one it returns.
    const textOf = (row: object): string =>
      JSON.stringify(row, (name, value) => (name === 'use_ts' ? undefined : value))
    return tables.flatMap((rows) => rows.map(textOf).sort()).join('\n')
  }
  const callWith = (token: string | null, { operation, input }: Call): Promise<unknown> =>
    (token === null ? createClient({ url: platform.api_url }) : platform.as(token)).call(operation, input as never)

  await t.test('without a credential, or with a bad one, nothing is answered and nothing changes', async () => {
    const before = await snapshot()
    const forged = own.cloud_token.slice(0, -2) + (own.cloud_token.endsWith('AA') ? 'BB' : 'AA')
    for (const call of all) {
      assert.equal((await refused('API_UNAUTHORIZED', callWith(null, call))).status, 401, call.operation.id)
      await refused('TOKEN_INVALID', callWith('nonsense', call))
      await refused('TOKEN_INVALID', callWith(forged, call))
      await refused('TOKEN_EXPIRED', callWith(issue({ kind: 'access', name: 'x' }, ctx.now() - 120_000), call))
    }
    assert.equal(await snapshot(), before)
  })

  await t.test('tokens of other kinds are refused, and change nothing', async () => {
    const before = await snapshot()
    const namespace_id = own.prod_id
    const tokens = [
      issue({ kind: 'public', namespace_id }),
      issue({ kind: 'lobby', lobby_id: UNKNOWN_ID, namespace_id }),
      issue({ kind: 'device', device_link_id: UNKNOWN_ID }),
      issue({ kind: 'player', player_id: UNKNOWN_ID, lobby_id: UNKNOWN_ID, namespace_id }),
    ]
    for (const call of all) {
      for (const token of tokens) await refused('API_FORBIDDEN', callWith(token, call))
    }
    for (const call of of_operator) await refused('API_FORBIDDEN', callWith(own.cloud_token, call))
    assert.equal(await snapshot(), before)
  })

  await t.test('to a cloud token the games of others are as unknown as those that do not exist', async () => {
    const before = await snapshot()
    const told = (error: ApiError) => ({ code: error.code, message: error.message, metadata: error.metadata })
    for (const call of of_game) {
      const unknown = { ...call, input: { ...call.input, params: { ...call.input.params } } }
      if ('game_id' in unknown.input.params) unknown.input.params.game_id = UNKNOWN_ID
      else unknown.input.params.upload_id = UNKNOWN_ID
      const code = call.operation === completeUpload ? 'UPLOAD_NOT_FOUND' : 'GAME_NOT_FOUND'
      const foreign = await refused(code, callWith(other.cloud_token, call))
      assert.equal(foreign.status, 404)
      assert.deepEqual(
        told(foreign),
        told(await refused(code, callWith(other.cloud_token, unknown))),
        call.operation.id,
      )
      await refused(code, callWith(platform.token, unknown))
    }
    assert.equal(await snapshot(), before)
  })

  await t.test('what people may do follows from their role in the group, and strangers learn nothing', async () => {
    const { group_id, game_id } = own
    const params = { group_id }
    const of_group: Call[] = [
      call(getGroupSummary, { params }),
      call(getGroupMembers, { params }),
      call(updateGroupProfile, { params, body: { display_name: 'G' } }),
      call(createGroupInvite, { params, body: {} }),
      call(kickGroupMember, { params: { group_id, identity_id: UNKNOWN_ID } }),
      call(setGroupMemberRole, { params: { group_id, identity_id: UNKNOWN_ID }, body: { role: 'viewer' } }),
      call(transferGroupOwnership, { params, body: { new_owner_identity_id: UNKNOWN_ID } }),
      call(createGame, { body: { display_name: 'A', developer_group_id: group_id } }),
    ]
    const calls = [...of_game, ...of_group]
    const { device_link_token } = await platform.client.call(prepareDeviceLink, {})
    calls.push(call(completeDeviceLink, { body: { device_link_token, game_id } }))
    const stranger = await logIn(platform, mail, 'stranger@example.com')
    const before_strangers = await snapshot()
    for (const wish of calls) {
      const code =
        wish.operation === completeUpload
          ? 'UPLOAD_NOT_FOUND'
          : of_group.includes(wish)
            ? 'GROUP_NOT_FOUND'
            : 'GAME_NOT_FOUND'
      assert.equal((await refused(code, callWith(stranger.token, wish))).status, 404, wish.operation.id)
    }
    assert.equal(await snapshot(), before_strangers)
    for (const role of ['viewer', 'developer'] as const) {
      const person = await logIn(platform, mail, `${role}@example.com`)
      const { code } = await platform.client.call(createGroupInvite, { params, body: { role } })
      await person.client.call(consumeGroupInvite, { params: { group_invite_code: code } })
      const before = await snapshot()
      for (const wish of calls) {
        const needed = wish.operation.role
        if (needed === null || GROUP_ROLES.indexOf(needed) >= GROUP_ROLES.indexOf(role)) continue
        await refused('GROUP_INSUFFICIENT_PERMISSIONS', callWith(person.token, wish))
      }
      assert.equal(await snapshot(), before)
      if (role === 'developer') continue
      for (const wish of calls.filter(({ operation }) => operation.role === 'viewer')) {
        await callWith(person.token, wish)
      }
    }
  })

  await t.test('a cloud token does everything on its own game', async () => {
    for (const call of of_game) {
      if (call.operation !== completeUpload) await callWith(own.cloud_token, call)
    }
    await refused('UPLOAD_INCOMPLETE', own.cloud.call(completeUpload, { params: { upload_id: site.upload_id } }))
  })
})
