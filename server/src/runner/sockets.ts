// Reads the kernel's lists of sockets: who listens where, and the backlog of each listener (connections not accepted,
// bytes of datagrams not read). A server notices nothing of it.
//
// The kernel generates a list while it is read. A machine may have a hundred thousand connections, but listeners come
// first, so reading stops as soon as every requested listener is found.
import { open } from 'node:fs/promises'
import { endianness } from 'node:os'
import { isGone } from '../node/procfs.ts'

/** One file for each address family. */
const LISTS = { tcp: ['tcp', 'tcp6'], udp: ['udp', 'udp6'] }
/** Bytes read from one list. A socket is a line of about 150 bytes. */
const LIST_BYTES_MAX = { tcp: 512 * 1024, udp: 4 * 1024 ** 2 }
/**
 * Bytes of one read. For TCP about ten lines: to fill a larger buffer after the last listener, the kernel would go
 * through all connections.
 */
const READ_BYTES = { tcp: 1_536, udp: 16 * 1024 }

/** A line is `sl: ADDRESS:PORT ADDRESS:PORT STATE UNSENT:UNREAD ...` in hexadecimal. A UDP line ends with the dropped count. */
const LISTENER = {
  tcp: /: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:0000 0A [0-9A-F]+:([0-9A-F]+) /g,
  udp: /: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:0000 07 [0-9A-F]+:([0-9A-F]+) .* (\d+) *$/gm,
}
/** The same line up to the inode: after three pairs, the uid and a count. */
const OWNED_LISTENER = {
  tcp: /: ([0-9A-F]+):([0-9A-F]{4}) [0-9A-F]+:0000 0A (?:\S+ ){3} *\d+ +\d+ (\d+) /g,
  udp: /: ([0-9A-F]+):([0-9A-F]{4}) [0-9A-F]+:0000 07 (?:\S+ ){3} *\d+ +\d+ (\d+) /g,
}
const CONNECTION = /: [0-9A-F]+:[0-9A-F]{4} [0-9A-F]+:[0-9A-F]{4} (?!0A)[0-9A-F]{2} /

export type Transport = keyof typeof LISTS

/** `address`: in its usual text form, an IPv6 address without brackets. */
export type ListeningSocket = { transport: Transport; address: string; port: number }

/** `amount`: connections, or bytes of datagrams. `dropped`: datagrams dropped since the socket was opened. */
export type Backlog = { amount: number; dropped: number }

/**
 * The backlog of each of these ports that has a listener; of several listeners the first counts. Empty without lists.
 * `process`: whose network is read; this process's own by default.
 */
export async function readListeners(
  transport: Transport,
  ports: Iterable<number>,
  process: number | 'self' = 'self',
): Promise<Map<number, Backlog>> {
  const found = new Map<number, Backlog>()
  const missing = new Set(ports)
  for (const list of LISTS[transport]) {
    if (missing.size === 0) break
    await findIn(`/proc/${process}/net/${list}`, transport, missing, found)
  }
  return found
}

async function findIn(
  path: string,
  transport: Transport,
  missing: Set<number>,
  found: Map<number, Backlog>,
): Promise<void> {
  for await (const lines of readList(path, transport)) {
    for (const [, port = '', amount = '', dropped = '0'] of lines.matchAll(LISTENER[transport])) {
      const number = Number.parseInt(port, 16)
      if (missing.delete(number)) {
        found.set(number, { amount: Number.parseInt(amount, 16), dropped: Number(dropped) })
      }
    }
    if (missing.size === 0) return
  }
}

/**
 * The listening sockets with one of these inodes, of both address families, in the network of the process. Empty without
 * lists.
 */
export async function readListening(
  transport: Transport,
  inodes: ReadonlySet<string>,
  process: number | 'self' = 'self',
): Promise<ListeningSocket[]> {
  const found: ListeningSocket[] = []
  for (const list of LISTS[transport]) {
    for await (const lines of readList(`/proc/${process}/net/${list}`, transport)) {
      for (const [, address = '', port = '', inode = ''] of lines.matchAll(OWNED_LISTENER[transport])) {
        if (!inodes.has(inode)) continue
        found.push({ transport, address: addressOf(address), port: Number.parseInt(port, 16) })
      }
    }
  }
  return found
}

/** All listening sockets in the texts of such lists, of both transports: no TCP socket is in the state of a UDP listener. */
export function listenersIn(text: string): ListeningSocket[] {
  return (['tcp', 'udp'] as const).flatMap((transport) =>
    [...text.matchAll(OWNED_LISTENER[transport])].map(([, address = '', port = '']) => {
      return { transport, address: addressOf(address), port: Number.parseInt(port, 16) }
    }),
  )
}

/** Whole lines of a list, a few at a time, until the listeners end or the limit is reached. */
async function* readList(path: string, transport: Transport): AsyncGenerator<string> {
  try {
    await using list = await open(path)
    const buffer = Buffer.allocUnsafe(READ_BYTES[transport])
    let rest = ''
    for (let read_bytes = 0; read_bytes < LIST_BYTES_MAX[transport]; ) {
      const { bytesRead } = await list.read(buffer, 0, buffer.length)
      if (bytesRead === 0) break
      read_bytes += bytesRead
      const text = rest + buffer.toString('latin1', 0, bytesRead)
      const end = text.lastIndexOf('\n') + 1
      rest = text.slice(end)
      const lines = text.slice(0, end)
      yield lines
      if (transport === 'tcp' && CONNECTION.test(lines)) break
    }
  } catch (error) {
    if (!isGone(error)) throw error
  }
}

/** The kernel prints an address as words of 32 bits in the byte order of the machine. */
function addressOf(hex: string): string {
  const bytes = Buffer.from(hex, 'hex')
  if (endianness() === 'LE') bytes.swap32()
  if (bytes.length === 4) return bytes.join('.')
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(2 * index).toString(16))
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}
