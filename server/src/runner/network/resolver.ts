// The resolver that lobbies use: the first IPv4 nameserver of this machine. The stub of systemd-resolved accepts no packets
// of other interfaces, so its own upstream servers are used instead.
import { readFileSync } from 'node:fs'
import { isIPv4 } from 'node:net'
import { isGone } from '../../node/procfs.ts'

const STUB = '127.0.0.53'
const FILES = ['/etc/resolv.conf', '/run/systemd/resolve/resolv.conf'] as const

/** Null: the machine has no IPv4 nameserver. Lobbies then have no DNS. */
export function readResolver(files: readonly string[] = FILES): string | null {
  for (const file of files) {
    const [first] = nameserversIn(file).filter((address) => isIPv4(address) && address !== STUB)
    if (first !== undefined) return first
  }
  return null
}

function nameserversIn(file: string): string[] {
  try {
    return [...readFileSync(file, 'latin1').matchAll(/^[ \t]*nameserver[ \t]+(\S+)/gm)].map(
      ([, address = '']) => address,
    )
  } catch (error) {
    if (isGone(error)) return []
    throw error
  }
}
