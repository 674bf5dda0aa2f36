// The implementations that the matchmaker serves. roles/matchmaker.ts opens what they need.
import type { Context } from '../../context.ts'
import type { GuestQuota } from '../../identity/guest-quota.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { identities } from '../identity/identities.ts'
import type { Implementation } from '../implement.ts'
import { allocations } from './allocate.ts'
import { events } from './events.ts'
import { explanations } from './explanations.ts'
import { lobbies } from './lobbies.ts'
import { lobbyAdmin } from './lobby-admin.ts'
import { ownLobbies } from './own-lobby.ts'
import { parties } from './parties.ts'
import { players } from './players.ts'
import { regions } from './regions.ts'
import { seats } from './seats.ts'
import { waiting } from './waiting.ts'

export function matchmakerOperations(ctx: Context, matchmaker: Matchmaker, quota: GuestQuota): Implementation[] {
  return [
    ...lobbies(matchmaker),
    ...allocations(matchmaker),
    ...ownLobbies(matchmaker),
    ...players(matchmaker),
    ...seats(matchmaker),
    ...regions(matchmaker),
    ...parties(matchmaker),
    ...events(matchmaker),
    ...identities(quota),
    ...lobbyAdmin(ctx, matchmaker),
    ...waiting(ctx, matchmaker),
    ...explanations(ctx, matchmaker),
  ]
}
