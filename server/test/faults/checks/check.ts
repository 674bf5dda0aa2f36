// All checks of a platform without an operation under way: the history against the tables, the laws against the journal, and
// `muster verify`.
import type { ClientBase } from 'pg'
import { runCommand } from '../../backup/commands.ts'
import { until } from '../../support/until.ts'
import type { History } from '../history.ts'
import type { FaultyPlatform } from '../platform.ts'
import { checkBill, checkRuns } from './billing.ts'
import { checkEntries } from './entries.ts'
import { Findings } from './findings.ts'
import type { JournalLaws } from './laws.ts'
import { checkDomains, checkParties, checkTokens, checkTokensInUse } from './management.ts'
import { checkProcesses, checkRunEnds } from './processes.ts'
import { checkSeats } from './seats.ts'
import { checkDeploys, checkUploads } from './uploads.ts'

export type Checked = { platform: FaultyPlatform; history: History; laws: JournalLaws }

/** Checks the running platform. Returns its findings. */
export async function checkPlatform(checked: Checked): Promise<readonly string[]> {
  const { platform, history } = checked
  const findings = new Findings()
  for (const text of history.contradictions) findings.add(text)
  await checkProcesses(platform, findings)
  await checkTokensInUse(platform, history, findings)
  await checkBill(platform, findings)
  await platform.withDatabase((db) => inSettledSnapshot(db, () => checkTables(db, checked, findings)))
  return findings.texts
}

/** Runs the checks within one snapshot, in which the tables reflect the whole journal. */
export async function checkTables(
  db: ClientBase,
  { platform, history, laws }: Checked,
  findings: Findings,
): Promise<void> {
  await checkSeats(db, history, findings)
  await laws.check(db, findings)
  await checkRunEnds(db, findings)
  await checkRuns(db, findings)
  await checkEntries(db, history, findings)
  await checkUploads(db, platform.folder, history, findings)
  await checkDeploys(db, history, findings)
  await checkTokens(db, history, findings)
  await checkDomains(db, history, findings)
  await checkParties(db, history, findings)
}

/** The matchmaker writes its tables a second after its journal: the work begins when they agree. What it writes is undone. */
export async function inSettledSnapshot(db: ClientBase, work: () => Promise<void>): Promise<void> {
  await until('the tables to reflect the journal', async () => {
    await db.query('begin isolation level repeatable read')
    const { rows } = await db.query<{ is_settled: boolean }>(
      `select not exists (
        select from journal j left join shards s on s.shard = j.shard
        group by j.shard, s.projected_seq having max(j.seq) > coalesce(s.projected_seq, 0)
      ) as is_settled`,
    )
    if (rows[0]!.is_settled) await work()
    await db.query('rollback')
    return rows[0]!.is_settled
  })
}

/** `muster verify`, of the platform as it is: running or stopped. */
export async function verify(platform: FaultyPlatform): Promise<readonly string[]> {
  const { code, output } = await runCommand(['verify'], { ...platform.settings })
  return code === 0 && /Nothing is wrong\./.test(output) ? [] : [`muster verify ended with ${code}:\n${output}`]
}
