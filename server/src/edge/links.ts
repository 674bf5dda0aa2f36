// The edge's part of links. On the platform's machine: where nodes connect, and the way to the lobbies on them. On a node that has
// joined: the way through its own link to lobbies elsewhere, to the roles, and for links of other nodes. When the edge is
// replaced, nodes connect to the next one, and what runs over the former links runs on until this edge ends.
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import type { Context } from '../context.ts'
import { openSocketFolder } from '../database/embedded/socket-folder.ts'
import { edgeSocketPath } from '../links/names.ts'
import type { LobbyPorts } from '../links/platform/edge-calls.ts'
import { LinkListener } from '../links/platform/listener.ts'
import { carryToNodes, carryToPlatform, LobbyPaths } from '../links/platform/lobby-paths.ts'
import { platformVersion } from '../wire/platform-version.ts'
import type { Routes } from './routes/routes.ts'
import { openUpstreamChannel } from './streams/udp-upstream.ts'

/**
 * `path`: of the unix socket where links begin. `retire`: the next edge accepts connections. `carriedCount`: connections of players
 * over links of other edges. `is_end`: links end here, and not at the platform.
 */
export type Links = {
  path: string
  paths: LobbyPaths
  is_end: boolean
  retire: () => void
  carriedCount: () => number
  close: () => Promise<void>
}

/** In the data folder: where the unix sockets are. The supervisor of a joined node has the first one for its own. */
const FOLDER_FILES = { platform: 'link-folder', node: 'edge-link-folder' } as const
/** Random bytes in the name of the folder of one edge. */
const FOLDER_BYTES = 4

type LinksOptions = {
  /** The edge before this one still has its sockets. Each edge has a folder of its own. */
  is_successor: boolean
  /** How edges of other nodes reach lobbies through this one. */
  routes: () => Routes
}

export async function openLinks(ctx: Context, { is_successor, routes }: LinksOptions): Promise<Links> {
  const { data_dir, link } = ctx.config
  const file = link === null ? FOLDER_FILES.platform : FOLDER_FILES.node
  const parent = await openSocketFolder(null, join(data_dir, 'keys', file))
  if (!is_successor) for (const name of readdirSync(parent)) rmSync(join(parent, name), { recursive: true })
  const folder = join(parent, randomBytes(FOLDER_BYTES).toString('hex'))
  mkdirSync(folder, { mode: 0o700 })
  const lobbies = join(folder, 'lobbies')
  if (link !== null) {
    const sockets = dirname(link)
    const paths = new LobbyPaths(carryToPlatform(edgeSocketPath(sockets, 'ports')), lobbies)
    return {
      ...{ path: edgeSocketPath(sockets, 'link'), paths, is_end: false },
      retire() {},
      carriedCount: () => 0,
      async close() {
        paths.close()
        rmSync(folder, { recursive: true, force: true })
      },
    }
  }
  const listener: LinkListener = new LinkListener(ctx, {
    path: join(folder, 'links'),
    version: platformVersion(),
    lobby_ports: lobbyPorts(routes, () => paths),
    is_successor,
  })
  const paths = new LobbyPaths(carryToNodes(listener), lobbies)
  await listener.listen()
  return {
    ...{ path: listener.path, paths, is_end: true },
    retire: () => listener.retire(),
    carriedCount: () => listener.carried_count,
    async close() {
      paths.close()
      await listener.close()
      rmSync(folder, { recursive: true, force: true })
    },
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
