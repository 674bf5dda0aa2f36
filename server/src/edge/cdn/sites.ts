// Which files a host serves. A host's namespace points at a version, the version at a site, and the site at a completed
// upload. A deploy changes the namespace's version in one row, so all files change at once. A site never changes, so its
// manifest is cached while there is room. The site of a host is read again when the namespace changes (channel
// `namespaces`), and after SITE_HOST_AGE_MS_MAX at the latest.
import type { NotFound, VersionConfig } from '@musterhost/contract'
import { contentTypeOf, createSiteHeaders, formsOfPath, type SiteHeaders } from '@musterhost/contract/site'
import { type ExpressionBuilder, type SqlBool, sql } from 'kysely'
import { jsonObjectFrom } from 'kysely/helpers/postgres'
import type { Context } from '../../context.ts'
import type { Schema } from '../../database/schema.ts'
import { BoundedMap } from '../../flow/bounded-map.ts'
import { type Encoding, PACKED_ENDINGS } from '../../objects/pack.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { isOfRollout, type RolloutShare } from '../../wire/rollout-share.ts'
import {
  MANIFEST_FILES_MAX,
  PREVIOUS_SITE_MS,
  ROUTED_VERSIONS_MAX,
  SITE_HOST_AGE_MS_MAX,
  SITE_HOSTS_MAX,
} from '../limits.ts'
import type { Lookups } from '../routes/lookups.ts'
import type { AuthUsers } from './basic-auth.ts'

export type SiteFile = {
  object_key: string
  content_length: number
  content_type: string
  content_encoding: 'br' | 'gzip' | null
  /** Hash of all bytes of the file, in hex. */
  sha256: string | null
  /** Compressed by the platform, and not uploaded. */
  is_packed: boolean
  /** With quotes; null when the upload has no hash. */
  etag: string | null
}
/** The plain file at a path, and its forms in other encodings (`x.js.br` for `x.js`). */
export type SiteEntry = { file: SiteFile | null; br: SiteFile | null; gzip: SiteFile | null }
/** By path, without a leading slash. */
type Manifest = ReadonlyMap<string, SiteEntry>

export type SiteHost = {
  game_id: string
  namespace_id: string
  /** The deployed version. */
  version_id: string
  /** Null: the version has no site. */
  site: { site_id: string; upload_id: string } | null
  /** The site of the previous deploy, for a while, and its version. */
  previous: { site: { site_id: string; upload_id: string }; version_id: string; until_ms: number } | null
  /** The users that may visit the site; null: it is public. */
  users: AuthUsers | null
  headersOf: (path: string) => SiteHeaders
  /** The version's setting for unknown paths. */
  not_found: NotFound | null
  /** Another part of the clients gets another version at the same addresses. */
  is_rolling_out: boolean
  /** The roll-out under way, with the host of its clients; null: none. */
  rollout: (RolloutShare & { host: SiteHost }) | null
}

/** What a client gets of the two versions of a roll-out. */
export function hostOfClient(host: SiteHost, client_key: string): SiteHost {
  const { rollout } = host
  return rollout !== null && isOfRollout(rollout, client_key) ? rollout.host : host
}

type SiteKey = { site_id: string; upload_id: string }
type CachedHost = { host: SiteHost | null; until_ms: number }

export class Sites {
  readonly #ctx: Context
  readonly #lookups: Lookups
  readonly #hosts = new BoundedMap<string, CachedHost>(SITE_HOSTS_MAX)
  readonly #manifests = new Map<string, Manifest>()
  readonly #under_way = new Map<string, Promise<unknown>>()
  /** By version. A version never changes, and neither do its routes. */
  readonly #headers = new BoundedMap<string, SiteHost['headersOf']>(ROUTED_VERSIONS_MAX)
  readonly #unlisten: () => void
  #file_count = 0
  /** Counts notifications: the result of a look-up that was running during one is not cached. */
  #changes = 0

  constructor(ctx: Context, lookups: Lookups) {
    this.#ctx = ctx
    this.#lookups = lookups
    this.#unlisten = ctx.listener.on(CHANNELS.namespaces, () => {
      this.#changes++
      for (const cached of this.#hosts.values()) cached.until_ms = 0
      this.#under_way.clear()
    })
  }

  /** Returns null when there is no such game or namespace. Throws the refusals of lookups.ts. */
  host(game: string, namespace: string, client_key: string): SiteHost | null | Promise<SiteHost | null> {
    const key = `${game}--${namespace}`
    const cached = this.#hosts.get(key)
    if (cached !== undefined && this.#ctx.elapsed() < cached.until_ms) return cached.host
    return this.#once(key, () => this.#lookUpHost(key, game, namespace, client_key)).catch((error: unknown) => {
      // While the database is down, a known site is served as before.
      if (cached?.host) return cached.host
      throw error
    })
  }

  manifest(site: SiteKey, client_key: string): Manifest | Promise<Manifest> {
    const { site_id } = site
    return this.#manifests.get(site_id) ?? this.#once(site_id, () => this.#lookUpManifest(site, client_key))
  }

  close(): void {
    this.#unlisten()
  }

  /** Concurrent requests for the same key share one look-up. */
  #once<T>(key: string, lookUp: () => Promise<T>): Promise<T> {
    const running = this.#under_way.get(key)
    if (running !== undefined) return running as Promise<T>
    const lookup = lookUp().finally(() => {
      if (this.#under_way.get(key) === lookup) this.#under_way.delete(key)
    })
    this.#under_way.set(key, lookup)
    return lookup
  }

  async #lookUpHost(key: string, game: string, namespace: string, client_key: string): Promise<SiteHost | null> {
    const before = this.#changes
    const headersOf = (version_id: string, routes: Routes) =>
      this.#headers.getOr(version_id, () => createSiteHeaders(routes))
    const found = await this.#lookups.run(client_key, () => readHost(this.#ctx, game, namespace, headersOf))
    const old = this.#hosts.get(key)?.host ?? null
    const now_ms = this.#ctx.elapsed()
    const host = found && { ...found, previous: previousOf(old, found, now_ms) }
    this.#hosts.set(key, { host, until_ms: before === this.#changes ? now_ms + SITE_HOST_AGE_MS_MAX : 0 })
    return host
  }

  async #lookUpManifest({ site_id, upload_id }: SiteKey, client_key: string): Promise<Manifest> {
    const manifest = (await this.#lookups.run(client_key, () => readManifest(this.#ctx, upload_id))) ?? new Map()
    for (const [oldest_id, { size }] of this.#manifests) {
      if (this.#file_count + manifest.size <= MANIFEST_FILES_MAX) break
      this.#manifests.delete(oldest_id)
      this.#file_count -= size
    }
    if (!this.#manifests.has(site_id)) this.#file_count += manifest.size
    this.#manifests.set(site_id, manifest)
    return manifest
  }
}

/** While a roll-out is under way, a client may change sides: its page then still gets the files of its own version. */
function previousOf(old: SiteHost | null, found: SiteHost, now_ms: number): SiteHost['previous'] {
  if (found.rollout !== null) return asPrevious(found.rollout.host, Number.POSITIVE_INFINITY)
  const former = old?.site?.site_id === found.site?.site_id ? old?.rollout?.host : old
  if (former?.site) return asPrevious(former, now_ms + PREVIOUS_SITE_MS)
  const previous = old?.previous ?? null
  return previous !== null && now_ms < previous.until_ms ? previous : null
}

function asPrevious({ site, version_id }: SiteHost, until_ms: number): SiteHost['previous'] {
  return site && { site, version_id, until_ms }
}

type Routes = NonNullable<NonNullable<VersionConfig['cdn']>['routes']>
/** What a version says about its site. */
type SiteOfVersion = {
  version_id: string
  site_id: string | null
  upload_id: string | null
  routes: Routes | null
  not_found: NotFound | null
}

async function readHost(
  ctx: Context,
  game: string,
  namespace: string,
  headersOf: (version_id: string, routes: Routes) => SiteHost['headersOf'],
): Promise<SiteHost | null> {
  const row = await ctx.db
    .selectFrom('games')
    .innerJoin('namespaces', 'namespaces.game_id', 'games.game_id')
    .innerJoin('versions', 'versions.version_id', 'namespaces.version_id')
    .leftJoin('sites', (join) =>
      join
        .on(sql<SqlBool>`sites.site_id = (versions.config #>> '{cdn,site_id}')::uuid`)
        .onRef('sites.game_id', '=', 'games.game_id'),
    )
    .leftJoin('uploads', (join) =>
      join.onRef('uploads.upload_id', '=', 'sites.upload_id').on('uploads.complete_ts', 'is not', null),
    )
    .select(['games.game_id', 'namespaces.namespace_id', 'sites.site_id', 'uploads.upload_id'])
    .select(['namespaces.version_id', 'namespaces.cdn_auth_type'])
    .select(sql<Routes | null>`versions.config #> '{cdn,routes}'`.as('routes'))
    .select(sql<NotFound | null>`versions.config #>> '{cdn,not_found}'`.as('not_found'))
    .select((of) =>
      of
        .selectFrom('namespace_auth_users')
        .whereRef('namespace_auth_users.namespace_id', '=', 'namespaces.namespace_id')
        .select(sql<Record<string, string> | null>`json_object_agg("user", password_hash)`.as('users'))
        .as('users'),
    )
    .select(rolloutOf)
    .where('games.name_id', '=', game)
    .where('namespaces.name_id', '=', namespace)
    .executeTakeFirst()
  if (row === undefined) return null
  const { game_id, namespace_id, cdn_auth_type, users, rollout } = row
  const hostOf = ({ site_id, upload_id, version_id, routes, not_found }: SiteOfVersion): SiteHost => ({
    ...{ game_id, namespace_id, version_id, not_found, previous: null },
    site: site_id && upload_id ? { site_id, upload_id } : null,
    users: cdn_auth_type === 'none' ? null : new Map(Object.entries(users ?? {})),
    headersOf: headersOf(version_id, routes ?? []),
    is_rolling_out: rollout !== null,
    rollout: null,
  })
  const host = hostOf(row)
  if (rollout === null) return host
  const { rollout_id, percent, ...version } = rollout
  const of_rollout = { ...hostOf(version), previous: asPrevious(host, Number.POSITIVE_INFINITY) }
  return { ...host, rollout: { rollout_id, percent, host: of_rollout } }
}

/** The roll-out under way with the site of its version, in one object. */
function rolloutOf(of: ExpressionBuilder<Schema, 'namespaces'>) {
  return jsonObjectFrom(
    of
      .selectFrom('rollouts')
      .innerJoin('versions as next', 'next.version_id', 'rollouts.version_id')
      .leftJoin('sites as next_site', (join) =>
        join
          .on(sql<SqlBool>`next_site.site_id = (next.config #>> '{cdn,site_id}')::uuid`)
          .onRef('next_site.game_id', '=', 'next.game_id'),
      )
      .leftJoin('uploads as next_upload', (join) =>
        join.onRef('next_upload.upload_id', '=', 'next_site.upload_id').on('next_upload.complete_ts', 'is not', null),
      )
      .select(['rollout_id', 'percent', 'next.version_id', 'next_site.site_id', 'next_upload.upload_id'])
      .select(sql<Routes | null>`next.config #> '{cdn,routes}'`.as('routes'))
      .select(sql<NotFound | null>`next.config #>> '{cdn,not_found}'`.as('not_found'))
      .whereRef('rollouts.namespace_id', '=', 'namespaces.namespace_id')
      .where('end_ts', 'is', null),
  ).as('rollout')
}

async function readManifest(ctx: Context, upload_id: string): Promise<Manifest> {
  const rows = await ctx.db
    .selectFrom('upload_files')
    .select(['path', 'content_type', 'content_length', 'object_key', 'sha256', 'is_packed', 'content_encoding'])
    .where('upload_id', '=', upload_id)
    .execute()
  const uploaded = new Map<string, SiteFile>()
  const packed: [path: string, SiteFile][] = []
  for (const { path: named, content_type, content_encoding, sha256, ...row } of rows) {
    const etag = sha256 === null ? null : `"${sha256.slice(0, ETAG_LENGTH)}"`
    const path = named.replace(/^\.?\/+/, '')
    const type = contentTypeOf(path, content_type)
    const file = { ...row, sha256, etag, ...type, content_encoding: type.content_encoding ?? content_encoding }
    if (file.is_packed) packed.push([path, file])
    else uploaded.set(path, file)
  }
  const manifest = manifestOf(uploaded)
  for (const [path, file] of packed) addPacked(manifest, path, file)
  return manifest
}

/** A file that exists only compressed is also found by its plain name. */
function manifestOf(uploaded: ReadonlyMap<string, SiteFile>): Map<string, SiteEntry> {
  const manifest = new Map<string, SiteEntry>()
  const fileAt = (path: string): SiteFile | null => uploaded.get(path) ?? null
  for (const path of uploaded.keys()) {
    for (const name of [path, path.replace(COMPRESSED_NAME, '')]) {
      if (manifest.has(name)) continue
      const forms = formsOfPath(
        fileAt(name),
        fileAt(`${name}${PACKED_ENDINGS.br}`),
        fileAt(`${name}${PACKED_ENDINGS.gzip}`),
      )
      if (forms !== null) manifest.set(name, forms)
    }
  }
  return manifest
}

/** Adds a form compressed by the platform, unless the site has an uploaded one. */
function addPacked(manifest: ReadonlyMap<string, SiteEntry>, path: string, packed: SiteFile): void {
  const content_encoding: Encoding = path.endsWith(PACKED_ENDINGS.br) ? 'br' : 'gzip'
  const entry = manifest.get(path.slice(0, -PACKED_ENDINGS[content_encoding].length))
  if (!entry?.file || entry[content_encoding] !== null) return
  entry[content_encoding] = { ...packed, content_type: entry.file.content_type, content_encoding }
}

const COMPRESSED_NAME = /\.(?:br|gz)$/
/** Hex digits of the hash that are the entity tag: 128 bits. */
const ETAG_LENGTH = 32
