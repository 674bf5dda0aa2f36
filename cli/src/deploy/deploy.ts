// muster deploy: builds, packs and sends what is new, creates a version, starts a lobby of the version, and switches the
// namespace. Nothing is switched before everything has arrived and the lobby is ready, so a deploy that fails or is
// interrupted leaves the namespace as it was.
import { relative } from 'node:path'
import {
  ApiError,
  createGameVersion,
  reserveVersionName,
  UPLOAD_FILES_MAX,
  updateGameNamespaceVersion,
  type VersionConfig,
} from '@musterhost/contract'
import { changeLines, changesBetween } from '@musterhost/contract/differences'
import { hasSecrets, readableConfig } from '@musterhost/contract/readable-config'
import { EXIT, Failure, INTERRUPTED_EXIT_CODE } from '../failure.ts'
import { completeVersion } from '../project/complete.ts'
import { locateErrors, type Project, type ProjectFolder, type ProjectImage, shellWordsOf } from '../project/project.ts'
import type { Session } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { siteUrl } from './addresses.ts'
import { runBuild } from './build.ts'
import { checkVersion } from './check.ts'
import { type HashedFile, hashFiles, listFiles, PACKED_FILES_MAX } from './files.ts'
import { giveSeatBack, waitForFirstLobby } from './first-lobby.ts'
import { firstPageHint } from './first-page.ts'
import { readIgnoreRules } from './ignore-rules.ts'
import { readImage } from './image.ts'
import { type PreviewOptions, previewTarget } from './preview.ts'
import { beginRollout, type RolloutOptions } from './rollout.ts'
import type { DeployTarget } from './target.ts'
import { type ServerSource, type Uploaded, uploadServer, uploadSite } from './uploads.ts'
import { hasGameModes, readVersion } from './versions.ts'

export type DeployOptions = {
  message?: string
  /** False: the site of the current version stays. */
  site?: boolean
  /** False: the namespace is switched before a lobby of the version has shown that its server starts. */
  check?: boolean
  /** Waits for no lobby, before the switch or after it. */
  detach?: boolean
} & PreviewOptions &
  RolloutOptions

/** Names are those of the API. */
export type DeployResult = {
  game_id: string
  namespace_id: string
  version_id: string
  display_name: string
  /** Whether a version was created. False: the namespace runs these files and this config already. */
  is_new: boolean
  build_id: string | null
  site_id: string | null
  sent_bytes: number
  /** Address of the site. Null: the version has none. */
  url: string | null
  lobby_id: string | null
  /** How long the lobby took to become ready. Null: the command did not wait. */
  first_lobby_ms: number | null
  /** Only of a preview: when its namespace is deleted. */
  expire_ts?: string
}

/** Where a deploy goes. A preview that is new has no namespace until its version exists. */
type Deploying = {
  terminal: Terminal
  session: Session
  project: Project
  options: DeployOptions
  game: { game_id: string; name_id: string }
  target: DeployTarget
}

export async function deployProject(
  terminal: Terminal,
  session: Session,
  project: Project,
  options: DeployOptions,
): Promise<DeployResult> {
  const is_preview = options.preview !== undefined
  const target = is_preview ? await previewTarget(terminal, session, options) : await namespaceTarget(session, options)
  const result = await deployTo(terminal, session, project, options, target)
  if (!is_preview) return result
  const found = (await session.gameFull()).namespaces.find((one) => one.namespace_id === result.namespace_id)
  return found?.expire_ts === undefined ? result : { ...result, expire_ts: found.expire_ts }
}

async function deployTo(
  terminal: Terminal,
  session: Session,
  project: Project,
  options: DeployOptions,
  target: DeployTarget,
): Promise<DeployResult> {
  const game = await session.game()
  const deploying: Deploying = { terminal, session, project, options, game, target }
  terminal.note(`Deploying ${game.name_id} to ${target.name_id} on ${session.url}`)
  for (const { line, column, message } of shellWordsOf(project)) terminal.note(`  ${line}:${column}  ${message}`)
  let is_switched = false
  try {
    const { server, site } = await uploadAll(deploying)
    const config = completeVersion(project.version, { build_id: server?.id ?? null, site_id: site?.id ?? null })
    showDifference(deploying, config)
    const version = await createVersion(deploying, config)
    terminal.signal.throwIfAborted()
    const checked = await check(deploying, version, config)
    terminal.signal.throwIfAborted()
    const namespace = version.is_new
      ? await target.put(version.version_id)
      : (target.namespace ?? (await target.put(version.version_id)))
    is_switched = true
    if (checked !== null) await giveSeatBack(session, game.game_id, checked.lobby_id).catch(ignoreRefusal)
    terminal.note(switchedText(deploying, version))
    const ids = { game_id: game.game_id, namespace_id: namespace.namespace_id, version_id: version.version_id }
    const is_for_all = version.is_new && options.percent === undefined
    const lobby = checked ?? (await firstLobby(deploying, { ...ids, config }, is_for_all))
    const url = site === null ? null : await siteUrl(session, game.name_id, namespace.name_id)
    return {
      ...ids,
      display_name: version.display_name,
      is_new: version.is_new,
      build_id: server?.id ?? null,
      site_id: site?.id ?? null,
      sent_bytes: (server?.sent_bytes ?? 0) + (site?.sent_bytes ?? 0),
      url,
      ...lobby,
    }
  } catch (error) {
    if (!terminal.signal.aborted) throw error
    throw interrupted(target, is_switched)
  }
}

function switchedText({ target, options: { percent } }: Deploying, { display_name, is_new }: CreatedVersion): string {
  if (!is_new) return `${target.name_id} runs this already, as version ${display_name}.`
  if (percent === undefined)
    return `${target.name_id} runs version ${display_name} from now on. Running lobbies keep theirs.`
  return `${target.name_id} gives version ${display_name} to ${percent} % of the clients from now on: muster rollout`
}

function interrupted(target: DeployTarget, is_switched: boolean): Failure {
  if (is_switched) {
    return new Failure(
      `Interrupted. ${target.name_id} runs the new version, and its first lobby starts without this command.`,
      {
        exit_code: INTERRUPTED_EXIT_CODE,
        remedy: 'See it: muster lobbies. Go back: muster rollback',
      },
    )
  }
  return new Failure(`Interrupted. Nothing was switched: ${stateOf(target)}. What has arrived is kept.`, {
    exit_code: INTERRUPTED_EXIT_CODE,
    remedy: 'Continue: muster deploy',
  })
}

/** What the namespace is while nothing has been switched. */
function stateOf({ name_id, current }: DeployTarget): string {
  return current === null ? `${name_id} was not created` : `${name_id} still runs version ${current.display_name}`
}

async function namespaceTarget(
  session: Session,
  { message, percent, ...limits }: DeployOptions,
): Promise<DeployTarget> {
  const { game_id } = await session.game()
  const namespace = await session.namespace()
  const found = (await session.gameFull()).namespaces.find((one) => one.namespace_id === namespace.namespace_id)
  if (found === undefined) throw new Failure(`The namespace ${namespace.name_id} was deleted a moment ago.`)
  return {
    name_id: namespace.name_id,
    namespace,
    current: await readVersion(session, found.version_id),
    async put(version_id) {
      if (percent !== undefined) {
        await beginRollout(session, version_id, percent, limits)
        return namespace
      }
      const params = { game_id, namespace_id: namespace.namespace_id }
      const body = message === undefined ? { version_id } : { version_id, message }
      await session.client.call(updateGameNamespaceVersion, { params, body })
      return namespace
    },
  }
}

type Uploads = { server: Uploaded | null; site: Uploaded | null }

/** Both are built before one byte is sent, so a build that fails leaves nothing behind. */
async function uploadAll(deploying: Deploying): Promise<Uploads> {
  const { terminal, session, project, options, game, target } = deploying
  const with_site = options.site !== false
  const server_source = project.server && (await readServer(deploying, project.server))
  const site_files =
    project.site && with_site ? await readFiles(deploying, 'site', project.site, UPLOAD_FILES_MAX) : null
  const hint = site_files && firstPageHint(namesOf(site_files), relative(project.folder, project.site!.folder))
  if (hint !== null) terminal.note(hint)
  const ctx = { terminal, session, game, folder: project.folder }
  const server = server_source && (await uploadServer(ctx, server_source))
  if (site_files !== null) return { server, site: await uploadSite(ctx, site_files) }
  const site_id = with_site ? undefined : target.current?.config.cdn?.site_id
  if (site_id !== undefined) terminal.note('site: the one of the current version')
  return { server, site: site_id === undefined ? null : { id: site_id, sent_bytes: 0 } }
}

const namesOf = (files: readonly HashedFile[]): string[] => files.map(({ path }) => path)

async function readServer(deploying: Deploying, server: ProjectFolder | ProjectImage): Promise<ServerSource> {
  if (!('image' in server)) return { files: await readFiles(deploying, 'server', server, PACKED_FILES_MAX) }
  const { terminal, project } = deploying
  const { image, build } = server
  if (build !== null) await runBuild(terminal, { title: 'server', folder: project.folder, command: build })
  return readImage(terminal, image)
}

async function readFiles(
  { terminal, project }: Deploying,
  title: string,
  { folder, build, ignore }: ProjectFolder,
  files_max: number,
): Promise<HashedFile[]> {
  if (build !== null) await runBuild(terminal, { title, folder: project.folder, command: build })
  const files = await listFiles(folder, readIgnoreRules(folder, ignore), files_max)
  if (files.length > 0) return hashFiles(files, terminal.signal)
  throw new Failure(`The folder of the ${title} has no files: ${folder}`, {
    exit_code: EXIT.usage,
    remedy: `Correct ${title}.folder in muster.yaml, or what is left out of it.`,
  })
}

function showDifference({ terminal, target }: Deploying, config: VersionConfig): void {
  if (target.current === null) return
  const changes = changesBetween(readableConfig(target.current.config), readableConfig(config))
  if (changes.length === 0) return
  terminal.note(`configuration, compared with version ${target.current.display_name}:`)
  for (const line of changeLines(changes)) terminal.note(`  ${line}`)
}

type CreatedVersion = { version_id: string; display_name: string; is_new: boolean }

/** Without any change the current version stays. A secret may have changed unseen, so a config with one is always new. */
async function createVersion(deploying: Deploying, config: VersionConfig): Promise<CreatedVersion> {
  const { terminal, session, project, game, target } = deploying
  const { current } = target
  if (current !== null && !hasSecrets(config) && hasSameIds(current.config, config)) {
    const changes = changesBetween(readableConfig(current.config), readableConfig(config))
    if (changes.length === 0)
      return { version_id: current.version_id, display_name: current.display_name, is_new: false }
  }
  const params = { game_id: game.game_id }
  const { version_display_name: display_name } = await session.client.call(reserveVersionName, { params })
  try {
    const { version_id, warnings } = await session.client.call(createGameVersion, {
      params,
      body: { display_name, config },
    })
    for (const { path, message } of warnings) terminal.note(`warning: ${path.join('.')}: ${message}`)
    return { version_id, display_name, is_new: true }
  } catch (error) {
    throw withLines(project, error)
  }
}

/** Mistakes of the config, with the lines of muster.yaml in which they are. */
function withLines(project: Project, error: unknown): unknown {
  if (!(error instanceof ApiError) || error.code !== 'VALIDATION_ERROR') return error
  const errors = (error.metadata as { errors?: Parameters<typeof locateErrors>[1] }).errors ?? []
  return new Failure(`The platform refused the configuration in ${project.file}:`, {
    details: locateErrors(project, errors),
    ...(error.ray_id === undefined ? {} : { ray_id: error.ray_id }),
    cause: error,
  })
}

function hasSameIds(a: VersionConfig, b: VersionConfig): boolean {
  return (
    a.cdn?.site_id === b.cdn?.site_id &&
    a.matchmaker?.docker?.image_id === b.matchmaker?.docker?.image_id &&
    Object.entries(a.matchmaker?.game_modes ?? {}).every(
      ([name, { docker }]) => docker?.image_id === b.matchmaker?.game_modes[name]?.docker?.image_id,
    )
  )
}

/** The seat expires. */
function ignoreRefusal(error: unknown): void {
  if (!(error instanceof ApiError)) throw error
}

type LobbyMembers = Pick<DeployResult, 'lobby_id' | 'first_lobby_ms'>

/** Null: nothing was checked. A preview that is new has no players who need the version before. */
async function check(
  { terminal, session, options, game, target }: Deploying,
  { version_id, display_name, is_new }: CreatedVersion,
  config: VersionConfig,
): Promise<{ lobby_id: string; first_lobby_ms: number } | null> {
  const { namespace } = target
  const is_wanted = options.check !== false && options.detach !== true
  if (!is_wanted || !is_new || namespace === null || !hasGameModes(config)) return null
  const stays = `Nothing was switched: ${stateOf(target)}.`
  const checked = { game_id: game.game_id, namespace_id: namespace.namespace_id, version_id, config }
  const { lobby_id, duration_ms } = await checkVersion(terminal, session, checked, { version: display_name, stays })
  const first_lobby_ms = Math.round(duration_ms)
  terminal.note(`first lobby ready in ${first_lobby_ms} ms`)
  return { lobby_id, first_lobby_ms }
}

async function firstLobby(
  { terminal, session, options }: Deploying,
  deployed: Parameters<typeof waitForFirstLobby>[2],
  is_new: boolean,
): Promise<LobbyMembers> {
  const none = { lobby_id: null, first_lobby_ms: null }
  if (!hasGameModes(deployed.config) || !is_new) return none
  if (options.detach === true) {
    terminal.note('Not waiting for the first lobby (--detach).')
    return none
  }
  const lobby = await waitForFirstLobby(terminal, session, deployed)
  if (lobby.lobby_id === null) {
    terminal.note(`Not waiting for the first lobby: ${lobby.reason}.`)
    return none
  }
  const first_lobby_ms = Math.round(lobby.duration_ms)
  terminal.note(`first lobby ready in ${first_lobby_ms} ms`)
  return { lobby_id: lobby.lobby_id, first_lobby_ms }
}
