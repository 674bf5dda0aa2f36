// An edge for a test: the real role on a free port, with a database of its own, and backends that the test defines.
import assert from 'node:assert'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import type { CdnRoute, VersionConfig } from '@musterhost/contract'
import { sql } from 'kysely'
import { pino } from 'pino'
import { type Context, openContext } from '../../src/context.ts'
import { type RunningEdge, startEdge } from '../../src/edge/start.ts'
import { newId } from '../../src/ids.ts'
import { digestOf } from '../../src/objects/digest.ts'
import { newObjectKey } from '../../src/objects/objects.ts'
import { createClock } from '../support/clock.ts'
import { readTestConfig } from '../support/config.ts'
import { createDatabase } from '../support/database.ts'
import { freePorts } from '../support/free-ports.ts'
import { until } from '../support/until.ts'

const WAIT_MS_MAX = 20_000
const SMALL_EDGE = join(import.meta.dirname, 'small-edge.ts')
/** The address of raw ports in development. */
export const RAW_HOST = '127.0.0.2'

export type Seen = { method: string; url: string; headers: Record<string, string | string[] | undefined>; body: string }
export type Backend = { name: string; port: number; server: Server; seen: Seen[]; close: () => Promise<void> }

/** Starts a backend that stores every request and responds with its own name. `handler` replaces this behaviour. */
export async function startBackend(
  t: TestContext,
  name: string,
  handler?: RequestListener,
  port = 0,
): Promise<Backend> {
  const seen: Seen[] = []
  const server = createServer((req, res) => {
    if (handler !== undefined) {
      handler(req, res)
      return
    }
    text(req).then(
      (body) => {
        seen.push({ method: req.method ?? '', url: req.url ?? '', headers: req.headers, body })
        res.end(name)
      },
      () => res.destroy(),
    )
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const close = async () => {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }
  t.after(close)
  return { name, port: (server.address() as AddressInfo).port, server, seen, close }
}

export type TestEdge = {
  ctx: Context
  role: RunningEdge
  /** The edge processes beside `role`. */
  further: readonly EdgeProcess[]
  /** Starts the process with this number again, where it was killed. */
  restart: (t: TestContext, number: number) => Promise<EdgeProcess>
  port: number
  https_port: number
  /** The errors in the edge's log. A test removes those that it expects; any other one fails the test. */
  faults: string[]
  /** Adds to the clock of the edge. */
  advance: (ms: number) => void
  /** Stops the clock: from then on only `advance` moves it. */
  holdClock: () => void
  /** Inserts the rows of a lobby with these ports. Returns its id. */
  lobby: (ports: Record<string, number>, options?: { exit_ts?: Date; region?: string }) => Promise<string>
  endLobby: (lobby_id: string) => Promise<void>
  /** Inserts a lobby with one of the edge's raw ports, as matchmaker and runner write it. */
  raw: (transport: 'tcp' | 'udp', port: number, options?: RawOptions) => Promise<RawLobby>
  /** Ends a lobby as the matchmaker does. */
  stopLobby: (lobby_id: string) => Promise<void>
  /** Returns the edge's open ports, as the matchmaker reads them. */
  openPorts: (transport: 'tcp' | 'udp') => Promise<number[]>
  game: (name_id: string) => Promise<TestGame>
}

export type RawLobby = { lobby_id: string; namespace_id: string; number: number }
export type RawOptions = {
  number?: number
  protocol?: 'tcp_tls'
  proxy_protocol?: boolean
  require_player_token?: boolean
}

export type TestGame = {
  game_id: string
  namespace_id: string
  /** Inserts a completed site that is not deployed. */
  site: (files: Record<string, string | Buffer>, options?: SiteOptions) => Promise<string>
  deploy: (site_id: string | null, routes?: readonly CdnRoute[], not_found?: NotFound) => Promise<void>
}
type NotFound = NonNullable<VersionConfig['cdn']>['not_found']
export type SiteOptions = { content_types?: Record<string, string>; complete?: boolean }

export type EdgeOptions = {
  database_url?: string
  api_port?: number
  matchmaker_port?: number
  env?: Record<string, string>
  /** Edge processes. All but the first are processes of their own. Default: TEST_EDGE_PROCESSES, else 1. */
  processes?: number
}

/** An edge of its own, in small-edge.ts. `log`: its lines so far. */
export type EdgeProcess = { child: ChildProcess; port: number; exit: Promise<unknown>; log: Record<string, unknown>[] }

/** Resolves when it listens. It is killed at the end of the test. */
export async function startEdgeProcess(t: TestContext, env: Record<string, string>): Promise<EdgeProcess> {
  const child = spawn(process.execPath, [SMALL_EDGE], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH, MUSTER_LOG_LEVEL: 'info', ...env },
  })
  const exit = once(child, 'exit')
  t.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await exit
  })
  const log: Record<string, unknown>[] = []
  const port = Promise.withResolvers<number>()
  createInterface({ input: child.stdout! }).on('line', (line) => {
    if (/^\d+$/.test(line)) port.resolve(Number(line))
    else log.push(JSON.parse(line) as Record<string, unknown>)
    if (process.env.TEST_LOG_LEVEL !== undefined) process.stderr.write(`${child.pid} ${line}\n`)
  })
  void exit.then(() => port.reject(new Error(`The edge process has ended: ${JSON.stringify(log.at(-1))}`)))
  return { child, port: await port.promise, exit, log }
}

export async function startTestEdge(t: TestContext, options: EdgeOptions = {}): Promise<TestEdge> {
  const url = options.database_url ?? (await createDatabase(t))
  const data_dir = await mkdtemp(join(tmpdir(), 'muster-edge-'))
  const { processes = Number(process.env.TEST_EDGE_PROCESSES ?? 1) } = options
  const [http_port, https_port] = processes === 1 ? [0, 0] : await freePorts(2)
  const env = {
    MUSTER_DATA: data_dir,
    DATABASE_URL: url,
    MUSTER_EDGE_HTTP_PORT: String(http_port),
    MUSTER_EDGE_HTTPS_PORT: String(https_port),
    MUSTER_PROCESS: `0/${processes}`,
    MUSTER_API_PORT: String(options.api_port ?? 1),
    MUSTER_MATCHMAKER_PORT: String(options.matchmaker_port ?? 1),
    ...options.env,
  }
  const config = readTestConfig(env)
  const faults: string[] = []
  const log = pino({ level: 'error' }, { write: (line: string) => void faults.push(line) })
  const clock = createClock()
  const ctx = await openContext(config, { log, now: clock.now, elapsed: clock.elapsed })
  const started = await startEdge(ctx).catch(async (error: unknown) => {
    await ctx.close()
    throw error
  })
  let stopped: Promise<void> | null = null
  // Stops once, by the test or after it.
  const role = { ...started, stop: (how: { end_lobbies: boolean }) => (stopped ??= started.stop(how)) }
  t.after(async () => {
    await role.stop({ end_lobbies: false })
    await ctx.close()
    await rm(data_dir, { recursive: true, force: true })
    assert.deepEqual(faults, [], 'the edge logged an error')
  })
  const numbers = Array.from({ length: processes - 1 }, (_, index) => index + 1)
  const start = (of: TestContext, number: number): Promise<EdgeProcess> =>
    startEdgeProcess(of, { ...env, MUSTER_PROCESS: `${number}/${processes}` })
  const further = await Promise.all(numbers.map((number) => start(t, number)))
  return {
    ctx,
    role,
    further,
    restart: start,
    port: Number(new URL(role.address ?? '').port),
    https_port: role.https_port ?? 0,
    faults,
    advance: clock.advance,
    holdClock: clock.hold,
    lobby: (ports, lobby) => insertLobby(ctx, ports, lobby),
    endLobby: async (lobby_id) => {
      await ctx.db.updateTable('lobby_runs').set({ exit_ts: new Date() }).where('lobby_id', '=', lobby_id).execute()
      await ctx.listener.notify('lobby_runs', lobby_id)
    },
    raw: (transport, port, raw) => insertRawLobby(ctx, transport, port, raw),
    stopLobby: async (lobby_id) => {
      await ctx.db.updateTable('lobbies').set({ stop_ts: new Date() }).where('lobby_id', '=', lobby_id).execute()
      await ctx.listener.notify('lobbies')
    },
    openPorts: async (transport) => {
      const rows = await ctx.db.selectFrom('edge_ports').select('port').where('transport', '=', transport).execute()
      return rows.map(({ port }) => port)
    },
    game: (name_id) => insertGame(ctx, name_id),
  }
}

export async function insertLobby(
  ctx: Context,
  ports: Record<string, number>,
  options: { exit_ts?: Date; region?: string } = {},
) {
  const lobby_id = newId(ctx.now())
  const now = new Date()
  await ctx.db
    .insertInto('lobbies')
    .values({
      ...{ lobby_id, namespace_id: newId(ctx.now()), version_id: newId(ctx.now()), shard: 0, game_mode: 'default' },
      ...{ region: options.region ?? 'local', publicity: 'public', is_custom: false, is_closed: false, tags: '{}' },
      ...{ max_players_normal: 2, max_players_direct: 2, max_players_party: 2, player_count: 0, create_ts: now },
      ...{ player_deadline_ms: 1, idle_grace_ms: 1, ready_deadline_ts: now },
    })
    .execute()
  const entries = Object.entries(ports).map(([name, port]) => [name, { protocol: 'http', hostname: '127.0.0.1', port }])
  await ctx.db
    .insertInto('lobby_runs')
    .values({
      ...{
        lobby_id,
        runner_id: 'test',
        driver: 'process',
        handle: '{}',
        ports: JSON.stringify(Object.fromEntries(entries)),
      },
      ...{ start_ts: now, exit_ts: options.exit_ts ?? null },
    })
    .execute()
  return lobby_id
}

/** Also for an edge that is a process of its own. */
export async function insertRawLobby(
  ctx: Context,
  transport: 'tcp' | 'udp',
  port: number,
  { number: wanted, ...options }: RawOptions = {},
): Promise<RawLobby> {
  const taken = ctx.db
    .selectFrom('lobbies')
    .select(sql<number>`jsonb_path_query_first(edge_ports, '$[0].port')::int`.as('port'))
  const free = ctx.db
    .selectFrom('edge_ports')
    .select('port')
    .where('transport', '=', transport)
    .where('port', 'not in', taken.where(sql<boolean>`edge_ports <> '[]'`))
    .limit(1)
  // On a busy machine the edge may still be opening its first ports.
  await until('a port is open', async () => (await free.execute()).length > 0)
  const number = wanted ?? (await free.executeTakeFirstOrThrow()).port
  const lobby_id = await insertLobby(ctx, {})
  const edge_ports = JSON.stringify([{ name: 'game', transport, port: number }])
  await sql`update lobbies set edge_ports = ${edge_ports}::jsonb where lobby_id = ${lobby_id}`.execute(ctx.db)
  const ports = JSON.stringify({ game: { protocol: transport, hostname: '127.0.0.1', port, ...options } })
  await ctx.db.updateTable('lobby_runs').set({ ports }).where('lobby_id', '=', lobby_id).execute()
  const { namespace_id } = await ctx.db
    .selectFrom('lobbies')
    .select('namespace_id')
    .where('lobby_id', '=', lobby_id)
    .executeTakeFirstOrThrow()
  return { lobby_id, namespace_id, number }
}

export async function insertGame(ctx: Context, name_id: string): Promise<TestGame> {
  const id = () => newId(ctx.now())
  const [group_id, game_id, namespace_id] = [id(), id(), id()]
  await ctx.db.insertInto('groups').values({ group_id, display_name: 'Group' }).execute()
  await ctx.db
    .insertInto('games')
    .values({ game_id, developer_group_id: group_id, name_id, display_name: 'Game' })
    .execute()

  const version = async (config: unknown) => {
    const version_id = id()
    const row = { version_id, game_id, display_name: version_id, config: JSON.stringify(config) }
    await ctx.db.insertInto('versions').values(row).execute()
    return version_id
  }
  const first = { namespace_id, game_id, name_id: 'prod', display_name: 'Prod', version_id: await version({}) }
  await ctx.db.insertInto('namespaces').values(first).execute()

  return {
    game_id,
    namespace_id,
    site: (files, options) => insertSite(ctx, game_id, files, options),
    deploy: async (site_id, routes, not_found) => {
      const cdn = { ...(routes && { routes }), ...(not_found && { not_found }) }
      const version_id = await version(site_id === null ? {} : { cdn: { site_id, ...cdn } })
      await ctx.db.updateTable('namespaces').set({ version_id }).where('namespace_id', '=', namespace_id).execute()
      await ctx.listener.notify('namespaces', namespace_id)
    },
  }
}

async function insertSite(
  ctx: Context,
  game_id: string,
  files: Record<string, string | Buffer>,
  { content_types = {}, complete = true }: SiteOptions = {},
): Promise<string> {
  const [upload_id, site_id] = [newId(ctx.now()), newId(ctx.now())]
  const complete_ts = complete ? new Date() : null
  await ctx.db
    .insertInto('uploads')
    .values({ upload_id, game_id, kind: 'site', content_length: 0, complete_ts })
    .execute()
  for (const [path, content] of Object.entries(files)) {
    const bytes = Buffer.from(content)
    const object_key = newObjectKey()
    const { sha256, content_length } = await ctx.objects.put(object_key, Readable.from([bytes]), bytes.length)
    const content_type = content_types[path] ?? null
    const { block_hashes } = digestOf(bytes)
    const row = { upload_id, path, byte_offset: 0, content_length, content_type, object_key, sha256, block_hashes }
    await ctx.db.insertInto('upload_files').values(row).execute()
  }
  await ctx.db.insertInto('sites').values({ site_id, game_id, upload_id, display_name: 'Site' }).execute()
  return site_id
}

export type RawClient = {
  socket: Socket
  write: (bytes: string | Buffer) => void
  /** Resolves with all bytes so far once `is_enough` returns true. Rejects at the connection's end, and after WAIT_MS_MAX. */
  read: (is_enough: (bytes: string) => boolean) => Promise<string>
  /** Resolves with all bytes when the connection has ended in any way. */
  end: () => Promise<string>
}

/** Connects to the edge without an HTTP client. */
export function rawClient(t: TestContext, port: number, host = '127.0.0.1'): RawClient {
  const socket = connect({ port, host, allowHalfOpen: true })
  let bytes = ''
  let check = () => {}
  socket.setEncoding('latin1')
  socket.on('error', () => {})
  socket.on('data', (chunk) => {
    bytes += chunk
    check()
  })
  socket.on('end', () => socket.end())
  const closed = new Promise<string>((resolve) => socket.once('close', () => resolve(bytes)))
  t.after(() => void socket.destroy())
  const inTime = async <T>(promise: Promise<T>): Promise<T> => {
    const { promise: late, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => reject(new Error(`Timed out after ${JSON.stringify(bytes)}.`)), WAIT_MS_MAX)
    return Promise.race([promise, late]).finally(() => clearTimeout(timer))
  }
  return {
    socket,
    write: (data) => void socket.write(data),
    read: (is_enough) => {
      const { promise, resolve, reject } = Promise.withResolvers<string>()
      check = () => {
        if (is_enough(bytes)) resolve(bytes)
      }
      closed.then(() => {
        check()
        reject(new Error(`The connection ended after ${JSON.stringify(bytes)}.`))
      })
      check()
      return inTime(promise)
    },
    end: () => inTime(closed),
  }
}

/** Reads the platform's error body from a raw response. */
export function errorOf(response: string): { status: number; code: string; closes: boolean } {
  const [head = '', body = ''] = response.split('\r\n\r\n')
  const parsed = JSON.parse(body) as Record<string, unknown>
  assert.deepEqual(Object.keys(parsed).sort(), ['code', 'documentation', 'message', 'metadata', 'ray_id'])
  assert.match(head, new RegExp(`^x-ray-id: ${String(parsed.ray_id)}$`, 'm'))
  return { status: Number(head.split(' ')[1]), code: String(parsed.code), closes: /^connection: close$/im.test(head) }
}
