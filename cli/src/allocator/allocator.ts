// `muster allocator`: the allocation service of Agones at a port of this machine, for backends that allocate their servers there.
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { resolve } from 'node:path'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { inspectAuth } from '@musterhost/contract'
import { AllocationEndpoint, createAllocator } from '@musterhost/protocols/agones/allocation'
import { ProtocolSockets } from '@musterhost/protocols/serve'
import { EXIT, Failure } from '../failure.ts'
import type { GlobalOptions } from '../options.ts'
import { createCommandClient, openSession } from '../session.ts'
import type { Terminal } from '../terminal.ts'

const CONNECTIONS_MAX = 1_024
/** A client that begins no TLS is closed after this time. */
const HANDSHAKE_MS_MAX = 10_000
const LOOPBACK = /^(127\.|::1$|localhost$)/

export type AllocatorCommandOptions = GlobalOptions & {
  listen: string
  port: number
  cert?: string
  key?: string
  clientCa?: string
  mode: string
}

/** Runs until Ctrl-C or a signal. */
export async function runAllocator(terminal: Terminal, options: AllocatorCommandOptions): Promise<void> {
  const tls = await tlsOptions(terminal, options)
  const session = await openSession(terminal, options)
  const { agent } = await session.client.call(inspectAuth, {})
  if (agent.game_cloud === undefined) {
    throw new Failure('Allocations need a cloud token of a game.', {
      exit_code: EXIT.usage,
      remedy: 'Create one, and set MUSTER_TOKEN to it: muster tokens create',
    })
  }
  const { game_id } = agent.game_cloud
  const { name_id } = await session.namespace()
  const allocate = createAllocator({
    game_id,
    namespace: name_id,
    game_mode: options.mode,
    token: options.clientCa === undefined ? null : session.token,
    clientOf: (token) => createCommandClient(session.url, token, terminal.signal),
    elapsed: () => performance.now(),
  })
  const endpoint = new AllocationEndpoint(allocate, (line) => terminal.note(line))
  const sockets = new ProtocolSockets(CONNECTIONS_MAX)
  const server = serverWith(tls, (socket) => sockets.accept(socket, endpoint))
  const port = await listen(server, options)
  const shown = `${tls === null ? 'http' : 'https'}://${options.listen.includes(':') ? `[${options.listen}]` : options.listen}:${port}`
  terminal.note(`Allocations at ${shown} are lobbies of ${name_id} at ${session.url} (${session.origin}).`)
  terminal.note(
    options.clientCa === undefined
      ? 'Clients send a cloud token of the game: authorization: Bearer TOKEN'
      : 'Clients have a certificate of --client-ca, and need no token.',
  )
  if (terminal.is_json) terminal.json({ url: shown, port })
  terminal.outlives_output = true
  if (!terminal.signal.aborted) await once(terminal.signal, 'abort')
  server.close()
  sockets.forget(endpoint)
}

/** Null: no TLS. Throws for options that would leave the service open, or send tokens as clear text over a network. */
async function tlsOptions(
  { cwd }: Terminal,
  { cert, key, clientCa, listen: address }: AllocatorCommandOptions,
): Promise<TlsOptions | null> {
  const usage = (message: string, remedy: string): Failure => new Failure(message, { exit_code: EXIT.usage, remedy })
  if ((cert === undefined) !== (key === undefined))
    throw usage('--cert and --key belong together.', 'Give both, or none.')
  if (cert === undefined || key === undefined) {
    if (clientCa !== undefined) throw usage('--client-ca needs TLS.', 'Add --cert and --key.')
    if (!LOOPBACK.test(address))
      throw usage(
        `Without TLS, tokens would be clear text at ${address}.`,
        'Add --cert and --key, or listen on 127.0.0.1.',
      )
    return null
  }
  const [cert_pem, key_pem, ca_pem] = await Promise.all(
    [cert, key, clientCa].map((file) => (file === undefined ? undefined : readPem(resolve(cwd, file)))),
  )
  return {
    cert: cert_pem,
    key: key_pem,
    ALPNProtocols: ['h2', 'http/1.1'],
    handshakeTimeout: HANDSHAKE_MS_MAX,
    ...(ca_pem !== undefined && { ca: ca_pem, requestCert: true, rejectUnauthorized: true }),
  }
}

async function readPem(file: string): Promise<Buffer> {
  try {
    return await readFile(file)
  } catch (error) {
    throw new Failure(`${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`, {
      exit_code: EXIT.usage,
      remedy: 'Name a file in PEM.',
    })
  }
}

function serverWith(tls: TlsOptions | null, accept: (socket: Socket) => void): Server {
  if (tls === null) return createServer(accept)
  try {
    // A client without TLS, or without the certificate.
    return createTlsServer(tls, accept).on('tlsClientError', () => undefined)
  } catch (error) {
    throw new Failure(`The certificate or the key cannot be used (${(error as Error).message}).`, {
      exit_code: EXIT.usage,
      remedy: 'Give a certificate in PEM, and its own key.',
    })
  }
}

async function listen(server: Server, { listen: host, port }: AllocatorCommandOptions): Promise<number> {
  server.listen({ host, port })
  try {
    await once(server, 'listening')
  } catch (error) {
    throw new Failure(`The port ${port} of ${host} cannot be opened (${(error as NodeJS.ErrnoException).code}).`, {
      remedy: 'Choose another one: --port NUMBER',
    })
  }
  return (server.address() as { port: number }).port
}
