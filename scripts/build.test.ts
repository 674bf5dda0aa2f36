import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { findOrdinaryUser } from '../server/test/database/harness.ts'

const ROOT = join(import.meta.dirname, '..')
const BUILD_MS_MAX = 60_000

const ordinary = findOrdinaryUser()

for (const [build, what] of [
  ['scripts/build.ts', 'The programs'],
  ['hub/build.ts', 'The hub'],
] as const)
  test(`${build} names in one sentence what this user may not write, with the remedy`, {
    skip: 'reason' in ordinary && ordinary.reason,
  }, () => {
    assert.ok('user' in ordinary)
    const env = { PATH: process.env.PATH, HOME: '/' }
    const options = { ...ordinary.user, cwd: '/', env, encoding: 'utf8', timeout: BUILD_MS_MAX } as const
    const { status, stderr } = spawnSync(process.execPath, [join(ROOT, build), '--quiet'], options)
    assert.equal(status, 1, stderr)
    assert.match(
      stderr,
      new RegExp(`^${what} must be built into \\S+, which cannot be written \\(EACCES\\): .*owner.*\\.\n$`),
    )
  })
