// What the matchmaker knows of namespaces: the current version's game modes, the limits, and which Origin stands for
// which. Read from the database when asked for, told of changes by NOTIFY, and never older than STALE_MS.
import { ApiError, type CaptchaConfig, type ErrorCode, type GameModeConfig, gameModesOf } from '@muster/contract'
import type { Context } from '../../context.ts'
import { openConfig } from '../../tokens/version-secrets.ts'
import type { ClientLimits } from '../seats/client-limit.ts'

/** A wake-up may be lost: after this a record is read again before it is used. */
const STALE_MS = 2_000
const NAMESPACES_MAX = 10_000
const ORIGINS_MAX = 10_000
const VERSIONS_MAX = 1_000

export type NamespaceRecord = ClientLimits & {
  namespace_id: string
  game_id: string
  version_id: string
  lobby_count_max: number
  enable_domain_public_auth: boolean
  game_modes: GameModes
  captcha: CaptchaConfig | null
}

export type GameModes = ReadonlyMap<string, GameModeConfig>

export type Namespaces = {
  /** Throws NAMESPACE_NOT_FOUND. */
  get: (namespace_id: string) => NamespaceRecord | Promise<NamespaceRecord>
  /** The game modes of a version, current or not: lobbies outlive a deploy. Throws VERSION_NOT_FOUND. */
  gameModes: (version_id: string) => GameModes | Promise<GameModes>
  /** The namespace whose site has this origin and lets it stand for the public token; else null. */
  ofOrigin: (origin: string) => string | null | Promise<string | null>
  close: () => void
}

type Cached<T> = { value: T; read_ms: number }

export function createNamespaces(ctx: Context): Namespaces {
  const records = createCache<NamespaceRecord>(ctx, NAMESPACES_MAX, (id) => readNamespace(ctx, id))
  const origins = createCache<string>(ctx, ORIGINS_MAX, (label) => readSiteLabel(ctx, label))
  const versions = createCache<GameModes>(ctx, VERSIONS_MAX, (id) => readGameModes(ctx, id), Number.POSITIVE_INFINITY)
  const unsubscribe = ctx.listener.on('namespaces', () => {
    records.clear()
    origins.clear()
  })

  return {
    get: (namespace_id) => required(records.get(namespace_id), 'NAMESPACE_NOT_FOUND'),
    gameModes: (version_id) => required(versions.get(version_id), 'VERSION_NOT_FOUND'),
    ofOrigin(origin) {
      const label = siteLabelOf(ctx, origin)
      return label === null ? null : origins.get(label)
    },
    close: unsubscribe,
  }
}

/** Answers at once what is at hand: most requests find it so, and a promise each would cost them a turn. */
function required<T>(found: T | null | Promise<T | null>, code: ErrorCode): T | Promise<T> {
  if (found instanceof Promise) return found.then((value) => required<T>(value, code))
  if (found === null) throw new ApiError(code)
  return found
}

/** A bounded map in front of a query; one query at a time for a key, and unknown keys are remembered as well. */
function createCache<T>(
  ctx: Context,
  entries_max: number,
  read: (key: string) => Promise<T | null>,
  stale_ms = STALE_MS,
) {
  const cached = new Map<string, Cached<T | null>>()
  const reading = new Map<string, Promise<T | null>>()
  let generation = 0

  function readOnce(key: string): Promise<T | null> {
    const under_way = reading.get(key)
    if (under_way !== undefined) return under_way
    const started = generation
    const promise = read(key)
      .then((value) => {
        if (started === generation) {
          if (cached.size >= entries_max) cached.delete(cached.keys().next().value!)
          cached.set(key, { value, read_ms: ctx.elapsed() })
        }
        return value
      })
      .finally(() => {
        if (reading.get(key) === promise) reading.delete(key)
      })
    reading.set(key, promise)
    return promise
  }

  return {
    get(key: string): T | null | Promise<T | null> {
      const entry = cached.get(key)
      if (entry === undefined) return readOnce(key)
      if (ctx.elapsed() - entry.read_ms < stale_ms) return entry.value
      // While the database is away a request waits at its journal (HOLD_MS of shard.ts), and does not fail here.
      return readOnce(key).catch((error: unknown) => {
        ctx.log.warn({ err: error }, 'a namespace, version or origin could not be read again; what was known is used')
        return entry.value
      })
    },
    clear() {
      generation++
      cached.clear()
      reading.clear()
    },
  }
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
      'versions.config',
      'versions.secrets',
    ])
    .executeTakeFirst()
  if (row === undefined) return null
  const { config: _config, secrets: _secrets, ...record } = row
  const config = openConfig(ctx.seals, row)
  return { ...record, game_modes: gameModesOf(config), captcha: config.matchmaker?.captcha ?? null }
}

async function readGameModes(ctx: Context, version_id: string): Promise<GameModes | null> {
  const row = await ctx.db
    .selectFrom('versions')
    .where('version_id', '=', version_id)
    .select(['version_id', 'config', 'secrets'])
    .executeTakeFirst()
  return row === undefined ? null : gameModesOf(openConfig(ctx.seals, row))
}

/** Scheme, host and perhaps a port (Fetch standard, 3.1): nothing before or behind. */
const ORIGIN = /^https?:\/\/([a-z0-9.-]{1,253})(?::\d{1,5})?$/
/** A name id has no double dash, so there is one way to read it. */
const SITE_LABEL = /^[a-z0-9]+(?:-[a-z0-9]+)*(?:--[a-z0-9]+(?:-[a-z0-9]+)*)?$/

/**
 * What stands before the CDN's domain in the host of an origin, at whichever port, or a host that is of somebody else;
 * null: it is no site of ours.
 */
function siteLabelOf(ctx: Context, origin: string): string | null {
  const host = ORIGIN.exec(origin.toLowerCase())?.[1]
  const suffix = `.${ctx.config.domains.cdn}`
  if (host === undefined) return null
  // A custom domain perhaps; it has a dot, and a label has none.
  if (!host.endsWith(suffix)) return host.includes('.') ? host : null
  const label = host.slice(0, -suffix.length)
  return SITE_LABEL.test(label) ? label : null
}

/** `<game>` is its namespace prod, `<game>--<namespace>` any. */
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

/** Only a domain that is proven stands for its namespace. */
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
