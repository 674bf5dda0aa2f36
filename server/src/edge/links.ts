// The edge's part of links. On the platform's machine: where nodes connect, and the way to the lobbies on them. On a node that has
// joined: the way through its own link to lobbies elsewhere, to the roles, and for links of other nodes. When the edge is
// replaced, nodes connect to the next one, and what runs over the former links runs on until this edge ends. Of several edge processes
// of the platform's machine the first has the links, and the others reach it through unix sockets.
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { instanceName } from '../config/processes.ts'
import type { Context } from '../context.ts'
import { openSocketFolder } from '../database/embedded/socket-folder.ts'
import { edgeSocketPath } from '../links/names.ts'
import { EdgeBridge } from '../links/platform/edge-bridge.ts'
import type { LobbyPorts } from '../links/platform/edge-calls.ts'
import { LinkListener } from '../links/platform/listener.ts'
import { carryThrough, carryToNodes, LobbyPaths } from '../links/platform/lobby-paths.ts'
import { platformVersion } from '../wire/platform-version.ts'
import type { Routes } from './routes/routes.ts'
import { openUpstreamChannel } from './streams/udp-upstream.ts'

/**
 * `path`: of the unix socket where links begin. `retire`: the next edge accepts connections. `carriedCount`: connections of players
 * over links of other edges. `is_end`: links end here, and not at the platform.
 */
export type Links = {
  readonly path: string
  paths: LobbyPaths
  is_end: boolean
  /** This edge has taken over from the one before. */
  announce: () => void
  retire: () => void
  carriedCount: () => number
  close: () => Promise<void>
}

/** In the data folder: where the unix sockets are. The supervisor of a joined node has the first one for its own. */
const FOLDER_FILES = { platform: 'link-folder', node: 'edge-link-folder' } as const
/** In the folder of the edge: names the folder with the sockets of the first process. */
const FIRST_FILE = 'first-edge'
/** Random bytes in the name of the folder of one edge. */
const FOLDER_BYTES = 4

type LinksOptions = {
  /** The edge before this one still has its sockets. Each edge has a folder of its own. */
  is_successor: boolean
  /** How edges of other nodes reach lobbies through this one. */
  routes: () => Routes
}

export async function openLinks(ctx: Context, { is_successor, routes }: LinksOptions): Promise<Links> {
  const { data_dir, link, process } = ctx.config
  const file = instanceName(link === null ? FOLDER_FILES.platform : FOLDER_FILES.node, process.number)
  const parent = await openSocketFolder(null, join(data_dir, 'keys', file))
  if (!is_successor) for (const name of readdirSync(parent)) rmSync(join(parent, name), { recursive: true })
  const folder = join(parent, randomBytes(FOLDER_BYTES).toString('hex'))
  mkdirSync(folder, { mode: 0o700 })
  const lobbies = join(folder, 'lobbies')
  if (link !== null) {
    const sockets = dirname(link)
    const paths = new LobbyPaths(
      carryThrough(() => edgeSocketPath(sockets, 'ports')),
      lobbies,
    )
    return throughAnother({ folder, paths, linkPath: () => edgeSocketPath(sockets, 'link') })
  }
  const first_file = join(data_dir, 'edge', FIRST_FILE)
  if (process.number > 0) {
    const ofFirst = (name: 'link' | 'ports'): string => edgeSocketPath(folderOfFirst(first_file), name)
    const paths = new LobbyPaths(
      carryThrough(() => ofFirst('ports')),
      lobbies,
    )
    return throughAnother({ folder, paths, linkPath: () => ofFirst('link') })
  }
  const lobby_ports = lobbyPorts(routes, () => paths)
  const listener: LinkListener = new LinkListener(ctx, {
    path: edgeSocketPath(folder, 'link'),
    version: platformVersion(),
    lobby_ports,
    is_successor,
  })
  const paths = new LobbyPaths(carryToNodes(listener), lobbies)
  await listener.listen()
  const bridge = process.count === 1 ? null : await EdgeBridge.open(edgeSocketPath(folder, 'ports'), lobby_ports)
  return {
    ...{ path: listener.path, paths, is_end: true },
    announce() {
      if (bridge !== null) nameFirst(first_file, folder)
    },
    retire: () => listener.retire(),
    carriedCount: () => listener.carried_count + (bridge?.count ?? 0),
    async close() {
      paths.close()
      bridge?.close()
      await listener.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

type ThroughAnother = { folder: string; paths: LobbyPaths; linkPath: () => string }

/** The links of an edge that reaches them through another process. */
function throughAnother({ folder, paths, linkPath }: ThroughAnother): Links {
  return {
    get path() {
      return linkPath()
    },
    paths,
    is_end: false,
    announce() {},
    retire() {},
    carriedCount: () => 0,
    async close() {
      paths.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function nameFirst(file: string, folder: string): void {
  writeFileSync(`${file}.new`, folder, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

/** Where the first process has its sockets. Before it has started, at a path where nothing listens. */
function folderOfFirst(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return dirname(file)
  }
}

function lobbyPorts(routes: () => Routes, paths: () => LobbyPaths): LobbyPorts {
  const wantedOf = (wanted: { lobby_id: string; port_name: string }) => ({ ...wanted, region: null })
  return {
    async connect(wanted, client_key) {
      const port = wantedOf(wanted)
      const address = (await routes().find(port, client_key)) ?? (await routes().stream(port, client_key))
      if (address === null) return null
      const { hostname: host, port: number, path } = address
      const target = path === undefined ? { host, port: number, noDelay: true } : { path }
      const socket = connect({ ...target, allowHalfOpen: true })
      const is_open = await new Promise<boolean>((resolve) => {
        socket.once('connect', () => resolve(true))
        socket.once('error', () => resolve(false))
      })
      if (!is_open) routes().forget(wanted.lobby_id)
      return is_open ? socket : null
    },
    async datagrams(wanted, client_key) {
      const address = await routes().stream(wantedOf(wanted), client_key)
      if (address === null || address.protocol !== 'udp') return null
      return openUpstreamChannel(address, paths())
    },
  }
}
