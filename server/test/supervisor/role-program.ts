// Replaces the program of a role in tests of its process. The name of its data folder decides whether it becomes ready,
// cannot start, or crashes; `only-once` is ready only where no file says that it was.
import { existsSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

const folder = process.env.MUSTER_DATA ?? ''
const fate = basename(folder)
const was_ready = join(dirname(folder), 'was-ready')
const cannot_start = fate === 'cannot-start' || (fate === 'only-once' && existsSync(was_ready))
if (cannot_start) process.send?.({ kind: 'failed', reason: 'Port 1 is taken.' }, () => process.exit(1))
else if (fate === 'crashes') throw new Error('a fault of ours')
else {
  // As an edge does that has a successor: it ends when it has nothing left.
  process.on('SIGUSR1', () => process.disconnect?.())
  process.on('message', () => process.disconnect?.())
  if (fate === 'only-once') writeFileSync(was_ready, '')
  process.send?.({ kind: 'ready', role: process.argv[2], address: 'http://127.0.0.1:1' })
}
