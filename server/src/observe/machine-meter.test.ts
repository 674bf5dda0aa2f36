import assert from 'node:assert/strict'
import { cpus } from 'node:os'
import { test } from 'node:test'
import { MachineMeter, readBusyMs } from './machine-meter.ts'

test('the use of a machine is known from the second sample on, and is read at most every 10 s', (t) => {
  if (process.platform !== 'linux') return t.skip('the use of a machine is read on Linux only')
  let elapsed_ms = 0
  const meter = new MachineMeter(() => elapsed_ms)
  assert.equal(meter.read(), null)
  const busy_ms = readBusyMs()!
  while (readBusyMs()! < busy_ms + 200) cpus()
  assert.equal(meter.read(), null)
  elapsed_ms += 10_000
  const use = meter.read()!
  assert.ok(use.cpu_cores >= 0.02, `${use.cpu_cores} cores`)
  assert.ok(use.memory_mb > 0 && use.memory_mb < use.memory_mb_max)
  elapsed_ms += 9_999
  assert.equal(meter.read(), use, 'the same sample')
})
