// Builds on this machine: each unpacked once, into `<data>/builds/<build_id>/`, and read-only from then on. A build is
// asked for on the way to a start, so the answer is immediate: where it is, or that it cannot be had, or that it is being
// unpacked, and then the asker is woken when there is more to say. A folder that is there is complete: unpackArchive
// makes it appear in one step, durably.
import { createWriteStream, existsSync } from 'node:fs'
import { readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { ApiError } from '@muster/contract'
import type { Context } from '../context.ts'
import { removePartialFolders, unpackArchive } from '../objects/archive.ts'

const UNPACK_CONCURRENCY_MAX = 2
/** A build that failed is tried again after this: the fault may have been the disk's. */
const FAILURE_KEPT_MS = 10_000
const FAILURES_KEPT_MAX = 1_000
/** Unpacked builds that no lobby runs on: of those used last so many are kept, for as long as is set; all that were asked for a short time ago. */
const UNUSED_KEPT_MAX = 20
const UNUSED_KEPT_MS_MIN = 3_600_000
const TEMPORARY = '.archive-'
const REMOVED = '.removed-'

type BuildState = { folder: string } | { failure: string } | 'unpacking'

export type Builds = {
  /** Never waits. `failure` is a sentence for the developer. */
  find(build_id: string): BuildState
  /** Removes the unused ones beyond those that are kept; they are made again when they are needed. */
  sweep(used_build_ids: ReadonlySet<string>): Promise<void>
  /** Waits for what is being unpacked. */
  close(): Promise<void>
}

/** Removes what a killed runner left half way. `onChange` is called when a build has become ready, or has failed. */
export async function openBuilds(ctx: Context, builds_folder: string, onChange: () => void): Promise<Builds> {
  /** When each was asked for last. */
  const ready = new Map<string, number>()
  const failures = new Map<string, { failure: string; at_ms: number }>()
  const unpacking = new Map<string, Promise<void>>()

  await removePartialFolders(builds_folder)
  for (const name of await readdir(builds_folder)) {
    if (name.startsWith(TEMPORARY) || name.startsWith(REMOVED)) await rm(join(builds_folder, name), { recursive: true })
  }

  async function unpack(build_id: string): Promise<void> {
    try {
      const started_ms = ctx.elapsed()
      await unpackBuild(ctx, builds_folder, build_id)
      ready.set(build_id, ctx.elapsed())
      ctx.log.info({ build_id, unpack_ms: ctx.elapsed() - started_ms }, 'a build has been unpacked')
    } catch (error) {
      const failure = error instanceof ApiError ? error.message : 'The build cannot be unpacked now.'
      ctx.log.warn({ err: error, build_id }, 'a build cannot be unpacked')
      if (failures.size >= FAILURES_KEPT_MAX) failures.clear()
      failures.set(build_id, { failure, at_ms: ctx.elapsed() })
    } finally {
      unpacking.delete(build_id)
      onChange()
    }
  }

  return {
    find(build_id) {
      const folder = join(builds_folder, build_id)
      if (ready.has(build_id) || existsSync(folder)) {
        ready.set(build_id, ctx.elapsed())
        return { folder }
      }
      const failed = failures.get(build_id)
      if (failed !== undefined && ctx.elapsed() - failed.at_ms < FAILURE_KEPT_MS) return { failure: failed.failure }
      failures.delete(build_id)
      // The others are asked for again when one of these is done.
      if (!unpacking.has(build_id) && unpacking.size < UNPACK_CONCURRENCY_MAX) unpacking.set(build_id, unpack(build_id))
      return 'unpacking'
    },

    async sweep(used_build_ids) {
      const found: { build_id: string; used_ms: number }[] = []
      for (const build_id of (await readdir(builds_folder)).filter((name) => !name.startsWith('.'))) {
        const folder = join(builds_folder, build_id)
        const now = new Date(ctx.now())
        if (used_build_ids.has(build_id)) await utimes(folder, now, now)
        else found.push({ build_id, used_ms: (await stat(folder)).mtimeMs })
      }
      const { builds_ms } = ctx.config.retention
      const oldest_ms = builds_ms === null ? Number.NEGATIVE_INFINITY : ctx.now() - builds_ms
      const surplus = found
        .sort((a, b) => b.used_ms - a.used_ms)
        .filter(({ used_ms }, index) => index >= UNUSED_KEPT_MAX || used_ms < oldest_ms)
      for (const { build_id } of surplus) {
        if (ctx.elapsed() - (ready.get(build_id) ?? Number.NEGATIVE_INFINITY) < UNUSED_KEPT_MS_MIN) continue
        ready.delete(build_id)
        const removed = join(builds_folder, `${REMOVED}${build_id}`)
        await rename(join(builds_folder, build_id), removed)
        await rm(removed, { recursive: true })
      }
    },

    async close() {
      await Promise.all(unpacking.values())
    },
  }
}

type Part = { kind: string; is_complete: boolean; path: string; byte_offset: number; object_key: string }

async function unpackBuild(ctx: Context, builds_folder: string, build_id: string): Promise<void> {
  const { rows } = await ctx.pool.query<Part>(
    `select b.kind, u.complete_ts is not null as is_complete, f.path, f.byte_offset, f.object_key
     from builds b
     join uploads u on u.upload_id = b.upload_id
     join upload_files f on f.upload_id = b.upload_id
     where b.build_id = $1
     order by f.path, f.byte_offset`,
    [build_id],
  )
  const [first] = rows
  if (first === undefined) throw new ApiError('ARCHIVE_INVALID', { build_id }, { message: 'There is no such build.' })
  if (!first.is_complete) {
    throw new ApiError('ARCHIVE_INVALID', { build_id }, { message: 'The upload of the build is not complete.' })
  }
  if (first.kind !== 'archive' || rows.some(({ path }) => path !== first.path)) {
    throw new ApiError('ARCHIVE_INVALID', { build_id }, { message: 'The build is not one archive.' })
  }
  const target = join(builds_folder, build_id)
  const local = rows.length === 1 ? ctx.objects.localPath(first.object_key) : null
  if (local !== null) {
    await unpackArchive({ path: local }, target)
    return
  }
  const gathered = join(builds_folder, `${TEMPORARY}${build_id}`)
  try {
    await pipeline(Readable.from(bytesOf(ctx, rows)), createWriteStream(gathered, { mode: 0o600 }))
    await unpackArchive({ path: gathered }, target)
  } finally {
    await rm(gathered, { force: true })
  }
}

async function* bytesOf(ctx: Context, parts: readonly Part[]): AsyncGenerator<Buffer> {
  for (const { object_key } of parts) yield* await ctx.objects.read(object_key)
}
