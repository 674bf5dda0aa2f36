// Every migration there is, oldest first. One is added at the end and never changed afterwards: a database remembers the checksum
// of what it ran.
import { statements as baseline } from './0001-baseline.ts'
import { statements as contentEncodings } from './0102-content-encodings.ts'
import { statements as secretCreators } from './0103-secret-creators.ts'
import { statements as findDurations } from './0104-find-durations.ts'
import { statements as nodeUse } from './0105-node-use.ts'
import { statements as tickets } from './0106-tickets.ts'
import { statements as edgeRegions } from './0107-edge-regions.ts'
import { statements as lobbyCodes } from './0108-lobby-codes.ts'
import { statements as ratings } from './0109-ratings.ts'
import { statements as processNumbers } from './0110-process-numbers.ts'
import { statements as spectators } from './0111-spectators.ts'
import { statements as rollouts } from './0112-rollouts.ts'
import { statements as matchWaits } from './0113-match-waits.ts'
import { statements as protocolReports } from './0114-protocol-reports.ts'
import { statements as keptLobbies } from './0115-kept-lobbies.ts'
import { statements as notices } from './0116-notices.ts'
import { statements as signInProviders } from './0117-sign-in-providers.ts'
import { statements as statusPages } from './0118-status-pages.ts'
import { statements as schedules } from './0119-schedules.ts'
import { statements as restores } from './0120-restores.ts'
import { statements as erasures } from './0121-erasures.ts'
import { statements as passkeys } from './0122-passkeys.ts'
import { statements as restoredGames } from './0123-restored-games.ts'

/** `statements` run as one transaction, so nothing that forbids one (`create index concurrently`) can stand in them. */
export type Migration = { name: string; statements: string }

/** What makes the tables of the first release. */
export const BASELINE: Migration = { name: '0001-baseline', statements: baseline }

export const MIGRATIONS: readonly Migration[] = [
  BASELINE,
  { name: '0102-content-encodings', statements: contentEncodings },
  { name: '0103-secret-creators', statements: secretCreators },
  { name: '0104-find-durations', statements: findDurations },
  { name: '0105-node-use', statements: nodeUse },
  { name: '0106-tickets', statements: tickets },
  { name: '0107-edge-regions', statements: edgeRegions },
  { name: '0108-lobby-codes', statements: lobbyCodes },
  { name: '0109-ratings', statements: ratings },
  { name: '0110-process-numbers', statements: processNumbers },
  { name: '0111-spectators', statements: spectators },
  { name: '0112-rollouts', statements: rollouts },
  { name: '0113-match-waits', statements: matchWaits },
  { name: '0114-protocol-reports', statements: protocolReports },
  { name: '0115-kept-lobbies', statements: keptLobbies },
  { name: '0116-notices', statements: notices },
  { name: '0117-sign-in-providers', statements: signInProviders },
  { name: '0118-status-pages', statements: statusPages },
  { name: '0119-schedules', statements: schedules },
  { name: '0120-restores', statements: restores },
  { name: '0121-erasures', statements: erasures },
  { name: '0122-passkeys', statements: passkeys },
  { name: '0123-restored-games', statements: restoredGames },
]
