// Measures the disk alone: this process writes and syncs a page of 8 KiB repeatedly, in the folder of its argument. When it
// is asked to end, it reports over the IPC channel.
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { clock, type Span } from './stalls.ts'

const PAUSE_MS = 10
const SYNCS_MAX = 100_000
const page = Buffer.alloc(8_192, 1)

const file = join(process.argv[2] ?? '.', 'disk-probe')
const fd = openSync(file, 'w')
const syncs: Span[] = []
let is_over = false
process.once('message', () => (is_over = true))
process.send!('ready')
while (!is_over && syncs.length < SYNCS_MAX) {
  const start_ms = clock()
  writeSync(fd, page, 0, page.length, 0)
  fdatasyncSync(fd)
  syncs.push({ start_ms, end_ms: clock() })
  await sleep(PAUSE_MS)
}
closeSync(fd)
rmSync(file)
process.send!(syncs)
