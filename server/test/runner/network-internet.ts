// Plays the internet for network-world.ts: accepts TCP on port 80 and responds to every datagram on port 53.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'

const server = createServer((socket) => socket.end(`${socket.remoteAddress}\n`).on('error', () => undefined))
await once(server.listen(80, '0.0.0.0'), 'listening')
// A socket for each address: a reply must come from the address that was asked.
for (const address of Object.values(networkInterfaces()).flatMap((items) => items ?? [])) {
  if (address.family !== 'IPv4') continue
  const names = createSocket('udp4', (message, from) => names.send(message, from.port, from.address))
  names.bind(53, address.address)
  await once(names, 'listening')
}
console.log('ready')
