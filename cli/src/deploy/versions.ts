// Versions of a game and deploys of a namespace, as the commands name them: by display name, by id, or by the beginning of an
// id. A deploy worked when the platform knows of a lobby of it that became ready. A version without game modes has no lobbies,
// so its deploys always worked.
import {
  getGameById,
  getGameNamespaceVersionHistoryList,
  getGameVersionById,
  type ResponseOf,
  type VersionConfig,
} from '@musterhost/contract'
import { EXIT, Failure } from '../failure.ts'
import type { Session } from '../session.ts'

export type Deploy = ResponseOf<typeof getGameNamespaceVersionHistoryList>['versions'][number]
export type Version = ResponseOf<typeof getGameVersionById>['version']
export type VersionSummary = ResponseOf<typeof getGameById>['game']['versions'][number]

/** Deploys that `rollback` reads to find one that worked. */
const DEPLOYS_READ_MAX = 1_000
const PAGE = 100
/** Characters of the beginning of an id that name a version. */
const ID_LENGTH_MIN = 8

export async function readVersions(session: Session): Promise<VersionSummary[]> {
  const { game_id } = await session.game()
  return (await session.client.call(getGameById, { params: { game_id } })).game.versions
}

export async function readVersion(session: Session, version_id: string): Promise<Version> {
  const { game_id } = await session.game()
  return (await session.client.call(getGameVersionById, { params: { game_id, version_id } })).version
}

/** Throws a Failure that lists the newest versions. */
export function findVersion(versions: readonly VersionSummary[], wanted: string): VersionSummary {
  const named = versions.find(({ display_name, version_id }) => display_name === wanted || version_id === wanted)
  if (named !== undefined) return named
  const found = wanted.length < ID_LENGTH_MIN ? [] : versions.filter(({ version_id }) => version_id.startsWith(wanted))
  if (found.length === 1) return found[0]!
  const newest = versions.slice(0, 5).map(({ display_name }) => display_name)
  throw new Failure(
    found.length === 0
      ? `The game has no version ${wanted}.`
      : `Several versions have an id that begins with ${wanted}.`,
    {
      exit_code: EXIT.usage,
      remedy: `The newest versions: ${newest.join(', ')}. "muster versions" lists the deploys.`,
    },
  )
}

/** Newest first, at most `count_max`. */
export async function readDeploys(session: Session, count_max: number): Promise<Deploy[]> {
  const deploys: Deploy[] = []
  for await (const page of deployPages(session, Math.min(count_max, PAGE))) {
    deploys.push(...page)
    if (deploys.length >= count_max) break
  }
  return deploys.slice(0, count_max)
}

async function* deployPages(session: Session, limit: number): AsyncGenerator<Deploy[]> {
  const { game_id } = await session.game()
  const { namespace_id } = await session.namespace()
  let anchor: string | undefined
  for (let read = 0; read < DEPLOYS_READ_MAX; read += limit) {
    const query = anchor === undefined ? { limit } : { limit, anchor }
    const params = { game_id, namespace_id }
    const { versions, is_cut } = await session.client.call(getGameNamespaceVersionHistoryList, { params, query })
    yield versions
    anchor = versions.at(-1)?.deploy_id
    if (!is_cut || anchor === undefined) return
  }
}

export function hasGameModes(config: VersionConfig): boolean {
  return Object.keys(config.matchmaker?.game_modes ?? {}).length > 0
}

/**
 * The version of the newest earlier deploy that worked. The current version is left out, and so are versions whose newest
 * deploy was rolled back: a second rollback goes further back. Throws a Failure without one.
 */
export async function findLastWorking(session: Session): Promise<Version> {
  let current_id: string | undefined
  const tried = new Set<string>()
  const is_rolled_back = new Map<string, boolean>()
  for await (const page of deployPages(session, PAGE)) {
    for (const { version_id, first_ready_ts, rolled_back_ts } of page) {
      current_id ??= version_id
      if (!is_rolled_back.has(version_id)) is_rolled_back.set(version_id, rolled_back_ts !== undefined)
      if (version_id === current_id || is_rolled_back.get(version_id)) continue
      if (first_ready_ts !== undefined) return readVersion(session, version_id)
      if (tried.has(version_id)) continue
      tried.add(version_id)
      const version = await readVersion(session, version_id)
      if (!hasGameModes(version.config) && hasSite(version.config)) return version
    }
  }
  throw new Failure('No earlier version of this namespace is known to have worked: no lobby of one became ready.', {
    remedy: 'Name the version: muster rollback VERSION. "muster versions" lists the deploys.',
  })
}

/** The empty version of a new game has neither game modes nor a site. */
function hasSite(config: VersionConfig): boolean {
  return config.cdn?.site_id !== undefined
}
