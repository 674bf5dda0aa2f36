// The runner role on a real database and a temporary data folder. The test plays api and matchmaker: it writes the rows
// that they would write.
import { mkdtempSync, rmSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { TestContext } from 'node:test'
import { gunzipSync } from 'node:zlib'
import type { VersionConfig } from '@muster/contract'
import { readConfig } from '../../src/config.ts'
import { type Context, openContext, type RunningRole } from '../../src/context.ts'
import { newId } from '../../src/ids.ts'
import type { LogStream } from '../../src/lobby-logs/files.ts'
import { newObjectKey } from '../../src/objects/objects.ts'
import { startRunner } from '../../src/runner/start.ts'
import { tarGz } from '../builds.ts'
import { createDatabase } from '../database.ts'
import { until } from '../until.ts'

type RunRow = {
  runner_id: string
  ports: Record<string, { hostname: string; port: number }>
  handle: { pid?: number; group?: string | null }
  start_ts: Date | null
  exit_ts: Date | null
  exit_code: number | null
  exit_reason: string | null
  cpu_ms: number | null
}

export type RunnerFixture = {
  ctx: Context
  /** Starts the role, as a machine of that name; it is stopped with the test, lobbies and all. */
  start(node_id?: string): Promise<RunningRole>
  /** A build of these files, in two parts, and a version that runs it in its game mode `default`. */
  version(files: Record<string, string>, mode: NonNullable<Mode>, packed?: 'tar' | 'tar.gz'): Promise<string>
  /** A wanted lobby of it: the row and the wake-up. */
  lobby(version_id: string, members?: Partial<LobbyMembers>): Promise<string>
  unwant(lobby_id: string): Promise<void>
  row(lobby_id: string): Promise<RunRow | undefined>
  /** The last lines that are kept of a stream. */
  log(lobby_id: string, stream: LogStream): Promise<string[]>
  /** Waits for a row that passes. */
  run(lobby_id: string, what: string, passes: (row: RunRow) => boolean): Promise<RunRow>
}

type Mode = NonNullable<VersionConfig['matchmaker']>['game_modes'][string]['docker']
type LobbyMembers = { game_mode: string; lobby_config: string | null; tags: Record<string, string>; is_awake: boolean }

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
  const ctx = await openContext(config)
  const roles: RunningRole[] = []
  t.after(async () => {
    for (const role of roles) await role.stop({ end_lobbies: true })
    await ctx.close()
    rmSync(data_dir, { recursive: true, force: true })
  })

  const group_id = newId(Date.now())
  const game_id = newId(Date.now())
  await ctx.db.insertInto('groups').values({ group_id, display_name: 'Group' }).execute()
  await ctx.db
    .insertInto('games')
    .values({ game_id, developer_group_id: group_id, name_id: 'game', display_name: 'Game' })
    .execute()

  const row = async (lobby_id: string): Promise<RunRow | undefined> => {
    const { rows } = await ctx.pool.query<RunRow>('select * from lobby_runs where lobby_id = $1', [lobby_id])
    return rows[0]
  }

  return {
    ctx,
    row,

    async log(lobby_id, stream) {
      const { lines } = await ctx.lobby_logs.last(lobby_id, stream, 1_000)
      return lines.map(({ bytes }) => bytes.toString())
    },

    async start(node_id = config.node_id) {
      const role = await startRunner({ ...ctx, config: { ...config, node_id } })
      let stopped: Promise<void> | null = null
      const once: RunningRole = {
        ...role,
        stop(how) {
          stopped ??= role.stop(how)
          return stopped
        },
      }
      roles.push(once)
      return once
    },

    async version(files, mode, packed = 'tar.gz') {
      const bytes = packed === 'tar.gz' ? await tarGz(files) : gunzipSync(await tarGz(files))
      const [upload_id, build_id, version_id] = [newId(Date.now()), newId(Date.now()), newId(Date.now())]
      const half = bytes.length >> 1
      await ctx.db
        .insertInto('uploads')
        .values({ upload_id, game_id, kind: 'build', content_length: bytes.length, complete_ts: new Date() })
        .execute()
      for (const [byte_offset, part] of [
        [0, bytes.subarray(0, half)],
        [half, bytes.subarray(half)],
      ] as const) {
        const object_key = newObjectKey()
        const { sha256 } = await ctx.objects.put(object_key, Readable.from([part]), part.length)
        await ctx.db
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
      await ctx.db
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
      const config: VersionConfig = {
        matchmaker: { game_modes: { default: { docker: { image_id: build_id, ...mode } }, without: {} } },
      }
      await ctx.db
        .insertInto('versions')
        .values({ version_id, game_id, display_name: version_id, config: JSON.stringify(config) })
        .execute()
      await ctx.db
        .insertInto('namespaces')
        .values({ namespace_id: version_id, game_id, name_id: version_id.slice(-12), display_name: 'N', version_id })
        .execute()
      return version_id
    },

    async lobby(version_id, { is_awake = true, tags = {}, ...members } = {}) {
      const lobby_id = newId(Date.now())
      await ctx.db
        .insertInto('lobbies')
        .values({
          lobby_id,
          namespace_id: version_id,
          shard: 0,
          version_id,
          game_mode: 'default',
          region: 'local',
          publicity: 'public',
          is_custom: false,
          is_closed: false,
          max_players_normal: 3,
          max_players_direct: 4,
          max_players_party: 5,
          cpu_cores: 0.5,
          memory_mb: 300,
          tags: JSON.stringify(tags),
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
          ...members,
        })
        .execute()
      if (is_awake) await ctx.listener.notify('lobbies', lobby_id)
      return lobby_id
    },

    async unwant(lobby_id) {
      await ctx.db.updateTable('lobbies').set({ stop_ts: new Date() }).where('lobby_id', '=', lobby_id).execute()
      await ctx.listener.notify('lobbies', lobby_id)
    },

    run: (lobby_id, what, passes) =>
      until(what, async () => {
        const found = await row(lobby_id)
        return found !== undefined && passes(found) ? found : null
      }),
  }
}
