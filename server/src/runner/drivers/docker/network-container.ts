// Puts the container of a lobby into a network namespace that was made before (../../network/).
//
// Podman takes the path of a namespace. Docker has no such option: a container can only join the network of another one.
// It finds that network by the process of the other container, at the moment of the start. So the platform has a network
// container: its process enters the namespace of a lobby, and then the lobby's container is started to join it. The same
// network container serves the next start. Containers that have joined do not need it any more.
//
// The network that the engine gave the network container has no interface but the loopback one. A lobby that a fault of
// the engine puts there reaches nothing.
import { existsSync } from 'node:fs'
import type { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { withoutControls } from '@musterhost/contract'
import { pack } from 'tar-stream'
import { isInNamespace, NAMESPACES_FOLDER, namespacePath } from '../../network/namespace.ts'
import { type ContainerInspect, platformLabel } from './container.ts'
import { type EngineClient, ignoreDone } from './engine.ts'

/** How long a network container may take to enter a namespace. It takes a few milliseconds. */
const ENTER_MS_MAX = 5_000
const ENTER_POLL_MS = 2
/** Bytes of an error of a network container that are kept. */
const ERROR_BYTES_MAX = 500
const MEMORY_BYTES = 64 * 1024 ** 2
const PIDS_MAX = 16
/** The machine's programs and their libraries: the image of a network container has none. */
const PROGRAM_FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'] as const
const PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
/** Reads the name of a namespace, and becomes the same program in it. $0: this program. */
const PROGRAM = `read -r name && exec nsenter --net="${NAMESPACES_FOLDER}/$name" /bin/sh -c "$0" "$0"`
const PODMAN = 'Podman Engine'

/** Where a container is started. `start` sends the request that starts it. */
export type NetworkEntry = { network_mode: string; run: (start: () => Promise<unknown>) => Promise<void> }

/** The network of the machine. */
export const MACHINE: NetworkEntry = {
  network_mode: 'host',
  async run(start) {
    await start()
  },
}

type Opened = { id: string; pid: number; socket: Socket; error: () => string }

export class NetworkContainer {
  readonly #engine: EngineClient
  readonly #platform: string
  readonly #takes_paths: boolean
  #opened: Promise<Opened | null> = Promise.resolve(null)
  /** The last start, in the order of their requests. */
  #last: Promise<unknown> = Promise.resolve()

  /** Removes what a killed runner has left. */
  static async open(engine: EngineClient, platform: string): Promise<NetworkContainer> {
    type Version = { Components?: { Name: string }[] | null }
    const { Components } = await engine.call<Version>('GET', '/version')
    const takes_paths = (Components ?? []).some(({ Name }) => Name === PODMAN)
    const container = new NetworkContainer(engine, platform, takes_paths)
    await container.#remove()
    if (!takes_paths) await importImage(engine, nameOf(platform))
    return container
  }

  private constructor(engine: EngineClient, platform: string, takes_paths: boolean) {
    this.#engine = engine
    this.#platform = platform
    this.#takes_paths = takes_paths
  }

  /** Throws an Error with the reason where the engine cannot start containers in this namespace. */
  async tryNamespace(namespace: string): Promise<void> {
    const entry = await this.entryTo(namespace)
    await entry.run(() => Promise.resolve())
  }

  async entryTo(namespace: string): Promise<NetworkEntry> {
    if (this.#takes_paths) return { ...MACHINE, network_mode: `ns:${namespacePath(namespace)}` }
    const opened = await this.#open()
    return { network_mode: `container:${opened.id}`, run: (start) => this.#startIn(opened, namespace, start) }
  }

  /** Lobbies continue. With `image` the image is removed too. */
  async close({ image }: { image: boolean }): Promise<void> {
    const opened = await this.#opened.catch(() => null)
    opened?.socket.destroy()
    await this.#remove()
    if (!image || this.#takes_paths) return
    const path = `/images/${nameOf(this.#platform)}`
    await this.#engine.call('DELETE', path, { query: { force: '1' } }).catch(ignoreDone)
  }

  /** Makes the container again after it has ended, as with a restart of the engine. */
  async #open(): Promise<Opened> {
    const former = this.#opened.catch(() => null)
    const opening = former.then((known) => (known?.socket.destroyed === false ? known : this.#make()))
    this.#opened = opening
    return opening
  }

  /** One start at a time: the container is in one namespace. */
  async #startIn(opened: Opened, namespace: string, start: () => Promise<unknown>): Promise<void> {
    const turn = this.#last.then(async () => {
      await enter(opened, namespace)
      await start()
    })
    this.#last = turn.catch(() => undefined)
    await turn
  }

  async #make(): Promise<Opened> {
    await this.#remove()
    const query = { name: nameOf(this.#platform) }
    const body = bodyOf(this.#platform)
    const { Id } = await this.#engine.call<{ Id: string }>('POST', '/containers/create', { query, body })
    const streams = { stream: '1', stdin: '1', stdout: '1', stderr: '1' }
    const socket = await this.#engine.attach(`/containers/${Id}/attach`, streams)
    let error = ''
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => {
      error = (error + bytes.toString('latin1')).slice(-ERROR_BYTES_MAX)
    })
    socket.unref()
    await this.#engine.call('POST', `/containers/${Id}/start`)
    const found = await this.#engine.find<ContainerInspect>(`/containers/${Id}/json`)
    return { id: Id, pid: found?.State.Pid ?? 0, socket, error: () => printable(error) }
  }

  async #remove(): Promise<void> {
    const path = `/containers/${nameOf(this.#platform)}`
    await this.#engine.call('DELETE', path, { query: { force: '1', v: '1' } }).catch(ignoreDone)
  }
}

async function enter({ pid, socket, error }: Opened, namespace: string): Promise<void> {
  socket.write(`${namespace}\n`)
  const end_ms = performance.now() + ENTER_MS_MAX
  while (pid === 0 || isInNamespace(pid, namespace) !== true) {
    if (socket.destroyed || performance.now() > end_ms) {
      socket.destroy()
      throw new Error(
        `the container engine does not share the network namespaces of this machine, or has ended (${error()})`,
      )
    }
    await sleep(ENTER_POLL_MS)
  }
}

/** The engine's frames have a header of eight bytes. */
const printable = (text: string): string => withoutControls(text).trim() || 'no output'

/** Name of the container and of its image. */
const nameOf = (platform: string): string => `${platform}-network`

/** An image of empty folders. */
async function importImage(engine: EngineClient, name: string): Promise<void> {
  if ((await engine.find(`/images/${name}/json`)) !== null) return
  const tar = pack()
  for (const folder of [...PROGRAM_FOLDERS, NAMESPACES_FOLDER]) tar.entry({ name: `.${folder}/`, type: 'directory' })
  tar.finalize()
  await engine.send('POST', '/images/create', { fromSrc: '-', repo: name, tag: 'latest' }, tar.pipe(new PassThrough()))
}

function bodyOf(platform: string): object {
  const folder = (path: string, options: object): object => {
    return { Type: 'bind', Source: path, Target: path, ReadOnly: true, ...options }
  }
  const programs = PROGRAM_FOLDERS.filter((path) => existsSync(path))
  return {
    Image: nameOf(platform),
    Entrypoint: ['/bin/sh', '-c', PROGRAM, PROGRAM],
    Env: [PATH],
    User: '0:0',
    // Joined containers have its name.
    Hostname: 'lobby',
    Labels: platformLabel(platform),
    OpenStdin: true,
    StdinOnce: false,
    HostConfig: {
      // The program itself is the process by which the engine finds the network.
      Init: false,
      NetworkMode: 'none',
      ReadonlyRootfs: true,
      Mounts: [
        ...programs.map((path) => folder(path, {})),
        // Namespaces that are made later appear in it.
        folder(NAMESPACES_FOLDER, { BindOptions: { Propagation: 'rslave' } }),
      ],
      CapDrop: ['ALL'],
      CapAdd: ['SYS_ADMIN'],
      SecurityOpt: ['no-new-privileges'],
      Memory: MEMORY_BYTES,
      MemorySwap: MEMORY_BYTES,
      PidsLimit: PIDS_MAX,
      LogConfig: { Type: 'none' },
      RestartPolicy: { Name: 'no' },
    },
  }
}
