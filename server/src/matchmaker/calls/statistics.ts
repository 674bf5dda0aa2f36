// How many players each region has, by game mode: seats that are reserved or connected, in lobbies of all versions. Each
// game mode of the current version lists all of its regions, empty or not.
import type { getPlayerStatistics, QueryOf, ResponseOf } from '@musterhost/contract'
import type { MatchmakerContext } from '../seats/context.ts'
import { regionsOf } from '../seats/lobby-plan.ts'
import { recordWith } from '../seats/version-pin.ts'

type Statistics = ResponseOf<typeof getPlayerStatistics>

export async function playerStatistics(
  ctx: MatchmakerContext,
  namespace_id: string,
  query: QueryOf<typeof getPlayerStatistics>,
): Promise<Statistics> {
  const namespace = await ctx.namespaces.get(namespace_id)
  const isCounted = (version_id: string) => !query.exclude_outdated || recordWith(namespace, version_id) !== null
  const lobbies = await ctx.books.commit(namespace_id, (book) => ({
    changes: [],
    result: [...book.lobbies.values()]
      .filter((lobby) => lobby.stop_ms === null && isCounted(lobby.version_id))
      .map(({ game_mode, region, players }) => ({ game_mode, region, player_count: players.size })),
  }))
  const counts = new Map<string, Map<string, number>>()
  for (const mode of namespace.game_modes.values()) {
    counts.set(mode.name, new Map(regionsOf(ctx.config, [mode]).map(({ name }) => [name, 0])))
  }
  for (const { game_mode, region, player_count } of lobbies) {
    const regions = counts.get(game_mode) ?? new Map<string, number>()
    counts.set(game_mode, regions.set(region, (regions.get(region) ?? 0) + player_count))
  }
  return {
    player_count: lobbies.reduce((sum, lobby) => sum + lobby.player_count, 0),
    game_modes: Object.fromEntries([...counts].map(([name, regions]) => [name, statisticsOf(regions)])),
  }
}

function statisticsOf(regions: ReadonlyMap<string, number>): Statistics['game_modes'][string] {
  return {
    player_count: regions.values().reduce((sum, count) => sum + count, 0),
    regions: Object.fromEntries([...regions].map(([name, player_count]) => [name, { player_count }])),
  }
}
