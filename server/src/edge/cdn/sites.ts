// Which files a host serves. A host's namespace points at a version, the version at a site, the site at a completed
// upload: a deploy changes the first of these in one row, so that all files change at once. A site never changes, so its
// manifest is kept as long as there is room; which site a host has is asked again when the namespace changes (channel
// namespaces) and at the latest after SITE_HOST_AGE_MS_MAX.
import type { NotFound, VersionConfig } from '@muster/contract'
import { type SqlBool, sql } from 'kysely'
import type { Context } from '../../context.ts'
import { contentTypeOf } from '../../objects/content-type.ts'
import { type Encoding, PACKED_ENDINGS } from '../../objects/pack.ts'
import {
  MANIFEST_FILES_MAX,
  PREVIOUS_SITE_MS,
  ROUTED_VERSIONS_MAX,
  SITE_HOST_AGE_MS_MAX,
  SITE_HOSTS_MAX,
} from '../limits.ts'
import type { Lookups } from '../lookups.ts'
import type { AuthUsers } from './basic-auth.ts'
import { createSiteHeaders, type SiteHeaders } from './site-headers.ts'

export type SiteFile = {
  object_key: string
  content_length: number
  content_type: string
  content_encoding: 'br' | 'gzip' | null
  /** Hex, of all its bytes. */
  sha256: string | null
  /** Made by the platform, and not uploaded. */
  is_packed: boolean
  /** With its quotes; null when the upload has no hash. */
  etag: string | null
}
/** What there is for a path: the file itself, and files that are it in another encoding (`x.js.br` for `x.js`). */
export type SiteEntry = { file: SiteFile | null; br: SiteFile | null; gzip: SiteFile | null }
/** By path, without a slash in front. */
type Manifest = ReadonlyMap<string, SiteEntry>

export type SiteHost = {
  game_id: string
  namespace_id: string
  /** Null: nothing is deployed. */
  site: { site_id: string; upload_id: string } | null
  /** What was served here until a moment ago. */
  previous: { site: { site_id: string; upload_id: string }; until_ms: number } | null
  /** Who may visit; null: everybody. */
  users: AuthUsers | null
  headersOf: (path: string) => SiteHeaders
  /** What the version says of unknown paths. */
  not_found: NotFound | null
}

export type Sites = {
  /** Null: no such game or namespace. Throws as lookups.ts does. */
  host: (game: string, namespace: string, source: string) => SiteHost | null | Promise<SiteHost | null>
  manifest: (site: { site_id: string; upload_id: string }, source: string) => Manifest | Promise<Manifest>
  close: () => void
}

type KnownHost = { host: SiteHost | null; until_ms: number }

export function createSites(ctx: Context, lookups: Lookups): Sites {
  const hosts = new Map<string, KnownHost>()
  const manifests = new Map<string, Manifest>()
  const asked = new Map<string, Promise<unknown>>()
  /** A version never changes, and neither do its routes. */
  const headers = new Map<string, SiteHost['headersOf']>()
  let file_count = 0
  /** Counts the wake-ups: an answer that was under way during one is of no lasting use. */
  let changes = 0

  const close = ctx.listener.on('namespaces', () => {
    changes++
    for (const known of hosts.values()) known.until_ms = 0
    asked.clear()
  })

  /** Once for all who ask for the same thing at the same time. */
  function once<T>(key: string, look: () => Promise<T>): Promise<T> {
    const before = asked.get(key)
    if (before !== undefined) return before as Promise<T>
    const asking = look().finally(() => {
      if (asked.get(key) === asking) asked.delete(key)
    })
    asked.set(key, asking)
    return asking
  }

  function headersOf(version_id: string, routes: Routes): SiteHost['headersOf'] {
    const known = headers.get(version_id)
    if (known !== undefined) return known
    const made = createSiteHeaders(routes)
    if (headers.size >= ROUTED_VERSIONS_MAX) headers.delete(headers.keys().next().value!)
    headers.set(version_id, made)
    return made
  }

  async function askHost(key: string, game: string, namespace: string, source: string): Promise<SiteHost | null> {
    const before = changes
    const found = await lookups.run(source, () => readHost(ctx, game, namespace, headersOf))
    const old = hosts.get(key)?.host ?? null
    const now_ms = ctx.elapsed()
    const host = found && { ...found, previous: previousOf(old, found, now_ms) }
    hosts.delete(key)
    if (hosts.size >= SITE_HOSTS_MAX) hosts.delete(hosts.keys().next().value!)
    hosts.set(key, { host, until_ms: before === changes ? now_ms + SITE_HOST_AGE_MS_MAX : 0 })
    return host
  }

  async function askManifest(site: { site_id: string; upload_id: string }, source: string): Promise<Manifest> {
    const manifest = (await lookups.run(source, () => readManifest(ctx, site.upload_id))) ?? new Map()
    for (const [site_id, { size }] of manifests) {
      if (file_count + manifest.size <= MANIFEST_FILES_MAX) break
      manifests.delete(site_id)
      file_count -= size
    }
    if (!manifests.has(site.site_id)) file_count += manifest.size
    manifests.set(site.site_id, manifest)
    return manifest
  }

  return {
    host(game, namespace, source) {
      const key = `${game}--${namespace}`
      const known = hosts.get(key)
      if (known !== undefined && ctx.elapsed() < known.until_ms) return known.host
      return once(key, () => askHost(key, game, namespace, source)).catch((error: unknown) => {
        // Without the database a site goes on as it was.
        if (known?.host) return known.host
        throw error
      })
    },
    manifest: (site, source) => manifests.get(site.site_id) ?? once(site.site_id, () => askManifest(site, source)),
    close,
  }
}

function previousOf(old: SiteHost | null, found: SiteHost, now_ms: number): SiteHost['previous'] {
  if (old?.site && old.site.site_id !== found.site?.site_id)
    return { site: old.site, until_ms: now_ms + PREVIOUS_SITE_MS }
  const previous = old?.previous ?? null
  return previous !== null && now_ms < previous.until_ms ? previous : null
}

type Routes = NonNullable<NonNullable<VersionConfig['cdn']>['routes']>

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
    .where('games.name_id', '=', game)
    .where('namespaces.name_id', '=', namespace)
    .executeTakeFirst()
  if (row === undefined) return null
  const { game_id, namespace_id, site_id, upload_id, version_id, routes, not_found, cdn_auth_type, users } = row
  return {
    ...{ game_id, namespace_id, not_found, previous: null },
    site: site_id && upload_id ? { site_id, upload_id } : null,
    users: cdn_auth_type === 'none' ? null : new Map(Object.entries(users ?? {})),
    headersOf: headersOf(version_id, routes ?? []),
  }
}

async function readManifest(ctx: Context, upload_id: string): Promise<Manifest> {
  const rows = await ctx.db
    .selectFrom('upload_files')
    .select(['path', 'content_type', 'content_length', 'object_key', 'sha256', 'is_packed'])
    .where('upload_id', '=', upload_id)
    .execute()
  const manifest = new Map<string, SiteEntry>()
  const packed: [path: string, SiteFile][] = []
  for (const { path: uploaded, content_type, sha256, ...row } of rows) {
    const etag = sha256 === null ? null : `"${sha256.slice(0, ETAG_LENGTH)}"`
    const path = uploaded.replace(/^\.?\/+/, '')
    const file = { ...row, sha256, etag, ...contentTypeOf(path, content_type) }
    if (file.is_packed) packed.push([path, file])
    else manifest.set(path, { file, br: null, gzip: null })
  }
  addVariants(manifest)
  for (const [path, file] of packed) addPacked(manifest, path, file)
  return manifest
}

/** Beside the plain file, which says the type, or instead of it. */
function addVariants(manifest: Map<string, SiteEntry>): void {
  for (const [path, { file }] of [...manifest]) {
    const encoding = file?.content_encoding ?? null
    if (file === null || encoding === null) continue
    const plain = path.slice(0, path.lastIndexOf('.'))
    const entry = manifest.get(plain) ?? { file: null, br: null, gzip: null }
    entry[encoding] = { ...file, content_type: entry.file?.content_type ?? file.content_type }
    manifest.set(plain, entry)
  }
}

/** A form that the site has itself comes before one of ours. */
function addPacked(manifest: ReadonlyMap<string, SiteEntry>, path: string, packed: SiteFile): void {
  const content_encoding: Encoding = path.endsWith(PACKED_ENDINGS.br) ? 'br' : 'gzip'
  const entry = manifest.get(path.slice(0, -PACKED_ENDINGS[content_encoding].length))
  if (!entry?.file || entry[content_encoding] !== null) return
  entry[content_encoding] = { ...packed, content_type: entry.file.content_type, content_encoding }
}

/** Hex digits of the hash that make an entity tag: 128 bits. */
const ETAG_LENGTH = 32
