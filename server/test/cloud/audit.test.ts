import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  type AuditEvent,
  completeAccessTokenVerification,
  completeEmailVerification,
  createGame,
  createGroup,
  deleteMatchmakerLobbyPlayer,
  exportAuditEvents,
  exportGroupAuditEvents,
  getGameById,
  listAuditEvents,
  listGroupAuditEvents,
  listMatchmakerLobbyPlayers,
  type Operation,
  renameGame,
  startEmailVerification,
  updateGameNamespaceVersion,
} from '@musterhost/contract'
import { OPERATIONS } from '@musterhost/contract/operations'
import { sql } from 'kysely'
import { REFUSALS_PER_CLIENT_MAX } from '../../src/audit/refusals.ts'
import { isAudited, UNAUDITED } from '../../src/audit/unaudited.ts'
import { eventsQuery } from '../../src/cloud/audit/events.ts'
import { type Answer, ask } from '../http/ask.ts'
import { askFor, callBy, rightTokenOf } from '../http/calls.ts'
import { TRUSTING } from '../http/steps.ts'
import { createWorld, personOf, type World } from '../http/world.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { auditCallsOf, SECRETS } from './audit-calls.ts'
import { refused } from './steps.ts'

const WINDOW_MS = 10 * 60_000
const QUERY = { query_start: 0, query_end: 253_402_300_799_999 }

const UPGRADE = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
}

function eventsOf({ ctx }: Platform, ray_id: string) {
  return ctx.db.selectFrom('audit_events').selectAll().where('ray_id', '=', ray_id).execute()
}

const rayOf = ({ headers }: Answer): string => String(headers['x-ray-id'])

test('the list of operations without an audit event names only operations that are not GET, each with a reason', () => {
  const changing = new Map(
    OPERATIONS.filter(({ method }) => method !== 'GET').map((operation) => [operation.id, operation]),
  )
  for (const [id, reason] of Object.entries(UNAUDITED)) {
    assert.ok(changing.has(id), `unaudited.ts names ${id}, which is no operation that is not GET`)
    assert.match(reason, /^[A-Z].{10,}\.$/)
  }
})

test('the audit log', async (t) => {
  const env = { ...TRUSTING, MUSTER_BACKUP_TO: join(tmpdir(), 'backups-of-audit') }
  const platform = await startPlatform(t, { env })
  const world = await createWorld(platform)

  await t.test('every operation that changes something leaves an event, and no event has a secret', () =>
    walkContract(platform, world),
  )
  await t.test('a change and its event are committed together, or neither is', () => commitTogether(platform, world))
  await t.test('the audit log of a group is closed to other groups', () => separateGroups(platform))
  await t.test('refusals are recorded with their caller, and a flood is counted', () => countRefusals(platform, world))
})

/**
 * These need the process of a lobby, a provider or an authenticator. cloud/lobbies/far-logs.test.ts, identity/providers.test.ts and
 * identity/passkeys.test.ts test their events.
 */
const WITH_OTHERS = [
  ...['games.matchmaker.writeLobbyInput', 'auth.identity.provider.complete', 'auth.identity.passkey.complete'],
  ...['auth.passkeys.add', 'auth.passkeys.rename', 'auth.passkeys.remove', 'auth.confirmation.complete'],
]

async function walkContract(platform: Platform, world: World): Promise<void> {
  const calls = await auditCallsOf(world)
  const audited = OPERATIONS.filter(isAudited)
  const missing = audited.map(({ id }) => id).filter((id) => !calls.order.includes(id) && !WITH_OTHERS.includes(id))
  assert.deepEqual(missing, [], 'audit-calls.ts needs a call of these that succeeds, at its place in the order')
  const secrets = new Set<string>(SECRETS)
  for (const token of Object.values(world.tokens)) if (token !== null && token.length > 20) secrets.add(token)
  for (const id of calls.order) {
    const operation = audited.find((one) => one.id === id)
    assert.ok(operation, `audit-calls.ts has a call of ${id}, which is not audited`)
    const { token = rightTokenOf(world, operation), headers = {}, ...call } = await calls.callOf(id)
    const whole = { ...callBy(world, operation, 'admin'), ...call }
    const answer = await askFor(world, operation, whole, token, { headers })
    assert.equal(answer.status, 200, `audit-calls.ts needs a call of ${id} that succeeds: ${answer.text}`)
    for (const secret of secretsIn([whole, JSON.parse(answer.text)])) secrets.add(secret)
    await requireEvent(platform, operation, answer)
  }
  const { rows } = await sql<{ text: string }>`select row_to_json(e)::text as text from audit_events e`.execute(
    platform.ctx.db,
  )
  assert.ok(secrets.size > 30, String(secrets.size))
  const text = rows.map((row) => row.text).join('\n')
  for (const secret of secrets) assert.ok(!text.includes(secret), `an event shows the secret ${secret}`)
}

async function requireEvent(platform: Platform, { id }: Operation, answer: Answer): Promise<void> {
  const events = (await eventsOf(platform, rayOf(answer))).filter(({ operation }) => operation === id)
  assert.equal(
    events.length,
    1,
    `${id} left ${events.length} audit events. An operation that changes something opens its transaction with changes() ` +
      'of server/src/audit/changes.ts; one that changes nothing is listed in server/src/audit/unaudited.ts with the reason.',
  )
  const [event] = events
  assert.equal(event!.outcome, 'done', id)
  assert.equal(event!.client_ip, '127.0.0.1')
}

/** Values of members that no log may show, wherever they are. */
function secretsIn(value: unknown, name = ''): string[] {
  if (typeof value === 'string') {
    if (/^(token|code|password|access_token|device_link_token|cloud_token|group_invite_code)$/.test(name))
      return [value]
    const signature = /signature=([0-9a-f]{20,})/.exec(value)?.[1]
    return signature === undefined ? [] : [signature]
  }
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, member]) => secretsIn(member, Array.isArray(value) ? name : key))
}

async function commitTogether(platform: Platform, world: World): Promise<void> {
  const { other } = world
  const { client, ctx } = platform
  const { game_id } = other
  const nameOf = async () => (await client.call(getGameById, { params: { game_id } })).game.display_name
  const rename = (display_name: string) => client.call(renameGame, { params: { game_id }, body: { display_name } })
  const renamed = () =>
    ctx.db
      .selectFrom('audit_events')
      .selectAll()
      .where('game_id', '=', game_id)
      .where('operation', '=', 'games.renameGame')
  await rename('Before')
  const count = (await renamed().execute()).length

  // The connection dies after the change and before its event.
  await onWrite(platform, 'audit_events', `perform pg_terminate_backend(pg_backend_pid())`, async () => {
    await assert.rejects(rename('Killed'))
  })
  assert.deepEqual([await nameOf(), (await renamed().execute()).length], ['Before', count])

  // The event cannot be written.
  await onWrite(platform, 'audit_events', `raise exception 'no room'`, async () => {
    await refused('INTERNAL_ERROR', rename('Unrecorded'))
  })
  assert.deepEqual([await nameOf(), (await renamed().execute()).length], ['Before', count])

  // The change fails.
  await onWrite(platform, 'games', `raise exception 'no'`, async () => {
    await refused('INTERNAL_ERROR', rename('Unchanged'))
  })
  assert.deepEqual([await nameOf(), (await renamed().execute()).length], ['Before', count])

  await beginCommands(platform, world)

  await rename('After')
  const last = await renamed().orderBy('event_id', 'desc').executeTakeFirstOrThrow()
  assert.deepEqual(last.changes, [{ member: 'display_name', before: 'Before', after: 'After' }])
  assert.equal(last.group_id, other.group_id)
}

/** A command to the matchmaker has an event before it has an effect, and keeps it when its end cannot be written. */
async function beginCommands(platform: Platform, { other, other_seat }: World): Promise<void> {
  const { client, ctx } = platform
  const params = { game_id: other.game_id, lobby_id: other_seat.lobby.lobby_id }
  const { players } = await client.call(listMatchmakerLobbyPlayers, { params })
  const player_id = players[0]!.player_id
  const remove = () => client.call(deleteMatchmakerLobbyPlayer, { params: { ...params, player_id } })
  await onWrite(platform, 'audit_events', `raise exception 'no room'`, async () => {
    await refused('INTERNAL_ERROR', remove())
  })
  assert.deepEqual(await client.call(listMatchmakerLobbyPlayers, { params }), { players })
  const at_end = `if tg_op = 'UPDATE' then raise exception 'no room'; end if`
  await onWrite(platform, 'audit_events', at_end, async () => {
    assert.deepEqual(await remove(), { did_remove: true })
  })
  assert.deepEqual(await remove(), { did_remove: false })
  const events = await ctx.db
    .selectFrom('audit_events')
    .selectAll()
    .where('operation', '=', deleteMatchmakerLobbyPlayer.id)
    .where('game_id', '=', other.game_id)
    .orderBy('event_id')
    .execute()
  assert.deepEqual(
    events.map(({ outcome }) => outcome),
    ['begun', 'failed'],
  )
}

/** Runs the statement at every write to the table, as long as `work` takes. */
async function onWrite({ ctx }: Platform, table: string, statement: string, work: () => Promise<void>): Promise<void> {
  await ctx.pool.query(`
    create function at_write() returns trigger language plpgsql as $$ begin ${statement}; return new; end $$;
    create trigger at_write before insert or update on ${table} for each row execute function at_write()`)
  try {
    await work()
  } finally {
    await until('the trigger to be removed', () =>
      ctx.pool.query(`drop trigger if exists at_write on ${table}; drop function if exists at_write()`).then(
        () => true,
        () => false,
      ),
    )
  }
}

async function separateGroups(platform: Platform): Promise<void> {
  const { client } = platform
  const [one, two] = [await groupOf(platform, 'One'), await groupOf(platform, 'Two')]
  const read = (group: typeof one, token: string, query: object = {}) =>
    platform.as(token).call(listGroupAuditEvents, { params: { group_id: group.group_id }, query })
  for (const [own, foreign] of [
    [one, two],
    [two, one],
  ] as const) {
    for (const token of [own.owner, own.developer]) {
      const { events, is_cut } = await read(own, token)
      assert.ok(events.length >= 4 && !is_cut)
      assert.ok(events.every(({ group_id }) => group_id === own.group_id))
      assert.ok(!JSON.stringify(events).includes(foreign.group_id) && !JSON.stringify(events).includes(foreign.game_id))
      await refused('GROUP_NOT_FOUND', read(foreign, token))
      const { events: none } = await read(own, token, { game_id: foreign.game_id })
      assert.deepEqual(none, [])
      await refused('API_FORBIDDEN', platform.as(token).call(listAuditEvents, {}))
      await refused('API_FORBIDDEN', platform.as(token).call(exportAuditEvents, { body: QUERY }))
      const params = { group_id: foreign.group_id }
      await refused('GROUP_NOT_FOUND', platform.as(token).call(exportGroupAuditEvents, { params, body: QUERY }))
    }
  }
  for (const own of [one, two]) {
    await refused('GROUP_INSUFFICIENT_PERMISSIONS', read(own, own.viewer))
    // The refusal itself becomes an event of the group, but up to a second later: reads before and after it differ.
    await until('the refusal to be recorded', async () => {
      const { events } = await read(own, own.owner, { code: 'GROUP_INSUFFICIENT_PERMISSIONS' })
      return events.length === 1
    })
  }
  await readFilters(platform, one)

  const { events: of_none } = await client.call(listAuditEvents, {})
  assert.ok(of_none.length > 0 && of_none.every(({ group_id }) => group_id === undefined))
  const of_two = await client.call(listAuditEvents, { query: { group_id: two.group_id } })
  assert.ok(of_two.events.length >= 4 && of_two.events.every(({ group_id }) => group_id === two.group_id))
}

type Group = Awaited<ReturnType<typeof groupOf>>

async function groupOf(platform: Platform, display_name: string) {
  const { client } = platform
  const { group_id } = await client.call(createGroup, { body: { display_name } })
  const owner = await personOf(platform, group_id, 'owner')
  const people = { owner, developer: await personOf(platform, group_id, 'developer') }
  const viewer = await personOf(platform, group_id, 'viewer')
  const as_owner = platform.as(owner)
  const { game_id } = await as_owner.call(createGame, { body: { display_name, developer_group_id: group_id } })
  for (const name of ['A', '=B()'])
    await as_owner.call(renameGame, { params: { game_id }, body: { display_name: name } })
  return { group_id, game_id, viewer, ...people }
}

async function readFilters(platform: Platform, { group_id, game_id, owner }: Group): Promise<void> {
  const client = platform.as(owner)
  const params = { group_id }
  const list = async (query: object): Promise<AuditEvent[]> =>
    (await client.call(listGroupAuditEvents, { params, query })).events
  const all = await list({})
  const ids = all.map(({ event_id }) => event_id)
  assert.deepEqual(ids, [...ids].sort().reverse())
  const paged: string[] = []
  for (let before: object = {}; ; ) {
    const page = await client.call(listGroupAuditEvents, { params, query: { ...before, limit: 1 } })
    paged.push(...page.events.map(({ event_id }) => event_id))
    if (!page.is_cut) break
    before = { before_event_id: page.events.at(-1)!.event_id }
  }
  assert.deepEqual(paged, ids)

  const renames = await list({ operation: 'games.renameGame', game_id, outcome: 'done' })
  assert.deepEqual(
    renames.map(({ changes }) => changes),
    [[{ member: 'display_name', before: 'A', after: '=B()' }], [{ member: 'display_name', before: 'One', after: 'A' }]],
  )
  const { actor } = renames[0]!
  assert.deepEqual([actor.kind, actor.name], ['user', 'owner'])
  assert.equal((await list({ actor_id: actor.user_id })).length, 3)
  assert.equal((await list({ actor_id: actor.token_id })).length, 3)
  assert.equal(
    (await list({ query_end: renames[1]!.create_ts })).some(({ event_id }) => event_id === ids[0]),
    false,
  )
  assert.deepEqual(await list({ query_start: String(platform.ctx.now() + 1_000) }), [])
  const [{ ray_id, client_ip, event_id }] = renames as [AuditEvent]
  assert.deepEqual(
    (await list({ ray_id })).map((event) => event.event_id),
    [event_id],
  )
  assert.deepEqual(await list({ ray_id: group_id }), [], 'a ray without an event')
  assert.deepEqual(await list({ client_ip }), await list({ client_ip: ` ${client_ip} ` }))
  assert.ok((await list({ client_ip })).some((event) => event.event_id === event_id))
  assert.deepEqual(await list({ client_ip: '198.51.100.77' }), [])
  assert.deepEqual(await list({ client_ip: '-' }), [])
  const refusals = await list({ code: 'GROUP_INSUFFICIENT_PERMISSIONS' })
  assert.equal(refusals.length, 1)
  assert.deepEqual(
    refusals,
    all.filter(({ code }) => code === 'GROUP_INSUFFICIENT_PERMISSIONS'),
  )
  await refused('VALIDATION_ERROR', list({ client_ip: 'nonsense' }))
  await refused('VALIDATION_ERROR', list({ ray_id: 'nonsense' }))

  const { url } = await client.call(exportGroupAuditEvents, { params, body: QUERY })
  const { pathname, search } = new URL(url)
  const { status, text } = await ask(`${platform.api_url}${pathname}${search}`)
  assert.equal(status, 200, text)
  const lines = text.trimEnd().split('\r\n')
  assert.deepEqual(
    lines.slice(1).map((line) => line.slice(0, 36)),
    ids.toReversed(),
  )
  assert.match(lines.at(-2)!, /games\.renameGame,done,,/)
  assert.match(lines.at(-1)!, /groups\.listGroupAuditEvents,refused,GROUP_INSUFFICIENT_PERMISSIONS,/)
  assert.equal((await ask(`${platform.api_url}${pathname.replace(group_id, 'none')}${search}`)).status, 403)
}

async function countFailedLogins(world: World): Promise<void> {
  const { platform } = world
  const fail = async (id: string, body: object) => {
    const operation = OPERATIONS.find((one) => one.id === id)!
    const ray_id = rayOf(await askFor(world, operation, { body }, null))
    return until('the failure to be recorded', async () => (await eventsOf(platform, ray_id))[0])
  }
  const by_token = await fail(completeAccessTokenVerification.id, { access_token: 'nonsense' })
  assert.deepEqual([by_token.outcome, by_token.code, by_token.actor_kind], ['failed', 'TOKEN_INVALID', 'anyone'])
  const { verification_id } = await platform.client.call(startEmailVerification, { body: { email: 'eve@example.com' } })
  const by_code = await fail(completeEmailVerification.id, { verification_id, code: 'AAAAAAAA' })
  assert.deepEqual([by_code.outcome, by_code.code], ['failed', 'incorrect'])
  assert.deepEqual(by_code.changes, [{ member: 'email', after: 'eve@example.com' }])
}

async function countRefusals(platform: Platform, world: World): Promise<void> {
  const { ctx } = platform
  const operation = OPERATIONS.find(({ id }) => id === updateGameNamespaceVersion.id)!
  const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })
  const { game_id, group_id } = world.other
  const call = {
    params: { game_id, namespace_id: world.other.namespace_id },
    body: { version_id: world.other.version_id },
  }
  const refusal = async (token: string, address: string) => {
    const ray_id = rayOf(await askFor(world, operation, call, token, from(address)))
    return until('the refusal to be recorded', async () => (await eventsOf(platform, ray_id))[0])
  }
  const viewer = await refusal(await personOf(platform, group_id, 'viewer'), '192.0.2.1')
  assert.deepEqual(
    [viewer.outcome, viewer.code, viewer.group_id, viewer.game_id, viewer.actor_kind, viewer.client_ip],
    ['refused', 'GROUP_INSUFFICIENT_PERMISSIONS', group_id, game_id, 'user', '192.0.2.1'],
  )
  // Of what the token stands for, and not of what the caller has named.
  const { game_id: own_id, group_id: own_group_id } = world.game
  const player = await refusal(world.game.public_token, '192.0.2.1')
  assert.deepEqual([player.code, player.game_id, player.group_id], ['API_FORBIDDEN', own_id, own_group_id])
  const revoked = await refusal(world.tokens.revoked!, '192.0.2.1')
  assert.deepEqual([revoked.code, revoked.actor_kind, revoked.group_id], ['TOKEN_REVOKED', 'cloud', own_group_id])
  const expired = await refusal(world.tokens.expired!, '192.0.2.1')
  assert.deepEqual([expired.code, expired.actor_kind, expired.actor_name], ['TOKEN_EXPIRED', 'admin', 'x'])
  assert.ok(expired.token_id)
  const { lobby_id } = world.seat.lobby
  const logs = `/cloud/games/${own_id}/matchmaker/lobbies/${lobby_id}/logs?stream=std_out&token=${world.tokens.revoked}`
  const socket_ray_id = rayOf(await ask(`${platform.api_url}${logs}`, { headers: UPGRADE }))
  const socket = await until('the refusal to be recorded', async () => (await eventsOf(platform, socket_ray_id))[0])
  assert.deepEqual([socket.operation, socket.code], ['games.matchmaker.getLobbyLogs', 'TOKEN_REVOKED'])
  await countFailedLogins(world)

  const flooded = '192.0.2.99'
  const rows = () => ctx.db.selectFrom('audit_events').selectAll().where('client_ip', '=', flooded).execute()
  for (let n = 0; n < REFUSALS_PER_CLIENT_MAX + 7; n++) {
    await askFor(world, operation, call, world.tokens.expired!, from(flooded))
  }
  // What follows is written after it.
  await refusal(world.tokens.expired!, '192.0.2.2')
  assert.equal((await rows()).length, REFUSALS_PER_CLIENT_MAX)
  platform.advance(WINDOW_MS)
  await refusal(world.tokens.expired!, '192.0.2.3')
  const all = await rows()
  assert.equal(all.length, REFUSALS_PER_CLIENT_MAX + 1)
  assert.deepEqual(all.map(({ dropped_count }) => dropped_count).filter(Boolean), [6])
}

test('a filter by ray, address or actor reads an index, whatever the size of the log', async (t) => {
  const platform = await startPlatform(t)
  const { pool } = platform.ctx
  await pool.query(
    `insert into audit_events (event_id, create_ts, actor_kind, user_id, token_id, client_ip, ray_id, operation, outcome, changes,
        dropped_count)
      select gen_random_uuid(), now(), 'user', gen_random_uuid(), gen_random_uuid(), '198.51.100.' || number % 250,
        gen_random_uuid(), 'games.createGame', 'done', '[]', 0 from generate_series(1, 20000) as number`,
  )
  await pool.query('analyze audit_events')
  const { rows: chosen } = await pool.query<{ event_id: string; ray_id: string; user_id: string; token_id: string }>(
    'select event_id, ray_id, user_id, token_id from audit_events where user_id is not null limit 1',
  )
  const { event_id, ray_id, user_id, token_id } = chosen[0]!
  for (const filter of [{ ray_id }, { actor_id: user_id }, { actor_id: token_id }]) {
    const { events } = await platform.client.call(listAuditEvents, { query: filter })
    assert.deepEqual(
      events.map((event) => event.event_id),
      [event_id],
    )
    const plan = JSON.stringify(await eventsQuery(platform.ctx, null, filter).explain('json'))
    assert.match(plan, /"Index Name":"audit_events_(ray_id|user_id_event_id|token_id_event_id)_idx"/, plan)
    // The table of users is small, and may be read whole.
    assert.doesNotMatch(plan, /"Node Type":"Seq Scan"[^{}]*"Relation Name":"audit_events"/, plan)
  }
  // Every address has 80 events here. A rare one is found by its index too.
  const rare = JSON.stringify(await eventsQuery(platform.ctx, null, { client_ip: '203.0.113.200' }).explain('json'))
  assert.match(rare, /"Index Name":"audit_events_client_ip_event_id_idx"/, rare)
})
