import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { findOrdinaryUser } from '../server/test/database/harness.ts'

const BUILD = join(import.meta.dirname, 'build.ts')
const BUILD_MS_MAX = 60_000

const ordinary = findOrdinaryUser()

test('programs that this user may not build are named in one sentence, with the remedy', {
  skip: 'reason' in ordinary && ordinary.reason,
}, () => {
  assert.ok('user' in ordinary)
  const env = { PATH: process.env.PATH, HOME: '/' }
  const options = { ...ordinary.user, cwd: '/', env, encoding: 'utf8', timeout: BUILD_MS_MAX } as const
  const { status, stderr } = spawnSync(process.execPath, [BUILD], options)
  assert.equal(status, 1, stderr)
  assert.match(stderr, /^The programs must be built into \S+, which cannot be written \(EACCES\): .*owner.*\.\n$/)
})
