// Whether a listening socket is reached at the address that the edge uses. The kernel's list shows where a server listens, and
// not whether a socket at `::` takes IPv4 too. For tcp a connection proves it. For udp nothing is sent to the server: the
// kernel knows whether the socket takes IPv6 only, and `ss` of iproute2 shows it.
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Handle } from './drivers/driver.ts'
import { run } from './network/system-command.ts'
import type { Transport } from './sockets.ts'

/** A connection on one machine takes less than a millisecond. */
const CONNECT_MS_MAX = 250
/** After a port that was not reached. */
const RETRY_MS = 1_000

/** `is_certain`: the kernel's list alone shows that the socket takes IPv4. */
export type CheckedPort = { name: string; transport: Transport; hostname: string; port: number; is_certain: boolean }

export class Reachability {
  /** By port name. `again_ms`: null once the port was reached. */
  readonly #found = new WeakMap<Handle, Map<string, { again_ms: number | null }>>()

  /** `must_connect`: a tcp port counts only after a connection. A port that was reached once is not tried again. */
  async isReached(handle: Handle, checked: CheckedPort, must_connect: boolean): Promise<boolean> {
    // The runner may be on another machine than the edge.
    if (handle.node_id !== undefined) return true
    if (checked.is_certain && (checked.transport === 'udp' || !must_connect)) return true
    const found = this.#found.get(handle) ?? new Map<string, { again_ms: number | null }>()
    this.#found.set(handle, found)
    const before = found.get(checked.name)
    if (before?.again_ms === null) return true
    if (before !== undefined && performance.now() < before.again_ms) return false
    const is_reached =
      checked.transport === 'tcp' ? await connects(checked) : !(await isForIpv6Only(handle, checked.port))
    found.set(checked.name, { again_ms: is_reached ? null : performance.now() + RETRY_MS })
    return is_reached
  }
}

/** The connection ends at once. */
async function connects({ hostname, port }: CheckedPort): Promise<boolean> {
  const socket = connect({ host: hostname, port })
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(CONNECT_MS_MAX) })
    return true
  } catch {
    return false
  } finally {
    socket.on('error', () => {}).destroy()
  }
}

/** Whether all udp sockets at `::` with this number take IPv6 only. False on a machine without `ss`. */
async function isForIpv6Only({ network, pid }: Handle, port: number): Promise<boolean> {
  const there = network === null ? [] : ['nsenter', `--net=/proc/${pid}/ns/net`, '--']
  const [program = 'ss', ...args] = [...there, 'ss', '-H', '-6', '-u', '-a', '-n', '-e']
  const lines = await run([program, ...args]).then(
    (text) => text.split('\n').filter((line) => line.split(/\s+/)[3]?.endsWith(`:${port}`)),
    () => [],
  )
  return lines.length > 0 && lines.every((line) => line.includes('v6only:1'))
}
