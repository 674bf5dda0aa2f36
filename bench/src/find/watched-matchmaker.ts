// The matchmaker in a process that records when its event loop stood still and when it appended to the journal.
import { startRoles } from '@musterhost/server'
import { readConfig } from '@musterhost/server/config/read-config'
import { clock, type Span, type Stall, watchStalls } from './stalls.ts'

export type Watch = { kind: 'watch' } | { kind: 'report' }
export type Watched = { kind: 'watched'; stalls: Stall[]; appends: Span[] }

const APPENDS_MAX = 200_000

const running = await startRoles(readConfig(process.env))
const { pool } = running.ctx
let appends: Span[] = []
let endWatch = (): Stall[] => []

const query = pool.query.bind(pool) as (...args: unknown[]) => Promise<unknown>
pool.query = (async (...args: unknown[]) => {
  const is_append = (args[0] as { name?: string } | undefined)?.name === 'journal-append'
  const start_ms = clock()
  try {
    return await query(...args)
  } finally {
    if (is_append && appends.length < APPENDS_MAX) appends.push({ start_ms, end_ms: clock() })
  }
}) as typeof pool.query

process.on('message', async (message: Watch | { kind: 'stop' }) => {
  if (message.kind === 'stop') {
    await running.stop({ end_lobbies: true })
    process.exit(0)
  }
  const stalls = endWatch()
  endWatch = (): Stall[] => []
  if (message.kind === 'report') process.send!({ kind: 'watched', stalls, appends } satisfies Watched)
  appends = []
  if (message.kind === 'watch') endWatch = watchStalls()
})
process.send!({ kind: 'ready' })
