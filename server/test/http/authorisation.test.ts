import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import {
  createCloudToken,
  createGame,
  createStatusIncident,
  endRollout,
  getGameById,
  type Operation,
  putNoticeTarget,
  putSchedule,
  setRollout,
} from '@musterhost/contract'
import { OPERATIONS } from '@musterhost/contract/operations'
import { newBuild, newSite } from '../cloud/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { type Answer, requireRefusal } from './ask.ts'
import { type Cell, cellOf, FORMER, IN_THE_WAY, TABLE } from './authorisation-table.ts'
import { askFor, type Call, callBy, callOf } from './calls.ts'
import { dump } from './dump.ts'
import { UNKNOWN_ID } from './steps.ts'
import {
  CALLERS,
  type CallerName,
  createWorld,
  noticeTargetOf,
  scheduleOf,
  statusIncidentOf,
  type World,
} from './world.ts'

/** A member who has left may do nothing any more, and a lobby that has ended neither. */
const LAST = ['groups.leave', 'lobbies.stop']

type CellCall = { operation: Operation; caller: CallerName; cell: Cell; path: string }

function cells(): CellCall[] {
  const leaving = OPERATIONS.filter(({ id }) => LAST.includes(id))
  return [...OPERATIONS.filter(({ id }) => !LAST.includes(id)), ...leaving].flatMap((operation) => {
    const row = TABLE[operation.id]
    assert.ok(row, `the table has no row for ${operation.id}`)
    return [operation.path, ...operation.aliases].flatMap((path) =>
      CALLERS.map((caller) => ({ operation, caller, cell: cellOf(row, caller), path })),
    )
  })
}

test('every caller on every operation: the table decides, and who is refused changes nothing', async (t) => {
  const platform = await startPlatform(t)
  const world = await createWorld(platform)
  const all = cells()
  assert.equal(Object.keys(TABLE).length, OPERATIONS.length)

  const before = await dump(platform)
  for (const { operation, caller, cell, path } of all) {
    if (cell === 'in') continue
    const answer = await askFor(world, operation, callBy(world, operation, caller), world.tokens[caller], { path })
    try {
      requireRefusal(answer, cell)
    } catch (error) {
      throw new Error(`${caller} on ${operation.id} at ${path}`, { cause: error })
    }
  }
  assert.equal(await dump(platform), before)

  for (const { operation, caller, cell, path } of all) {
    if (cell !== 'in') continue
    // Each caller ends a roll-out that is under way.
    if (operation.id === endRollout.id) await askFor(world, setRollout, callOf(world, setRollout), world.tokens.admin)
    const answer = await askFor(world, operation, callBy(world, operation, caller), world.tokens[caller], { path })
    const otherwise = IN_THE_WAY[operation.id]
    if (otherwise !== undefined) requireRefusal(answer, otherwise)
    else assert.equal(answer.status, 200, `${caller} on ${operation.id} at ${path}: ${answer.text}`)
    assert.match(String(answer.headers['x-ray-id']), /^[0-9a-f-]{36}$/)
  }
})

test('an Authorization header that is no bearer token is refused unchanged', async (t) => {
  const platform = await startPlatform(t)
  const world = await createWorld(platform)
  const admin = platform.token
  const headers = [
    '',
    'Bearer',
    'Bearer ',
    `Basic ${admin}`,
    `Bearer  ${admin}`,
    `Bearer ${admin} x`,
    admin,
    `Bearer ${'x'.repeat(4_000)}`,
  ]
  for (const operation of OPERATIONS) {
    if (operation.auth.includes('anyone')) continue
    for (const authorization of headers) {
      const answer = await askFor(world, operation, callOf(world, operation), null, { headers: { authorization } })
      requireRefusal(answer, 'TOKEN_INVALID')
    }
  }
})

/** The operator may use every group and game; a development token gets the same answer whatever id it names. */
const UNBOUND = ['admin', 'development', 'stranger', ...FORMER]
const BOUND = CALLERS.filter((caller) => !UNBOUND.includes(caller) && !caller.startsWith('other_'))
/** A caller needs both this id and the code of the mail, or the target of the notice; the id alone reveals nothing. */
const UNBOUND_IDS = new Set(['verification_id', 'invitation_id', 'notice_id'])
/** Who is not in the lobby is out of it already. */
const IDEMPOTENT = new Set(['games.matchmaker.deleteMatchmakerLobbyPlayer player_id'])
/** What a member is, a user is: there is no page of users. */
const NO_SUCH = /_NOT_FOUND$|^GROUP_NOT_MEMBER$/

test('what is not there and what is not yours get one answer', async (t) => {
  const platform = await startPlatform(t)
  const world = await createWorld(platform)
  const { other } = world
  const tokenOf = (token: string | null) => platform.ctx.keys.verify(token ?? '', platform.ctx.now())
  const [stranger, seat] = [tokenOf(world.tokens.stranger), tokenOf(world.other_seat.player.token)]
  assert.ok(stranger.kind === 'user' && seat.kind === 'player')
  const foreign: Record<string, string> = {
    game_id: other.game_id,
    namespace_id: other.namespace_id,
    version_id: other.version_id,
    build_id: await newBuild(platform, other.game_id),
    site_id: await newSite(platform, other.game_id),
    upload_id: await uploadOf(world, other.game_id),
    lobby_id: world.other_seat.lobby.lobby_id,
    player_id: seat.player_id,
    ray_id: await rayOf(world, other),
    developer_group_id: other.group_id,
    group_id: other.group_id,
    identity_id: stranger.user_id,
    new_owner_identity_id: stranger.user_id,
    token_id: tokenOf(world.tokens.other_cloud).token_id,
    session_id: stranger.session_id,
    passkey_id: await foreignPasskey(platform, stranger.user_id),
    user_id: stranger.user_id,
    schedule_id: await foreignSchedule(platform, other),
    incident_id: (
      await platform.client.call(createStatusIncident, { params: { game_id: other.game_id }, body: statusIncidentOf() })
    ).incident_id,
    target_id: (await platform.client.call(putNoticeTarget, { body: noticeTargetOf(other.game_id) })).target_id,
  }
  for (const { id, params, body } of OPERATIONS) {
    for (const name of [params, body].flatMap(idsOf)) {
      assert.ok(name in foreign || UNBOUND_IDS.has(name), `no foreign ${name} is tried at ${id}`)
    }
  }
  const before = await dump(platform)
  let tried = 0
  for (const operation of OPERATIONS) {
    for (const caller of BOUND.filter((name) => cellOf(TABLE[operation.id]!, name) === 'in')) {
      for (const [name, id] of Object.entries(foreign)) {
        if (await isAsUnknown(world, operation, caller, name, id, Object.values(foreign))) tried++
      }
    }
  }
  assert.ok(tried > 300, String(tried))
  assert.equal(await dump(platform), before)
})

async function foreignPasskey({ ctx }: Platform, user_id: string): Promise<string> {
  const passkey_id = randomUUID()
  const credential = { credential_id: Buffer.from(passkey_id), public_key: Buffer.alloc(1), transports: [] }
  await ctx.db
    .insertInto('passkeys')
    .values({ passkey_id, user_id, ...credential, name: 'x', sign_count: 0, signs_in: true, create_ts: new Date() })
    .execute()
  return passkey_id
}

async function foreignSchedule({ client }: Platform, other: TestGame): Promise<string> {
  const body = scheduleOf(other)
  return (await client.call(putSchedule, { params: { game_id: other.game_id }, body })).schedule.schedule_id
}

test('what is of another game is not found in this one, though both are of one group', async (t) => {
  const platform = await startPlatform(t)
  const world = await createWorld(platform)
  const { client, ctx } = platform
  const { group_id } = world.game
  const { game_id } = await client.call(createGame, { body: { display_name: 'Two', developer_group_id: group_id } })
  const { game } = await client.call(getGameById, { params: { game_id } })
  const { token } = await client.call(createCloudToken, { params: { game_id } })
  const sibling: Record<string, string> = {
    namespace_id: game.namespaces[0]!.namespace_id,
    version_id: game.versions[0]!.version_id,
    build_id: await newBuild(platform, game_id),
    site_id: await newSite(platform, game_id),
    upload_id: await uploadOf(world, game_id),
    lobby_id: world.other_seat.lobby.lobby_id,
    token_id: ctx.keys.verify(token, ctx.now()).token_id,
  }
  const before = await dump(platform)
  let tried = 0
  for (const operation of OPERATIONS.filter(({ params }) => 'game_id' in params.properties)) {
    for (const caller of ['admin', 'owner', 'developer', 'cloud'] as const) {
      if (TABLE[operation.id]?.[caller] !== 'in') continue
      for (const [name, id] of Object.entries(sibling)) {
        if (await isAsUnknown(world, operation, caller, name, id, Object.values(sibling))) tried++
      }
    }
  }
  assert.ok(tried > 100, String(tried))
  assert.equal(await dump(platform), before)
})

/** Asserts that the id gets the same answer as an id that does not exist; false when the call has no such member. */
async function isAsUnknown(
  world: World,
  operation: Operation,
  caller: CallerName,
  name: string,
  id: string,
  canaries: readonly string[],
): Promise<boolean> {
  const call = callBy(world, operation, caller)
  const [foreign, unknown] = [withId(call, name, id), withId(call, name, UNKNOWN_ID)]
  if (foreign === null || unknown === null) return false
  const token = world.tokens[caller]
  const what = `${caller} on ${operation.id} with ${name}`
  const answer = await askFor(world, operation, foreign, token)
  const told = tell(answer)
  assert.deepEqual(told, tell(await askFor(world, operation, unknown, token)), what)
  if (IDEMPOTENT.has(`${operation.id} ${name}`)) assert.deepEqual(told, { status: 200, did_remove: false }, what)
  else assert.match(String(told.code), NO_SUCH, what)
  const all = `${JSON.stringify(answer.headers)} ${answer.text}`
  for (const canary of [...canaries, world.other.name_id]) assert.ok(!all.includes(canary), `${what} shows ${canary}`)
  return true
}

/** The members of a schema that are ids. */
function idsOf(schema: object): string[] {
  const members = 'properties' in schema ? Object.entries(schema.properties as Record<string, { format?: string }>) : []
  return members.flatMap(([name, { format }]) => (format === 'uuid' ? [name] : []))
}

function tell({ status, text }: Answer): Record<string, unknown> {
  const { ray_id, ...body } = JSON.parse(text) as Record<string, unknown>
  return { status, ...body }
}

/** The call with another id in place of that member, of its path or of its body; null when it has none. */
function withId(call: Call, name: string, id: string): Call | null {
  if (call.params && name in call.params) return { ...call, params: { ...call.params, [name]: id } }
  const { body } = call
  if (typeof body === 'object' && body !== null && name in body) return { ...call, body: { ...body, [name]: id } }
  return null
}

/** Of a refusal in that game: one that is kept. */
async function rayOf(world: World, { public_token }: TestGame): Promise<string> {
  const operation = OPERATIONS.find(({ id }) => id === 'lobbies.find')!
  const { headers } = await askFor(world, operation, { body: { game_modes: ['nothing'] } }, public_token)
  return String(headers['x-ray-id'])
}

async function uploadOf({ platform }: World, game_id: string): Promise<string> {
  const operation = OPERATIONS.find(({ id }) => id === 'games.cdn.createGameCdnSite')!
  const body = { display_name: 'Site', files: [{ path: 'a', content_length: 1 }] }
  const site = await platform.client.call(operation, { params: { game_id }, body } as never)
  return (site as { upload_id: string }).upload_id
}
