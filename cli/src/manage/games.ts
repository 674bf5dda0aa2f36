// Games and their namespaces.
import {
  createGame,
  createGameNamespace,
  deleteGame,
  deleteGameNamespace,
  getGameNamespaceById,
  getGames,
  listGroups,
  renameGame,
  renameGameNamespace,
  updateGameNamespaceExpiry,
} from '@musterhost/contract'
import { didYouMean } from '@musterhost/contract/suggestion'
import { EXIT, Failure } from '../failure.ts'
import type { GlobalOptions } from '../options.ts'
import { type GameFull, openSession, type Session } from '../session.ts'
import { printFields, printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { ago } from '../times.ts'
import { findGroup } from './groups.ts'
import { confirmRemoval, type RemovalOptions } from './removal.ts'

export async function listGames(terminal: Terminal, options: GlobalOptions): Promise<void> {
  const { client, url } = await openSession(terminal, options)
  terminal.note(`Games at ${url}`)
  const { games, groups, is_cut } = await client.call(getGames, {})
  if (terminal.is_json) return terminal.json({ games, groups, is_cut })
  printTable(
    terminal,
    games,
    [
      { title: 'GAME', text: ({ name_id }) => name_id, is_whole: true },
      { title: 'NAME', text: ({ display_name }) => display_name },
      { title: 'GROUP', text: ({ developer }) => developer.display_name },
      { title: 'PLAYERS', text: ({ total_player_count }) => String(total_player_count), align: 'right' },
      { title: 'CREATED', text: ({ create_ts }) => ago(terminal, create_ts) },
      { title: 'SITE', text: ({ url: site }) => site, is_whole: true },
    ],
    'There is no game yet. Create one: muster games create NAME',
  )
  if (is_cut) terminal.note('The platform has more games; these are the newest.')
}

/** `name` stands for --game. */
export async function getGame(terminal: Terminal, name: string | undefined, options: GlobalOptions): Promise<void> {
  const session = await openSession(terminal, name === undefined ? options : { ...options, game: name })
  const game = await session.gameFull()
  terminal.note(`Game ${game.name_id} at ${session.url}`)
  if (terminal.is_json) return terminal.json({ game })
  printFields(terminal, [
    ['game', game.name_id],
    ['name', game.display_name],
    ['id', game.game_id],
    ['players', String(game.total_player_count)],
    ['versions', String(game.versions.length)],
    ['regions', game.available_regions.map(({ region_name_id }) => region_name_id).join(', ')],
    ['created', ago(terminal, game.create_ts)],
  ])
  terminal.print('')
  printNamespaces(terminal, game)
}

export async function addGame(
  terminal: Terminal,
  name: string,
  options: GlobalOptions & { group?: string; displayName?: string },
): Promise<void> {
  const { client, url } = await openSession(terminal, options)
  terminal.note(`Creating the game ${name} at ${url}`)
  const { groups } = await client.call(listGroups, {})
  const group = findGroup(groups, options.group)
  const { game_id } = await client.call(createGame, {
    body: { name_id: name, display_name: options.displayName ?? name, developer_group_id: group.group_id },
  })
  if (terminal.is_json) return terminal.json({ game_id })
  terminal.note(`Created ${name} (${game_id}) in the group ${group.display_name}.`)
}

export async function removeGame(
  terminal: Terminal,
  name: string,
  options: GlobalOptions & RemovalOptions,
): Promise<void> {
  const session = await openSession(terminal, { ...options, game: name })
  const { game_id, name_id } = await session.game()
  await confirmRemoval(terminal, `Delete the game ${name_id} with everything in it, at ${session.url}?`, options)
  await session.client.call(deleteGame, { params: { game_id } })
  if (terminal.is_json) return terminal.json({})
  terminal.note(`Deleted the game ${name_id}.`)
}

export async function setGameName(
  terminal: Terminal,
  name: string,
  display_name: string,
  options: GlobalOptions,
): Promise<void> {
  const session = await openSession(terminal, { ...options, game: name })
  const { game_id, name_id } = await session.game()
  await session.client.call(renameGame, { params: { game_id }, body: { display_name } })
  if (terminal.is_json) return terminal.json({})
  terminal.note(`The game ${name_id} is called "${display_name}". Its address stays as it is.`)
}

export async function listNamespaces(terminal: Terminal, options: GlobalOptions): Promise<void> {
  const session = await openSession(terminal, options)
  const game = await session.gameFull()
  terminal.note(`Namespaces of ${game.name_id} at ${session.url}`)
  if (terminal.is_json) return terminal.json({ namespaces: game.namespaces, is_cut: game.is_cut })
  printNamespaces(terminal, game)
}

export async function getNamespace(
  terminal: Terminal,
  name: string | undefined,
  options: GlobalOptions,
): Promise<void> {
  const session = await openSession(terminal, name === undefined ? options : { ...options, namespace: name })
  const { client, url } = session
  const [game, { namespace_id }] = [await session.gameFull(), await session.namespace()]
  const { namespace } = await client.call(getGameNamespaceById, { params: { game_id: game.game_id, namespace_id } })
  terminal.note(`Namespace ${namespace.name_id} of ${game.name_id} at ${url}`)
  if (terminal.is_json) return terminal.json({ namespace })
  const { cdn, matchmaker } = namespace.config
  printFields(terminal, [
    ['namespace', namespace.name_id],
    ['name', namespace.display_name],
    ['id', namespace.namespace_id],
    ['version', versionName(game, namespace.version_id)],
    ['site', cdn.auth_type === 'basic' ? 'visitors need a password' : 'public'],
    ['domains', cdn.domains.map(({ domain }) => domain).join(', ') || 'none of its own'],
    ['lobbies at most', String(matchmaker.lobby_count_max)],
    ['created', ago(terminal, namespace.create_ts)],
    ['expires', namespace.expire_ts === undefined ? 'never' : ago(terminal, namespace.expire_ts)],
  ])
}

export async function addNamespace(
  terminal: Terminal,
  name: string,
  options: GlobalOptions & { displayName?: string; from: string },
): Promise<void> {
  const session = await openSession(terminal, options)
  const game = await session.gameFull()
  terminal.note(`Creating the namespace ${name} of ${game.name_id} at ${session.url}`)
  const version_id = versionToDeploy(game, options.from)
  const { namespace_id } = await session.client.call(createGameNamespace, {
    params: { game_id: game.game_id },
    body: { name_id: name, display_name: options.displayName ?? name, version_id },
  })
  if (terminal.is_json) return terminal.json({ namespace_id })
  terminal.note(`Created ${name} (${namespace_id}) on the version ${versionName(game, version_id)}.`)
}

export async function setNamespaceExpiry(
  terminal: Terminal,
  name: string,
  options: GlobalOptions & { ttl?: number; never?: boolean },
): Promise<void> {
  if ((options.ttl === undefined) === (options.never !== true)) {
    throw new Failure('When the namespace expires is not given, or twice.', {
      exit_code: EXIT.usage,
      remedy: 'Give one of them: --ttl 3d, or --never',
    })
  }
  const { session, params, namespace, where } = await openNamespace(terminal, { ...options, namespace: name })
  terminal.note(`Changing when ${where} expires`)
  const expire_ts = options.ttl === undefined ? undefined : new Date(terminal.now() + options.ttl).toISOString()
  await session.client.call(updateGameNamespaceExpiry, { params, body: expire_ts === undefined ? {} : { expire_ts } })
  if (terminal.is_json) return terminal.json(expire_ts === undefined ? {} : { expire_ts })
  terminal.note(
    expire_ts === undefined
      ? `The namespace ${namespace.name_id} does not expire.`
      : `The namespace ${namespace.name_id} expires ${ago(terminal, expire_ts)}, at ${expire_ts}. Its lobbies stop, and it is deleted.`,
  )
}

export async function removeNamespace(
  terminal: Terminal,
  name: string,
  options: GlobalOptions & RemovalOptions,
): Promise<void> {
  const { session, game_id, namespace } = await openNamespace(terminal, { ...options, namespace: name })
  await confirmRemoval(terminal, `Delete the namespace ${namespace.name_id} with its entries?`, options)
  await session.client.call(deleteGameNamespace, { params: { game_id, namespace_id: namespace.namespace_id } })
  if (terminal.is_json) return terminal.json({})
  terminal.note(`Deleted the namespace ${namespace.name_id}.`)
}

export async function setNamespaceName(
  terminal: Terminal,
  name: string,
  display_name: string,
  options: GlobalOptions,
): Promise<void> {
  const { session, game_id, namespace } = await openNamespace(terminal, { ...options, namespace: name })
  const params = { game_id, namespace_id: namespace.namespace_id }
  await session.client.call(renameGameNamespace, { params, body: { display_name } })
  if (terminal.is_json) return terminal.json({})
  terminal.note(`The namespace ${namespace.name_id} is called "${display_name}".`)
}

/** The session with its game and namespace, for the commands that act on one. */
export async function openNamespace(terminal: Terminal, options: GlobalOptions) {
  const session: Session = await openSession(terminal, options)
  const [game, namespace] = [await session.game(), await session.namespace()]
  const params = { game_id: game.game_id, namespace_id: namespace.namespace_id }
  return {
    session,
    game_id: game.game_id,
    namespace,
    params,
    where: `${game.name_id}/${namespace.name_id} at ${session.url}`,
  }
}

/** The version with this name or id, or the one of the namespace with this name. */
function versionToDeploy(game: GameFull, wanted: string): string {
  const namespace = game.namespaces.find(({ name_id }) => name_id === wanted)
  if (namespace !== undefined) return namespace.version_id
  return findVersion(game, wanted).version_id
}

export function findVersion(game: GameFull, wanted: string): GameFull['versions'][number] {
  const found = game.versions.find(({ display_name, version_id }) => display_name === wanted || version_id === wanted)
  if (found !== undefined) return found
  const names = game.versions.map(({ display_name }) => display_name)
  throw new Failure(`The game ${game.name_id} has no version ${wanted}.${didYouMean(wanted, names)}`, {
    exit_code: EXIT.failed,
    remedy: 'See all: muster versions',
  })
}

export function versionName(game: GameFull, version_id: string): string {
  return game.versions.find((version) => version.version_id === version_id)?.display_name ?? version_id
}

function printNamespaces(terminal: Terminal, game: GameFull): void {
  printTable(
    terminal,
    game.namespaces,
    [
      { title: 'NAMESPACE', text: ({ name_id }) => name_id, is_whole: true },
      { title: 'NAME', text: ({ display_name }) => display_name },
      { title: 'VERSION', text: ({ version_id }) => versionName(game, version_id) },
      { title: 'CREATED', text: ({ create_ts }) => ago(terminal, create_ts) },
      { title: 'EXPIRES', text: ({ expire_ts }) => (expire_ts === undefined ? 'never' : ago(terminal, expire_ts)) },
    ],
    'The game has no namespace. Create one: muster namespaces create NAME',
  )
}
