// `node --import musterhost-sdk/attach server.js`: a Node server becomes a lobby server without a change. It finds its port in
// PORT, is reported ready once it listens there, and sees only WebSockets and requests of players who have a seat.
import { Server as HttpServer } from 'node:http'
import { type ListenOptions, Server } from 'node:net'
import { isMainThread } from 'node:worker_threads'
import { guardHttp } from './attach-http.ts'
import { createPlayers } from './attach-players.ts'
import { type AttachSettings, readSettings } from './attach-settings.ts'
import { openLobby } from './server.ts'

/** The platform's proxy reaches lobbies there. A server that listens on all addresses could be reached past the proxy. */
const HOST = '127.0.0.1'

const log = (line: string): void => void process.stderr.write(`muster attach: ${line}\n`)

if (process.env.PLATFORM_TOKEN === undefined || process.env.PLATFORM_API_URL === undefined) {
  if (isMainThread) log('not started by the platform (no PLATFORM_TOKEN): the server runs as if this were not here.')
} else {
  attach(readSettings(process.env))
}

function attach(settings: AttachSettings): void {
  const lobby = openLobby()
  process.env.PORT = String(settings.port)
  const players = createPlayers({ lobby, hold_ms: settings.hold_ms, log })
  /** Servers that listen, but at no port that players reach. */
  const others = new WeakSet<Server>()
  guardHttp({ players, open_paths: settings.open_paths, isGuarded: (server) => !others.has(server) })

  const { listen } = Server.prototype
  Server.prototype.listen = function (this: Server, ...args: unknown[]) {
    this.prependOnceListener('listening', () => onListening(this))
    return (listen as (...args: unknown[]) => Server).apply(this, onHost(args, settings.ports))
  }

  let is_ready = false
  function onListening(server: Server): void {
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : undefined
    if (port === undefined || !settings.ports.has(port)) {
      others.add(server)
      if (port !== undefined && !is_ready) {
        log(`a server listens on port ${port}. Players reach only ${settings.port}: let it listen on process.env.PORT.`)
      }
      return
    }
    others.delete(server)
    if (!(server instanceof HttpServer)) {
      log(`the server at port ${port} is not one of node:http: its players are not checked. See musterhost-sdk/server.`)
    }
    if (port !== settings.port || is_ready) return
    is_ready = true
    lobby.ready().catch((error: Error) => log(`the lobby could not be reported ready: ${error.message}`))
  }
}

/** The arguments of `listen`, with HOST where they name a port of the lobby. */
function onHost(args: unknown[], ports: ReadonlySet<number>): unknown[] {
  const [first, ...rest] = args
  if (typeof first === 'object' && first !== null) {
    const { port } = first as ListenOptions
    return ports.has(Number(port)) ? [{ ...first, host: HOST }, ...rest] : args
  }
  if (!ports.has(Number(first))) return args
  const [host, ...others] = rest
  return [first, HOST, ...(typeof host === 'string' ? others : rest)]
}
