// Invitations, and what stands between a stolen one and the platform.
import assert from 'node:assert'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  cancelNodeDrain,
  listNodeInvitations,
  removeNode,
  revokeNodeInvitation,
  setGameSecret,
} from '@musterhost/contract'
import { openAuthority } from '../../src/links/authority.ts'
import { dropRevokedRoles, newRoleName, renewRole } from '../../src/links/platform/database-role.ts'
import { openLinkedObjects } from '../../src/objects/linked.ts'
import { linkedCredentials } from '../../src/tokens/lobby-credentials.ts'
import { createTestGame, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { invite, joinWith, queryAs, refusalOf, roleOf, startNode } from './node.ts'

const ROLES = { roles: 'api,matchmaker,edge' }

test('an invitation is good once, for the node that it names', async (t) => {
  const platform = await startPlatform(t, ROLES)
  const { invitation, node_id } = await invite(platform, { name: 'attic' })
  const file = await joinWith(platform, invitation)
  assert.strictEqual(file.node_id, 'attic')
  assert.strictEqual(node_id, 'attic')
  await assert.rejects(joinWith(platform, invitation), /was used at .*If that was not you, remove the node "attic"/)
  const { invitations } = await platform.client.call(listNodeInvitations, {})
  assert.deepStrictEqual(
    invitations.map(({ state, use_ip }) => [state, use_ip]),
    [['used', '127.0.0.1']],
  )
})

test('two machines with one invitation: only the first one joins', async (t) => {
  const platform = await startPlatform(t, ROLES)
  const { invitation } = await invite(platform)
  const outcomes = await Promise.allSettled(Array.from({ length: 4 }, () => joinWith(platform, invitation)))
  assert.strictEqual(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
})

test('an expired, a revoked and an invented invitation are refused, each with its reason', async (t) => {
  const platform = await startPlatform(t, ROLES)
  const late = await invite(platform, { ttl: 60_000 })
  const revoked = await invite(platform)
  await platform.client.call(revokeNodeInvitation, { params: { invitation_id: revoked.invitation_id } })
  platform.advance(60_000)
  await assert.rejects(joinWith(platform, late.invitation), /expired at .*muster nodes invite/)
  await assert.rejects(joinWith(platform, revoked.invitation), /was revoked.*muster nodes invite/)
  const invented = `${late.invitation.slice(0, -32)}${'A'.repeat(32)}`
  await assert.rejects(joinWith(platform, invented), /has no such invitation/)
  await assert.rejects(joinWith(platform, 'mj1.short'), /invitation is incomplete/)
  const { rows } = await platform.ctx.pool.query(
    "select code from audit_events where operation = 'nodes.join' and outcome = 'failed' order by event_id",
  )
  assert.deepStrictEqual(
    rows.map(({ code }) => code),
    ['NODE_INVITATION_EXPIRED', 'NODE_INVITATION_REVOKED', 'NODE_INVITATION_UNKNOWN'],
  )
})

test('a machine sends the secret to no platform but that of the invitation', async (t) => {
  const [meant, other] = [await startPlatform(t, ROLES), await startPlatform(t, ROLES)]
  const { invitation } = await invite(meant)
  // The other platform is what an attacker in the middle can be at best: it speaks the protocol, with a key of its own.
  await assert.rejects(joinWith(meant, invitation, other.edge_url), /is not the platform.*was not sent/)
  const { rowCount } = await other.ctx.pool.query("select from audit_events where operation = 'nodes.join'")
  assert.strictEqual(rowCount, 0)
  assert.strictEqual((await joinWith(meant, invitation)).region, 'local')
})

test('a certificate of a node does not stand for the platform', async (t) => {
  const platform = await startPlatform(t, ROLES)
  const node = await startNode(t, platform)
  const { invitation } = await invite(platform, { name: 'cellar' })
  // A joined machine that listens in the place of the platform, with its own key and the genuine authority.
  const { createServer: createTlsServer } = await import('node:tls')
  const seen: string[] = []
  const http = createServer().on('upgrade', (_request, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    const { certificate, key, authority } = node.file
    const tls = createTlsServer({ cert: certificate + authority, key, ALPNProtocols: ['muster-calls'] }, (secured) => {
      secured.on('error', () => {})
      secured.on('data', (bytes) => seen.push(bytes.toString('latin1')))
    })
    tls.emit('connection', socket)
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  t.after(() => http.close())
  const { port } = http.address() as { port: number }
  await assert.rejects(joinWith(platform, invitation, `http://127.0.0.1:${port}`), /is not the platform/)
  assert.deepStrictEqual(seen, [])
})

test('an address that is no platform is reported as such', async (t) => {
  const platform = await startPlatform(t, ROLES)
  const { invitation } = await invite(platform)
  await assert.rejects(joinWith(platform, invitation, platform.api_url), /responds with status 404/)
  await assert.rejects(joinWith(platform, invitation, 'http://127.0.0.1:1'), /cannot be reached.*ECONNREFUSED/)
  await assert.rejects(joinWith(platform, invitation, 'play.example.com'), /is no address of a platform/)
})

test('a name of a node that is there is not invited again', async (t) => {
  const platform = await startPlatform(t, ROLES)
  await startNode(t, platform, 'attic')
  await assert.rejects(invite(platform, { name: 'attic' }), { code: 'NODE_NAME_TAKEN' })
  await assert.rejects(invite(platform, { region: 'mars' }), { code: 'NODE_REGION_UNKNOWN' })
})

test('processes that open the authority at once get the same one', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'muster-authority-'))
  t.after(() => rm(folder, { recursive: true }))
  const opened = await Promise.all(Array.from({ length: 4 }, () => openAuthority(folder, Date.now())))
  assert.strictEqual(new Set(opened.map(({ key_hash }) => key_hash)).size, 1)
})

test('a stolen node reads and writes only what its runner needs, of its own node', async (t) => {
  const platform = await startPlatform(t, ROLES)
  const [node, other] = [await startNode(t, platform, 'attic'), await startNode(t, platform, 'cellar')]
  const as = (text: string, values?: unknown[]) => queryAs(node.database_url, text, values)
  const refused = /permission denied|must be owner/
  for (const table of [
    'tokens',
    'users',
    'sessions',
    'players',
    'identities',
    'certificates',
    'node_links',
    'node_invitations',
    'audit_events',
    'journal',
  ]) {
    await assert.rejects(as(`select * from ${table} limit 1`), /permission denied|does not exist/, table)
  }
  await assert.rejects(as('select secrets from versions'), refused)
  await assert.rejects(as('select value from game_secrets'), refused)
  assert.deepStrictEqual((await as('select game_id, namespace_id from game_secrets')).rows, [])
  await assert.rejects(as('update lobbies set stop_ts = now()'), refused)
  await assert.rejects(as('delete from lobby_runs'), refused)
  await assert.rejects(as('create table mine ()'), refused)
  await assert.rejects(as('alter table lobby_runs disable row level security'), refused)
  await assert.rejects(as('set role muster'), refused)
  await as("insert into runners (runner_id, regions, disk_free_bytes) values ('attic', '{local}', 1)")
  await assert.rejects(
    as("insert into runners (runner_id, regions, disk_free_bytes) values ('cellar', '{local}', 1)"),
    /row-level security/,
  )
  await queryAs(
    other.database_url,
    "insert into runners (runner_id, regions, disk_free_bytes) values ('cellar', '{local}', 1)",
  )
  const { rows } = await as('select runner_id from runners')
  assert.deepStrictEqual(rows, [{ runner_id: 'attic' }])
  // The first message of a connection must name the node's own role.
  const stolen = new URL(node.database_url.replace('@/', '@localhost/'))
  stolen.username = 'muster'
  await assert.rejects(queryAs(stolen.href.replace('@localhost/', '@/'), 'select 1'))
})

test('a removed node is cut off within seconds, and its certificate is refused from then on', async (t) => {
  const platform = await startPlatform(t, ROLES)
  const node = await startNode(t, platform)
  await platform.client.call(removeNode, { body: { node_id: 'attic' } })
  assert.match(await node.removed, /was removed from the platform.*muster nodes invite --name attic/)
  await assert.rejects(queryAs(node.database_url, 'select 1'))
  await until('the role of the node is gone', async () => {
    const { rowCount } = await platform.ctx.pool.query('select from pg_roles where rolname = $1', [
      roleOf(node.database_url),
    ])
    return rowCount === 0
  })
  // A removal is for good: the certificate does not become valid again.
  await assert.rejects(platform.client.call(cancelNodeDrain, { body: { node_id: 'attic' } }), { code: 'NODE_REMOVED' })
  assert.match(
    await refusalOf(t, platform, node.file),
    /was removed from the platform.*muster nodes invite --name attic/,
  )
})

test('the certificate of a removed node does not disturb the machine that joins under its name', async (t) => {
  const platform = await startPlatform(t, ROLES)
  const old = await startNode(t, platform)
  await platform.client.call(removeNode, { body: { node_id: 'attic' } })
  await old.removed
  const renewed = await startNode(t, platform)
  const session = renewed.link.calls()
  assert.match(
    await refusalOf(t, platform, old.file),
    /was removed from the platform.*muster nodes invite --name attic/,
  )
  assert.strictEqual(renewed.link.calls(), session)
  assert.strictEqual((await queryAs(renewed.database_url, 'select 1')).rowCount, 1)
})

test('a second invitation of a name does not replace the machine that has joined', async (t) => {
  const platform = await startPlatform(t, ROLES)
  const [first, second] = [await invite(platform, { name: 'attic' }), await invite(platform, { name: 'attic' })]
  await joinWith(platform, first.invitation)
  await assert.rejects(joinWith(platform, second.invitation), /has joined as "attic" with another invitation/)
})

test('a database role whose node was removed sees no row, while it still exists', async (t) => {
  // Without an edge, which drops the role within a second.
  const { ctx } = await startPlatform(t, { roles: 'api' })
  const role = newRoleName()
  await ctx.pool.query("insert into runners (runner_id, regions, disk_free_bytes) values ('other', '{local}', 1)")
  await ctx.pool.query("insert into nodes (node_id, removed_ts) values ('attic', now())")
  await ctx.pool.query(
    `insert into node_links (node_id, key_hash, database_role, certificate_expire_ts, version, revoke_ts)
      values ('attic', '', $1, now(), '', now())`,
    [role],
  )
  const url = new URL(ctx.config.database_url!.replace('@/', '@localhost/'))
  url.password = await renewRole(ctx.pool, role, ['runner', 'edge'])
  url.username = role
  const as = (text: string) => queryAs(url.href.replace('@localhost/', '@/'), text)
  assert.deepStrictEqual((await as('select muster_node() as name')).rows, [{ name: '' }])
  for (const table of ['runners', 'lobbies', 'edges', 'versions']) {
    assert.strictEqual((await as(`select 1 from ${table}`)).rowCount, 0, table)
  }
  await dropRevokedRoles(ctx)
  await assert.rejects(as('select 1'))
})

test('a node reads the deployed versions of its region and their builds, before any lobby', async (t) => {
  const platform = await startPlatform(t, ROLES)
  const node = await startNode(t, platform)
  await createTestGame(platform, { files: { 'server.mjs': '// nothing' } })
  const { rows: files } = await platform.ctx.pool.query<{ object_key: string }>(
    'select object_key from upload_files join builds using (upload_id)',
  )
  const objects = openLinkedObjects(node.sockets.platform_path)
  const seen = async () => ({
    versions: (await queryAs(node.database_url, 'select version_id, config from versions')).rowCount,
    files: (await Promise.all(files.map(({ object_key }) => objects.stat(object_key)))).filter((one) => one !== null),
  })
  const deployed = await seen()
  assert.strictEqual(deployed.versions, 1)
  assert.ok(files.length > 0)
  assert.strictEqual(deployed.files.length, files.length)
  // Of another region.
  await platform.ctx.pool.query(
    `update versions set config = jsonb_set(config, '{matchmaker,regions}', '{"mars": {}}')`,
  )
  assert.deepStrictEqual(await seen(), { versions: 0, files: [] })
})

test('a node gets the secrets of a lobby that it runs, and of no other', async (t) => {
  const platform = await startPlatform(t, ROLES)
  const { ctx } = platform
  const [node, other] = [await startNode(t, platform, 'attic'), await startNode(t, platform, 'cellar')]
  const { game_id, namespace_id, version_id } = await createTestGame(platform)
  const params = { game_id, name: 'KEY' }
  await platform.client.call(setGameSecret, { params, body: { value: 'a secret' } })
  const lobby = { lobby_id: randomUUID(), game_id, namespace_id, has_secrets: true }
  await ctx.pool.query(
    `insert into lobbies (lobby_id, namespace_id, version_id, game_mode, region, max_players_normal, max_players_direct,
        max_players_party, cpu_cores, memory_mb, create_ts, node_id, shard, publicity, is_custom, is_closed, player_count,
        player_deadline_ms, idle_grace_ms, ready_deadline_ts, tags)
      values ($1, $2, $3, 'default', 'local', 1, 1, 1, 1, 64, now(), 'attic', 0, 'public', false, false, 0, 1, 1, now(), '{}')`,
    [lobby.lobby_id, namespace_id, version_id],
  )
  await ctx.pool.query(
    `insert into lobby_runs (lobby_id, runner_id, driver, handle, ports, create_ts, namespace_id, region, cpu_cores, game_id)
      values ($1, 'attic', 'process', '{}', '{}', now(), $2, 'local', 1, $3)`,
    [lobby.lobby_id, namespace_id, game_id],
  )
  const credentials = linkedCredentials(node.sockets.platform_path)
  assert.deepStrictEqual((await credentials.issue(lobby)).secrets, { KEY: 'a secret' })
  await assert.rejects(linkedCredentials(other.sockets.platform_path).issue(lobby), /LOBBY_NOT_FOUND/)
})

test('lobbies reach the platform through their node', async (t) => {
  const platform = await startPlatform(t, ROLES)
  const node = await startNode(t, platform)
  const socket = connect(node.lobby_api_port, '127.0.0.1')
  t.after(() => socket.destroy())
  socket.write('GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  let text = ''
  for await (const chunk of socket.setEncoding('utf8') as AsyncIterable<string>) text += chunk
  assert.match(text, /^HTTP\/1.1 404 [\s\S]*API_NOT_FOUND/)
})
