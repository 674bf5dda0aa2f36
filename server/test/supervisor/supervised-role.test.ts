import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openRoleLog } from '../../src/supervisor/role-log.ts'
import { type SupervisedRole, superviseRole } from '../../src/supervisor/supervised-role.ts'
import { SupervisorTerminal } from '../../src/supervisor/terminal.ts'
import { until } from '../support/until.ts'
import { isThere } from './started.ts'

const PROGRAM = fileURLToPath(new URL('role-program.ts', import.meta.url))

function supervise(
  t: TestContext,
  fate: string,
  name: 'api' | 'edge' = 'api',
): { role: SupervisedRole; output: () => string; pids: (number | null)[] } {
  const folder = mkdtempSync(join(tmpdir(), 'muster-role-'))
  let output = ''
  const terminal = new SupervisorTerminal(
    {
      write(text) {
        output += text
        return true
      },
    },
    {},
  )
  const log = openRoleLog({ folder, who: name, terminal, elapsed: () => performance.now() })
  const pids: (number | null)[] = []
  const role: SupervisedRole = superviseRole({
    role: name,
    program: { exec_path: process.execPath, path: PROGRAM },
    env: { MUSTER_DATA: join(folder, fate) },
    log,
    terminal,
    elapsed: () => performance.now(),
    onProcess: () => queueMicrotask(() => pids.push(role.pids().current)),
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
  assert.deepEqual(role.pids(), { current: null, retiring: [] })
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
    const pid = role.pids().current
    assert.ok(pid)
    process.kill(pid, 'SIGKILL')
    await until('another process', () => role.pids().current !== null && role.pids().current !== pid)
    assert.ok(output().includes(`was ended by SIGKILL; starting it again ${when}\n`), output())
  }
  const pid = role.pids().current
  assert.ok(pid)
  await role.stop({ end_lobbies: true })
  assert.equal(isThere(pid), false)
  assert.deepEqual(role.pids(), { current: null, retiring: [] })
})

test('a role that is stopped while it waits for its restart is not started again', async (t) => {
  const { role, pids } = supervise(t, 'lives')
  await role.first_ready
  for (let death = 0; death < 2; death++) {
    const pid = await until('a process', () => role.pids().current)
    process.kill(pid, 'SIGKILL')
    await until('its end', () => role.pids().current !== pid)
  }
  await role.stop({ end_lobbies: false })
  const seen = pids.length
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(pids.length, seen)
  assert.deepEqual(role.pids(), { current: null, retiring: [] })
})

test('a planned restart of a role stops its process before the next one starts', async (t) => {
  const { role, output, pids } = supervise(t, 'lives')
  await role.first_ready
  const former = role.pids().current
  await role.restart()
  const { current: next, retiring } = role.pids()
  assert.deepEqual(retiring, [])
  assert.notEqual(next, former)
  assert.equal(isThere(former!), false)
  assert.ok(!output().includes('starting it again'), 'the terminal shows no failure')
  assert.ok(pids.includes(null), 'there was a moment without a process')
})

test('a planned restart of the edge keeps the former process until it has nothing left', async (t) => {
  const { role, pids } = supervise(t, 'lives', 'edge')
  await role.first_ready
  const former = role.pids().current
  await role.restart()
  const { current: next, retiring } = role.pids()
  assert.deepEqual(retiring, [former])
  assert.notEqual(next, former)
  assert.deepEqual(pids.slice(1).includes(null), false, 'there was always a process')
  process.kill(former!, 'SIGUSR1')
  await until('the end of the former process', () => role.pids().retiring.length === 0)
  assert.equal(role.pids().current, next)
  await role.restart()
  await role.stop({ end_lobbies: false })
  assert.deepEqual(role.pids(), { current: null, retiring: [] }, 'a stop ends the retiring process too')
})

test('an edge whose successor cannot start is stopped and started again', async (t) => {
  const { role, output } = supervise(t, 'only-once', 'edge')
  await role.first_ready
  const former = role.pids().current
  const restarted = role.restart()
  await until('the report', () => output().includes('cannot hand over: Port 1 is taken.'))
  await assert.rejects(restarted, { name: 'StartError' })
  assert.equal(isThere(former!), false, 'the plain restart has stopped it')
})
