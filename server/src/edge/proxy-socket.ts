// The unix socket for a proxy on this machine. Lobbies share the machine's network, so no address distinguishes the proxy
// from a lobby; the permissions of a file do. A program that can open the socket is trusted to name its clients
// (X-Forwarded-For and X-Forwarded-Proto). The folder must therefore be closed to all other users. The socket belongs to
// the folder's group when the folder has the setgid bit.
import { once } from 'node:events'
import { chmodSync, type Stats, statSync, unlinkSync } from 'node:fs'
import { connect, type Server } from 'node:net'
import { dirname } from 'node:path'
import { StartError } from '../config/start-error.ts'

/** The folder's owner and group may connect. */
const SOCKET_MODE = 0o660
const OTHERS = 0o007

/** Throws a StartError when the folder is missing or open to everybody, or when another process listens there. */
export async function listenOnProxySocket(server: Server, path: string): Promise<void> {
  requireClosedFolder(dirname(path))
  await removeStaleSocket(path)
  const listening = once(server, 'listening')
  server.listen({ path, backlog: 1024 })
  try {
    await listening
  } catch (error) {
    throw new StartError(`MUSTER_EDGE_SOCKET cannot be made at ${path} (${codeOf(error)}).`, { cause: error })
  }
  chmodSync(path, SOCKET_MODE)
}

function requireClosedFolder(folder: string): void {
  const stats = statsOf(folder)
  if (stats === null || !stats.isDirectory()) {
    throw new StartError(
      `The folder ${folder} of MUSTER_EDGE_SOCKET is missing; docs/deploying.md says how to make it.`,
    )
  }
  if ((stats.mode & OTHERS) !== 0) {
    throw new StartError(
      `The folder ${folder} of MUSTER_EDGE_SOCKET is open to every user, lobbies too: chmod o-rwx ${folder}.`,
    )
  }
}

/** Removes the socket of an edge that was killed. */
async function removeStaleSocket(path: string): Promise<void> {
  const stats = statsOf(path)
  if (stats === null) return
  if (!stats.isSocket()) throw new StartError(`MUSTER_EDGE_SOCKET names ${path}, which is no socket.`)
  if (await isServed(path)) throw new StartError(`MUSTER_EDGE_SOCKET names ${path}, where another program listens.`)
  unlinkSync(path)
}

async function isServed(path: string): Promise<boolean> {
  const socket = connect(path)
  try {
    await once(socket, 'connect')
    return true
  } catch (error) {
    if (codeOf(error) === 'ECONNREFUSED' || codeOf(error) === 'ENOENT') return false
    throw error
  } finally {
    socket.destroy()
  }
}

function statsOf(path: string): Stats | null {
  return statSync(path, { throwIfNoEntry: false }) ?? null
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error)
}
