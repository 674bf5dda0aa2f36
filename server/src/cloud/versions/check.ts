// What makes a version config acceptable beyond its shape: its parts fit together (@musterhost/contract/version-check), and the
// things it names exist, are complete and can be run.
import type { ErrorDetail, GameModeConfig, NotFound, VersionConfig } from '@musterhost/contract'
import { dockerMemberPath, dockerOfMode, gameModesOf, IMAGE_MEMBERS } from '@musterhost/contract'
import { checkProgram, checkVersionConfig, dockerBlocksOf } from '@musterhost/contract/version-check'
import { sql } from 'kysely'
import type { Context } from '../../context.ts'
import { readFileList } from '../uploads/file-list.ts'
import { platformRules } from './platform-rules.ts'

type Cdn = NonNullable<VersionConfig['cdn']>
type Matchmaker = NonNullable<VersionConfig['matchmaker']>

/** Empty when a version with this config may be created in the game. Paths are those within the config. */
export async function checkConfig(ctx: Context, game_id: string, config: VersionConfig): Promise<ErrorDetail[]> {
  const errors = checkVersionConfig(platformRules(ctx.config), config, await findImages(ctx, game_id, config))
  if (config.cdn !== undefined) errors.push(...(await checkSite(ctx, game_id, config.cdn)))
  if (config.matchmaker !== undefined) {
    errors.push(...(await checkBuilds(ctx, game_id, config.matchmaker)))
    errors.push(...(await checkPrograms(ctx, game_id, config.matchmaker, gameModesOf(config))))
  }
  return errors
}

/** The ids of the named builds that are container images with an entrypoint or a command. */
async function findImages(ctx: Context, game_id: string, { matchmaker }: VersionConfig): Promise<Set<string>> {
  const ids = dockerBlocksOf(matchmaker ?? { game_modes: {} }).flatMap(([, { image_id }]) => image_id ?? [])
  if (ids.length === 0) return new Set()
  const rows = await ctx.db
    .selectFrom('builds')
    .select(['build_id', 'image'])
    .where('game_id', '=', game_id)
    .where('build_id', 'in', ids)
    .where('image', 'is not', null)
    .execute()
  const with_program = rows.filter(({ image }) => image!.entrypoint.length + image!.cmd.length > 0)
  return new Set(with_program.map(({ build_id }) => build_id))
}

async function checkSite(ctx: Context, game_id: string, { site_id, not_found }: Cdn): Promise<ErrorDetail[]> {
  if (site_id === undefined) return []
  const path = ['cdn', 'site_id']
  const site = await ctx.db
    .selectFrom('sites')
    .innerJoin('uploads', 'uploads.upload_id', 'sites.upload_id')
    .select(['uploads.upload_id', 'uploads.complete_ts'])
    .where('sites.game_id', '=', game_id)
    .where('sites.site_id', '=', site_id)
    .executeTakeFirst()
  if (site === undefined) return [{ path, reason: 'not_found', message: `The game has no site ${site_id}.` }]
  if (site.complete_ts !== null) return not_found ? checkNotFound(ctx, site.upload_id, not_found) : []
  return [{ path, reason: 'incomplete', message: `The upload of site ${site_id} is not complete.` }]
}

/** A site may have the page in a compressed form only. */
async function checkNotFound(ctx: Context, upload_id: string, not_found: NotFound): Promise<ErrorDetail[]> {
  const file = await ctx.db
    .selectFrom('upload_files')
    .select('path')
    .where('upload_id', '=', upload_id)
    .where(sql`regexp_replace(path, '^\\.?/+', '')`, 'in', [not_found, `${not_found}.br`, `${not_found}.gz`])
    .executeTakeFirst()
  if (file !== undefined) return []
  const message = `The site has no file ${not_found}. Upload a site that has one, or leave not_found out.`
  return [{ path: ['cdn', 'not_found'], reason: 'not_found', message }]
}

async function checkBuilds(ctx: Context, game_id: string, matchmaker: Matchmaker): Promise<ErrorDetail[]> {
  const wanted = dockerBlocksOf(matchmaker).flatMap(([path, { image_id }]) =>
    image_id === undefined ? [] : [{ path, image_id }],
  )
  if (wanted.length === 0) return []
  const rows = await ctx.db
    .selectFrom('builds')
    .innerJoin('uploads', 'uploads.upload_id', 'builds.upload_id')
    .select(['builds.build_id', 'builds.kind', 'builds.image', 'uploads.complete_ts'])
    .where('builds.game_id', '=', game_id)
    .where('builds.build_id', 'in', [...new Set(wanted.map((item) => item.image_id))])
    .execute()
  const builds = new Map(rows.map((row) => [row.build_id, row]))
  const errors = wanted.flatMap(({ path, image_id }): ErrorDetail[] => {
    const at = [...path, 'image_id']
    const build = builds.get(image_id)
    if (build === undefined) return [{ path: at, reason: 'not_found', message: `The game has no build ${image_id}.` }]
    if (build.complete_ts === null) {
      return [{ path: at, reason: 'incomplete', message: `The upload of build ${image_id} is not complete.` }]
    }
    if (build.kind === 'archive' || build.image !== null) return []
    const message = `Build ${image_id} was uploaded to an older release, which did not check images. Upload it again.`
    return [{ path: at, reason: 'not_runnable', message }]
  })
  const archives = new Set(rows.filter(({ kind }) => kind === 'archive').map(({ build_id }) => build_id))
  return [...errors, ...checkImageMembers(matchmaker, archives)]
}

/** Members that only container images have. Game modes that inherit one have one error. */
function checkImageMembers(matchmaker: Matchmaker, archives: ReadonlySet<string>): ErrorDetail[] {
  const errors = Object.entries(matchmaker.game_modes).flatMap(([mode, { docker: own }]): ErrorDetail[] => {
    const docker = dockerOfMode(matchmaker.docker, own)
    if (docker?.image_id === undefined || !archives.has(docker.image_id)) return []
    const { image_id } = docker
    return IMAGE_MEMBERS.filter((name) => docker[name] !== undefined).map((name) =>
      onlyOfImages(dockerMemberPath(matchmaker, mode, [name]), image_id),
    )
  })
  return [...new Map(errors.map((error) => [error.path.join('\n'), error])).values()]
}

function onlyOfImages(path: string[], image_id: string): ErrorDetail {
  const message = `${path.at(-1)} is for container images, and build ${image_id} is an archive. Remove it; the program is in args.`
  return { path, reason: 'needs_image', message }
}

/** Checks the programs of builds whose files are known. Game modes that share a docker block have one error. */
async function checkPrograms(
  ctx: Context,
  game_id: string,
  matchmaker: Matchmaker,
  modes: ReadonlyMap<string, GameModeConfig>,
): Promise<ErrorDetail[]> {
  const image_ids = new Set([...modes.values()].flatMap(({ image_id }) => image_id ?? []))
  if (image_ids.size === 0) return []
  const rows = await ctx.db
    .selectFrom('builds')
    .select(['build_id', 'file_list'])
    .where('game_id', '=', game_id)
    .where('build_id', 'in', [...image_ids])
    .where('file_list', 'is not', null)
    .execute()
  const files = new Map(rows.map(({ build_id, file_list }) => [build_id, readFileList(file_list!)]))
  const errors = [...modes.values()].flatMap(({ name, image_id, args }) => {
    const of_build = image_id === null ? undefined : files.get(image_id)
    if (of_build === undefined || args.length === 0) return []
    return checkProgram(args, of_build, dockerMemberPath(matchmaker, name, ['args']))
  })
  return [...new Map(errors.map((error) => [error.path.join('\n'), error])).values()]
}
