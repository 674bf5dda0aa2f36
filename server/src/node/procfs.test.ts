import assert from 'node:assert'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { test } from 'node:test'
import { until } from '../../test/support/until.ts'
import { isAlive, readBootId, readStat } from './procfs.ts'

test('a process that its parent does not wait for is dead, and so is another one of the same pid', async (t) => {
  // sleep knows nothing of the child that the shell had before it became sleep.
  const script = 'read line <&3 & echo $!; exec sleep 60 3<&-'
  const parent = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'inherit', 'pipe'] })
  t.after(() => parent.kill('SIGKILL'))
  const [line] = await once(createInterface(parent.stdio[1] as Readable), 'line')
  const boot_id = readBootId()
  const child = { ...readStat(Number(line))!, boot_id }
  assert.ok(isAlive(child, boot_id))
  await until('the shell is sleep', () => readFileSync(`/proc/${parent.pid}/comm`, 'utf8') === 'sleep\n')
  const word = parent.stdio[3] as Writable
  word.end()
  await until('it is a zombie', () => readStat(child.pid)?.state === 'Z')
  assert.ok(!isAlive(child, boot_id))

  const living = { ...readStat(parent.pid!)!, boot_id }
  assert.ok(isAlive(living, boot_id))
  assert.ok(!isAlive({ ...living, start_time: '1' }, boot_id))
  assert.ok(!isAlive(living, 'another boot'))
})
