// Where the server of a task listens. The sockets of another machine are read inside the container, by `cat` of its image,
// as the numbers by which the edge reaches them.
import { type ListeningSocket, listenersIn } from '../../sockets.ts'
import { type EngineClient, EngineError } from '../docker/engine.ts'

const LISTS = ['tcp', 'tcp6', 'udp', 'udp6'].map((name) => `/proc/net/${name}`)
/** How long a command in a container may take. */
const EXEC_MS_MAX = 5_000
const NO_PROGRAM = /executable file not found|no such file or directory": unknown|OCI runtime exec failed/
const LOOPBACK = /^(127\.|::1$|::ffff:7f)/

type Bindings = Record<string, { HostPort: string }[] | null>

/** Null: the image has no `cat`. Throws when the container has ended. */
export async function socketsOfTask(engine: EngineClient, container: string): Promise<ListeningSocket[] | null> {
  const text = await readLists(engine, container)
  if (text === null) return null
  type Found = { NetworkSettings: { Ports: Bindings | null } }
  const { NetworkSettings } = await engine.call<Found>('GET', `/containers/${container}/json`)
  return listenersIn(text).map((socket) => publishedAs(socket, NetworkSettings.Ports ?? {}))
}

/** A terminal has one stream without frames. */
async function readLists(engine: EngineClient, container: string): Promise<string | null> {
  try {
    const body = { AttachStdout: true, Tty: true, Cmd: ['cat', ...LISTS] }
    const { Id } = await engine.call<{ Id: string }>('POST', `/containers/${container}/exec`, { body })
    const start = { body: { Detach: false, Tty: true }, ms_max: EXEC_MS_MAX }
    const text = await engine.text('POST', `/exec/${Id}/start`, start)
    return NO_PROGRAM.test(text) ? null : text
  } catch (error) {
    if (error instanceof EngineError && NO_PROGRAM.test(error.message)) return null
    throw error
  }
}

/** Published ports reach every address of the container but its loopback. */
function publishedAs({ transport, address, port }: ListeningSocket, bindings: Bindings): ListeningSocket {
  if (LOOPBACK.test(address)) return { transport, address: 'localhost', port }
  const outside = bindings[`${port}/${transport}`]?.[0]?.HostPort
  return { transport, address: '0.0.0.0', port: outside === undefined ? port : Number(outside) }
}
