// Which channels the rows of lobbies notify: that of the runner that starts, stops or watches the process, and that of the
// edges, which open or close its ports.
import type { Change } from '../../journal/changes.ts'
import { CHANNELS, channelOf } from '../../wire/channels.ts'
import type { RowOf } from './projected-tables.ts'

type LobbyRow = RowOf<'lobbies'>

/** The channels to notify. `rows`: by lobby id, as they are after the changes. */
export function wakesOfChanges(
  entries: readonly { changes: readonly Change[] }[],
  rows: ReadonlyMap<string, LobbyRow>,
): Set<string> {
  const changed: LobbyRow[] = []
  for (const { changes } of entries) {
    for (const change of changes) {
      const row = rows.get(urgentLobbyOf(change) ?? '')
      if (row !== undefined) changed.push(row)
    }
  }
  return wakesOfRows(changed)
}

/** As if each of these lobbies had started or stopped. */
export function wakesOfRows(rows: Iterable<LobbyRow>): Set<string> {
  const channels = new Set<string>()
  for (const { node_id, edge_ports } of rows) {
    channels.add(channelOf('lobbies', node_id))
    if (edge_ports.length > 0) channels.add(CHANNELS.lobby_ports)
  }
  return channels
}

/** The lobby whose process is to be started, stopped or watched; null: the change is not about one. */
function urgentLobbyOf(change: Change): string | null {
  switch (change.kind) {
    case 'lobby_created':
      return change.lobby.lobby_id
    case 'lobby_stopped':
    case 'lobby_stalled':
      return change.lobby_id
    default:
      return null
  }
}
