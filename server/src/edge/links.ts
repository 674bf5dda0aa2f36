// The edge's part of links: where nodes connect, and the way to the lobbies on them. Both end with the edge, and nodes connect
// again to the next one.
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Context } from '../context.ts'
import { openSocketFolder } from '../database/embedded/socket-folder.ts'
import { LinkListener } from '../links/platform/listener.ts'
import { LobbyPaths } from '../links/platform/lobby-paths.ts'
import { platformVersion } from '../platform-version.ts'

export type Links = { listener: LinkListener; paths: LobbyPaths; close: () => Promise<void> }

/** In the data folder: where the unix sockets are. */
const FOLDER_FILE = 'link-folder'
/** Of the name of the folder of one edge. */
const FOLDER_BYTES = 4

/** `is_successor`: the edge before this one still has its sockets. Each edge has a folder of its own. */
export async function openLinks(ctx: Context, { is_successor }: { is_successor: boolean }): Promise<Links> {
  const parent = await openSocketFolder(null, join(ctx.config.data_dir, 'keys', FOLDER_FILE))
  if (!is_successor) for (const name of readdirSync(parent)) rmSync(join(parent, name), { recursive: true })
  const folder = join(parent, randomBytes(FOLDER_BYTES).toString('hex'))
  mkdirSync(folder, { mode: 0o700 })
  const listener = new LinkListener(ctx, join(folder, 'links'), platformVersion())
  const paths = new LobbyPaths(listener, join(folder, 'lobbies'))
  await listener.listen()
  return {
    listener,
    paths,
    async close() {
      paths.close()
      await listener.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
