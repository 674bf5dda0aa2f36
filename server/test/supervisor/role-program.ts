// Stands in for the program of a role, where the test is of what happens to its process: it is ready, cannot start, or
// falls, as its data folder is called.
import { basename } from 'node:path'

const fate = basename(process.env.MUSTER_DATA ?? '')
if (fate === 'refuses') process.send?.({ kind: 'failed', reason: 'Port 1 is taken.' }, () => process.exit(1))
else if (fate === 'falls') throw new Error('a fault of ours')
else {
  process.on('message', () => process.disconnect?.())
  process.send?.({ kind: 'ready', role: process.argv[2], address: 'http://127.0.0.1:1' })
}
