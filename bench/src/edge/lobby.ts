// Writes a lobby like matchmaker and runner do, so that this bench only runs the edge. Its ports are those of the backend.
import { randomUUID } from 'node:crypto'
import type { BenchPlatform } from '../platform.ts'

export type BenchLobby = { lobby_id: string; tcp: number; udp: number }

/** `tcp` and `udp`: the ports of the edge that lead to the lobby. `index`: another one for each lobby of a bench. */
export async function insertLobby(
  { database }: BenchPlatform,
  { tcp: tcp_port, udp: udp_port, host = '127.0.0.1' }: { tcp: number; udp: number; host?: string },
  index = 0,
): Promise<BenchLobby> {
  const lobby_id = randomUUID()
  const spare = async (transport: 'tcp' | 'udp'): Promise<number> => {
    const row = await database.db
      .selectFrom('edge_ports')
      .select('port')
      .where('transport', '=', transport)
      .orderBy('port')
      .offset(index)
      .executeTakeFirstOrThrow()
    return row.port
  }
  const [tcp, udp] = [await spare('tcp'), await spare('udp')]
  const now = new Date()
  const edge_ports = [
    { name: 'tcp', transport: 'tcp', port: tcp },
    { name: 'udp', transport: 'udp', port: udp },
  ]
  await database.db
    .insertInto('lobbies')
    .values({
      ...{ lobby_id, namespace_id: randomUUID(), version_id: randomUUID(), shard: 0, game_mode: 'default' },
      ...{ region: 'local', publicity: 'public', is_custom: false, is_closed: false, tags: '{}', player_count: 0 },
      ...{ max_players_normal: 2, max_players_direct: 2, max_players_party: 2, create_ts: now, ready_deadline_ts: now },
      ...{ player_deadline_ms: 1, idle_grace_ms: 1, edge_ports: JSON.stringify(edge_ports) },
    })
    .execute()
  const at = (protocol: string, port: number) => ({ protocol, hostname: host, port })
  const ports = { game: at('http', tcp_port), tcp: at('tcp', tcp_port), udp: at('udp', udp_port) }
  await database.db
    .insertInto('lobby_runs')
    .values({
      lobby_id,
      runner_id: 'bench',
      driver: 'bench',
      handle: '{}',
      ports: JSON.stringify(ports),
      start_ts: now,
    })
    .execute()
  return { lobby_id, tcp, udp }
}
