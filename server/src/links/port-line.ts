// The first line on the unix socket over which the edge of a joined node asks for a port of a lobby: `tcp LOBBY PORT`. The bytes
// after it go to the port; those of UDP are datagrams.ts.
import type { Socket } from 'node:net'

/** Characters of the line. */
const LINE_LENGTH_MAX = 128
const LINE = /^(tcp|udp) ([0-9a-f-]{36}) ([a-z0-9-]{1,64})$/

export type PortLine = { transport: 'tcp' | 'udp'; lobby_id: string; port_name: string }

export function portLine({ transport, lobby_id, port_name }: PortLine): string {
  return `${transport} ${lobby_id} ${port_name}\n`
}

/** Reads the line, and leaves the rest in the socket, paused. Resolves with null when it is another text, or none. */
export function readPortLine(socket: Socket): Promise<PortLine | null> {
  return new Promise((resolve) => {
    let text = ''
    const end = (line: PortLine | null): void => {
      socket.off('readable', read)
      socket.off('close', onClose)
      resolve(line)
    }
    const onClose = (): void => end(null)
    const read = (): void => {
      for (;;) {
        const chunk = socket.read() as Buffer | null
        if (chunk === null) return
        const at = chunk.indexOf(0x0a)
        text += chunk.toString('latin1', 0, at < 0 ? chunk.length : at)
        if (at < 0 && text.length <= LINE_LENGTH_MAX) continue
        if (at >= 0 && at + 1 < chunk.length) socket.unshift(chunk.subarray(at + 1))
        const [, transport, lobby_id = '', port_name = ''] = LINE.exec(text) ?? []
        end(transport === undefined ? null : { transport: transport as 'tcp' | 'udp', lobby_id, port_name })
        return
      }
    }
    socket.on('readable', read)
    socket.once('close', onClose)
    read()
  })
}
