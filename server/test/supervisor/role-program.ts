// Replaces the program of a role in tests of its process. The name of its data folder decides whether it becomes ready,
// cannot start, or crashes.
import { basename } from 'node:path'

const fate = basename(process.env.MUSTER_DATA ?? '')
if (fate === 'cannot-start') process.send?.({ kind: 'failed', reason: 'Port 1 is taken.' }, () => process.exit(1))
else if (fate === 'crashes') throw new Error('a fault of ours')
else {
  process.on('message', () => process.disconnect?.())
  process.send?.({ kind: 'ready', role: process.argv[2], address: 'http://127.0.0.1:1' })
}
