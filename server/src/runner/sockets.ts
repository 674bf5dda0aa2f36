// What waits at this machine's ports to be taken in by whoever listens there, as the kernel tells it: connections that
// nobody has accepted, bytes of datagrams that nobody has read. It is nothing that a server would notice.
//
// The kernel makes its lists while they are read, and what is not read is not made. A machine may have a hundred thousand
// connections: listeners come before them, and no more is read than it takes to find those that are asked for.
import { open } from 'node:fs/promises'
import { endianness } from 'node:os'
import { isGone } from '../procfs.ts'

/** One for each family of addresses. */
const LISTS = { tcp: ['/proc/net/tcp', '/proc/net/tcp6'], udp: ['/proc/net/udp', '/proc/net/udp6'] }
/** A socket is a line of about 150 bytes. */
const LIST_BYTES_MAX = { tcp: 512 * 1024, udp: 4 * 1024 ** 2 }
/** Of TCP about ten lines: behind the last listener the kernel would go through all connections to fill what is asked for. */
const READ_BYTES = { tcp: 1_536, udp: 16 * 1024 }

/** A line is `sl: ADDRESS:PORT ADDRESS:PORT STATE UNSENT:WAITING ...` in hexadecimal, of UDP with what was dropped at its end. */
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

/** `address` as it is written, an IPv6 one without brackets. */
export type ListeningSocket = { transport: Transport; address: string; port: number }

/** `amount`: connections, or bytes of datagrams. `dropped`: datagrams for which there was no room, ever. */
export type LongPoll = { amount: number; dropped: number }

/** What waits at each of these ports at which somebody listens; where several do, at the first. None without such lists. */
export async function readListeners(transport: Transport, ports: Iterable<number>): Promise<Map<number, LongPoll>> {
  const found = new Map<number, LongPoll>()
  const missing = new Set(ports)
  for (const path of LISTS[transport]) {
    if (missing.size === 0) break
    await findIn(path, transport, missing, found)
  }
  return found
}

async function findIn(
  path: string,
  transport: Transport,
  missing: Set<number>,
  found: Map<number, LongPoll>,
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

/** The sockets that listen and have one of these inodes, of both families. None without such lists. */
export async function readListening(transport: Transport, inodes: ReadonlySet<string>): Promise<ListeningSocket[]> {
  const found: ListeningSocket[] = []
  for (const path of LISTS[transport]) {
    for await (const lines of readList(path, transport)) {
      for (const [, address = '', port = '', inode = ''] of lines.matchAll(OWNED_LISTENER[transport])) {
        if (!inodes.has(inode)) continue
        found.push({ transport, address: addressOf(address), port: Number.parseInt(port, 16) })
      }
    }
  }
  return found
}

/** Whole lines of a list, a few at a time, until the listeners end or enough has been read. */
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
