// What waits at this machine's ports to be taken in by whoever listens there, as the kernel tells it: connections that
// nobody has accepted, bytes of datagrams that nobody has read. It is nothing that a server would notice.
import { open } from 'node:fs/promises'
import { isGone } from '../procfs.ts'

/** One for each family of addresses. */
const LISTS = { tcp: ['/proc/net/tcp', '/proc/net/tcp6'], udp: ['/proc/net/udp', '/proc/net/udp6'] }
/** A socket is a line of about 150 bytes. */
const LIST_BYTES_MAX = { tcp: 512 * 1024, udp: 4 * 1024 ** 2 }
const READ_BYTES = 16 * 1024

/** A line is `sl: ADDRESS:PORT ADDRESS:PORT STATE UNSENT:WAITING ...` in hexadecimal, of UDP with what was dropped at its end. */
const LISTENER = {
  tcp: /: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:0000 0A [0-9A-F]+:([0-9A-F]+) /g,
  udp: /: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:0000 07 [0-9A-F]+:([0-9A-F]+) .* (\d+) *$/gm,
}
const CONNECTION = /: [0-9A-F]+:[0-9A-F]{4} [0-9A-F]+:[0-9A-F]{4} (?!0A)[0-9A-F]{2} /

export type Transport = keyof typeof LISTS

/** `amount`: connections, or bytes of datagrams. `dropped`: datagrams for which there was no room, ever. */
export type Waiting = { amount: number; dropped: number }

/**
 * What waits at each port at which somebody listens. Of TCP no more is read than the listeners, which come first: a machine
 * may have a hundred thousand connections, and what is not read of them is not made. Nothing where there is no such list.
 */
export async function readListeners(transport: Transport): Promise<Map<number, Waiting>> {
  const ports = new Map<number, Waiting>()
  for (const list of await Promise.all(LISTS[transport].map((path) => readList(path, transport)))) {
    for (const [, port = '', queue = '', dropped = '0'] of list.matchAll(LISTENER[transport])) {
      const number = Number.parseInt(port, 16)
      const others = ports.get(number) ?? { amount: 0, dropped: 0 }
      ports.set(number, {
        amount: others.amount + Number.parseInt(queue, 16),
        dropped: others.dropped + Number(dropped),
      })
    }
  }
  return ports
}

async function readList(path: string, transport: Transport): Promise<string> {
  let list = ''
  try {
    await using file = await open(path)
    while (list.length < LIST_BYTES_MAX[transport]) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(READ_BYTES), 0, READ_BYTES)
      const text = buffer.toString('latin1', 0, bytesRead)
      list += text
      if (bytesRead === 0 || (transport === 'tcp' && CONNECTION.test(text))) break
    }
  } catch (error) {
    if (!isGone(error)) throw error
  }
  return list
}
