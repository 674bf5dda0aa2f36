import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openRoleLog } from '../../src/supervisor/role-log.ts'
import { type SupervisedRole, superviseRole } from '../../src/supervisor/supervised-role.ts'
import { Terminal } from '../../src/supervisor/terminal.ts'
import { until } from '../until.ts'
import { isThere } from './started.ts'

const PROGRAM = fileURLToPath(new URL('role-program.ts', import.meta.url))

function supervise(
  t: TestContext,
  fate: string,
): { role: SupervisedRole; output: () => string; pids: (number | null)[] } {
  const folder = mkdtempSync(join(tmpdir(), 'muster-role-'))
  let output = ''
  const terminal = new Terminal(
    {
      write(text) {
        output += text
        return true
      },
    },
    {},
  )
  const log = openRoleLog({ folder, who: 'api', terminal, elapsed: () => performance.now() })
  const pids: (number | null)[] = []
  const role: SupervisedRole = superviseRole({
    role: 'api',
    program: PROGRAM,
    env: { MUSTER_DATA: `/nowhere/${fate}` },
    log,
    terminal,
    elapsed: () => performance.now(),
    onProcess: () => queueMicrotask(() => pids.push(role.pid())),
  })
  t.after(async () => {
    await role.stop({ end_lobbies: false })
    log.close()
    rmSync(folder, { recursive: true })
  })
  return { role, output: () => output, pids }
}

test('a role that cannot start reports why, and is not restarted', async (t) => {
  const { role, pids } = supervise(t, 'cannot-start')
  await assert.rejects(role.first_ready, { name: 'StartError', message: 'The api role cannot start: Port 1 is taken.' })
  assert.equal(role.pid(), null)
  assert.equal(pids.length, 2)
})

test('the last lines of a role that crashes before it is ready are reported', async (t) => {
  const { role } = supervise(t, 'crashes')
  await assert.rejects(role.first_ready, (error: Error) => {
    assert.match(
      error.message,
      /^The api role cannot start: it ended with code 1 before it was ready\. .*a fault of ours/s,
    )
    return true
  })
})

test('a role that is killed repeatedly is restarted after a growing delay, and ends when it is stopped', async (t) => {
  const { role, output } = supervise(t, 'lives')
  assert.equal(await role.first_ready, 'http://127.0.0.1:1')
  for (const when of ['at once', 'in 0.25 s', 'in 0.5 s']) {
    const pid = role.pid()
    assert.ok(pid)
    process.kill(pid, 'SIGKILL')
    await until('another process', () => role.pid() !== null && role.pid() !== pid)
    assert.ok(output().includes(`was ended by SIGKILL; starting it again ${when}\n`), output())
  }
  const pid = role.pid()
  assert.ok(pid)
  await role.stop({ end_lobbies: true })
  assert.equal(isThere(pid), false)
  assert.equal(role.pid(), null)
})

test('a role that is stopped while it waits for its restart is not started again', async (t) => {
  const { role, pids } = supervise(t, 'lives')
  await role.first_ready
  for (let death = 0; death < 2; death++) {
    const pid = await until('a process', () => role.pid())
    process.kill(pid, 'SIGKILL')
    await until('its end', () => role.pid() !== pid)
  }
  await role.stop({ end_lobbies: false })
  const seen = pids.length
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(pids.length, seen)
  assert.equal(role.pid(), null)
})
