import assert from 'node:assert/strict'
import { hash, randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pino } from 'pino'
import { until } from '../../test/support/until.ts'
import type { Context } from '../context.ts'
import { makeManifest } from './build-manifest.ts'
import { type Builds, openBuilds } from './builds.ts'

const DAY_MS = 24 * 3_600_000
/** As in builds.ts. */
const USERS_MAX = 8

test('an unused build is removed after the configured time, a used one never', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'muster-builds-'))
  t.after(() => Promise.all([folder, `${folder}.manifests`].map((path) => rm(path, { recursive: true }))))
  let now_ms = Date.now()
  // The members of a context that a sweep reads.
  const ctx = {
    now: () => now_ms,
    elapsed: () => now_ms,
    config: { retention: { builds_ms: 7 * DAY_MS } },
    log: pino({ level: 'silent' }),
  }
  for (const [build, days] of [
    ['used', 30],
    ['old', 8],
    ['young', 6],
  ] as const) {
    await mkdir(join(folder, build))
    await mkdir(`${folder}.manifests`, { recursive: true })
    await makeManifest(join(folder, build), [], join(`${folder}.manifests`, build))
    const then = new Date(now_ms - days * DAY_MS)
    await utimes(join(folder, build), then, then)
  }
  const builds = await openBuilds(ctx as unknown as Context, folder, null, () => {})
  await builds.sweep(new Set(['used']))
  assert.deepEqual((await readdir(folder)).sort(), ['used', 'young'])
  now_ms += 2 * DAY_MS
  await until(
    'the build is found: a lobby is about to start on it',
    () => typeof builds.find({ build_id: 'young' }) === 'object',
  )
  await builds.sweep(new Set())
  assert.deepEqual((await readdir(folder)).sort(), ['used', 'young'])
  now_ms += 8 * DAY_MS
  await builds.sweep(new Set())
  assert.deepEqual(await readdir(folder), [])
  assert.deepEqual(await readdir(`${folder}.manifests`), [], 'the manifests are removed too')
})

test('decayed bytes of a build are found by the weekly check, and the build is not started', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'muster-builds-'))
  t.after(() => Promise.all([folder, `${folder}.manifests`].map((path) => rm(path, { recursive: true }))))
  let now_ms = Date.now()
  const found: string[] = []
  // The members of a context that a check reads. There is no stored archive, so the build cannot be unpacked again.
  const ctx = {
    now: () => now_ms,
    elapsed: () => now_ms,
    config: { check_ms: 7 * DAY_MS },
    log: pino({ level: 'silent' }),
    metrics: {
      damage_found: {
        inc({ reason }: { reason: string }) {
          found.push(reason)
          // A lobby starts at this moment.
          builds.find({ build_id: 'build' })
        },
      },
    },
    pool: { query: async () => ({ rows: [] }) },
  }
  const manifest = join(`${folder}.manifests`, 'build')
  await mkdir(join(folder, 'build'))
  await mkdir(`${folder}.manifests`)
  await writeFile(join(folder, 'build/run'), 'sound')
  await makeManifest(join(folder, 'build'), [{ path: 'run', sha256: hash('sha256', 'sound') }], manifest)
  await writeFile(join(folder, 'build/run'), 'decay')
  // A decaying disk leaves size and times unchanged. Here the manifest gets the current ones instead.
  const { size, mtimeNs, ctimeNs } = await stat(join(folder, 'build/run'), { bigint: true })
  const [, text = ''] = (await readFile(manifest, 'utf8')).split('\n')
  const changed = JSON.parse(text) as { entries: Record<string, string>[] }
  Object.assign(changed.entries[0]!, {
    content_length: String(size),
    modify_ns: String(mtimeNs),
    change_ns: String(ctimeNs),
  })
  await writeFile(manifest, `${hash('sha256', JSON.stringify(changed))}\n${JSON.stringify(changed)}`)

  const builds: Builds = await openBuilds(ctx as unknown as Context, folder, null, () => {})
  t.after(() => builds.close())
  await until('a quick check finds no difference', () => 'folder' in Object(builds.find({ build_id: 'build' })))
  builds.check()
  now_ms += 8 * DAY_MS
  await until('the full check finds it', () => {
    builds.check()
    return found.length > 0
  })
  assert.deepEqual(found, ['unpacked_build'])
  await until('the build has failed', () => 'failure' in Object(builds.find({ build_id: 'build' })))
  assert.ok((await readdir(folder)).every((name) => name.startsWith('.replaced-')))
})

test('one image is unpacked for a limited number of users', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'muster-builds-'))
  t.after(() => Promise.all([folder, `${folder}.manifests`].map((path) => rm(path, { recursive: true }))))
  const log = { warn: () => undefined }
  const ctx = { now: Date.now, elapsed: () => performance.now(), log }
  const builds = await openBuilds(ctx as unknown as Context, folder, null, () => {})
  t.after(() => builds.close())
  const build_id = randomUUID()
  for (let uid = 0; uid < USERS_MAX; uid++) await mkdir(join(folder, `${build_id}-${uid}-0`))
  const state = await until('the build has failed', () => {
    const found = builds.find({ build_id, user: { uid: USERS_MAX, gid: 0 } })
    return typeof found === 'object' && found
  })
  assert.match('failure' in state ? state.failure : '', /unpacked for 8 other users.*leave user out/)
})
