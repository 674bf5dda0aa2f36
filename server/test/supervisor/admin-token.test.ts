// The admin token without a supervisor: each role is a separate process, as under muster-role@.service.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { listGroups } from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { readAdminToken } from '../../src/supervisor/credentials.ts'
import { MUSTER } from '../run/built-programs.ts'
import { createDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'
import { runProgram } from './program.ts'
import { freeSettings, temporaryFolder } from './started.ts'

const NOBODY_UID = 65_534

function adminTokenCommand(settings: Record<string, string>, ...options: string[]) {
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const env = { PATH, NODE_COMPILE_CACHE, ...settings }
  const { status, stdout, stderr } = spawnSync(process.execPath, [MUSTER, 'admin-token', ...options], {
    env,
    encoding: 'utf8',
  })
  return { status, stdout: stdout.trim(), stderr: stderr.trim() }
}

test('an api without a supervisor makes the admin token once, and the command prints it', async (t) => {
  const folder = temporaryFolder(t)
  const settings = { ...(await freeSettings(folder)), DATABASE_URL: await createDatabase(t) }
  const start = async (role: string) => {
    const program = runProgram({ ...settings, MUSTER_ROLES: role })
    await until(`the ${role} is ready`, () => program.output().includes('"ready"'))
    return program
  }
  const stop = async (program: ReturnType<typeof runProgram>) => {
    program.kill('SIGTERM')
    assert.equal(await program.code, 0, program.output())
  }

  const edge = await start('edge')
  const missing = adminTokenCommand(settings)
  assert.equal(missing.status, 1)
  assert.equal(missing.stderr, `${join(folder, 'admin-token')} is missing: the api role writes it when it starts.`)

  const api = await start('api')
  const printed = adminTokenCommand(settings)
  assert.equal(printed.status, 0, printed.stderr)
  assert.equal(statSync(join(folder, 'admin-token')).mode & 0o777, 0o600)
  assert.ok(!api.output().includes(printed.stdout), 'the log names the file, never the token')
  const url = `http://127.0.0.1:${settings.MUSTER_API_PORT}`
  await createClient({ url, token: printed.stdout }).call(listGroups, {})

  await stop(api)
  const away = adminTokenCommand(settings, '--rotate')
  assert.equal(away.status, 1)
  assert.equal(away.stderr, `The api does not respond at ${url}: start it, then rotate the admin token.`)
  assert.equal(adminTokenCommand(settings).stdout, printed.stdout, 'what could not be rotated is still valid')
  const again = await start('api')
  assert.equal(adminTokenCommand(settings).stdout, printed.stdout, 'a second start keeps the token')
  await stop(again)
  await stop(edge)
})

test('without a platform, or without the right to read it, the command reports it in one sentence', (t) => {
  const folder = temporaryFolder(t)
  const absent = join(folder, 'nothing')
  for (const options of [[], ['--rotate']]) {
    const none = adminTokenCommand({ MUSTER_DATA: absent }, ...options)
    assert.equal(none.status, 1)
    assert.equal(
      none.stderr,
      `There is no platform in ${absent}: set MUSTER_DATA to the data folder of yours, or start one with "muster start".`,
    )
    assert.equal(statSync(absent, { throwIfNoEntry: false }), undefined, 'the command makes no folder')
  }

  const locked = join(folder, 'locked')
  mkdirSync(locked, { mode: 0o000 })
  assert.throws(() => asNobody(() => readAdminToken({ MUSTER_DATA: locked })), {
    name: 'StartError',
    message: `${join(locked, 'admin-token')} cannot be read (EACCES): run this command as the user of the platform.`,
  })
  // An ordinary user cannot remove it otherwise.
  chmodSync(locked, 0o700)
})

/** Root may read every file, so the process becomes another user while the function runs. */
function asNobody<T>(run: () => T): T {
  if (process.getuid!() !== 0) return run()
  process.seteuid!(NOBODY_UID)
  try {
    return run()
  } finally {
    process.seteuid!(0)
  }
}
