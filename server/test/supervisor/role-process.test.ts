import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openRoleLog } from '../../src/supervisor/role-log.ts'
import { type KeptRole, keepRole } from '../../src/supervisor/role-process.ts'
import { createTerminal } from '../../src/supervisor/terminal.ts'
import { until } from '../until.ts'
import { isThere } from './started.ts'

const PROGRAM = fileURLToPath(new URL('role-program.ts', import.meta.url))

function keep(t: TestContext, fate: string): { kept: KeptRole; output: () => string; pids: (number | null)[] } {
  const folder = mkdtempSync(join(tmpdir(), 'muster-role-'))
  let output = ''
  const terminal = createTerminal(
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
  const kept: KeptRole = keepRole({
    role: 'api',
    program: PROGRAM,
    env: { MUSTER_DATA: `/nowhere/${fate}` },
    log,
    terminal,
    elapsed: () => performance.now(),
    onProcess: () => queueMicrotask(() => pids.push(kept.pid())),
  })
  t.after(async () => {
    await kept.stop({ end_lobbies: false })
    log.close()
    rmSync(folder, { recursive: true })
  })
  return { kept, output: () => output, pids }
}

test('a role that cannot start says why, and is not tried again', async (t) => {
  const { kept, pids } = keep(t, 'refuses')
  await assert.rejects(kept.firstReady, { name: 'StartError', message: 'The api role cannot start: Port 1 is taken.' })
  assert.equal(kept.pid(), null)
  assert.equal(pids.length, 2)
})

test('of a role that falls before it is ready the last words are told', async (t) => {
  const { kept } = keep(t, 'falls')
  await assert.rejects(kept.firstReady, (error: Error) => {
    assert.match(
      error.message,
      /^The api role cannot start: it ended with code 1 before it was ready\. .*a fault of ours/s,
    )
    return true
  })
})

test('a role that is killed again and again comes back every time, later each time, and ends when it is stopped', async (t) => {
  const { kept, output } = keep(t, 'lives')
  assert.equal(await kept.firstReady, 'http://127.0.0.1:1')
  for (const when of ['at once', 'in 0.25 s', 'in 0.5 s']) {
    const pid = kept.pid()
    assert.ok(pid)
    process.kill(pid, 'SIGKILL')
    await until('another process', () => kept.pid() !== null && kept.pid() !== pid)
    assert.ok(output().includes(`was ended by SIGKILL; starting it again ${when}\n`), output())
  }
  const pid = kept.pid()
  assert.ok(pid)
  await kept.stop({ end_lobbies: true })
  assert.equal(isThere(pid), false)
  assert.equal(kept.pid(), null)
})

test('a role that waits for its restart is not started again once it is stopped', async (t) => {
  const { kept, pids } = keep(t, 'lives')
  await kept.firstReady
  for (let death = 0; death < 2; death++) {
    const pid = await until('a process', () => kept.pid())
    process.kill(pid, 'SIGKILL')
    await until('its end', () => kept.pid() !== pid)
  }
  await kept.stop({ end_lobbies: false })
  const seen = pids.length
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(pids.length, seen)
  assert.equal(kept.pid(), null)
})
