// Monitors are started before their lobbies have a network.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Disks } from '../../src/runner/drivers/process/lobby-disk.ts'
import { startMonitor } from '../../src/runner/drivers/process/monitor.ts'
import { inNamespace } from '../../src/runner/network/namespace.ts'
import { markedName } from '../leftovers/run.ts'
import { lacking } from '../run/optional-programs.ts'

const DISK_BYTES = 2 ** 20
const MONITOR = join(import.meta.dirname, '../../src/runner/drivers/process/monitor.ts')
const END_MS_MAX = 30_000

test('a monitor enters a network that was made after it, and keeps none that was removed', {
  skip: lacking('root', 'ip') ?? false,
}, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'muster-monitor-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const before = makeNamespace()
  const { child, control, ready } = startMonitor([], [], new Disks('memory', folder).create(DISK_BYTES))
  t.after(() => {
    control.destroy()
    child.kill('SIGKILL')
  })
  await ready
  const later = makeNamespace()
  const mounts = (): string => readFileSync(`/proc/${child.pid}/mountinfo`, 'utf8')

  for (const name of [before, later])
    execFileSync('nsenter', [`--mount=/proc/${child.pid}/ns/mnt`, ...inNamespace(name), 'true'], { stdio: 'pipe' })
  assert.ok(mounts().includes(`${folder}/disk`), 'its disk is there')
  assert.ok(!readFileSync('/proc/self/mountinfo', 'utf8').includes(folder), 'and nowhere else')
  for (const name of [before, later]) execFileSync('ip', ['netns', 'del', name])
  assert.ok(!mounts().includes(before) && !mounts().includes(later))

  function makeNamespace(): string {
    const name = markedName('later')
    execFileSync('ip', ['netns', 'add', name])
    t.after(() => execFileSync('sh', ['-c', `ip netns del ${name} 2>/dev/null || true`]))
    return name
  }
})

test('a process waits for a monitor that is being made, and ends when nothing else keeps it', () => {
  const program = `import { startMonitor } from '${MONITOR}'
await startMonitor([], [], null).ready
console.log('ready')`
  // A program that ends while it waits has the exit code 13.
  const printed = execFileSync(process.execPath, ['--input-type=module', '--eval', program], { timeout: END_MS_MAX })
  assert.equal(String(printed), 'ready\n')
})
