// What makes a version config acceptable beyond its shape, as far as it can be said without stored data: its parts fit
// together, and the platform allows them. The server adds whether the builds, the site and the program exist.
import { type DockerBlock, dockerMemberPath, dockerOfMode } from '../docker-block.ts'
import type { ErrorDetail } from '../errors.ts'
import { type GameModeConfig, gameModesOf, tierIn } from '../game-modes.ts'
import type { ImageOverrides } from '../image-config.ts'
import type { IdleLobbies, VersionConfig } from '../version-config.ts'
import { checkActions } from './action-check.ts'
import { checkAdmission } from './admission-check.ts'
import { checkCaptcha } from './captcha-check.ts'
import { checkImageMembers } from './image-check.ts'
import { checkMatching } from './matching-check.ts'
import { checkPlaceholders } from './placeholder-check.ts'
import type { PlatformRules } from './platform-rules.ts'
import { checkPorts } from './port-check.ts'
import { checkProtocol } from './protocol-check.ts'
import { checkReady } from './ready-check.ts'
import { checkRoutes } from './route-check.ts'

/** Environment variables of a game mode. */
const ENV_MAX = 64
/** What the platform sets itself in a lobby's environment. */
const RESERVED_ENV = /^(PLATFORM|PORT|PUBLIC_(HOST|PORT|URL))_/

type Matchmaker = NonNullable<VersionConfig['matchmaker']>
type Regions = NonNullable<Matchmaker['regions']>

/**
 * `rules`: null when the platform is unknown. `images`: ids of the container images that name a program, so that `args` may
 * be absent. Paths are those within the config.
 */
export function checkVersionConfig(
  rules: PlatformRules | null,
  config: VersionConfig,
  images: ReadonlySet<string> = new Set(),
): ErrorDetail[] {
  const errors: ErrorDetail[] = []
  if (config.cdn !== undefined) {
    if (config.cdn.site_id === undefined) {
      errors.push({ path: ['cdn', 'site_id'], reason: 'required', message: 'The cdn section must name a site.' })
    }
    errors.push(...checkRoutes(config.cdn.routes ?? [], ['cdn', 'routes']))
  }
  if (config.matchmaker !== undefined) errors.push(...checkMatchmaker(rules, config.matchmaker, config, images))
  return errors
}

function checkMatchmaker(
  rules: PlatformRules | null,
  matchmaker: Matchmaker,
  config: VersionConfig,
  images: ReadonlySet<string>,
): ErrorDetail[] {
  const path = ['matchmaker']
  const modes = gameModesOf(config)
  const errors: ErrorDetail[] = []
  if (modes.size === 0) {
    errors.push({ path: [...path, 'game_modes'], reason: 'too_few', message: 'There must be at least one game mode.' })
  }
  errors.push(...checkRegions(rules, [...path, 'regions'], matchmaker.regions))
  errors.push(...checkIdle(matchmaker.idle_lobbies, path))
  if (matchmaker.captcha !== undefined) {
    errors.push(...checkCaptcha(rules?.mode ?? null, matchmaker.captcha, [...path, 'captcha']))
  }
  for (const [name, mode] of Object.entries(matchmaker.game_modes)) {
    const mode_path = [...path, 'game_modes', name]
    errors.push(...checkRegions(rules, [...mode_path, 'regions'], mode.regions))
    errors.push(...checkActions(rules?.checkUrl ?? null, mode.actions ?? {}, [...mode_path, 'actions']))
    errors.push(...checkCreate(modes.get(name)!, mode_path))
    errors.push(...checkIdle(mode.idle_lobbies, mode_path))
    errors.push(...checkTiers(rules, modes.get(name)!, mode, mode_path))
    errors.push(...checkMatching(modes.get(name)!, mode.matching, [...mode_path, 'matching']))
    errors.push(...checkServer(rules, matchmaker, modes.get(name)!, images))
  }
  return distinct(errors)
}

/** The merged docker block of a game mode. Errors name the block that the member comes from. */
function checkServer(
  rules: PlatformRules | null,
  matchmaker: Matchmaker,
  mode: GameModeConfig,
  images: ReadonlySet<string>,
): ErrorDetail[] {
  const own = matchmaker.game_modes[mode.name]!.docker
  const docker = dockerOfMode(matchmaker.docker, own) ?? {}
  const errors = [
    ...checkMode(mode, [], images),
    ...checkPlaceholders(mode, []),
    ...checkDocker(docker, []),
    ...checkPorts(docker, rules, []),
    ...checkReady(docker, []),
    ...checkProtocol(docker, rules, []),
    ...checkImageMembers(docker, rules?.registries ?? null, []),
    ...checkAdmission(docker, []).filter(
      ({ path, reason }) => reason !== 'needs_edge_seats' || !isUsedElsewhere(matchmaker, own, path[0]!),
    ),
  ]
  return errors.map((error) => ({ ...error, path: dockerMemberPath(matchmaker, mode.name, error.path) }))
}

/** Whether the member is inherited, and `matchmaker.docker` or a game mode has the seats that it is for. */
function isUsedElsewhere({ docker: shared, game_modes }: Matchmaker, own: DockerBlock | undefined, member: string) {
  if (own !== undefined && Object.hasOwn(own, member)) return false
  if (shared?.seats === 'edge') return true
  return Object.values(game_modes).some((mode) => dockerOfMode(shared, mode.docker)?.seats === 'edge')
}

/** The docker blocks of a version with their paths: the shared one first, then those of game modes. */
export function dockerBlocksOf(matchmaker: Matchmaker): [path: string[], docker: DockerBlock][] {
  const blocks: [string[], DockerBlock][] = []
  if (matchmaker.docker !== undefined) blocks.push([['matchmaker', 'docker'], matchmaker.docker])
  for (const [name, { docker }] of Object.entries(matchmaker.game_modes)) {
    if (docker !== undefined) blocks.push([['matchmaker', 'game_modes', name, 'docker'], docker])
  }
  return blocks
}

/** Creating would be switched on, and every create refused. */
function checkCreate({ name, create }: GameModeConfig, mode_path: readonly string[]): ErrorDetail[] {
  if (create === null || create.enable_public || create.enable_private) return []
  const message = `The game mode ${name} enables create, but neither public nor private lobbies. Leave enable_private out, or set enable_public.`
  return [{ path: [...mode_path, 'actions', 'create', 'enable_private'], reason: 'conflicts', message }]
}

/** `path` is the docker block that the mode takes its image from. */
function checkMode(mode: GameModeConfig, path: readonly string[], images: ReadonlySet<string>): ErrorDetail[] {
  const errors: ErrorDetail[] = []
  if (mode.image_id === null && mode.registry_image === null) {
    const message = `The game mode ${mode.name} has no build to run.`
    errors.push({ path: [...path, 'image_id'], reason: 'required', message })
  } else if (mode.args.length === 0 && !namesProgram(mode.image, isNamedByImage(mode, images))) {
    const message = `The game mode ${mode.name} does not say which program of its build to run.`
    errors.push({ path: [...path, 'args'], reason: 'too_few', message })
  }
  if (Object.keys(mode.env).length > ENV_MAX) {
    const message = `The game mode ${mode.name} has more than ${ENV_MAX} environment variables, with those it inherits.`
    errors.push({ path: [...path, 'env'], reason: 'too_many', message })
  }
  return errors
}

/** What an image of a registry says is known once it is pulled. */
function isNamedByImage({ image_id, registry_image }: GameModeConfig, images: ReadonlySet<string>): boolean {
  return registry_image !== null || (image_id !== null && images.has(image_id))
}

/** Whether there is a program without `args`. */
function namesProgram({ entrypoint }: ImageOverrides, is_named_by_image: boolean): boolean {
  return entrypoint === null ? is_named_by_image : entrypoint.length > 0
}

function checkRegions(
  rules: PlatformRules | null,
  path: readonly string[],
  regions: Regions | undefined,
): ErrorDetail[] {
  if (regions === undefined) return []
  const names = Object.keys(regions)
  const idle = names.flatMap((name) => checkIdle(regions[name]!.idle_lobbies, [...path, name]))
  if (names.length === 0) {
    return [
      { path: [...path], reason: 'too_few', message: 'Without a region it runs nowhere; leave regions out for all.' },
    ]
  }
  const known = rules === null ? null : new Set(rules.regions.map((region) => region.name))
  const unknown = known === null ? [] : names.filter((name) => !known.has(name))
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
  rules: PlatformRules | null,
  resolved: GameModeConfig,
  mode: Matchmaker['game_modes'][string],
  mode_path: readonly string[],
): ErrorDetail[] {
  const shared_path = mode_path.slice(0, -2)
  const regions_path = [...(mode.regions === undefined ? shared_path : mode_path), 'regions']
  const tier_path = [...(mode.tier === undefined ? shared_path : mode_path), 'tier']
  return (rules?.regions ?? []).flatMap((region): ErrorDetail[] => {
    if (resolved.regions !== null && !resolved.regions.includes(region.name)) return []
    const tier = tierIn(resolved, region.name)
    if (tier === null || region.tiers.some((item) => item.tier_name_id === tier)) return []
    const own = Object.hasOwn(resolved.region_tiers, region.name)
    const path = own ? [...regions_path, region.name, 'tier'] : tier_path
    return [{ path, reason: 'not_found', message: `The region ${region.name} has no tier ${tier}.` }]
  })
}

function checkDocker(docker: DockerBlock, path: readonly string[]): ErrorDetail[] {
  const errors: ErrorDetail[] = []
  for (const name of Object.keys(docker.env ?? {})) {
    if (!RESERVED_ENV.test(name)) continue
    const message = `The environment variable ${name} is the platform's to set.`
    errors.push({ path: [...path, 'env', name], reason: 'conflicts_with_default', message })
  }
  return errors
}

/** Game modes that share a docker block would all complain about it. */
function distinct(errors: readonly ErrorDetail[]): ErrorDetail[] {
  return [...new Map(errors.map((error) => [`${error.path.join('\n')}\n\n${error.reason}`, error])).values()]
}
