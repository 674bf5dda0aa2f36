// A session: the platform, the credential and the game that a command acts on. Each comes from the flag, the environment,
// muster.yaml or the context, in this order. A token of a context is sent only to the address of that context. MUSTER_TOKEN is
// never sent to an address that only muster.yaml names: the author of a cloned repository would receive it.
import { readFile, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { getGameById, getGames, inspectAuth, type Operation, type ResponseOf } from '@musterhost/contract'
import { type CallInput, type Client, createClient } from '@musterhost/contract/client'
import { send } from '@musterhost/contract/node-send'
import { didYouMean } from '@musterhost/contract/suggestion'
import { EXIT, Failure } from './failure.ts'
import type { GlobalOptions } from './options.ts'
import { hasPlatform } from './platform-node.ts'
import { normalUrl, readPlatforms } from './platforms.ts'
import { type ProjectAddress, readProjectAddress } from './project/address.ts'
import type { Terminal } from './terminal.ts'

export type GameFull = ResponseOf<typeof getGameById>['game']
type Game = { game_id: string; name_id: string }
export type SessionNamespace = { namespace_id: string; name_id: string }

export type Session = {
  url: string
  token: string
  client: Client
  /** Where the address and the token come from, for the first line. */
  origin: string
  game(): Promise<Game>
  /** The game as it is now, with its namespaces and versions. */
  gameFull(): Promise<GameFull>
  namespace(): Promise<SessionNamespace>
}

/** What a session reads. A command may give it another environment than its own. */
type Surroundings = Pick<Terminal, 'env' | 'cwd' | 'signal'>

type Credential = { url: string; token: string; origin: string }

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const NAMESPACE_DEFAULT = 'prod'
/** As in the settings of the platform. */
const DATA_FOLDER_DEFAULT = '.muster'
/** Folders above the person's in which a platform is searched. */
const FOLDERS_ABOVE_MAX = 32
/** Names in an error that lists the possible ones. */
const LISTED_NAMES_MAX = 12

export async function openSession(terminal: Surroundings, options: GlobalOptions): Promise<Session> {
  const project = readProjectAddress(terminal.cwd)
  const { url, token, origin } = await findCredential(terminal, options, project)
  const client = createCommandClient(url, token, terminal.signal)
  const wanted_game = options.game ?? (terminal.env.GAME_ID || undefined) ?? project?.game
  const wanted_namespace = options.namespace ?? (terminal.env.NAMESPACE_ID || undefined) ?? project?.namespace
  let game: Promise<Game> | null = null
  const session: Session = {
    url,
    token,
    client,
    origin,
    game: () => {
      game ??= findGame(client, wanted_game)
      return game
    },
    async gameFull() {
      const { game_id } = await session.game()
      return (await client.call(getGameById, { params: { game_id } })).game
    },
    async namespace() {
      return chooseNamespace(await session.gameFull(), wanted_namespace)
    },
  }
  return session
}

/** The session of a command on one game. `where`: the game and the platform, for people. */
export async function openGame(terminal: Terminal, options: GlobalOptions) {
  const session = await openSession(terminal, options)
  const { game_id, name_id } = await session.game()
  return { session, client: session.client, params: { game_id }, where: `${name_id} at ${session.url}` }
}

/** The typed client, whose errors name the platform, and whose calls end at Ctrl-C. */
export function createCommandClient(url: string, token: string | undefined, signal: AbortSignal): Client {
  const client = createClient(token === undefined ? { url, send } : { url, token, send })
  return {
    async call<O extends Operation>(operation: O, input: CallInput<O>) {
      try {
        return await client.call(operation, { signal, ...input })
      } catch (error) {
        if (signal.aborted) throw error
        throw unreachable(url, error) ?? error
      }
    },
  }
}

function unreachable(url: string, error: unknown): Failure | null {
  if (error instanceof SyntaxError) {
    return new Failure(`${url} does not respond like a Muster platform.`, {
      remedy: 'Check the address: --url, MUSTER_URL, or muster context list.',
      cause: error,
    })
  }
  // Everything that prevents a response.
  if (!(error instanceof TypeError)) return null
  const reason = error.cause instanceof Error ? error.cause : error
  const code = (reason as NodeJS.ErrnoException).code ?? reason.message
  return new Failure(`The platform at ${url} cannot be reached (${code}).`, {
    remedy: 'Check the address and the network. On your own machine: muster start',
    cause: error,
  })
}

async function findCredential(
  terminal: Surroundings,
  options: GlobalOptions,
  project: ProjectAddress | null,
): Promise<Credential> {
  const { env } = terminal
  const { current, platforms } = await readPlatforms(env)
  const given = givenUrl(options, env, project)
  if (options.context !== undefined && given?.source !== '--url') {
    return withToken(requireContext(platforms, options.context), env, `context ${options.context}`)
  }
  if (given !== null) {
    const names = Object.keys(platforms).filter((name) => platforms[name]?.url === given.url)
    const name = names.find((one) => one === (options.context ?? current)) ?? names[0]
    if (env.MUSTER_TOKEN) {
      if (given.source === project?.file && name === undefined) throw unconfirmedUrl(given)
      return { url: given.url, token: env.MUSTER_TOKEN, origin: 'MUSTER_TOKEN' }
    }
    if (name !== undefined) return { ...platforms[name]!, origin: `context ${name}` }
    const own = await localPlatform(terminal)
    if (own?.url === given.url) return own
    throw notLoggedIn(given.url)
  }
  if (current !== null) return withToken(platforms[current]!, env, `context ${current}`)
  const own = await localPlatform(terminal)
  if (own !== null) return withToken(own, env, own.origin)
  throw new Failure('No platform is chosen.', {
    exit_code: EXIT.usage,
    remedy: 'Log in to one: muster login --url https://muster.example.com. Or run one on this machine: muster start',
  })
}

/**
 * Whether a flag, the environment or a login names the platform. `muster.yaml` does not count: it is about a game. Without a
 * choice a command acts on the platform of this machine.
 */
export async function isPlatformChosen({ env }: Surroundings, { url, context }: GlobalOptions): Promise<boolean> {
  if (url !== undefined || context !== undefined || env.MUSTER_URL) return true
  return (await readPlatforms(env)).current !== null
}

function withToken(platform: { url: string; token: string }, env: Terminal['env'], origin: string): Credential {
  if (env.MUSTER_TOKEN) return { url: platform.url, token: env.MUSTER_TOKEN, origin: `${origin}, MUSTER_TOKEN` }
  return { url: platform.url, token: platform.token, origin }
}

function givenUrl(
  options: GlobalOptions,
  env: Terminal['env'],
  project: ProjectAddress | null,
): { url: string; source: string } | null {
  if (options.url !== undefined) return { url: normalUrl(options.url, '--url'), source: '--url' }
  if (env.MUSTER_URL) return { url: normalUrl(env.MUSTER_URL, 'MUSTER_URL'), source: 'MUSTER_URL' }
  if (project?.url !== undefined) return { url: normalUrl(project.url, `url of ${project.file}`), source: project.file }
  return null
}

function requireContext(platforms: Record<string, { url: string; token: string }>, name: string) {
  const platform = Object.hasOwn(platforms, name) ? platforms[name] : undefined
  if (platform !== undefined) return platform
  throw new Failure(`There is no context ${name}.${didYouMean(name, Object.keys(platforms))}`, {
    remedy: 'See all: muster context list. Add one: muster login --url URL',
  })
}

function unconfirmedUrl({ url, source }: { url: string; source: string }): Failure {
  return new Failure(`MUSTER_TOKEN is not sent to ${url}: only ${source} names this address.`, {
    exit_code: EXIT.usage,
    remedy: `If you trust it, say so: MUSTER_URL=${url}, or --url ${url}. Or log in: muster login --url ${url}`,
  })
}

function notLoggedIn(url: string): Failure {
  return new Failure(`You are not logged in to ${url}.`, {
    exit_code: EXIT.not_allowed,
    remedy: `Log in: muster login --url ${url}. In CI, set MUSTER_TOKEN to a cloud token.`,
  })
}

/** The platform whose data folder this user may read, as on the machine of the operator. Null: there is none. */
export async function localPlatform(terminal: Surroundings): Promise<Credential | null> {
  const found = await findDataFolder(terminal)
  if (found === null || !hasPlatform()) return null
  const [{ readConfig }, { mainUrl }, { readChosenPorts }] = await Promise.all([
    import('@musterhost/server/config/read-config'),
    import('@musterhost/server/config/addresses'),
    import('@musterhost/server/config/chosen-ports'),
  ])
  const set = Object.entries(terminal.env).filter(([, value]) => value !== '')
  const url = new URL(mainUrl(readConfig({ ...readChosenPorts(found.data_dir), ...Object.fromEntries(set) }))).origin
  return { url, token: found.token, origin: "the operator's token of this machine" }
}

/**
 * The data folder, with its operator's token, of the platform that was started in the person's folder or in a folder above
 * it, or with `npm start` in the checkout of the command. Above the person's folder only a file of the same user counts.
 */
async function findDataFolder({ env, cwd }: Surroundings): Promise<{ data_dir: string; token: string } | null> {
  const { MUSTER_CHECKOUT: checkout = cwd } = env
  const own_uid = process.getuid?.()
  // The checkout comes last: the token of a platform that it ran before is not one of the platform that the person started.
  const candidates = [
    { folder: cwd, uid: undefined },
    ...foldersAbove(cwd).map((folder) => ({ folder, uid: own_uid })),
    ...[...new Set([process.cwd(), checkout])].map((folder) => ({ folder, uid: undefined })),
  ]
  for (const { folder, uid } of candidates) {
    const data_dir = resolve(folder, env.MUSTER_DATA || DATA_FOLDER_DEFAULT)
    const token = await readIfThere(join(data_dir, 'admin-token'), uid)
    if (token !== null) return { data_dir, token: token.trim() }
  }
  return null
}

/** The nearest first. */
function foldersAbove(folder: string): string[] {
  const folders: string[] = []
  for (let above = dirname(folder); folders.length < FOLDERS_ABOVE_MAX; above = dirname(above)) {
    if (above === (folders.at(-1) ?? folder)) break
    folders.push(above)
  }
  return folders
}

/** Null where the file is missing or cannot be read, and where it belongs to another user than `uid`. */
async function readIfThere(file: string, uid?: number): Promise<string | null> {
  try {
    if (uid !== undefined && (await stat(file)).uid !== uid) return null
    return await readFile(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // Another user's platform, or none: then the command says how to log in.
    if (['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM'].includes(code ?? '')) return null
    throw error
  }
}

async function findGame(client: Client, wanted: string | undefined): Promise<Game> {
  if (wanted === undefined) {
    const { agent } = await client.call(inspectAuth, {})
    if (agent.game_cloud !== undefined) {
      const { game } = await client.call(getGameById, { params: { game_id: agent.game_cloud.game_id } })
      return { game_id: game.game_id, name_id: game.name_id }
    }
  }
  if (wanted !== undefined && UUID.test(wanted)) {
    const { game } = await client.call(getGameById, { params: { game_id: wanted } })
    return { game_id: game.game_id, name_id: game.name_id }
  }
  const { games } = await client.call(getGames, {})
  const names = games.map(({ name_id }) => name_id)
  if (wanted === undefined) {
    const [only, ...others] = games
    if (only !== undefined && others.length === 0) return { game_id: only.game_id, name_id: only.name_id }
    throw new Failure(only === undefined ? 'There is no game yet.' : `There are several games: ${listed(names)}.`, {
      exit_code: EXIT.usage,
      remedy: only === undefined ? 'Create one: muster games create NAME' : 'Name one: --game NAME',
    })
  }
  const found = games.find(({ name_id }) => name_id === wanted)
  if (found !== undefined) return { game_id: found.game_id, name_id: found.name_id }
  throw new Failure(`There is no game ${wanted}.${didYouMean(wanted, names)}`, {
    remedy: names.length === 0 ? 'Create one: muster games create NAME' : `Games: ${listed(names)}.`,
  })
}

function chooseNamespace(game: GameFull, wanted: string | undefined): SessionNamespace {
  const { namespaces } = game
  const name = wanted ?? NAMESPACE_DEFAULT
  const found =
    namespaces.find(({ name_id, namespace_id }) => name_id === name || namespace_id === name) ??
    (wanted === undefined && namespaces.length === 1 ? namespaces[0] : undefined)
  if (found !== undefined) return { namespace_id: found.namespace_id, name_id: found.name_id }
  const names = namespaces.map(({ name_id }) => name_id)
  throw new Failure(`The game ${game.name_id} has no namespace ${name}.${didYouMean(name, names)}`, {
    exit_code: wanted === undefined ? EXIT.usage : EXIT.failed,
    remedy: `Namespaces: ${listed(names)}. Name one: --namespace NAME`,
  })
}

function listed(names: readonly string[]): string {
  const more = names.length - LISTED_NAMES_MAX
  return names.slice(0, LISTED_NAMES_MAX).join(', ') + (more > 0 ? ` and ${more} more` : '')
}
