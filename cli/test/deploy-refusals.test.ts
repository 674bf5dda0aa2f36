// What a deploy says when the platform has no room: a quota of the group, and a full disk.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startPlatform } from '../../server/test/support/platform.ts'
import { createProject } from './deploy-steps.ts'

/** 100 TB: more than the disk of the test has. */
const DISK_FREE_MB = 100_000_000

async function deployedTo(t: TestContext, env: Record<string, string>) {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge', env })
  const project = await createProject(t, platform)
  const first = await project.run(['deploy', '--detach'])
  project.write('server/more.txt', 'more')
  return { first, second: await project.run(['deploy', '--detach']) }
}

test('a deploy beyond a quota says which one', async (t) => {
  const { first, second } = await deployedTo(t, { MUSTER_QUOTA_BUILDS: '1' })
  assert.equal(first.code, 0, first.stderr)
  assert.deepEqual([second.code, second.stderr.includes('QUOTA_REACHED: ')], [1, true], second.stderr)
})

test('a deploy to a platform whose disk is full says so', async (t) => {
  const { first } = await deployedTo(t, { MUSTER_UPLOAD_DISK_FREE_MB_MIN: String(DISK_FREE_MB) })
  assert.deepEqual([first.code, first.stderr.includes("The platform's disk is nearly full")], [1, true], first.stderr)
})
