// A node of a test, in the process of the test: it joins over real sockets, and has what the supervisor of a joined machine has.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { type BodyOf, createNodeInvitation } from '@musterhost/contract'
import pg from 'pg'
import pino from 'pino'
import { joinPlatform } from '../../src/links/node/join-platform.ts'
import { type LocalSockets, openLocalSockets } from '../../src/links/node/local-sockets.ts'
import { type NodeFile, writeNodeFile } from '../../src/links/node/node-file.ts'
import { NodeLink } from '../../src/links/node/node-link.ts'
import { DatabaseResponse } from '../../src/links/protocol.ts'
import { call } from '../../src/links/streams.ts'
import { startRoles } from '../../src/main.ts'
import { readTestConfig } from '../support/config.ts'
import { freePorts } from '../support/free-ports.ts'
import type { Platform } from '../support/platform.ts'

const VERSION = '0.0.0-test'

export type TestNode = {
  file: NodeFile
  link: NodeLink
  sockets: LocalSockets
  database_url: string
  data_dir: string
  lobby_api_port: number
  /** Resolves with the platform's reason, when it refuses the node for good. */
  removed: Promise<string>
}

export function invite(platform: Platform, body: BodyOf<typeof createNodeInvitation> = {}) {
  return platform.client.call(createNodeInvitation, { body })
}

/** Joins with an invitation, as `muster join` does. */
export function joinWith(platform: Platform, invitation: string, url = platform.edge_url): Promise<NodeFile> {
  return joinPlatform({ url, invitation, version: VERSION, onVerified: () => {} })
}

export async function startNode(
  t: TestContext,
  platform: Platform,
  name = 'attic',
  roles: BodyOf<typeof createNodeInvitation>['roles'] = ['runner'],
): Promise<TestNode> {
  const { invitation } = await invite(platform, { name, roles })
  const file = await joinWith(platform, invitation)
  const data_dir = await mkdtemp(join(tmpdir(), 'muster-node-'))
  t.after(() => rm(data_dir, { recursive: true, force: true }))
  writeNodeFile(data_dir, file)
  const { link, removed } = openLink(platform, data_dir, file)
  t.after(() => link.close())
  await link.hello()
  const [lobby_api_port] = await freePorts(1)
  const lobby_api = { host: '127.0.0.1', port: lobby_api_port! }
  const sockets = await openLocalSockets({
    folder: data_dir,
    lobby_api,
    calls: () => link.calls(),
    edge: () => link.edge(),
  })
  t.after(() => sockets.close())
  return {
    ...{ file, link, sockets, data_dir, removed },
    lobby_api_port: lobby_api_port!,
    database_url: await databaseUrlOf(link, sockets),
  }
}

/** Starts the edge of the node, in the process of the test too. */
export async function startEdgeOf(t: TestContext, node: TestNode, env: Record<string, string> = {}) {
  const [http_port, https_port] = await freePorts(2)
  const { settings } = await node.link.hello()
  const config = readTestConfig({
    ...settings,
    MUSTER_DATA: node.data_dir,
    DATABASE_URL: node.database_url,
    MUSTER_LINK: node.sockets.platform_path,
    MUSTER_NODE: node.file.node_id,
    MUSTER_ROLES: 'edge',
    MUSTER_EDGE_HTTP_PORT: String(http_port),
    MUSTER_EDGE_HTTPS_PORT: String(https_port),
    MUSTER_METRICS_PORT: '0',
    MUSTER_LOG_LEVEL: process.env.TEST_LOG_LEVEL ?? 'silent',
    ...env,
  })
  const running = await startRoles(config)
  /** Before the platform: the edge writes its last report over the link. */
  const stop = () => running.stop({ end_lobbies: false })
  t.after(stop)
  return { http_port: http_port!, https_port: https_port!, stop }
}

/** The link of a machine that has joined. */
export function openLink(platform: Platform, data_dir: string, file: NodeFile) {
  const { promise: removed, resolve: onRemoved } = Promise.withResolvers<string>()
  const link = new NodeLink({
    ...{ data_dir, file, version: VERSION, onRemoved },
    log: pino({ level: process.env.TEST_LOG_LEVEL ?? 'silent' }),
    now: platform.ctx.now,
    targets: { network: null },
  })
  return { link, removed }
}

/** What the platform says to a machine with this certificate, which it refuses for good. */
export async function refusalOf(t: TestContext, platform: Platform, file: NodeFile): Promise<string> {
  const { link, removed } = openLink(platform, '/nowhere', file)
  t.after(() => link.close())
  return removed
}

/** The database role of a node. */
export function roleOf(database_url: string): string {
  return decodeURIComponent(new URL(database_url.replace('@/', '@localhost/')).username)
}

/** With a new password for the node's role. */
async function databaseUrlOf(link: NodeLink, { database_folder }: LocalSockets): Promise<string> {
  const { user, password, database } = await call(link.calls()!, '/database', {}, DatabaseResponse)
  return `postgres://${user}:${password}@/${database}?host=${encodeURIComponent(database_folder)}`
}

/** Runs a statement as the database role of the node, over the link. */
export async function queryAs(database_url: string, text: string, values: unknown[] = []): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: database_url })
  client.on('error', () => {})
  await client.connect()
  try {
    return await client.query(text, values)
  } finally {
    await client.end()
  }
}
