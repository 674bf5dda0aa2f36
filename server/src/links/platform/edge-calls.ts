// What the edge of a joined node may call, beside what every node may. It gets the keys with which it recognises players and
// proves itself to the roles, and keys of certificates. It reaches the HTTP of api and matchmaker, ports of lobbies on other
// machines, and where links of other nodes begin.
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { Context } from '../../context.ts'
import { edgeProof } from '../../tokens/edge-proof.ts'
import { CERTIFICATE_KEYS } from '../../tokens/sealed-columns.ts'
import { type DatagramChannel, openDatagrams } from '../datagrams.ts'
import { joinStreams, LinkRefusal } from '../streams.ts'

type WantedPort = { lobby_id: string; port_name: string }
/** How the platform's edge reaches the ports of all lobbies. Null: no such lobby or port, or it cannot be reached. */
export type LobbyPorts = {
  connect: (wanted: WantedPort, client_key: string) => Promise<Socket | null>
  datagrams: (wanted: WantedPort, client_key: string) => Promise<DatagramChannel | null>
}

/** The keys that an edge of a joined node has: no token of the platform's users can be made with them. */
export function edgeKeys({ keys }: Context): { proof: string; player_keys: ReturnType<Context['keys']['playerKeys']> } {
  return { proof: edgeProof(keys), player_keys: keys.playerKeys() }
}

/** The private key of a stored certificate, PEM. */
export async function certificateKey({ db, seals }: Context, host: string): Promise<string> {
  const row = await db.selectFrom('certificates').select('private_key').where('host', '=', host).executeTakeFirst()
  const sealed = row?.private_key ?? null
  if (sealed === null) throw new LinkRefusal('CERTIFICATE_NOT_FOUND', 'There is no such certificate.', 404)
  return seals.open(CERTIFICATE_KEYS.purposeOf(host), sealed)
}

/** Joins the stream to a port of a lobby, wherever it runs. */
export async function bridgeLobbyPort(
  ports: LobbyPorts,
  node_id: string,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
): Promise<void> {
  const wanted = { lobby_id: String(headers['x-lobby']), port_name: String(headers['x-port-name']) }
  const client_key = `node ${node_id}`
  if (headers['x-transport'] === 'udp') {
    const channel = await ports.datagrams(wanted, client_key)
    if (channel === null) throw notReachable()
    stream.respond({ ':status': 200 })
    const far = openDatagrams(stream)
    far.onDatagram((datagram) => channel.send(datagram))
    channel.onDatagram((datagram) => far.send(datagram))
    far.onEnd(() => channel.close())
    channel.onEnd(() => far.close())
    return
  }
  const socket = await ports.connect(wanted, client_key)
  if (socket === null) throw notReachable()
  if (stream.destroyed) return void socket.destroy()
  stream.respond({ ':status': 200 })
  joinStreams(stream, socket)
}

function notReachable(): LinkRefusal {
  return new LinkRefusal('LOBBY_NOT_REACHABLE', 'The port of the lobby cannot be reached.', 404)
}
