// Which platforms use their blocks, and one lock for all that claim or remove one. Both are abstract UNIX sockets: they
// belong to the network namespace, as the blocks do, and the kernel closes them with their process, however it ends.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Block } from './addresses.ts'

const LOCK = 'muster-blocks'
const LOCK_RETRY_MS = 20
/** Longest wait for another platform, which removes at most REMOVED_MAX blocks under the lock. */
const LOCK_WAIT_MS_MAX = 60_000
/** Bytes of an abstract name. Releases of Node differ in how they fill a shorter one. */
const NAME_BYTES = 107

/** Shows that this process uses the block. Several processes may, one after the other at a restart. */
export async function holdBlock(block: Block): Promise<() => Promise<void>> {
  const server = await listen(`${holderPrefix(block.interface)}${process.pid}`)
  return () => close(server)
}

/** Whether a process of this network namespace uses the block of this interface. */
export function isHeld(interface_name: string): boolean {
  return readFileSync('/proc/net/unix', 'latin1').includes(` @${holderPrefix(interface_name)}`)
}

/** Runs `work` while no other platform claims or removes a block. Throws an Error after LOCK_WAIT_MS_MAX. */
export async function withBlockLock<T>(work: () => Promise<T>): Promise<T> {
  const server = await lock()
  try {
    return await work()
  } finally {
    await close(server)
  }
}

async function lock(): Promise<Server> {
  for (let waited_ms = 0; waited_ms <= LOCK_WAIT_MS_MAX; waited_ms += LOCK_RETRY_MS) {
    try {
      return await listen(LOCK)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
      await sleep(LOCK_RETRY_MS)
    }
  }
  throw new Error('another platform on this machine has been claiming a lobby network for a minute')
}

const holderPrefix = (interface_name: string): string => `muster-${interface_name}-`

async function listen(name: string): Promise<Server> {
  const server = createServer((socket) => socket.destroy())
  server.listen(`\0${name.padEnd(NAME_BYTES, '-')}`)
  await once(server, 'listening')
  return server.unref()
}

async function close(server: Server): Promise<void> {
  if (!server.listening) return
  const closed = once(server, 'close')
  server.close()
  await closed
}
