// A visitor of another machine, for firewall.test.ts. It tries the closed ports of each host first and then the open ones,
// so what was not dropped has arrived before the last open port accepts. Ends with code 0 once all open TCP ports have
// accepted and none of the closed ones has.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect } from 'node:net'

type Ports = { tcp: number[]; udp: number[] }
const { hosts, OPEN, CLOSED } = JSON.parse(process.argv[2]!) as { hosts: string[]; OPEN: Ports; CLOSED: Ports }

for (const host of hosts) {
  const udp = createSocket(host.includes(':') ? 'udp6' : 'udp4')
  const send = (port: number) => new Promise((resolve) => udp.send('hello', port, host, resolve))
  const closed = CLOSED.tcp.map((port) => connect({ host, port }).on('error', () => {}))
  for (const port of CLOSED.udp) await send(port)
  for (const port of OPEN.tcp) await once(connect({ host, port }), 'connect')
  for (const port of OPEN.udp) await send(port)
  for (const socket of closed) {
    if (!socket.connecting) throw new Error(`${host} ${socket.remotePort} is not dropped`)
  }
}
process.exit(0)
