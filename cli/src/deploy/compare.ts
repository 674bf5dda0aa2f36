// muster diff: what two versions of a game differ in.
import type { VersionConfig } from '@muster/contract'
import type { Session } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { changeLines, changesBetween } from './differences.ts'
import { readableConfig } from './readable-config.ts'
import { findVersion, readVersion, readVersions, type Version } from './versions.ts'

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
  if (terminal.is_json) {
    terminal.json({ a: summaryOf(a), b: summaryOf(b), config, build_ids: server, site_id: site })
    return
  }
  const has_other_server = server.before.join() !== server.after.join()
  const has_other_site = site.before !== site.after
  if (has_other_server)
    terminal.print(`server: build ${server.before.join(', ') || 'none'} -> ${server.after.join(', ') || 'none'}`)
  if (has_other_site) terminal.print(`site: ${site.before ?? 'none'} -> ${site.after ?? 'none'}`)
  for (const line of changeLines(config)) terminal.print(line)
  if (config.length === 0 && !has_other_server && !has_other_site) terminal.print('They do not differ.')
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
