// Namespaces, as the matchmaker uses them: the current version's game modes, the limits, and the origins of their sites.
// Read from the database when needed, invalidated by NOTIFY, and never older than STALE_MS.
import { ApiError, type CaptchaConfig, type ErrorCode, type GameModeConfig, gameModesOf } from '@musterhost/contract'
import type { ExpressionBuilder } from 'kysely'
import { jsonObjectFrom } from 'kysely/helpers/postgres'
import type { AddressClass } from '../../addresses/ip-intelligence.ts'
import type { Context } from '../../context.ts'
import { Cached } from '../../database/cached.ts'
import type { Schema } from '../../database/schema.ts'
import { openConfig } from '../../tokens/version-secrets.ts'
import { CHANNELS } from '../../wire/channels.ts'
import type { RolloutShare } from '../../wire/rollout-share.ts'

/** A notification may be lost: after this a record is read again before it is used. */
const STALE_MS = 2_000
/** Namespaces in memory. */
const NAMESPACES_MAX = 10_000
/** Origins in memory, also those that stand for no namespace. */
const ORIGINS_MAX = 10_000
/** Versions in memory, current or not. */
const VERSIONS_MAX = 1_000

/** How many players one client may have in a namespace, by the class of its address. 0 lets nobody in. */
export type ClientLimits = Record<LimitName, number>
export type LimitName = 'max_players_per_client' | `max_players_per_client_${AddressClass}`

export type NamespaceRecord = ClientLimits & {
  namespace_id: string
  game_id: string
  version_id: string
  lobby_count_max: number
  /** From this time on the namespace is treated as deleted; null: never. */
  expire_ts: Date | null
  enable_domain_public_auth: boolean
  game_modes: GameModes
  captcha: CaptchaConfig | null
  /** Whether finds for earlier versions fill open lobbies of these. */
  fill_outdated_lobbies: boolean
  /** The roll-out under way, with the record for its clients; null: none. */
  rollout: (RolloutShare & { record: NamespaceRecord }) | null
}

export type GameModes = ReadonlyMap<string, GameModeConfig>

export type Namespaces = {
  /** Throws NAMESPACE_NOT_FOUND. */
  get: (namespace_id: string) => NamespaceRecord | Promise<NamespaceRecord>
  /** The record of this moment, also when the notification of a deploy or of a roll-out is under way. Throws NAMESPACE_NOT_FOUND. */
  current: (namespace_id: string) => Promise<NamespaceRecord>
  /** Whether the version is or was deployed there: a version that is only checked was not. */
  wasDeployed: (namespace_id: string, version_id: string) => Promise<boolean>
  /** The game modes of a version, current or not: lobbies outlive a deploy. Throws VERSION_NOT_FOUND. */
  gameModes: (version_id: string) => GameModes | Promise<GameModes>
  /** The namespace whose site has this origin, if the origin may stand for its public token; otherwise null. */
  ofOrigin: (origin: string) => string | null | Promise<string | null>
  close: () => void
}

export function createNamespaces(ctx: Context): Namespaces {
  const records = cacheOf<NamespaceRecord>(ctx, NAMESPACES_MAX, STALE_MS)
  const origins = cacheOf<string>(ctx, ORIGINS_MAX, STALE_MS)
  const versions = cacheOf<GameModes>(ctx, VERSIONS_MAX, Number.POSITIVE_INFINITY)
  const unsubscribe = ctx.listener.on(CHANNELS.namespaces, () => {
    records.clear()
    origins.clear()
  })

  const get = (id: string) =>
    living(
      ctx,
      records.get(id, () => readNamespace(ctx, id)),
    )

  return {
    get,
    async current(id) {
      const known = await get(id)
      const now = await readVersions(ctx, id)
      const is_same = now?.version_id === known.version_id && now.rollout_id === (known.rollout?.rollout_id ?? null)
      if (is_same) return known
      records.expire(id)
      return get(id)
    },
    wasDeployed: (id, version_id) => readWasDeployed(ctx, id, version_id),
    gameModes: (id) =>
      required(
        versions.get(id, () => readGameModes(ctx, id)),
        'VERSION_NOT_FOUND',
      ),
    ofOrigin(origin) {
      const label = siteLabelOf(ctx, origin)
      return label === null ? null : origins.get(label, () => readSiteLabel(ctx, label))
    },
    close: unsubscribe,
  }
}

/** Unknown keys are remembered as well. While the database is away, requests go on and wait at the journal. */
function cacheOf<T>({ elapsed, log }: Context, entries_max: number, age_ms: number): Cached<T | null> {
  return new Cached<T | null>({
    entries_max,
    elapsed,
    ageOf: () => age_ms,
    onStale: (error) =>
      log.warn({ err: error }, 'a namespace, version or origin cannot be read; its old record is used'),
  })
}

/** A value in memory is returned without a promise, which would cost each request a turn of the event loop. */
function required<T>(found: T | null | Promise<T | null>, code: ErrorCode): T | Promise<T> {
  if (found instanceof Promise) return found.then((value) => required<T>(value, code))
  if (found === null) throw new ApiError(code)
  return found
}

/** Throws NAMESPACE_NOT_FOUND for a namespace that is unknown or has expired. */
function living(
  ctx: Context,
  found: NamespaceRecord | null | Promise<NamespaceRecord | null>,
): NamespaceRecord | Promise<NamespaceRecord> {
  if (found instanceof Promise) return found.then((value) => living(ctx, value))
  if (found === null) throw new ApiError('NAMESPACE_NOT_FOUND')
  if (found.expire_ts !== null && found.expire_ts.getTime() <= ctx.now()) {
    const expire_ts = found.expire_ts.toISOString()
    throw new ApiError('NAMESPACE_NOT_FOUND', { expire_ts }, { message: `The namespace expired at ${expire_ts}.` })
  }
  return found
}

async function readNamespace(ctx: Context, namespace_id: string): Promise<NamespaceRecord | null> {
  const row = await ctx.db
    .selectFrom('namespaces')
    .innerJoin('versions', 'versions.version_id', 'namespaces.version_id')
    .where('namespace_id', '=', namespace_id)
    .select([
      'namespace_id',
      'namespaces.game_id',
      'namespaces.version_id',
      'lobby_count_max',
      'max_players_per_client',
      'max_players_per_client_hosting',
      'max_players_per_client_proxy',
      'max_players_per_client_tor',
      'max_players_per_client_vpn',
      'enable_domain_public_auth',
      'expire_ts',
      'versions.config',
      'versions.secrets',
    ])
    .select(rolloutOf)
    .executeTakeFirst()
  if (row === undefined) return null
  const { config: _config, secrets: _secrets, rollout, ...namespace } = row
  const record = { ...namespace, ...settingsOf(ctx, row), rollout: null }
  if (rollout === null) return record
  const { rollout_id, percent, ...version } = rollout
  return {
    ...record,
    rollout: {
      rollout_id,
      percent,
      record: { ...record, version_id: version.version_id, ...settingsOf(ctx, version) },
    },
  }
}

/** What the matchmaker uses of a version's config. */
function settingsOf(
  { seals }: Context,
  version: Parameters<typeof openConfig>[1],
): Pick<NamespaceRecord, 'game_modes' | 'captcha' | 'fill_outdated_lobbies'> {
  const config = openConfig(seals, version)
  const { captcha = null, fill_outdated_lobbies = false } = config.matchmaker ?? {}
  return { game_modes: gameModesOf(config), captcha, fill_outdated_lobbies }
}

/** The roll-out under way with its version, in one object. */
function rolloutOf(of: ExpressionBuilder<Schema, 'namespaces'>) {
  return jsonObjectFrom(
    of
      .selectFrom('rollouts')
      .innerJoin('versions as next', 'next.version_id', 'rollouts.version_id')
      .select(['rollout_id', 'percent', 'next.version_id', 'next.config', 'next.secrets'])
      .whereRef('rollouts.namespace_id', '=', 'namespaces.namespace_id')
      .where('end_ts', 'is', null),
  ).as('rollout')
}

async function readVersions(
  { db }: Context,
  namespace_id: string,
): Promise<{ version_id: string; rollout_id: string | null } | undefined> {
  return db
    .selectFrom('namespaces')
    .leftJoin('rollouts', (join) =>
      join.onRef('rollouts.namespace_id', '=', 'namespaces.namespace_id').on('end_ts', 'is', null),
    )
    .where('namespaces.namespace_id', '=', namespace_id)
    .select(['namespaces.version_id', 'rollout_id'])
    .executeTakeFirst()
}

async function readWasDeployed({ db }: Context, namespace_id: string, version_id: string): Promise<boolean> {
  const row = await db
    .selectFrom('namespace_versions')
    .where('namespace_id', '=', namespace_id)
    .where('version_id', '=', version_id)
    .select('deploy_id')
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

async function readGameModes(ctx: Context, version_id: string): Promise<GameModes | null> {
  const row = await ctx.db
    .selectFrom('versions')
    .where('version_id', '=', version_id)
    .select(['version_id', 'config', 'secrets'])
    .executeTakeFirst()
  return row === undefined ? null : gameModesOf(openConfig(ctx.seals, row))
}

/** Scheme, host and an optional port (Fetch standard, 3.1). */
const ORIGIN = /^https?:\/\/([a-z0-9.-]{1,253})(?::\d{1,5})?$/
/** A name id has no double dash, so a label has one reading. */
const SITE_LABEL = /^[a-z0-9]+(?:-[a-z0-9]+)*(?:--[a-z0-9]+(?:-[a-z0-9]+)*)?$/

/**
 * The part of the origin's host before the CDN's domain, or all of the host if it may be a custom domain. Null: the origin
 * is not one of a site here. The port is ignored.
 */
function siteLabelOf(ctx: Context, origin: string): string | null {
  const host = ORIGIN.exec(origin.toLowerCase())?.[1]
  const suffix = `.${ctx.config.domains.cdn}`
  if (host === undefined) return null
  // A custom domain has a dot, and a label has none.
  if (!host.endsWith(suffix)) return host.includes('.') ? host : null
  const label = host.slice(0, -suffix.length)
  return SITE_LABEL.test(label) ? label : null
}

/** `<game>` stands for the namespace prod of the game, `<game>--<namespace>` for any. */
async function readSiteLabel(ctx: Context, label: string): Promise<string | null> {
  if (label.includes('.')) return readDomain(ctx, label)
  const [game, namespace = 'prod'] = label.split('--')
  const row = await ctx.db
    .selectFrom('namespaces')
    .innerJoin('games', 'games.game_id', 'namespaces.game_id')
    .where('games.name_id', '=', game!)
    .where('namespaces.name_id', '=', namespace)
    .where('enable_domain_public_auth', '=', true)
    .select('namespace_id')
    .executeTakeFirst()
  return row?.namespace_id ?? null
}

/** Only a verified domain stands for its namespace. */
async function readDomain(ctx: Context, domain: string): Promise<string | null> {
  const row = await ctx.db
    .selectFrom('domains')
    .innerJoin('namespaces', 'namespaces.namespace_id', 'domains.namespace_id')
    .where('domain', '=', domain)
    .where('verification_status', '=', 'active')
    .where('enable_domain_public_auth', '=', true)
    .select('namespaces.namespace_id')
    .executeTakeFirst()
  return row?.namespace_id ?? null
}
