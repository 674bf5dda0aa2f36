// Reads from the kernel at which addresses processes listen: the sockets among their descriptors, and the lists of their
// network namespace.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { isGone } from '../../src/node/procfs.ts'

export type ListeningSocket = { pid: number; transport: 'tcp' | 'udp'; address: string; port: number }

/** The states in which TCP accepts connections and UDP takes datagrams of everybody. */
const LISTENING = { tcp: '0A', udp: '07' }

export function listeningSockets(pids: readonly number[]): ListeningSocket[] {
  return pids.flatMap((pid) => {
    const inodes = new Set(socketsOf(pid))
    return (['tcp', 'udp'] as const).flatMap((transport) =>
      [transport, `${transport}6`].flatMap((list) =>
        readLines(`/proc/${pid}/net/${list}`)
          .map((line) => line.trim().split(/\s+/))
          .filter((fields) => fields[3] === LISTENING[transport] && inodes.has(fields[9]!))
          .map(([, local = '']) => ({ pid, transport, ...readAddress(local) })),
      ),
    )
  })
}

/** The inodes of the sockets that a process holds. */
function socketsOf(pid: number): string[] {
  return unlessGone([], () =>
    readdirSync(`/proc/${pid}/fd`).flatMap((name) =>
      unlessGone([], () => /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${name}`))?.slice(1) ?? []),
    ),
  )
}

function readLines(path: string): string[] {
  return unlessGone([], () => readFileSync(path, 'latin1').split('\n').slice(1))
}

/** `ADDRESS:PORT` in hexadecimal, the address in words of the machine's own byte order. */
function readAddress(text: string): { address: string; port: number } {
  const [words = '', port = ''] = text.split(':')
  const bytes = words.match(/.{8}/g)!.flatMap((word) => [...Buffer.from(word, 'hex').reverse()])
  const address =
    bytes.length === 4
      ? bytes.join('.')
      : Array.from({ length: 8 }, (_, at) => ((bytes[2 * at]! << 8) | bytes[2 * at + 1]!).toString(16)).join(':')
  return { address, port: Number.parseInt(port, 16) }
}

/** A process may exit, or close a descriptor, while it is read. */
function unlessGone<T>(otherwise: T, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (isGone(error)) return otherwise
    throw error
  }
}
