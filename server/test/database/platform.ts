// A stand-in for the platform: a process that keeps the embedded PostgreSQL of a folder and can be killed. It writes a
// line `{"url", "process_id"}` whenever the server is ready, starts it again when it dies, and stops it when its
// standard input ends. Run as: platform.ts DATA_DIR
import { once } from 'node:events'
import pino from 'pino'
import { startEmbedded } from '../../src/database/embedded/embedded.ts'

const STARTS_MAX = 5
const [data_dir = ''] = process.argv.slice(2)
const log = pino({ level: 'warn' }, pino.destination(2))
const ended = once(process.stdin.resume(), 'end').then(() => 'stop' as const)

for (let start = 0; start < STARTS_MAX; start++) {
  const embedded = await startEmbedded({ data_dir, log })
  process.stdout.write(`${JSON.stringify({ url: embedded.url, process_id: embedded.process_id })}\n`)
  if ((await Promise.race([ended, embedded.exited])) !== 'stop') continue
  await embedded.stop()
  break
}
