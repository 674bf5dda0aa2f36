// What a joined node may call. Each call checks the node's certificate and its row again, so that a removed node gets nothing.
import { existsSync, readFileSync } from 'node:fs'
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { pipeline } from 'node:stream/promises'
import { requireShape } from '@musterhost/contract/schema-check'
import type { Static, TSchema } from 'typebox'
import type { Config } from '../../config/config.ts'
import { SETTINGS } from '../../config/settings.ts'
import type { Context } from '../../context.ts'
import { isObjectKey, ObjectNotFound } from '../../objects/objects.ts'
import { LOBBY_TOKEN_LIFETIME_MS, type LobbyCredentials, openSecrets } from '../../tokens/lobby-credentials.ts'
import type { Authority } from '../authority.ts'
import type { NodePeer } from '../peers.ts'
import {
  CERTIFICATE_LIFETIME_MS,
  CertificateKeyRequest,
  type DatabaseResponse,
  HelloRequest,
  type HelloResponse,
  type Identity,
  JoinRequest,
  LINK_VERSION,
  LINK_VERSION_MIN,
  LobbyTokenRequest,
  NODE_ROLES,
  SHARED_GIVEN_SETTINGS,
  type SHARED_SETTINGS,
} from '../protocol.ts'
import { LinkRefusal, readText, respondJson } from '../streams.ts'
import { bridgeLink, bridgePort } from './bridge.ts'
import { bridgeDatabase } from './database-bridge.ts'
import { renewRole } from './database-role.ts'
import { bridgeLobbyPort, certificateKey, edgeKeys, type LobbyPorts } from './edge-calls.ts'
import { joinNode } from './join.ts'

/** The other end of one connection. `peer`: null for a machine that has not joined. `round_trip_ms`: of the last ping. */
export type LinkCaller = { peer: NodePeer | null; client_ip: string; round_trip_ms: number | null }
type Node = { node_id: string; region: string; roles: string[]; database_role: string }
type Calls = {
  ctx: Context
  version: string
  authority: () => Promise<Authority>
  lobby_ports: LobbyPorts
  /** The unix socket of all links. */
  links_path: string
}

/** Serves one stream of a node. */
export async function serveCall(
  calls: Calls,
  caller: LinkCaller,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
): Promise<void> {
  try {
    await serve(calls, caller, stream, String(headers[':path']), headers)
  } catch (error) {
    const refusal = error instanceof LinkRefusal ? error : null
    if (refusal === null) calls.ctx.log.warn({ err: error, path: headers[':path'] }, 'call of a node failed')
    if (stream.headersSent) stream.destroy()
    else {
      const { status, code, message } = refusal ?? { status: 500, code: 'INTERNAL_ERROR', message: 'The call failed.' }
      respondJson(stream, status, { code, message })
    }
  }
}

async function serve(
  calls: Calls,
  caller: LinkCaller,
  stream: ServerHttp2Stream,
  path: string,
  headers: IncomingHttpHeaders,
): Promise<void> {
  const { ctx } = calls
  const { peer, client_ip } = caller
  if (path === '/join') {
    const { secret, public_key, version } = await readBody(stream, JoinRequest)
    return respondJson(
      stream,
      200,
      await joinNode(ctx, await calls.authority(), { secret, public_key, version, client_ip }),
    )
  }
  if (peer === null) throw new LinkRefusal('NODE_UNKNOWN', 'This machine has not joined the platform.')
  const node = await requireNode(ctx, peer)
  if (path === '/renew') return respondJson(stream, 200, await renew(calls, peer))
  if (peer.is_late)
    throw new LinkRefusal('NODE_CERTIFICATE_EXPIRED', 'The certificate has ended; it must be renewed first.')
  if (path === '/hello') {
    const hello = await readBody(stream, HelloRequest)
    return respondJson(stream, 200, await greet(calls, node, hello, caller.round_trip_ms))
  }
  if (path === '/database') return respondJson(stream, 200, await openDatabase(ctx, node))
  if (path === '/postgres') return bridgeDatabase(ctx, node.database_role, stream)
  if (path === '/lobby-tokens') {
    const { lobby_id } = await readBody(stream, LobbyTokenRequest)
    return respondJson(stream, 200, await lobbyCredentials(ctx, node, lobby_id))
  }
  if (path === '/lobby-api') return bridgePort(ctx.config, ctx.config.lobby_api_port, stream)
  if (path.startsWith('/objects/')) return sendObject(ctx, node, stream, path.slice('/objects/'.length), headers)
  if (node.roles.includes('edge')) return serveEdge(calls, node, stream, path, headers)
  throw notFound()
}

/** Calls that only a node with the role edge may make. */
async function serveEdge(
  { ctx, lobby_ports, links_path }: Calls,
  { node_id }: Node,
  stream: ServerHttp2Stream,
  path: string,
  headers: IncomingHttpHeaders,
): Promise<void> {
  if (path === '/edge-keys') return respondJson(stream, 200, edgeKeys(ctx))
  if (path === '/certificate-keys') {
    const { host } = await readBody(stream, CertificateKeyRequest)
    return respondJson(stream, 200, { key: await certificateKey(ctx, host) })
  }
  if (path === '/api') return bridgePort(ctx.config, ctx.config.api_port, stream)
  if (path === '/matchmaker') return bridgePort(ctx.config, ctx.config.matchmaker_port, stream)
  if (path === '/link') return bridgeLink(links_path, stream)
  if (path === '/lobby-port') return bridgeLobbyPort(lobby_ports, node_id, stream, headers)
  throw notFound()
}

function notFound(): LinkRefusal {
  return new LinkRefusal('NOT_FOUND', 'The platform has no such call.', 404)
}

/** Throws unless the node is one of the platform, with this key. */
async function requireNode(ctx: Context, { node_id, key_hash }: NodePeer): Promise<Node> {
  const row = await ctx.db
    .selectFrom('nodes')
    .innerJoin('node_links', 'node_links.node_id', 'nodes.node_id')
    .select(['nodes.region', 'nodes.roles', 'nodes.removed_ts', 'node_links.key_hash'])
    .select(['node_links.database_role', 'node_links.revoke_ts'])
    .where('nodes.node_id', '=', node_id)
    .executeTakeFirst()
  const database_role = row?.database_role ?? null
  const is_revoked = row === undefined || row.removed_ts !== null || row.revoke_ts !== null
  if (is_revoked || database_role === null || row.key_hash !== key_hash) {
    const message =
      `The node "${node_id}" was removed from the platform, or another machine joined in its place. ` +
      `To take this machine back, invite it again: muster nodes invite --name ${node_id}`
    throw new LinkRefusal('NODE_REMOVED', message)
  }
  return { node_id, region: row.region!, roles: row.roles, database_role }
}

/** Certifies the key of the node again. */
async function renew(calls: Calls, peer: NodePeer): Promise<Static<typeof Identity>> {
  const { ctx } = calls
  const authority = await calls.authority()
  const now_ms = ctx.now()
  const certificate = await authority.certifyNode(peer.node_id, peer.public_key, now_ms)
  const certificate_expire_ts = new Date(now_ms + CERTIFICATE_LIFETIME_MS)
  await ctx.db.updateTable('node_links').set({ certificate_expire_ts }).where('node_id', '=', peer.node_id).execute()
  return { certificate, authority: authority.certificate }
}

async function greet(
  { ctx, version }: Calls,
  { node_id, region, roles }: Node,
  request: Static<typeof HelloRequest>,
  round_trip_ms: number | null,
): Promise<HelloResponse> {
  const { link_version } = request
  if (link_version < LINK_VERSION_MIN || link_version > LINK_VERSION) {
    const message = `The platform runs version ${version}, and this machine ${request.version}: upgrade the older one.`
    throw new LinkRefusal('NODE_VERSION_UNSUPPORTED', message)
  }
  const now_ms = ctx.now()
  await ctx.db
    .updateTable('node_links')
    .set({
      version: request.version,
      seen_ts: new Date(now_ms),
      clock_offset_ms: request.now_ms - now_ms,
      round_trip_ms,
    })
    .where('node_id', '=', node_id)
    .execute()
  const known = NODE_ROLES.filter((role) => roles.includes(role))
  return {
    version,
    now_ms,
    region,
    roles: known,
    settings: { ...sharedSettings(ctx.config), ...givenSettings(ctx.config) },
    regions: regionsText(ctx.config),
  }
}

/** As the edge of the platform has them: defaults are filled in. */
function sharedSettings(config: Config): Record<(typeof SHARED_SETTINGS)[number], string> {
  const { domains, public_scheme, advertised_http_port, advertised_https_port, edge_ports } = config
  return {
    MUSTER_DOMAIN_MAIN: domains.main,
    MUSTER_DOMAIN_CDN: domains.cdn,
    MUSTER_DOMAIN_JOB: domains.job,
    MUSTER_PUBLIC_SCHEME: public_scheme,
    MUSTER_ADVERTISED_HTTP_PORT: String(advertised_http_port),
    MUSTER_ADVERTISED_HTTPS_PORT: String(advertised_https_port),
    MUSTER_EDGE_PORTS: `${edge_ports.min}-${edge_ports.max}`,
  }
}

function givenSettings({ given_settings }: Config): Record<string, string> {
  return Object.fromEntries(
    SHARED_GIVEN_SETTINGS.flatMap((name) => {
      const value = given_settings[name]
      return value === undefined ? [] : [[name, value] as const]
    }),
  )
}

/** The roles of a platform run in the same folder, so that a relative path is the same file. */
function regionsText({ given_settings }: Config): string | null {
  const path = given_settings.MUSTER_CONFIG ?? SETTINGS.MUSTER_CONFIG.default
  return existsSync(path) ? readFileSync(path, 'utf8') : null
}

async function openDatabase({ pool }: Context, { database_role, roles }: Node): Promise<DatabaseResponse> {
  const password = await renewRole(pool, database_role, roles)
  const { rows } = await pool.query<{ name: string }>('select current_database() as name')
  return { user: database_role, password, database: rows[0]!.name }
}

/** Only for a run of this node that has not ended. */
async function lobbyCredentials(ctx: Context, { node_id }: Node, lobby_id: string): Promise<LobbyCredentials> {
  const { rows } = await ctx.pool.query<{ namespace_id: string; game_id: string | null }>({
    name: 'node-lobby-token',
    text: `select l.namespace_id, r.game_id from lobby_runs r join lobbies l using (lobby_id)
      where r.lobby_id::text = $1 and r.runner_id = $2 and r.exit_ts is null and l.stop_ts is null`,
    values: [lobby_id, node_id],
  })
  const [lobby] = rows
  if (lobby === undefined) throw new LinkRefusal('LOBBY_NOT_FOUND', 'This node runs no such lobby.', 404)
  const subject = { kind: 'lobby' as const, lobby_id, namespace_id: lobby.namespace_id }
  const { namespace_id, game_id } = lobby
  return {
    token: ctx.keys.issue(subject, { now_ms: ctx.now(), lifetime_ms: LOBBY_TOKEN_LIFETIME_MS }),
    secrets: game_id === null ? {} : await openSecrets(ctx.pool, ctx.seals, { game_id, namespace_id }),
  }
}

/** The files of sites, and pictures of games. */
const SERVED_SQL = `
  select from upload_files f where f.object_key = $1 and (
    exists (select from sites s where s.upload_id = f.upload_id)
    or exists (select from game_images i where i.upload_id = f.upload_id)
  )`

/** The files of builds that wanted lobbies of this node run on, and of builds of deployed versions of its region. */
const NEEDED_SQL = `
  select from upload_files f join builds b using (upload_id)
  where f.object_key = $1 and exists (
    select from versions v where position(b.build_id::text in v.config::text) > 0 and (
      exists (
        select from lobbies l where l.version_id = v.version_id and l.stop_ts is null
          and (l.node_id = $2 or (l.node_id is null and l.region = $3))
      ) or (exists (select from namespaces n where n.version_id = v.version_id) and muster_runs_in(v.config, $3))
    )
  )`

async function mayRead(pool: Context['pool'], { node_id, region, roles }: Node, key: string): Promise<boolean> {
  if (roles.includes('edge')) {
    const served = await pool.query({ name: 'node-served-object', text: SERVED_SQL, values: [key] })
    if (served.rowCount! > 0) return true
  }
  const needed = await pool.query({ name: 'node-object', text: NEEDED_SQL, values: [key, node_id, region] })
  return needed.rowCount! > 0
}

async function sendObject(
  { pool, objects }: Context,
  node: Node,
  stream: ServerHttp2Stream,
  key: string,
  { ':method': method, 'x-start': start, 'x-end': end }: IncomingHttpHeaders,
): Promise<void> {
  const noObject = () => new LinkRefusal('OBJECT_NOT_FOUND', 'This node needs no such object.', 404)
  if (!isObjectKey(key) || !(await mayRead(pool, node, key))) throw noObject()
  const stored = await objects.stat(key)
  if (stored === null) throw noObject()
  const facts = { 'content-length': String(stored.content_length), 'x-sha256': stored.sha256 }
  if (method === 'HEAD') {
    stream.respond({ ':status': 200, ...facts }, { endStream: true })
    return
  }
  const range = start === undefined ? undefined : { start: Number(start), end: Number(end) }
  try {
    const bytes = await objects.read(key, range)
    stream.respond({ ':status': 200 })
    await pipeline(bytes, stream)
  } catch (error) {
    if (error instanceof ObjectNotFound) throw noObject()
    throw error
  }
}

async function readBody<T extends TSchema>(stream: ServerHttp2Stream, schema: T): Promise<Static<T>> {
  const text = await readText(stream)
  try {
    return requireShape(schema, JSON.parse(text))
  } catch {
    throw new LinkRefusal('BAD_REQUEST', 'The platform does not understand the call.', 400)
  }
}
