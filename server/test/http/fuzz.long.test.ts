// Requests made from the schemas, a bounded number for each operation: whatever is sent, the answer is one that the
// contract documents, nothing breaks, and what is refused has changed nothing.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ERRORS, type ErrorBody, type ErrorCode, FORMATS, type Operation } from '@musterhost/contract'
import { OPERATIONS } from '@musterhost/contract/operations'
import { Ajv, type ValidateFunction } from 'ajv'
import fc from 'fast-check'
import { type RawBuilder, sql } from 'kysely'
import type { Change } from '../../src/journal/changes.ts'
import { SHARD_COUNT } from '../../src/journal/pages.ts'
import { READ_ROWS_MAX, readTails } from '../../src/journal/read.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { arbitraryOf, type Request, requestsOf } from './arbitrary.ts'
import { type Answer, requireRefusal } from './ask.ts'
import { askFor, callOf, hasBody, rightTokenOf } from './calls.ts'
import { COLLECTED } from './dump.ts'
import { UNKNOWN_ID } from './steps.ts'
import { createWorld, type World } from './world.ts'

const REQUESTS = Number(process.env.TEST_FUZZ_REQUESTS ?? 60)
const seed = process.env.TEST_FUZZ_SEED === undefined ? {} : { seed: Number(process.env.TEST_FUZZ_SEED) }

/** What the HTTP server itself may answer to any operation. */
const DOOR: readonly ErrorCode[] = [
  'VALIDATION_ERROR',
  'API_BAD_REQUEST',
  'API_NOT_FOUND',
  'API_BODY_TOO_LARGE',
  // Login codes are counted by mailbox too, and the same one comes again here.
  'API_RATE_LIMIT',
]

/** Of these not even the good call is let through: the thing is not there, or in use. */
const HELD: ReadonlySet<string> = new Set([
  'uploads.completeUpload',
  'logs.getRayPerfLogs',
  'games.gameLogoUploadComplete',
  'games.gameBannerUploadComplete',
  'games.builds.renameGameBuild',
  'games.cdn.renameGameCdnSite',
  'groups.delete',
  'games.deleteGame',
  'games.namespaces.deleteGameNamespace',
  'games.versions.deleteGameVersion',
  'games.builds.deleteGameBuild',
  'games.cdn.deleteGameCdnSite',
  'games.namespaces.removeNamespaceDomain',
  'games.matchmaker.deleteMatchmakerLobby',
  'games.matchmaker.exportLobbyLogs',
  'games.matchmaker.writeLobbyInput',
  'games.matchmaker.checkMatchmakerVersion',
  'games.secrets.removeGameSecret',
  'games.status.deleteStatusIncident',
  'notices.deleteTarget',
  'notices.testTarget',
  'notices.resend',
  'games.schedules.deleteSchedule',
  'games.schedules.runSchedule',
  'logs.explainRay',
  'groups.setMemberRole',
  'groups.kickMember',
  'groups.transferOwnership',
  'groups.leave',
  'groups.invites.consumeInvite',
  'auth.tokens.refreshIdentityToken',
  'auth.identity.link.completeVerification',
  'auth.identity.provider.start',
  'auth.identity.provider.complete',
  'signInProviders.delete',
  'auth.identity.passkey.complete',
  'auth.passkeys.start',
  'auth.passkeys.add',
  'auth.passkeys.rename',
  'auth.passkeys.remove',
  'auth.confirmation.start',
  'auth.confirmation.complete',
  'admin.runBackup',
  'admin.listStoredBackups',
  'admin.restoreBackup',
  'admin.restoreGame',
  'auth.sessions.end',
  'admin.revokeNodeInvitation',
  'nodes.remove',
  'parties.removeMember',
])

type Checks = {
  isBody: ValidateFunction
  isAnswer: ValidateFunction
  fingerprint: () => Promise<string>
  /** What the request before has left. */
  left: string
}

test('whatever is sent, the answer is one that the contract documents', async (t) => {
  const platform = await startPlatform(t)
  const world = await createWorld(platform)
  // No seat, lobby or party of an earlier request ends by time: whatever is journalled during a request is of that request.
  platform.holdClock()
  const ajv = new Ajv({ formats: FORMATS as Record<string, (text: string) => boolean>, strict: false })
  const ids = idsOf(world)
  const fingerprint = fingerprintOf(platform, await tablesOf(platform))
  for (const operation of inOrder()) {
    await t.test(operation.id, async () => {
      const checks = {
        isBody: ajv.compile(operation.body),
        isAnswer: ajv.compile(operation.response),
        fingerprint,
        left: '',
      }
      const requests = requestsOf(operation, callOf(world, operation), ids)
      const good = await askFor(world, operation, callOf(world, operation), rightTokenOf(world, operation))
      if (!HELD.has(operation.id)) requireAnswer(good, checks)
      checks.left = await fingerprint()
      const property = fc.asyncProperty(requests, (request) => tryOne(world, operation, checks, request))
      await fc.assert(property, { numRuns: REQUESTS, endOnFailure: true, ...seed })
      // What was tried may have blocked what comes next.
      await platform.setLimits(world.game, { max_players_per_client: 1_000_000, lobby_count_max: 1_000_000 })
      await restoreVersion(world)
    })
  }
})

/** A request with another version of the game is a good one. The next operations need the sections of the first version. */
async function restoreVersion({ platform, game: { game_id, namespace_id, version_id } }: World): Promise<void> {
  const namespace = platform.ctx.db.selectFrom('namespaces').where('namespace_id', '=', namespace_id)
  const deployed = await namespace.select('version_id').executeTakeFirstOrThrow()
  if (deployed.version_id !== version_id) await platform.putVersion({ game_id, namespace_id }, version_id)
}

/** A call that only a running lobby can make comes before the calls that stop the lobby. */
function inOrder(): Operation[] {
  const comesFirst = ({ id }: Operation): boolean => id === 'ratings.getPlayers'
  const stop = OPERATIONS.filter(({ id }) => id === 'lobbies.stop')
  const others = OPERATIONS.filter((operation) => !comesFirst(operation) && !stop.includes(operation))
  const index = others.findIndex(({ id }) => id === 'games.matchmaker.deleteMatchmakerLobby')
  return [...OPERATIONS.filter(comesFirst), ...others.slice(0, index), ...stop, ...others.slice(index)]
}

function idsOf({ game, other, seat, next_version_id, upload_id, spare_cloud_id }: World): string[] {
  const { game_id, group_id, namespace_id, version_id } = game
  const own = [
    game_id,
    group_id,
    namespace_id,
    version_id,
    next_version_id,
    upload_id,
    spare_cloud_id,
    seat.lobby.lobby_id,
  ]
  return [...own, other.game_id, other.namespace_id, UNKNOWN_ID]
}

async function tryOne(world: World, operation: Operation, checks: Checks, request: Request): Promise<void> {
  const { platform } = world
  const token = rightTokenOf(world, operation)
  const more = hasBody(operation) && request.body !== undefined ? { body: JSON.stringify(request.body) } : {}
  // The state of the tables is known from the previous request.
  const before = checks.left
  const last_seqs = await lastSeqs(platform)
  const answer = await askFor(world, operation, request, token, more)
  checks.left = await checks.fingerprint()
  if (answer.status !== 200) {
    const { code } = JSON.parse(answer.text) as ErrorBody
    assert.ok([...operation.errors, ...DOOR].includes(code as ErrorCode), `${code} is not documented: ${answer.text}`)
    assert.ok(answer.status < 500 || ERRORS[code as ErrorCode].status === 503, answer.text)
    const body = requireRefusal(answer, code as ErrorCode)
    if (code === 'VALIDATION_ERROR') requirePaths(body)
    assert.equal(checks.left, before, `${code} has changed something`)
    assert.deepEqual(await changesAfter(platform, last_seqs), [], `${code} has written to the journal`)
    return
  }
  requireAnswer(answer, checks)
  // An absent body is for the operation to judge, and JSON has no undefined.
  if (more.body !== undefined) {
    const sent: unknown = JSON.parse(more.body)
    const fits =
      sent === null || checks.isBody(sent) || checks.isBody(withoutNulls(sent, operation.body as ObjectSchema))
    assert.ok(fits, `taken, though it does not fit the contract: ${more.body}`)
  }
}

/** The last row of each shard's journal. */
async function lastSeqs({ ctx }: Platform): Promise<Map<number, number>> {
  const { rows } = await ctx.pool.query<{ shard: number; seq: number }>(
    'select shard::int, max(seq)::int as seq from journal group by shard',
  )
  const seqs = new Map(rows.map(({ shard, seq }) => [shard, seq]))
  return new Map(Array.from({ length: SHARD_COUNT }, (_, shard) => [shard, seqs.get(shard) ?? 0]))
}

/** The changes in later rows. */
async function changesAfter({ ctx }: Platform, after: Map<number, number>): Promise<Change[]> {
  const tails = await readTails(ctx.pool, after, READ_ROWS_MAX)
  return [...tails.values()].flat().flatMap(({ page }) => page.entries.flatMap((entry) => entry.changes))
}

type ObjectSchema = { required?: string[]; items?: ObjectSchema; properties?: Record<string, ObjectSchema> }

/** A null for an optional member counts as absent. */
function withoutNulls(value: unknown, schema: ObjectSchema | undefined): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item, schema?.items))
  const members = Object.entries(value).filter(([name, member]) => member !== null || schema?.required?.includes(name))
  return Object.fromEntries(members.map(([name, member]) => [name, withoutNulls(member, schema?.properties?.[name])]))
}

function requireAnswer({ headers, text }: Answer, { isAnswer }: Checks): void {
  assert.match(String(headers['x-ray-id']), /^[0-9a-f-]{36}$/)
  assert.match(headers['content-type'] ?? '', /^application\/json/)
  assert.ok(isAnswer(JSON.parse(text)), `${JSON.stringify(isAnswer.errors)}: ${text}`)
}

function requirePaths({ metadata }: ErrorBody): void {
  const errors = metadata.errors as { path: unknown; reason: unknown; message: unknown }[]
  assert.ok(errors.length > 0)
  for (const { path, reason, message } of errors) {
    assert.ok(Array.isArray(path) && path.every((part) => typeof part === 'string'), JSON.stringify(errors))
    assert.match(String(reason), /^[a-z][a-z_]*$/)
    assert.ok(typeof message === 'string' && message !== '')
  }
}

/** Of these the journal is asked instead: they are written behind it, and the lease and job runs all the time; every request may leave a ray. */
const BEHIND = [
  ...['lobbies', 'players', 'parties', 'shards', 'captcha_clients', 'draining_versions', 'journal', 'journal_readers'],
  ...[
    'matchmakers',
    'shard_leases',
    'port_claims',
    'shard_room',
    'place_room',
    'explanations',
    'find_durations',
    'platform_find_durations',
    'rollout_finds',
    'status_pages',
    'status_days',
    'notice_reader',
    'notice_states',
    'schedule_runs',
    'match_waits',
    'node_use',
    'ray_spans',
    'job_runs',
  ],
  ...['analytics_series', 'analytics_lobbies', 'analytics_players', 'analytics_events', 'analytics_roll_ups'],
  ...['analytics_exit_codes', 'analytics_lines'],
]
/** A day, or a width, of a table of these. */
const PARTITION = /^analytics_(events_\d{8}|(roll_ups|exit_codes)_\d+s)$/
/** What was claimed stays claimed, whatever comes after: a code of a mail counts the tries, a captcha is good once. The audit
 * log records refusals. */
const COUNTED = ['captcha_claims', 'email_verifications', 'audit_events']

/** A job checks each row periodically, and writes the result. */
const BY_JOBS = ['domains']
function writesOf(name: string): RawBuilder<unknown> {
  if (BY_JOBS.includes(name)) return sql`0`
  const collected = COLLECTED[name]
  if (collected === undefined) return sql`coalesce(max(xmin::text::bigint), 0)`
  return sql`coalesce(sum(hashtext((to_jsonb(${sql.table(name)}) - ${sql.lit(collected)})::text)), 0)`
}

/**
 * Returns a function whose result differs when a row of one of the tables was written. It is called for each request, so
 * PostgreSQL plans its statement once.
 */
function fingerprintOf({ ctx }: Platform, tables: readonly string[]): () => Promise<string> {
  const parts = tables.map((name) => {
    return sql`select ${sql.lit(name)} as name, count(*)::text || ':' || ${writesOf(name)} as state from ${sql.table(name)}`
  })
  const { sql: text, parameters } = sql`${sql.join(parts, sql` union all `)}`.compile(ctx.db)
  assert.equal(parameters.length, 0)
  return async () => {
    const { rows } = await ctx.pool.query<{ name: string; state: string }>({ name: 'fingerprint', text })
    return rows.map(({ name, state }) => `${name} ${state}\n`).join('')
  }
}

async function tablesOf({ ctx }: Platform): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select table_name as name from information_schema.tables where table_schema = 'public' order by 1`.execute(ctx.db)
  const names = rows.map(({ name }) => name)
  for (const name of [...BEHIND, ...COUNTED, ...BY_JOBS]) assert.ok(names.includes(name), `there is no table ${name}`)
  const behind = (name: string): boolean => BEHIND.some((table) => name === table || PARTITION.test(name))
  return names.filter((name) => !behind(name) && !COUNTED.includes(name))
}

test('the arbitraries make good requests and bad ones', () => {
  const ajv = new Ajv({ formats: FORMATS as Record<string, (text: string) => boolean>, strict: false })
  for (const operation of OPERATIONS.filter(
    ({ body }) => 'properties' in body && Object.keys(body.properties as object).length > 0,
  )) {
    const isBody = ajv.compile(operation.body)
    const good = fc
      .sample(arbitraryOf(operation.body, [UNKNOWN_ID]), { numRuns: 200, seed: 1 })
      .filter((body) => isBody(body))
    assert.ok(good.length > 20 && good.length < 180, `${operation.id}: ${good.length} of 200 are good`)
  }
})
