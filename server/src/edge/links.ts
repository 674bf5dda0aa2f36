// The edge's part of links: where nodes connect, and the way to the lobbies on them. Both end with the edge, and nodes connect
// again to the next one.
import { join } from 'node:path'
import type { Context } from '../context.ts'
import { openSocketFolder } from '../database/embedded/socket-folder.ts'
import { LinkListener } from '../links/platform/listener.ts'
import { LobbyPaths } from '../links/platform/lobby-paths.ts'
import { platformVersion } from '../platform-version.ts'

export type Links = { listener: LinkListener; paths: LobbyPaths; close: () => Promise<void> }

/** In the data folder: where the unix sockets are. */
const FOLDER_FILE = 'link-folder'

export async function openLinks(ctx: Context): Promise<Links> {
  const folder = await openSocketFolder(null, join(ctx.config.data_dir, 'keys', FOLDER_FILE))
  const listener = new LinkListener(ctx, join(folder, 'links'), platformVersion())
  const paths = new LobbyPaths(listener, join(folder, 'lobbies'))
  await listener.listen()
  return {
    listener,
    paths,
    async close() {
      paths.close()
      await listener.close()
    },
  }
}
