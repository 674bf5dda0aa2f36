// Notices of what the audit log records: deploys, roll-outs, tokens, sign-ins, and targets that were paused. The log is read by
// time, with an overlap: an event is written as the last statement of its transaction, and is seen a moment later. What was
// read before is recognised by the id of its event.
import {
  type AuditChange,
  completeDeviceLink,
  createCloudToken,
  createGameNamespaceTokenDevelopment,
  createGameNamespaceTokenPublic,
  endRollout,
  type NoticeEvent,
  putNoticeTarget,
  setRollout,
  updateGameNamespaceVersion,
} from '@musterhost/contract'
import { clientKey } from '../../addresses/client-ip.ts'
import type { Context } from '../../context.ts'
import type { FoundNotice, NoticeSeverity } from './notice.ts'

/** Time that a transaction may need from its event to its commit, and by which clocks of machines may differ. */
const OVERLAP_MS = 120_000
const PAGE_ROWS_MAX = 500
/** Pages of one pass; the rest is for the next. */
const PAGES_MAX = 20
/** Earlier sign-ins of a person that are read. */
const SIGN_INS_MAX = 1_000
const SIGN_IN_PREFIX = 'auth.identity.'

const TOKEN_OPERATIONS = [
  createCloudToken,
  createGameNamespaceTokenPublic,
  createGameNamespaceTokenDevelopment,
  completeDeviceLink,
].map(({ id }) => id)
const OPERATIONS = [updateGameNamespaceVersion, setRollout, endRollout, putNoticeTarget].map(({ id }) => id)

type AuditRow = {
  event_id: string
  create_ts: Date
  group_id: string | null
  game_id: string | null
  namespace_id: string | null
  actor_kind: string
  user_id: string | null
  actor: string | null
  client_ip: string
  ray_id: string
  operation: string
  changes: AuditChange[]
}

/** `read_ms`: up to where everything was read. */
export type AuditNotices = { found: FoundNotice[]; read_ms: number }

/** `from_ms`: `read_ms` of the pass before. */
export async function findAuditNotices(ctx: Context, from_ms: number): Promise<AuditNotices> {
  let read_ms = await committedMs(ctx)
  const rows: AuditRow[] = []
  for (let page = 0; page < PAGES_MAX; page++) {
    const after = rows.at(-1)
    const found = await readPage(ctx, after?.create_ts ?? new Date(from_ms - OVERLAP_MS), after?.event_id ?? null)
    rows.push(...found)
    if (found.length < PAGE_ROWS_MAX) break
    if (page === PAGES_MAX - 1) read_ms = Math.min(read_ms, found.at(-1)!.create_ts.getTime() + OVERLAP_MS)
  }
  const versions = await versionNames(ctx, rows)
  const found: FoundNotice[] = []
  for (const row of rows) {
    const notice = await noticeOfEvent(ctx, row, versions)
    if (notice !== null) found.push(notice)
  }
  return { found, read_ms: Math.max(from_ms, read_ms) }
}

/** No event before this time is still uncommitted, but for the overlap. */
async function committedMs({ pool, now }: Context): Promise<number> {
  const { rows } = await pool.query<{ age_s: number | null }>(
    `select extract(epoch from clock_timestamp() - min(xact_start))::float8 as age_s from pg_stat_activity
      where datname = current_database() and backend_xid is not null and pid <> pg_backend_pid()`,
  )
  return now() - Math.max(0, Math.ceil((rows[0]!.age_s ?? 0) * 1_000))
}

async function readPage({ pool }: Context, from: Date, after_id: string | null): Promise<AuditRow[]> {
  const { rows } = await pool.query<AuditRow>(
    `select event_id, e.create_ts, group_id, game_id, namespace_id, actor_kind, e.user_id,
        coalesce(actor_name, users.display_name) as actor, client_ip, ray_id, operation, changes
      from audit_events e left join users on users.user_id = e.user_id
      where outcome = 'done' and (operation = any($3) or operation like '${SIGN_IN_PREFIX}%')
        and e.create_ts >= $1 and ($2::uuid is null or (e.create_ts, event_id) > ($1, $2))
      order by e.create_ts, event_id limit ${PAGE_ROWS_MAX}`,
    [from, after_id, [...OPERATIONS, ...TOKEN_OPERATIONS]],
  )
  return rows
}

type VersionNames = ReadonlyMap<string, string>

async function versionNames({ pool }: Context, rows: readonly AuditRow[]): Promise<VersionNames> {
  const ids = rows.flatMap(({ changes }) => afterOf(changes, 'version_id') ?? [])
  if (ids.length === 0) return new Map()
  const found = await pool.query<{ version_id: string; display_name: string }>(
    'select version_id, display_name from versions where version_id::text = any($1)',
    [ids],
  )
  return new Map(found.rows.map(({ version_id, display_name }) => [version_id, display_name]))
}

function afterOf(changes: readonly AuditChange[], member: string): string | undefined {
  return changes.find((change) => change.member === member)?.after
}

type Words = { event: NoticeEvent; severity: NoticeSeverity; title: string; text: string }

async function noticeOfEvent(ctx: Context, row: AuditRow, versions: VersionNames): Promise<FoundNotice | null> {
  const { group_id, game_id, namespace_id } = row
  const words = row.operation.startsWith(SIGN_IN_PREFIX) ? await signInWords(ctx, row) : wordsOf(row, versions)
  if (words === null) return null
  const target_id = afterOf(row.changes, 'target_id')
  return {
    ...words,
    source: `audit ${row.event_id}`,
    ts_ms: row.create_ts.getTime(),
    ray_id: row.ray_id,
    ...(group_id === null ? {} : { group_id }),
    ...(game_id === null ? {} : { game_id }),
    ...(namespace_id === null ? {} : { namespace_id }),
    ...(words.event === 'sign_in_new_place' && row.user_id !== null ? { user_id: row.user_id } : {}),
    ...(words.event === 'target_paused' && target_id !== undefined ? { not_target_id: target_id } : {}),
  }
}

function wordsOf({ operation, changes, actor, actor_kind }: AuditRow, versions: VersionNames): Words | null {
  const by = actor ?? (actor_kind === 'cloud' ? 'A cloud token' : actor_kind)
  const version = versions.get(afterOf(changes, 'version_id') ?? '') ?? 'A version'
  const after = (member: string) => afterOf(changes, member)
  if (TOKEN_OPERATIONS.includes(operation)) {
    const name = after('name') === undefined ? '' : ` named ${after('name')}`
    return info('token_made', 'A token was made', `${by} made a ${after('kind') ?? 'cloud'} token${name}.`)
  }
  switch (operation) {
    case updateGameNamespaceVersion.id: {
      const message = after('message') === undefined ? '' : ` ${after('message')}`
      return after('is_rollback') === 'true'
        ? { ...info('deploy_rolled_back', `Rolled back to ${version}`, `By ${by}.${message}`), severity: 'warning' }
        : info('deploy_begun', `${version} is deployed`, `By ${by}.${message}`)
    }
    case setRollout.id:
      if (after('rollout_id') === undefined) return null
      return info('rollout_begun', `${after('percent')} % of the clients get ${version}`, `By ${by}.`)
    case endRollout.id:
      return rolloutWords(after('outcome'), after('reason'), actor_kind === 'platform', by)
    default:
      return pauseWords(after, actor_kind)
  }
}

function rolloutWords(outcome: string | undefined, reason = '', is_platform: boolean, by: string): Words {
  if (outcome === 'promoted')
    return info('rollout_promoted', 'The version of the roll-out is deployed', `By ${by}. ${reason}`)
  if (!is_platform) return info('rollout_rolled_back', 'The roll-out was rolled back', `By ${by}. ${reason}`)
  return { event: 'rollout_failed', severity: 'error', title: 'The roll-out failed and was rolled back', text: reason }
}

/** A person who pauses a target knows it. */
function pauseWords(after: (member: string) => string | undefined, actor_kind: string): Words | null {
  if (actor_kind !== 'platform' || after('is_paused') !== 'true') return null
  const title = `The target ${after('name') ?? ''} of notices is paused`
  return { event: 'target_paused', severity: 'warning', title, text: after('pause_reason') ?? '' }
}

function info(event: NoticeEvent, title: string, text: string): Words {
  return { event, severity: 'info', title, text: text.trim() }
}

/** Null for a first sign-in, and for one from an address, or an IPv6 network, that the person has used. */
async function signInWords({ pool }: Context, row: AuditRow): Promise<Words | null> {
  if (row.user_id === null || row.client_ip === '-') return null
  const { rows } = await pool.query<{ client_ip: string }>(
    `select distinct client_ip from (
        select client_ip from audit_events
        where user_id = $1 and event_id < $2 and operation like '${SIGN_IN_PREFIX}%' and outcome = 'done'
        order by event_id desc limit ${SIGN_INS_MAX}
      ) as earlier`,
    [row.user_id, row.event_id],
  )
  const place = clientKey(row.client_ip)
  if (rows.length === 0 || rows.some(({ client_ip }) => clientKey(client_ip) === place)) return null
  const title = `${row.actor ?? 'A person'} signed in from a new address`
  return { event: 'sign_in_new_place', severity: 'warning', title, text: `From ${row.client_ip}.` }
}
