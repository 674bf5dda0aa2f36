// The matchmaker in a process whose rays are switched on and off while it runs. Two processes would differ by more than the
// cost of rays, through memory layout and compilation alone. Off is the same as MUSTER_RAYS_PER_SECOND=0: no ray is opened.
import { startRoles } from '@musterhost/server'
import { readConfig } from '@musterhost/server/config/read-config'

export type Switch = { kind: 'rays'; are_kept: boolean }
/** The response to a switch: processor time so far, in microseconds. */
export type Switched = { kind: 'switched'; cpu_us: number }

const running = await startRoles(readConfig(process.env))
const { recorder } = running.ctx
const { open } = recorder
process.on('message', async (message: Switch | { kind: 'stop' }) => {
  if (message.kind === 'stop') {
    await running.stop({ end_lobbies: true })
    process.exit(0)
  }
  recorder.open = message.are_kept ? open : () => null
  const { user, system } = process.cpuUsage()
  process.send!({ kind: 'switched', cpu_us: user + system } satisfies Switched)
})
process.send!({ kind: 'ready' })
