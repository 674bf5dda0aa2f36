// Datagrams over a stream: each follows its length in two bytes. A datagram for which the stream has no room is dropped, as
// a network would: a game wants new datagrams, not a long queue of old ones.
import type { Duplex } from 'node:stream'

/** Bytes that wait in a stream. More datagrams are dropped. */
const WAITING_BYTES_MAX = 64 * 1024
const LENGTH_BYTES = 2

export type DatagramChannel = {
  /** Parts of one datagram. */
  send: (...parts: readonly Buffer[]) => void
  onDatagram: (receive: (datagram: Buffer) => void) => void
  /** Called once, when the channel has ended. */
  onEnd: (end: () => void) => void
  close: () => void
}

export function openDatagrams(stream: Duplex): DatagramChannel {
  stream.on('error', () => {})
  return {
    send(...parts) {
      if (stream.destroyed || stream.writableLength > WAITING_BYTES_MAX) return
      const length = Buffer.alloc(LENGTH_BYTES)
      length.writeUInt16BE(parts.reduce((sum, part) => sum + part.length, 0))
      stream.write(Buffer.concat([length, ...parts]))
    },
    onDatagram(receive) {
      let bytes: Buffer = Buffer.alloc(0)
      stream.on('data', (chunk: Buffer) => {
        bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk])
        while (bytes.length >= LENGTH_BYTES) {
          const end = LENGTH_BYTES + bytes.readUInt16BE(0)
          if (bytes.length < end) return
          receive(bytes.subarray(LENGTH_BYTES, end))
          bytes = bytes.subarray(end)
        }
      })
    },
    onEnd: (end) => void stream.once('close', end),
    close: () => void stream.destroy(),
  }
}
