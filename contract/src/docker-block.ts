// The docker block that the lobbies of a game mode run: members of the game mode's own block, over those of `matchmaker.docker`.
import type { VersionConfig } from './version-config.ts'

type Matchmaker = NonNullable<VersionConfig['matchmaker']>
export type DockerBlock = NonNullable<Matchmaker['docker']>

/** Members that say how a build is started. A game mode with another build does not inherit them. */
const START_MEMBERS = ['args', 'entrypoint', 'working_folder', 'user', 'stop_signal'] as const
/** Maps whose entries a game mode replaces as a whole. */
const REPLACED_MAPS = ['ports', 'files'] as const

/** Null: the version names no server for the game mode. */
export function dockerOfMode(shared: DockerBlock | undefined, own: DockerBlock | undefined): DockerBlock | null {
  if (shared === undefined || own === undefined) return own ?? shared ?? null
  const inherited = { ...shared }
  if (namesBuild(own)) {
    delete inherited.image_id
    delete inherited.image
  }
  if (isOfOtherBuild(shared, own)) for (const name of START_MEMBERS) delete inherited[name]
  const has_env = shared.env !== undefined || own.env !== undefined
  return { ...inherited, ...own, ...(has_env && { env: { ...shared.env, ...own.env } }) }
}

/** Path of a member of the merged block: in the block that it comes from. `path` begins below the block. */
export function dockerMemberPath(matchmaker: Matchmaker, mode_name: string, path: readonly string[]): string[] {
  const own = matchmaker.game_modes[mode_name]?.docker
  const own_path = ['matchmaker', 'game_modes', mode_name, 'docker', ...path]
  const shared_path = ['matchmaker', 'docker', ...path]
  if (matchmaker.docker === undefined) return own_path
  if (own === undefined) return shared_path
  return hasMember(own, path) || !hasMember(matchmaker.docker, path) ? own_path : shared_path
}

/** Whether the block has the member at the beginning of the path. Variables of `env` count one by one. */
function hasMember(docker: DockerBlock, [name = '', variable]: readonly string[]): boolean {
  if (name === 'env' && variable !== undefined) return Object.hasOwn(docker.env ?? {}, variable)
  return Object.hasOwn(docker, name)
}

type Replacement = { path: string[]; message: string }

/** Members of `matchmaker.docker` that do not apply to a game mode, because its own block has them or another build. */
export function replacedDockerMembers(matchmaker: Matchmaker): Replacement[] {
  const shared = matchmaker.docker
  if (shared === undefined) return []
  return Object.entries(matchmaker.game_modes).flatMap(([mode, { docker: own }]): Replacement[] => {
    if (own === undefined) return []
    const at = (name: string) => ['matchmaker', 'game_modes', mode, 'docker', name]
    const replaced = Object.keys(own).flatMap((name): Replacement[] => {
      if (name === 'env' || !isReplaced(shared, own, name as keyof DockerBlock)) return []
      const message = `The game mode ${mode} replaces ${name} of matchmaker.docker.${lostEntries(shared, own, name)}`
      return [{ path: at(name), message }]
    })
    const variables = Object.keys(own.env ?? {})
      .filter((name) => Object.hasOwn(shared.env ?? {}, name) && shared.env![name] !== own.env![name])
      .map((name) => ({
        path: [...at('env'), name],
        message: `The game mode ${mode} replaces the variable ${name} of matchmaker.docker.`,
      }))
    return [...replaced, ...variables, ...startMembersLost(shared, own, mode)]
  })
}

function isReplaced(shared: DockerBlock, own: DockerBlock, name: keyof DockerBlock): boolean {
  return Object.hasOwn(shared, name) && JSON.stringify(shared[name]) !== JSON.stringify(own[name])
}

/** As a sentence with a space before it. */
function lostEntries(shared: DockerBlock, own: DockerBlock, name: string): string {
  const map = REPLACED_MAPS.find((one) => one === name)
  if (map === undefined) return ''
  const lost = Object.keys(shared[map] ?? {}).filter((entry) => !Object.hasOwn(own[map] ?? {}, entry))
  return lost.length === 0 ? '' : ` It does not have ${lost.join(', ')}.`
}

function startMembersLost(shared: DockerBlock, own: DockerBlock, mode: string): Replacement[] {
  if (!isOfOtherBuild(shared, own)) return []
  return START_MEMBERS.filter((name) => Object.hasOwn(shared, name) && !Object.hasOwn(own, name)).map((name) => ({
    path: ['matchmaker', 'game_modes', mode, 'docker', own.image === undefined ? 'image_id' : 'image'],
    message: `The game mode ${mode} runs another build than matchmaker.docker, so ${name} of matchmaker.docker does not apply to it.`,
  }))
}

function namesBuild({ image_id, image }: DockerBlock): boolean {
  return image_id !== undefined || image !== undefined
}

function isOfOtherBuild(shared: DockerBlock, own: DockerBlock): boolean {
  if (!namesBuild(shared) || !namesBuild(own)) return false
  return shared.image_id !== own.image_id || shared.image !== own.image
}
