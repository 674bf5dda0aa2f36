// A TCP port of the lobby of `muster dev`. Where the edge checks the seats, the first line or the client's address admits a
// player before a byte reaches the server. A server that wants it gets the PROXY header.
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { proxyHeader, StreamAdmission, takeFirstLine, tokenOf } from '@musterhost/contract/edge'
import { clientKeyOf, clientOf, connectToServer, type DevPort, type OpenDevPort } from './port.ts'

export async function openTcpPort(port: DevPort): Promise<OpenDevPort> {
  const { seats } = port
  const admission = new StreamAdmission(seats, seats, seats)
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, (client) => {
    sockets.add(client)
    client.once('close', () => sockets.delete(client))
    client.on('error', () => {})
    // A raw protocol can state no reason.
    join(port, client, admission).catch(() => client.resetAndDestroy())
  })
  server.listen({ port: port.public, host: port.bind })
  await once(server, 'listening')
  return {
    async close() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

async function join(port: DevPort, client: Socket, by: StreamAdmission): Promise<void> {
  const { name, admission, lobby_id, player_network, pairs } = port
  const source = { address: clientOf(client.remoteAddress), port: client.remotePort ?? 0 }
  const local = { address: clientOf(client.localAddress), port: port.public }
  const entrance = { lobby_id, port: port.public, network: player_network }
  const end = (): void => void client.destroy()
  const line = admission?.by.includes('first_line') ? await takeFirstLine(client) : null
  const player =
    admission === null
      ? null
      : admission.by.includes('address')
        ? await by.byAddress(clientKeyOf(source.address), entrance, end)
        : await by.byToken(tokenOf(line), entrance, end)
  if (player !== null) {
    if (client.destroyed) player.leave()
    else client.once('close', player.leave)
  }
  const key = player === null || player.is_by_address ? null : `${player.player_id} ${name}`
  if (key !== null && admission?.has_several_connections !== true) await pairs.endOf(key)
  const upstream = await connectToServer(port.listening, player?.address ?? null, client)
  if (port.proxy_protocol) upstream.write(proxyHeader('stream', source, local, player))
  if (line !== null && admission?.keep_token) upstream.write(line)
  pairs.join(client, upstream, key)
}
