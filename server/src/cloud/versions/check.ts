// What makes a version config acceptable beyond its shape: the things it names exist, are complete and can be run, and
// its parts fit together.
import type { ErrorDetail, GameModeConfig, IdleLobbies, NotFound, VersionConfig } from '@muster/contract'
import { gameModesOf, tierIn } from '@muster/contract'
import { sql } from 'kysely'
import { hasHttps } from '../../config/addresses.ts'
import type { Context } from '../../context.ts'
import { readFileList } from '../uploads/file-list.ts'
import { checkCaptcha } from './captcha-check.ts'
import { checkPorts } from './port-check.ts'
import { checkProgram } from './program-check.ts'
import { checkRoutes } from './route-check.ts'
import { checkActions } from './verification-check.ts'

/** Environment variables of a game mode. */
const ENV_MAX = 64
/** What the platform sets itself in a lobby's environment. */
const RESERVED_ENV = /^(PLATFORM|PORT)_/

type Cdn = NonNullable<VersionConfig['cdn']>
type Matchmaker = NonNullable<VersionConfig['matchmaker']>
type Docker = NonNullable<Matchmaker['docker']>
type Regions = NonNullable<Matchmaker['regions']>

/** Empty when a version with this config may be created in the game. Paths are those within the config. */
export async function checkConfig(ctx: Context, game_id: string, config: VersionConfig): Promise<ErrorDetail[]> {
  const errors: ErrorDetail[] = []
  if (config.cdn !== undefined) {
    errors.push(...(await checkSite(ctx, game_id, config.cdn)))
    errors.push(...checkRoutes(config.cdn.routes ?? [], ['cdn', 'routes']))
  }
  if (config.matchmaker !== undefined) errors.push(...(await checkMatchmaker(ctx, game_id, config.matchmaker, config)))
  return errors
}

async function checkSite(ctx: Context, game_id: string, { site_id, not_found }: Cdn): Promise<ErrorDetail[]> {
  const path = ['cdn', 'site_id']
  if (site_id === undefined) return [{ path, reason: 'required', message: 'The cdn section must name a site.' }]
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

async function checkMatchmaker(
  ctx: Context,
  game_id: string,
  matchmaker: Matchmaker,
  config: VersionConfig,
): Promise<ErrorDetail[]> {
  const path = ['matchmaker']
  const modes = gameModesOf(config)
  const errors: ErrorDetail[] = []
  if (modes.size === 0) {
    errors.push({ path: [...path, 'game_modes'], reason: 'too_few', message: 'There must be at least one game mode.' })
  }
  errors.push(...checkRegions(ctx, [...path, 'regions'], matchmaker.regions))
  errors.push(...checkIdle(matchmaker.idle_lobbies, path))
  if (matchmaker.captcha !== undefined) {
    errors.push(...checkCaptcha(ctx.config.mode, matchmaker.captcha, [...path, 'captcha']))
  }

  const blocks = new Map<string[], Docker>()
  if (matchmaker.docker !== undefined) blocks.set([...path, 'docker'], matchmaker.docker)
  for (const [name, mode] of Object.entries(matchmaker.game_modes)) {
    const mode_path = [...path, 'game_modes', name]
    errors.push(...checkRegions(ctx, [...mode_path, 'regions'], mode.regions))
    errors.push(...checkActions(ctx.config, mode.actions ?? {}, [...mode_path, 'actions']))
    errors.push(...checkCreate(modes.get(name)!, mode_path))
    errors.push(...checkIdle(mode.idle_lobbies, mode_path))
    errors.push(...checkTiers(ctx, modes.get(name)!, mode, mode_path))
    if (mode.docker !== undefined) blocks.set([...mode_path, 'docker'], mode.docker)
    errors.push(
      ...checkMode(modes.get(name)!, [...(mode.docker ? mode_path : matchmaker.docker ? path : mode_path), 'docker']),
    )
  }
  const port_rules = { host_ranges: ctx.config.host_port_ranges, has_certificates: hasHttps(ctx.config) }
  for (const [block_path, docker] of blocks) {
    errors.push(...checkDocker(docker, block_path), ...checkPorts(docker, port_rules, block_path))
  }
  errors.push(...(await checkBuilds(ctx, game_id, blocks)))
  errors.push(...(await checkPrograms(ctx, game_id, matchmaker, modes)))
  return distinct(errors)
}

/** Creating would be switched on, and every create refused. */
function checkCreate({ name, create }: GameModeConfig, mode_path: readonly string[]): ErrorDetail[] {
  if (create === null || create.enable_public || create.enable_private) return []
  const message = `The game mode ${name} enables create, but neither public nor private lobbies. Leave enable_private out, or set enable_public.`
  return [{ path: [...mode_path, 'actions', 'create', 'enable_private'], reason: 'conflicts', message }]
}

/** `path` is the docker block that the mode takes its image from. */
function checkMode(mode: GameModeConfig, path: readonly string[]): ErrorDetail[] {
  const errors: ErrorDetail[] = []
  if (mode.image_id === null) {
    const message = `The game mode ${mode.name} has no build to run.`
    errors.push({ path: [...path, 'image_id'], reason: 'required', message })
  } else if (mode.args.length === 0) {
    const message = `The game mode ${mode.name} does not say which program of its build to run.`
    errors.push({ path: [...path, 'args'], reason: 'too_few', message })
  }
  if (Object.keys(mode.env).length > ENV_MAX) {
    const message = `The game mode ${mode.name} has more than ${ENV_MAX} environment variables, with those it inherits.`
    errors.push({ path: [...path, 'env'], reason: 'too_many', message })
  }
  return errors
}

function checkRegions(ctx: Context, path: readonly string[], regions: Regions | undefined): ErrorDetail[] {
  if (regions === undefined) return []
  const names = Object.keys(regions)
  const idle = names.flatMap((name) => checkIdle(regions[name]!.idle_lobbies, [...path, name]))
  if (names.length === 0) {
    return [
      { path: [...path], reason: 'too_few', message: 'Without a region it runs nowhere; leave regions out for all.' },
    ]
  }
  const known = new Set(ctx.config.regions.map((region) => region.name))
  const unknown = names.filter((name) => !known.has(name))
  return [
    ...unknown.map((name) => ({
      path: [...path, name],
      reason: 'not_found',
      message: `There is no region ${name}.`,
    })),
    ...idle,
  ]
}

/** `path` is that of what has them. */
function checkIdle(idle: IdleLobbies | undefined, path: readonly string[]): ErrorDetail[] {
  if (idle === undefined || idle.min <= idle.max) return []
  const message = `Of ${idle.max} idle lobbies at most, ${idle.min} cannot be wanted.`
  return [{ path: [...path, 'idle_lobbies', 'min'], reason: 'too_high', message }]
}

/** The tier must exist in every region of the game mode. The error names the member that has the tier. */
function checkTiers(
  ctx: Context,
  resolved: GameModeConfig,
  mode: Matchmaker['game_modes'][string],
  mode_path: readonly string[],
): ErrorDetail[] {
  const shared_path = mode_path.slice(0, -2)
  const regions_path = [...(mode.regions === undefined ? shared_path : mode_path), 'regions']
  const tier_path = [...(mode.tier === undefined ? shared_path : mode_path), 'tier']
  return ctx.config.regions.flatMap((region): ErrorDetail[] => {
    if (resolved.regions !== null && !resolved.regions.includes(region.name)) return []
    const tier = tierIn(resolved, region.name)
    if (tier === null || region.tiers.some((item) => item.tier_name_id === tier)) return []
    const own = Object.hasOwn(resolved.region_tiers, region.name)
    const path = own ? [...regions_path, region.name, 'tier'] : tier_path
    return [{ path, reason: 'not_found', message: `The region ${region.name} has no tier ${tier}.` }]
  })
}

function checkDocker(docker: Docker, path: readonly string[]): ErrorDetail[] {
  const errors: ErrorDetail[] = []
  for (const name of Object.keys(docker.env ?? {})) {
    if (!RESERVED_ENV.test(name)) continue
    const message = `The environment variable ${name} is the platform's to set.`
    errors.push({ path: [...path, 'env', name], reason: 'conflicts_with_default', message })
  }
  return errors
}

async function checkBuilds(
  ctx: Context,
  game_id: string,
  blocks: ReadonlyMap<readonly string[], Docker>,
): Promise<ErrorDetail[]> {
  const wanted = [...blocks].flatMap(([path, { image_id }]) => (image_id === undefined ? [] : [{ path, image_id }]))
  if (wanted.length === 0) return []
  const rows = await ctx.db
    .selectFrom('builds')
    .innerJoin('uploads', 'uploads.upload_id', 'builds.upload_id')
    .select(['builds.build_id', 'builds.kind', 'uploads.complete_ts'])
    .where('builds.game_id', '=', game_id)
    .where('builds.build_id', 'in', [...new Set(wanted.map((item) => item.image_id))])
    .execute()
  const builds = new Map(rows.map((row) => [row.build_id, row]))
  return wanted.flatMap(({ path, image_id }): ErrorDetail[] => {
    const at = [...path, 'image_id']
    const build = builds.get(image_id)
    if (build === undefined) return [{ path: at, reason: 'not_found', message: `The game has no build ${image_id}.` }]
    if (build.complete_ts === null) {
      return [{ path: at, reason: 'incomplete', message: `The upload of build ${image_id} is not complete.` }]
    }
    if (build.kind === 'archive') return []
    return [
      { path: at, reason: 'not_runnable', message: `Build ${image_id} is a ${build.kind}, which cannot be run yet.` },
    ]
  })
}

/** Of builds whose files were noted. */
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
  return [...modes.values()].flatMap(({ name, image_id, args }) => {
    const of_build = image_id === null ? undefined : files.get(image_id)
    if (of_build === undefined || args.length === 0) return []
    const own = matchmaker.game_modes[name]?.docker !== undefined
    const path = ['matchmaker', ...(own ? ['game_modes', name] : []), 'docker', 'args']
    return checkProgram(args, of_build, path)
  })
}

/** Game modes that share a docker block would all complain about it. */
function distinct(errors: readonly ErrorDetail[]): ErrorDetail[] {
  return [...new Map(errors.map((error) => [`${error.path.join('\n')}\n\n${error.reason}`, error])).values()]
}
