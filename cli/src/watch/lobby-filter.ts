// Which lobbies of a namespace a command is about: by game mode and region.
import { didYouMean } from '@musterhost/contract/suggestion'
import { Failure } from '../failure.ts'
import type { GameFull } from '../session.ts'

export type LobbyFilter = { mode?: string; region?: string }

/** The id of the region; null when any will do. Throws when the platform has no such region. */
export function requireKnown({ available_regions }: GameFull, { region }: LobbyFilter): string | null {
  if (region === undefined) return null
  const found = available_regions.find(({ region_id, region_name_id }) => [region_id, region_name_id].includes(region))
  if (found !== undefined) return found.region_id
  const names = available_regions.map(({ region_name_id }) => region_name_id)
  throw new Failure(`The platform has no region ${region}.${didYouMean(region, names)}`, {
    remedy: `Regions: ${names.join(', ')}`,
  })
}
