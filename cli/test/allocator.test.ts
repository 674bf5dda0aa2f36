// Backends that allocate their servers of Agones get lobbies of a real platform: over gRPC and REST, by certificate and by token.
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import { join } from 'node:path'
import { text as readAll } from 'node:stream/consumers'
import { test } from 'node:test'
import { createCloudToken, type VersionConfig } from '@musterhost/contract'
import { createAllocationClient } from '../../protocols/src/agones/allocation/test-client.ts'
import { PROTOCOL_SERVERS } from '../../server/test/runner/protocol-servers.ts'
import { makeAuthority } from '../../server/test/support/certificates.ts'
import { startPlatform } from '../../server/test/support/platform.ts'
import { until } from '../../server/test/support/until.ts'
import { createMuster } from './program.ts'

const REQUEST = {
  namespace: 'default',
  gameServerSelectors: [{ matchLabels: { 'agones.dev/fleet': 'duel', build: '7' } }],
  metadata: { annotations: { map: 'ice' } },
  counters: { rooms: { action: 'Increment', amount: '1' } },
}

const DOCKER: Docker = {
  args: ['node', 'agones.mjs'],
  protocol: 'agones',
  protocol_options: { counters: { rooms: {} }, lists: { players: {} } },
}

type Docker = NonNullable<NonNullable<VersionConfig['matchmaker']>['docker']>
type Allocated = {
  gameServerName: string
  ports: { name: string; port: number }[]
  address: string
  metadata: { labels: Record<string, string>; annotations: Record<string, string> }
}
type Known = {
  object_meta: { name: string; labels: Record<string, string>; annotations: Record<string, string> }
  status: { state: string; counters: Record<string, { count: string }> }
}

/** What the command prints when it listens. */
async function urlOf(child: ChildProcess): Promise<string> {
  let printed = ''
  child.stdout!.setEncoding('utf8').on('data', (part: string) => {
    printed += part
  })
  const errors = readAll(child.stderr!)
  const ended = new Promise<never>((_, reject) => {
    child.once('exit', () => errors.then((text) => reject(new Error(text))))
  })
  ended.catch(() => undefined)
  await Promise.race([ended, until('the allocator listens', () => printed.includes('\n'))])
  return (JSON.parse(printed) as { url: string }).url
}

async function postTls(url: string, body: object, options: RequestOptions): Promise<{ status: number; json: unknown }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; json: unknown }>()
  httpsRequest(`${url}/gameserverallocation`, { method: 'POST', ...options }, async (response) => {
    resolve({ status: response.statusCode!, json: JSON.parse(await readAll(response)) })
  })
    .on('error', reject)
    .end(JSON.stringify(body))
  return promise
}

test('backends allocate Agones servers as lobbies', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge' })
  const game = await platform.game({
    files: PROTOCOL_SERVERS,
    docker: { args: ['node', 'game.mjs'], ports: { game: { protocol: 'tcp' } } },
    matchmaker: { game_modes: { duel: { max_players: 4, idle_grace_ms: 1_000, docker: DOCKER } } },
  })
  const { token } = await platform.client.call(createCloudToken, { params: { game_id: game.game_id } })
  const muster = createMuster(t, { MUSTER_URL: platform.edge_url, MUSTER_TOKEN: token }, { in_threads: true })
  const authority = await makeAuthority()
  const [server, client] = [await authority.issue(['localhost', '127.0.0.1']), await authority.issue(['director'])]
  const file = (name: string, text: string): string => {
    writeFileSync(join(muster.cwd, name), text)
    return name
  }
  const tls = ['--cert', file('server.pem', server.cert), '--key', file('server.key', server.key)]
  const ca = file('ca.pem', authority.cert)
  const start = (...args: string[]) => urlOf(muster.start(['allocator', '--port', '0', ...args, '--json']))
  /** What the server of the allocation knows, by the address and port that the client got. */
  const askServer = async ({ address, ports }: Allocated): Promise<Known> => {
    const response = await fetch(`http://${address}:${ports[0]!.port}/`)
    return (await response.json()) as Known
  }

  const [by_certificate, by_token] = await Promise.all([start(...tls, '--client-ca', ca), start()])

  await t.test('gRPC with a client certificate: the server has the labels, annotations and counters', async () => {
    const nodeOptions = { ca: authority.cert, cert: client.cert, key: client.key }
    const baseUrl = by_certificate.replace('127.0.0.1', 'localhost')
    const grpc = createAllocationClient(baseUrl, nodeOptions)
    const counters = { rooms: { action: 'Increment', amount: 1n } }
    const allocated = (await grpc.allocate({ ...REQUEST, counters })) as Allocated
    const { object_meta, status } = await until('the server is allocated', async () => {
      const known = await askServer(allocated)
      return known.status.state === 'Allocated' ? known : null
    })
    assert.equal(object_meta.name, allocated.gameServerName)
    assert.deepEqual(
      [object_meta.labels.build, object_meta.annotations.map, status.counters.rooms?.count],
      ['7', 'ice', '1'],
    )
    assert.equal(allocated.metadata.labels['agones.dev/fleet'], 'duel')
    // The server lists no player: a lobby that is not kept would end after a second.
    const lobby_id = allocated.metadata.labels['muster.dev/lobby-id']!
    const kept_until = await until('the lobby is kept', async () => {
      const lobby = platform.ctx.db.selectFrom('lobbies').where('lobby_id', '=', lobby_id).select('keep_until_ts')
      return (await lobby.executeTakeFirstOrThrow()).keep_until_ts
    })
    assert.ok(kept_until.getTime() > Date.now() + 23 * 3_600_000)
  })

  await t.test('a client without the certificate is refused, and one with it needs no token over REST', async () => {
    await assert.rejects(postTls(by_certificate, REQUEST, { ca: authority.cert }))
    const { status, json } = await postTls(by_certificate, REQUEST, {
      ca: authority.cert,
      cert: client.cert,
      key: client.key,
    })
    assert.equal(status, 200)
    assert.deepEqual(Object.keys(json as object).sort(), [
      'address',
      'addresses',
      'counters',
      'gameServerName',
      'lists',
      'metadata',
      'nodeName',
      'ports',
      'source',
    ])
  })

  await t.test('REST with a cloud token: a seat and a player token for each player of the request', async () => {
    const post = async (body: unknown, authorization = `Bearer ${token}`) => {
      const headers = { authorization, 'content-type': 'application/json' }
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      const response = await fetch(`${by_token}/gameserverallocation`, { method: 'POST', headers, body: text })
      return { status: response.status, json: (await response.json()) as Allocated & { code: number; message: string } }
    }
    const { status, json } = await post({
      ...REQUEST,
      namespace: 'prod',
      metadata: { annotations: { 'muster.dev/players': '2' } },
    })
    assert.equal(status, 200)
    const tokens = JSON.parse(json.metadata.annotations['muster.dev/player-tokens']!) as string[]
    assert.equal(tokens.length, 2)
    await fetch(`http://${json.address}:${json.ports[0]!.port}/come?id=${tokens[0]}`)

    const refusals: [body: unknown, authorization: string | undefined, status: number, code: number][] = [
      [REQUEST, 'Bearer cloud.forged', 401, 16],
      [REQUEST, '', 401, 16],
      [{ ...REQUEST, namespace: 'nowhere' }, undefined, 404, 5],
      [{ gameServerSelectors: [{ matchLabels: { 'agones.dev/fleet': 'unknown' } }] }, undefined, 404, 5],
      [{ gameServerSelectors: [{ gameServerState: 'ALLOCATED' }] }, undefined, 429, 8],
      [{ metadata: { annotations: { 'muster.dev/players': '5' } } }, undefined, 404, 5],
      [{ ...REQUEST, metadata: { annotations: { 'muster.dev/players': '5' } } }, undefined, 400, 3],
      ['{', undefined, 400, 3],
      [{ namespace: 7 }, undefined, 400, 3],
    ]
    for (const [body, authorization, expected, code] of refusals) {
      const refused = await post(body, authorization)
      assert.deepEqual([refused.status, refused.json.code], [expected, code], JSON.stringify(refused.json))
      assert.ok(refused.json.message.length > 0)
    }
  })

  await t.test('options that would leave it open are refused', async () => {
    const refused = async (...args: string[]) => (await muster.run(['allocator', ...args])).stderr
    assert.match(await refused('--listen', '0.0.0.0'), /Without TLS, tokens would be clear text/)
    assert.match(await refused('--client-ca', ca), /--client-ca needs TLS/)
    assert.match(await refused('--cert', 'server.pem'), /--cert and --key belong together/)
    assert.match(await refused('--cert', 'none.pem', '--key', 'server.key'), /none.pem cannot be read/)
    assert.match(await refused('--cert', 'server.pem', '--key', 'ca.pem'), /cannot be used/)
    const person = await muster.run(['allocator'], { env: { MUSTER_TOKEN: platform.token } })
    assert.match(person.stderr, /Allocations need a cloud token of a game/)
  })
})
