import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, rm, utimes } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pino } from 'pino'
import { until } from '../../test/until.ts'
import type { Context } from '../context.ts'
import { makeManifest } from './build-manifest.ts'
import { openBuilds } from './builds.ts'

const DAY_MS = 24 * 3_600_000

test('an unpacked build is removed when nothing has run on it for as long as is set, and never one in use', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'muster-builds-'))
  t.after(() => Promise.all([folder, `${folder}.manifests`].map((path) => rm(path, { recursive: true }))))
  let now_ms = Date.now()
  // All of a context that a sweep asks for.
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
  const builds = await openBuilds(ctx as unknown as Context, folder, () => {})
  await builds.sweep(new Set(['used']))
  assert.deepEqual((await readdir(folder)).sort(), ['used', 'young'])
  now_ms += 2 * DAY_MS
  await until(
    'asked for just now: a lobby is about to be started on it',
    () => typeof builds.find('young') === 'object',
  )
  await builds.sweep(new Set())
  assert.deepEqual((await readdir(folder)).sort(), ['used', 'young'])
  now_ms += 8 * DAY_MS
  await builds.sweep(new Set())
  assert.deepEqual(await readdir(folder), [])
  assert.deepEqual(await readdir(`${folder}.manifests`), [], 'nor their manifests')
})
