// The gateway of protocols: a program of its own, one for each runner, that serves the servers of lobbies in the protocols of
// other platforms (@musterhost/protocols). It runs only where a lobby needs it, and outlives the runner, so that no server
// loses its connection, its stream or its state when the runner is replaced.
//
// A lobby with a network of its own reaches it by a redirection of the ports that its SDK expects (network/redirect.ts), and
// is known by its address. Any other lobby has a listener of its own on this machine.
//
//   node gateway.ts <folder> <address>     `folder`: attachments.ts. `address`: where lobbies with own networks come to
//
// It ends when no lobby is left, when the runner says so, or when a newer gateway has the folder.
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:net'
import { loadProtocol, type ProtocolEndpoint, type ProtocolReport } from '@musterhost/protocols'
import { listenForOne, ProtocolSockets } from '@musterhost/protocols/serve'
import { codeOf, identityOf, isAlive } from '../../node/procfs.ts'
import { AttachedLobby } from './attached-lobby.ts'
import {
  type Attachment,
  attachedLobbies,
  readAttachment,
  readMemory,
  readState,
  removeAttachment,
  writeAttachment,
  writeMemory,
  writeState,
} from './attachments.ts'

/** After its end a lobby is served for as long as its process may take to end, and some more. */
const ENDED_SERVED_MS = 60_000
/** Time without a lobby after which the program ends. */
const IDLE_MS_MAX = 60_000
const LOOK_EVERY_MS = 5_000
/** An attached lobby whose process was never named is given up after this. */
const START_MS_MAX = 120_000
const LOBBIES_MAX = 4_096
/** Faults in the error file, which nothing shortens. */
const FAULTS_PRINTED_MAX = 100
const LOOPBACK = '127.0.0.1'

/** What the runner reads. `report`: null: nothing new. `lines`: for the log of the lobby. */
export type GatewayNews = { lobby_id: string; protocol: string; report: ProtocolReport | null; lines: string[] }

type Served = {
  attachment: Attachment
  lobby: AttachedLobby
  endpoint: ProtocolEndpoint
  server: Server | null
  since_ms: number
  ended_ms: number | null
}

class Gateway {
  readonly #folder: string
  readonly #sockets = new ProtocolSockets()
  /** By lobby id. */
  readonly #served = new Map<string, Served>()
  /** By the address of lobbies with networks of their own. */
  readonly #by_address = new Map<string, Served>()
  #idle_since_ms = performance.now()

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Returns its listener for lobbies with networks of their own. */
  listener(): Server {
    return createServer((socket) => {
      const served = this.#by_address.get(socket.remoteAddress ?? '')
      if (served === undefined) socket.destroy()
      else this.#sockets.accept(socket, served.endpoint)
    })
  }

  /** Serves a lobby from now on. Returns the port of its own listener; null: it has none. Again: nothing changes. */
  async attach(lobby_id: string): Promise<number | null> {
    const known = this.#served.get(lobby_id)
    if (known !== undefined) return known.server === null ? null : known.attachment.port
    const attachment = readAttachment(this.#folder, lobby_id)
    if (attachment === null) throw new Error('there is no such attachment')
    if (this.#served.size >= LOBBIES_MAX) throw new Error('the gateway serves as many lobbies as it can')
    const protocol = await loadProtocol(attachment.protocol)
    const lobby = new AttachedLobby(attachment, {
      remembered: readMemory(this.#folder, lobby_id),
      write: (value) => writeMemory(this.#folder, lobby_id, value),
      onEnd: () => this.#markEnded(lobby_id),
    })
    const endpoint = protocol.open(lobby, attachment.options, attachment.secret)
    const served: Served = { attachment, lobby, endpoint, server: null, since_ms: performance.now(), ended_ms: null }
    this.#served.set(lobby_id, served)
    if (attachment.address !== null) {
      this.#by_address.set(attachment.address, served)
      return null
    }
    const { server, port } = await listenForOne(this.#sockets, endpoint, { host: LOOPBACK, port: attachment.port })
    served.server = server
    served.attachment = { ...attachment, port }
    writeAttachment(this.#folder, served.attachment)
    return port
  }

  /** The lobby's first process has started. */
  started(lobby_id: string, process: Attachment['process']): void {
    const served = this.#served.get(lobby_id)
    if (served === undefined) return
    served.attachment = { ...served.attachment, process }
    writeAttachment(this.#folder, served.attachment)
  }

  news(): GatewayNews[] {
    return [...this.#served.values()].map(({ attachment, lobby }) => {
      const { lobby_id } = attachment.facts
      return { lobby_id, protocol: attachment.protocol, report: lobby.takeReport(), lines: lobby.takeLines() }
    })
  }

  /** Forgets lobbies that have ended. Returns whether the program is still needed. */
  look(): boolean {
    const now_ms = performance.now()
    for (const served of [...this.#served.values()]) {
      if (served.ended_ms === null && isGone(served, now_ms)) served.ended_ms = now_ms
      if (served.ended_ms !== null && now_ms - served.ended_ms >= ENDED_SERVED_MS) this.#forget(served)
    }
    if (this.#served.size > 0) this.#idle_since_ms = now_ms
    return now_ms - this.#idle_since_ms < IDLE_MS_MAX
  }

  #markEnded(lobby_id: string): void {
    const served = this.#served.get(lobby_id)
    if (served !== undefined) served.ended_ms ??= performance.now()
  }

  #forget({ attachment, lobby, endpoint, server }: Served): void {
    const { lobby_id } = attachment.facts
    this.#served.delete(lobby_id)
    const own = attachment.address === null ? undefined : this.#by_address.get(attachment.address)
    if (own?.endpoint === endpoint) this.#by_address.delete(attachment.address!)
    endpoint.close()
    this.#sockets.forget(endpoint)
    server?.close()
    lobby.close()
    removeAttachment(this.#folder, lobby_id)
  }
}

/** The platform does not say that the lobby has ended, but its process is gone, or never came. */
function isGone({ attachment, lobby, since_ms }: Served, now_ms: number): boolean {
  if (!lobby.is_unreachable) return false
  const { process } = attachment
  if (process === null) return now_ms - since_ms >= START_MS_MAX
  return process.start_time !== '' && !isAlive(process)
}

/** The runner's calls: POST /attach, POST /started, GET /news, POST /end. */
async function control(gateway: Gateway, request: IncomingMessage, response: ServerResponse): Promise<unknown> {
  const url = new URL(request.url ?? '/', 'http://gateway')
  const lobby_id = url.searchParams.get('lobby_id') ?? ''
  if (url.pathname === '/attach') return { port: await gateway.attach(lobby_id) }
  if (url.pathname === '/started') {
    const named = (name: string): string => url.searchParams.get(name) ?? ''
    const id = { pid: Number(named('pid')), start_time: named('start_time'), boot_id: named('boot_id') }
    gateway.started(lobby_id, id)
    return {}
  }
  if (url.pathname === '/news') return { news: gateway.news() }
  if (url.pathname === '/end') response.once('close', () => process.exit(0))
  return {}
}

function isAdmitted({ headers }: IncomingMessage, secret: string): boolean {
  const [given, wanted] = [Buffer.from(headers.authorization ?? ''), Buffer.from(`Bearer ${secret}`)]
  return given.length === wanted.length && timingSafeEqual(given, wanted)
}

/** The port of before, so that redirections stay true. Another program may have it: then any. */
async function listen(server: Server, host: string, port: number): Promise<number> {
  const attempt = (wanted: number): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen({ host, port: wanted }, () => {
        server.off('error', reject)
        resolve()
      })
    })
  await attempt(port).catch((error: unknown) => {
    if (port === 0 || codeOf(error) !== 'EADDRINUSE') throw error
    return attempt(0)
  })
  return (server.address() as { port: number }).port
}

async function run(folder: string, address: string): Promise<void> {
  const gateway = new Gateway(folder)
  const secret = randomBytes(32).toString('base64url')
  const port = await listen(gateway.listener(), address, readState(folder)?.port ?? 0)
  const controls = createHttp((request, response) => {
    if (!isAdmitted(request, secret)) {
      response.writeHead(401).end()
      return
    }
    control(gateway, request, response).then(
      (answer) => response.end(JSON.stringify(answer)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    )
  })
  for (const lobby_id of attachedLobbies(folder)) {
    await gateway.attach(lobby_id).catch((error: unknown) => console.error(`${lobby_id}: ${String(error)}`))
  }
  const own = identityOf(process.pid)!
  const control_port = await listen(controls, LOOPBACK, 0)
  writeState(folder, { process: own, control_port, port, secret })
  setInterval(() => {
    const is_replaced = readState(folder)?.secret !== secret
    if (is_replaced || !gateway.look()) process.exit(0)
  }, LOOK_EVERY_MS)
}

let faults = 0
// A fault in the requests of one lobby must not end the endpoints of all others.
process.on('uncaughtException', (error) => {
  if (faults++ < FAULTS_PRINTED_MAX) console.error(error)
})
const [folder = '', address = LOOPBACK] = process.argv.slice(2)
await run(folder, address)
