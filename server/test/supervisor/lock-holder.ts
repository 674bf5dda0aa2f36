// A process that takes the lock of a folder, reports it, and keeps the lock until it is killed. For lock.test.ts.
import { lockFolder } from '../../src/supervisor/lock.ts'

const folder = process.argv[2]
if (folder === undefined) throw new Error('Which folder?')
process.on('message', () => {
  try {
    lockFolder(folder, Date.now())
    process.send?.('held')
  } catch (error) {
    process.send?.(error instanceof Error ? error.message : String(error))
  }
})
process.send?.('here')
