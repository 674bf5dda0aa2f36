// muster diff: what two versions of a game differ in.
import { listGameCdnSites, type VersionConfig } from '@musterhost/contract'
import { changeLines, changesBetween } from '@musterhost/contract/differences'
import { readableConfig } from '@musterhost/contract/readable-config'
import type { Session } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { uploadPages } from './uploads.ts'
import { findVersion, readVersion, readVersions, type Version } from './versions.ts'

/** Files of a site that are printed. */
const FILES_SHOWN_MAX = 100

/** `b` undefined: the version that the namespace runs. */
export async function compareVersions(
  terminal: Terminal,
  session: Session,
  wanted: { a: string; b: string | undefined },
): Promise<void> {
  const versions = await readVersions(session)
  const a = await readVersion(session, findVersion(versions, wanted.a).version_id)
  const b = await readVersion(
    session,
    wanted.b === undefined ? await currentVersionId(session) : findVersion(versions, wanted.b).version_id,
  )
  terminal.note(
    `Versions of ${(await session.game()).name_id} on ${session.url}: ${a.display_name} -> ${b.display_name}`,
  )
  const config = changesBetween(readableConfig(a.config), readableConfig(b.config))
  const server = { before: buildIdsOf(a.config), after: buildIdsOf(b.config) }
  const site = { before: a.config.cdn?.site_id ?? null, after: b.config.cdn?.site_id ?? null }
  const files = site.before === site.after ? [] : await changedFiles(session, site.before, site.after)
  if (terminal.is_json) {
    terminal.json({ a: summaryOf(a), b: summaryOf(b), config, build_ids: server, site_id: site, site_files: files })
    return
  }
  const has_other_server = server.before.join() !== server.after.join()
  if (has_other_server) terminal.print(`server: ${namesOf(server.before)} -> ${namesOf(server.after)}`)
  for (const line of fileLines(files)) terminal.print(line)
  for (const line of changeLines(config)) terminal.print(line)
  if (config.length === 0 && !has_other_server && files.length === 0) terminal.print('They do not differ.')
}

const namesOf = (build_ids: readonly string[]): string =>
  build_ids.length === 0 ? 'none' : `build ${build_ids.join(', ')}`

type FileChange = { path: string; kind: 'added' | 'removed' | 'changed' }

/** Files of two sites that differ, by path. */
async function changedFiles(session: Session, before: string | null, after: string | null): Promise<FileChange[]> {
  const { sites } = await session.client.call(listGameCdnSites, { params: await session.game() })
  const uploads = new Map(sites.map(({ site_id, upload_id }) => [site_id, upload_id]))
  const [old_files, new_files] = [await filesOf(session, uploads, before), await filesOf(session, uploads, after)]
  return [...new Set([...old_files.keys(), ...new_files.keys()])].sort().flatMap((path): FileChange[] => {
    const [old_content, new_content] = [old_files.get(path), new_files.get(path)]
    if (old_content === new_content) return []
    if (old_content === undefined) return [{ path, kind: 'added' }]
    return [{ path, kind: new_content === undefined ? 'removed' : 'changed' }]
  })
}

/** The content of each file: its hash and length. */
async function filesOf(
  session: Session,
  uploads: ReadonlyMap<string, string>,
  site_id: string | null,
): Promise<Map<string, string>> {
  const files = new Map<string, string>()
  const upload_id = site_id === null ? undefined : uploads.get(site_id)
  if (upload_id === undefined) return files
  for await (const { parts } of uploadPages(session, upload_id)) {
    for (const { path, sha256, content_length } of parts) files.set(path, `${sha256 ?? ''} ${content_length}`)
  }
  return files
}

const MARKS = { added: '+', removed: '-', changed: '~' } as const

function fileLines(files: readonly FileChange[]): string[] {
  const lines = files.slice(0, FILES_SHOWN_MAX).map(({ path, kind }) => `${MARKS[kind]} site/${path}`)
  return files.length > lines.length ? [...lines, `and ${files.length - lines.length} more files of the site`] : lines
}

const summaryOf = ({ version_id, display_name, create_ts }: Version) => ({ version_id, display_name, create_ts })

async function currentVersionId(session: Session): Promise<string> {
  const { namespace_id } = await session.namespace()
  return (await session.gameFull()).namespaces.find((one) => one.namespace_id === namespace_id)!.version_id
}

function buildIdsOf({ matchmaker }: VersionConfig): string[] {
  const dockers = [matchmaker?.docker, ...Object.values(matchmaker?.game_modes ?? {}).map(({ docker }) => docker)]
  return [...new Set(dockers.flatMap((docker) => docker?.image_id ?? []))]
}
