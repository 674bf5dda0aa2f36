// The runner role on a real database and a temporary data folder. The test writes the rows that api and matchmaker would
// write.
import { mkdtempSync, rmSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { TestContext } from 'node:test'
import { gunzipSync } from 'node:zlib'
import type { VersionConfig } from '@musterhost/contract'
import type { Config } from '../../src/config/config.ts'
import { readConfig } from '../../src/config/read-config.ts'
import { type Context, openContext, type RunningRole } from '../../src/context.ts'
import { newId } from '../../src/ids.ts'
import type { LogStream } from '../../src/lobby-logs/files.ts'
import { newObjectKey } from '../../src/objects/objects.ts'
import { startRunner } from '../../src/runner/start.ts'
import { tarGz } from '../support/builds.ts'
import { createDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

type RunRow = {
  runner_id: string
  ports: Record<string, { hostname: string; port: number }>
  handle: { pid?: number; group?: string | null; network?: { services: string; players: string } | null }
  start_ts: Date | null
  exit_ts: Date | null
  exit_code: number | null
  exit_reason: string | null
  cpu_ms: number | null
}

type Mode = NonNullable<VersionConfig['matchmaker']>['game_modes'][string]['docker']
type LobbyMembers = {
  game_mode: string
  lobby_config: string | null
  tags: Record<string, string>
  is_awake: boolean
  edge_ports: string
}

export async function openRunner(
  t: TestContext,
  sandbox: 'available' | 'off' = 'off',
  env: Record<string, string> = {},
): Promise<RunnerFixture> {
  const data_dir = mkdtempSync(join(tmpdir(), 'muster-runner-'))
  await chmod(data_dir, 0o711)
  const config = readConfig({
    MUSTER_DATA: data_dir,
    DATABASE_URL: await createDatabase(t),
    MUSTER_ROLES: 'runner',
    MUSTER_SANDBOX: sandbox,
    MUSTER_LOG_LEVEL: 'silent',
    ...env,
  })
  const fixture = new RunnerFixture(await openContext(config), config)
  t.after(async () => {
    await fixture.close()
    rmSync(data_dir, { recursive: true, force: true })
  })
  await fixture.insertGame()
  return fixture
}

export class RunnerFixture {
  readonly ctx: Context
  readonly #config: Config
  readonly #game_id = newId(Date.now())
  readonly #roles: RunningRole[] = []

  constructor(ctx: Context, config: Config) {
    this.ctx = ctx
    this.#config = config
  }

  /** Starts the role, on a machine of that name. It is stopped with the test, with its lobbies. */
  async start(node_id = this.#config.node_id): Promise<RunningRole> {
    const role = await startRunner({ ...this.ctx, config: { ...this.#config, node_id } })
    let stopped: Promise<void> | null = null
    const once: RunningRole = {
      ...role,
      stop(how) {
        stopped ??= role.stop(how)
        return stopped
      },
    }
    this.#roles.push(once)
    return once
  }

  /** Adds a build of these files, in two parts, and a version that runs it in its game mode `default`. */
  async version(
    files: Record<string, string>,
    mode: NonNullable<Mode>,
    packed: 'tar' | 'tar.gz' = 'tar.gz',
  ): Promise<string> {
    const build_id = await this.#insertBuild(packed === 'tar.gz' ? await tarGz(files) : gunzipSync(await tarGz(files)))
    return this.versionOf({ image_id: build_id, ...mode })
  }

  /** Adds a version with this server in its game mode `default`. */
  async versionOf(docker: NonNullable<Mode>): Promise<string> {
    const version_id = newId(Date.now())
    const config: VersionConfig = {
      matchmaker: { game_modes: { default: { docker }, without: {} } },
    }
    const game_id = this.#game_id
    await this.ctx.db
      .insertInto('versions')
      .values({ version_id, game_id, display_name: version_id, config: JSON.stringify(config) })
      .execute()
    await this.ctx.db
      .insertInto('namespaces')
      .values({ namespace_id: version_id, game_id, name_id: version_id.slice(-12), display_name: 'N', version_id })
      .execute()
    return version_id
  }

  /** Adds a wanted lobby of the version: the row and the notification. */
  async lobby(
    version_id: string,
    { is_awake = true, tags = {}, ...members }: Partial<LobbyMembers> = {},
  ): Promise<string> {
    const lobby_id = newId(Date.now())
    await this.ctx.db
      .insertInto('lobbies')
      .values({ ...lobbyRow(lobby_id, version_id), tags: JSON.stringify(tags), ...members })
      .execute()
    if (is_awake) await this.ctx.listener.notify('lobbies', lobby_id)
    return lobby_id
  }

  async unwant(lobby_id: string): Promise<void> {
    await this.ctx.db.updateTable('lobbies').set({ stop_ts: new Date() }).where('lobby_id', '=', lobby_id).execute()
    await this.ctx.listener.notify('lobbies', lobby_id)
  }

  async row(lobby_id: string): Promise<RunRow | undefined> {
    const { rows } = await this.ctx.pool.query<RunRow>('select * from lobby_runs where lobby_id = $1', [lobby_id])
    return rows[0]
  }

  /** Waits for a row that passes. */
  run(lobby_id: string, what: string, passes: (row: RunRow) => boolean): Promise<RunRow> {
    return until(what, async () => {
      const found = await this.row(lobby_id)
      return found !== undefined && passes(found) ? found : null
    })
  }

  /** The last kept lines of a stream. */
  async log(lobby_id: string, stream: LogStream): Promise<string[]> {
    const { lines } = await this.ctx.lobby_logs.last(lobby_id, stream, 1_000)
    return lines.map(({ bytes }) => bytes.toString())
  }

  async insertGame(): Promise<void> {
    const group_id = newId(Date.now())
    await this.ctx.db.insertInto('groups').values({ group_id, display_name: 'Group' }).execute()
    await this.ctx.db
      .insertInto('games')
      .values({ game_id: this.#game_id, developer_group_id: group_id, name_id: 'game', display_name: 'Game' })
      .execute()
  }

  async close(): Promise<void> {
    for (const role of this.#roles) await role.stop({ end_lobbies: true })
    await this.ctx.close()
  }

  async #insertBuild(bytes: Buffer): Promise<string> {
    const [upload_id, build_id] = [newId(Date.now()), newId(Date.now())]
    const game_id = this.#game_id
    await this.ctx.db
      .insertInto('uploads')
      .values({ upload_id, game_id, kind: 'build', content_length: bytes.length, complete_ts: new Date() })
      .execute()
    const half = bytes.length >> 1
    await this.#insertPart(upload_id, 0, bytes.subarray(0, half))
    await this.#insertPart(upload_id, half, bytes.subarray(half))
    await this.ctx.db
      .insertInto('builds')
      .values({
        build_id,
        game_id,
        upload_id,
        display_name: 'Build',
        image_tag: build_id,
        kind: 'archive',
        compression: 'gzip',
        tags: '{}',
      })
      .execute()
    return build_id
  }

  async #insertPart(upload_id: string, byte_offset: number, part: Buffer): Promise<void> {
    const object_key = newObjectKey()
    const { sha256 } = await this.ctx.objects.put(object_key, Readable.from([part]), part.length)
    await this.ctx.db
      .insertInto('upload_files')
      .values({
        upload_id,
        path: 'server.tar.gz',
        byte_offset,
        content_length: part.length,
        content_type: null,
        object_key,
        sha256,
      })
      .execute()
  }
}

function lobbyRow(lobby_id: string, version_id: string) {
  return {
    lobby_id,
    namespace_id: version_id,
    shard: 0,
    version_id,
    game_mode: 'default',
    region: 'local',
    publicity: 'public' as const,
    is_custom: false,
    is_closed: false,
    max_players_normal: 3,
    max_players_direct: 4,
    max_players_party: 5,
    cpu_cores: 0.5,
    memory_mb: 300,
    lobby_config: null,
    state: null,
    player_count: 0,
    player_deadline_ms: 120_000,
    idle_grace_ms: 15_000,
    create_ts: new Date(),
    ready_deadline_ts: new Date(Date.now() + 300_000),
    ready_ts: null,
    idle_ts: null,
    stop_ts: null,
    stop_reason: null,
  }
}
