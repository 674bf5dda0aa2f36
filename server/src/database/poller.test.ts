import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '../observe/log.ts'
import { createPoller } from './poller.ts'

test('a look that fails is made again after its pause, and none after the close', async () => {
  const log = createLog({ who: 'test', level: 'silent' })
  const succeeded = Promise.withResolvers<void>()
  let looks = 0
  const failOnce = async (): Promise<void> => {
    looks++
    if (looks === 1) throw new Error('no database')
    succeeded.resolve()
  }
  const poller = createPoller({ log }, { run: failOnce, failure: 'could not look', retry_ms: 5 })
  poller.wake()
  await succeeded.promise
  await poller.close()
  assert.equal(looks, 2)

  const failing = createPoller(
    { log },
    { run: () => Promise.reject(new Error('no database')), failure: '', retry_ms: 1 },
  )
  failing.wake()
  await failing.running()
  await failing.close()
  assert.equal(failing.running(), null)
})
