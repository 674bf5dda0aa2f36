// The map of the API: the implementations that the api serves, which opens what they need (roles/api.ts). Those of the matchmaker
// are in matchmaker/operations.ts, so that neither role loads the code of the other.
import type { ReadLimit } from '../analytics/read-limit.ts'
import type { AskProvider } from '../captcha/provider.ts'
import type { Restores } from '../cloud/backups/operations.ts'
import type { LogReaders } from '../cloud/lobbies/logs.ts'
import type { DeviceLinks } from '../cloud/tokens/device-links.ts'
import type { TextPacker } from '../cloud/uploads/pack-texts.ts'
import type { LoadSignInWork } from '../identity/providers/open.ts'
import type { Kv } from '../kv/entries.ts'
import { admin, type RunChecks } from './cloud/admin.ts'
import { analytics } from './cloud/analytics.ts'
import { audit } from './cloud/audit.ts'
import { billing } from './cloud/billing.ts'
import { bootstrap } from './cloud/bootstrap.ts'
import { builds } from './cloud/builds.ts'
import { deletion } from './cloud/deletion.ts'
import { development } from './cloud/development.ts'
import { devices } from './cloud/devices.ts'
import { domains } from './cloud/domains.ts'
import { finds } from './cloud/finds.ts'
import { games } from './cloud/games.ts'
import { groups } from './cloud/groups.ts'
import { images } from './cloud/images.ts'
import { invites } from './cloud/invites.ts'
import { live } from './cloud/live.ts'
import { lobbyInput } from './cloud/lobby-input.ts'
import { lobbyTimelines } from './cloud/lobby-timeline.ts'
import { lobbyUsages } from './cloud/lobby-usage.ts'
import { logs } from './cloud/logs.ts'
import { members } from './cloud/members.ts'
import { namespaceCdn } from './cloud/namespace-cdn.ts'
import { namespaces } from './cloud/namespaces.ts'
import { nodeInvitations } from './cloud/node-invitations.ts'
import { nodes } from './cloud/nodes.ts'
import { notices } from './cloud/notices.ts'
import { overview } from './cloud/overview.ts'
import { player_data } from './cloud/player-data.ts'
import { rays } from './cloud/rays.ts'
import { renaming } from './cloud/renaming.ts'
import { rollouts } from './cloud/rollouts.ts'
import { schedules } from './cloud/schedules.ts'
import { search } from './cloud/search.ts'
import { secrets } from './cloud/secrets.ts'
import { sites } from './cloud/sites.ts'
import { statusPages } from './cloud/status-pages.ts'
import { tiers } from './cloud/tiers.ts'
import { tokens } from './cloud/tokens.ts'
import { uploads } from './cloud/uploads.ts'
import { versions } from './cloud/versions.ts'
import { login } from './identity/login.ts'
import { passkeys } from './identity/passkeys.ts'
import { profile } from './identity/profile.ts'
import { sessions } from './identity/sessions.ts'
import { signInProviders } from './identity/sign-in-providers.ts'
import type { Implementation } from './implement.ts'
import { kvEntries } from './kv/entries.ts'
import { playerRatings, ratingsOfGames } from './matchmaker/ratings.ts'
import type { WatchedRecords } from './watched-records.ts'

/** What the api's operations share. */
export type ApiParts = {
  askProvider: AskProvider
  loadSignInWork: LoadSignInWork
  device_links: DeviceLinks
  records: WatchedRecords
  read_limit: ReadLimit
  packer: TextPacker
  log_readers: LogReaders
  runChecks: RunChecks
  restores: Restores
}

export function apiOperations(parts: ApiParts): Implementation[] {
  const { askProvider, loadSignInWork, device_links, records, read_limit, packer, log_readers, runChecks, restores } =
    parts
  return [
    ...bootstrap,
    ...tiers,
    ...login(askProvider, loadSignInWork),
    ...signInProviders(loadSignInWork),
    ...passkeys,
    ...sessions,
    ...devices(device_links),
    ...groups(records),
    ...overview,
    ...notices,
    ...schedules,
    ...player_data,
    ...billing,
    ...audit,
    ...admin(runChecks, restores),
    ...nodeInvitations,
    ...nodes,
    ...members(records),
    ...invites,
    ...games(records),
    ...namespaces,
    ...rollouts,
    ...domains,
    ...secrets,
    ...statusPages,
    ...namespaceCdn,
    ...analytics(read_limit),
    ...tokens,
    ...development,
    ...versions,
    ...builds,
    ...sites,
    ...uploads(packer),
    ...images,
    ...renaming,
    ...deletion,
    ...rays,
    ...search,
    ...logs(log_readers),
    ...lobbyInput,
    ...lobbyTimelines,
    ...lobbyUsages,
    ...live,
    ...finds,
    ...ratingsOfGames,
  ]
}

/** Operations of the api that pages of games call. They call no others. */
export function pageOperations(kv: Kv, records: WatchedRecords): Implementation[] {
  return [...kvEntries(kv), ...playerRatings(), ...profile(records)]
}
