// A process that sends notices, which kill.long.test.ts kills. Arguments: its settings as JSON, and the lease of a target in ms.
import { createSend } from '../../src/cloud/notices/send.ts'
import { startSender } from '../../src/cloud/notices/work.ts'
import { openContext } from '../../src/context.ts'
import { newId } from '../../src/ids.ts'
import { readTestConfig } from '../support/config.ts'

const WAKE_EVERY_MS = 200

const [settings = '{}', lease_ms = ''] = process.argv.slice(2)
const ctx = await openContext(readTestConfig(JSON.parse(settings) as Record<string, string>))
const sender = startSender({
  ...{ ctx, owner: newId(ctx.now()), send: createSend(ctx), signal: new AbortController().signal },
  times: { lease_ms: Number(lease_ms), backoff: 0 },
})
sender.wake()
setInterval(sender.wake, WAKE_EVERY_MS)
