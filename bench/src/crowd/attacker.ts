// Attacking clients, each with its own address. They run in a separate process, so that the clients that are measured stay
// fast. The process receives over the IPC channel what to send. It opens its connections, and opens each again after it
// was closed. Every second it reports how many connections are open and how many responses it has read.
import { connect, type Socket } from 'node:net'

export type Attack = {
  port: number
  /** Client addresses, and connections of each. */
  clients: number
  each: number
  /** First bytes of a connection. Connections take these requests in turn. */
  requests: readonly string[]
  /** Further bytes of each connection per second. */
  drip_bytes: number
  /** Pause before the request is repeated; 0: it is sent once. */
  repeat_ms: number
}
export type AttackReport = { open: number; responses: number; opened: number }

/** Connections opened per millisecond: as fast as 64 machines together. */
const OPENED_PER_MS = 2
const REOPEN_MS = 1_000
const REPORT_MS = 500
const DRIP_MS = 1_000

const addressOf = (client: number): string => `127.0.50.${1 + client}`

process.once('message', (message) => attack(message as Attack))
process.on('disconnect', () => process.exit())

function attack({ port, clients, each, requests, drip_bytes, repeat_ms }: Attack): void {
  const open = new Set<Socket>()
  const total = clients * each
  const due = Array.from({ length: total }, (_, slot) => ({ slot, at: 0 }))
  let opened = 0
  let responses = 0

  function openOne(slot: number): void {
    const request = requests[slot % requests.length]!
    const socket = connect({ port, host: '127.0.0.1', localAddress: addressOf(slot % clients) })
    socket.on('error', () => {})
    socket.once('connect', () => {
      opened++
      open.add(socket)
      if (request !== '') socket.write(request, 'latin1')
    })
    const again = repeat_ms === 0 ? undefined : setInterval(() => socket.write(request, 'latin1'), repeat_ms)
    socket.on('data', (bytes: Buffer) => {
      if (bytes.toString('latin1', 0, 5) === 'HTTP/') responses++
    })
    socket.once('close', () => {
      clearInterval(again)
      open.delete(socket)
      due.push({ slot, at: performance.now() + REOPEN_MS })
    })
  }

  setInterval(() => {
    const now = performance.now()
    for (let count = 0; count < OPENED_PER_MS && due.length > 0 && due[0]!.at <= now; count++)
      openOne(due.shift()!.slot)
  }, 1)
  if (drip_bytes > 0) {
    const drip = 'x'.repeat(drip_bytes)
    setInterval(() => {
      for (const socket of open) socket.write(drip)
    }, DRIP_MS)
  }
  setInterval(() => process.send?.({ open: open.size, responses, opened } satisfies AttackReport), REPORT_MS)
}
