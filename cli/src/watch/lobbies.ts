// Lobbies of a namespace: which run, what one of them does, and stopping them.
import {
  deleteMatchmakerLobby,
  deleteMatchmakerLobbyPlayer,
  getAnalyticsMatchmakerLive,
  getNamespaceLobby,
  type LobbySummaryAnalytics,
  type LogsLobbySummary,
  listMatchmakerLobbyPlayers,
  listNamespaceLobbies,
  setMatchmakerVersionDraining,
} from '@musterhost/contract'
import { Failure } from '../failure.ts'
import { findVersion, openNamespace } from '../manage/games.ts'
import { confirmRemoval, type RemovalOptions } from '../manage/removal.ts'
import type { GlobalOptions } from '../options.ts'
import { sizeText } from '../progress.ts'
import type { GameFull, Session } from '../session.ts'
import { printFields, printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { ago, durationText } from '../times.ts'
import { type LobbyFilter, requireKnown } from './lobby-filter.ts'
import { findLobbyId, shortIds } from './lobby-ids.ts'
import { printUsage, readUsage } from './usage.ts'

type Params = { game_id: string; namespace_id: string }

/** Lobbies whose players are asked for in one command. */
const LOBBIES_ASKED_MAX = 64

export async function listLobbies(
  terminal: Terminal,
  { all, ...options }: GlobalOptions & LobbyFilter & { all?: boolean },
): Promise<void> {
  const { session, params, where } = await openNamespace(terminal, options)
  const game = await session.gameFull()
  const region_id = requireKnown(game, options)
  terminal.note(`${all ? 'Lobbies' : 'Running lobbies'} of ${where}`)
  const fits = (lobby: { region_id: string; lobby_group_name_id: string }): boolean =>
    (region_id === null || lobby.region_id === region_id) &&
    (options.mode === undefined || lobby.lobby_group_name_id === options.mode)
  const live = await session.client.call(getAnalyticsMatchmakerLive, { params })
  if (!all) {
    const lobbies = live.lobbies.filter(fits)
    if (terminal.is_json) return terminal.json({ lobbies })
    return printLive(terminal, game, lobbies)
  }
  const { lobbies: past, is_cut } = await session.client.call(listNamespaceLobbies, { params })
  const lobbies = past.filter(fits)
  if (terminal.is_json) return terminal.json({ lobbies, is_cut })
  printPast(terminal, game, lobbies, live.lobbies)
  if (is_cut) terminal.note('There are older lobbies.')
}

export async function showLobby(terminal: Terminal, wanted: string, options: GlobalOptions): Promise<void> {
  const { session, params, where } = await openNamespace(terminal, options)
  const { client } = session
  const lobby_id = await findLobbyId(client, params, wanted)
  const game = await session.gameFull()
  const details = await client.call(getNamespaceLobby, { params: { ...params, lobby_id } })
  const live = (await client.call(getAnalyticsMatchmakerLive, { params })).lobbies.find(
    (one) => one.lobby_id === lobby_id,
  )
  terminal.note(`Lobby of ${where}`)
  const usage = await readUsage(session, { game_id: params.game_id, lobby_id })
  if (terminal.is_json) return terminal.json({ ...details, usage })
  const { lobby, metrics } = details
  printFields(terminal, [
    ['lobby', lobby.lobby_id],
    ['state', live === undefined ? stoppedText(terminal, lobby) : stateOf(live)],
    ['game mode', lobby.lobby_group_name_id],
    ['region', regionName(game, lobby.region_id)],
    ['players', live === undefined ? undefined : playersOf(live)],
    ['created', ago(terminal, lobby.create_ts)],
    ['ready after', lobby.ready_ts === undefined ? undefined : durationText(elapsed(lobby.create_ts, lobby.ready_ts))],
    ['CPU', metrics === undefined ? undefined : `${(metrics.cpu.at(-1) ?? 0).toFixed(2)} cores`],
    [
      'memory',
      metrics === undefined
        ? undefined
        : `${sizeText(metrics.memory.at(-1) ?? 0)} of ${sizeText(metrics.allocated_memory)}`,
    ],
  ])
  printUsage(terminal, usage)
  terminal.note(`Its log: muster logs --lobby ${lobby_id.slice(-12)}`)
}

export async function stopLobby(
  terminal: Terminal,
  wanted: string,
  options: GlobalOptions & RemovalOptions,
): Promise<void> {
  const { session, params, where } = await openNamespace(terminal, options)
  const lobby_id = await findLobbyId(session.client, params, wanted)
  await confirmRemoval(terminal, `Stop the lobby ${lobby_id} of ${where}? Its players lose their seats.`, options)
  const response = await session.client.call(deleteMatchmakerLobby, { params: { game_id: params.game_id, lobby_id } })
  if (terminal.is_json) return terminal.json(response)
  terminal.note(response.did_remove ? `Stopped the lobby ${lobby_id}.` : `The lobby ${lobby_id} had stopped before.`)
}

export async function drainVersion(
  terminal: Terminal,
  wanted: string,
  { undo, ...options }: GlobalOptions & { undo?: boolean },
): Promise<void> {
  const { session, params, where } = await openNamespace(terminal, options)
  const { version_id, display_name } = findVersion(await session.gameFull(), wanted)
  await session.client.call(setMatchmakerVersionDraining, {
    params: { ...params, version_id },
    body: { is_draining: undo !== true },
  })
  if (terminal.is_json) return terminal.json({})
  terminal.note(
    undo
      ? `The version ${display_name} takes players again in ${where}.`
      : `The version ${display_name} drains in ${where}: its lobbies take no new players, and stop when empty.`,
  )
}

export async function listPlayers(
  terminal: Terminal,
  wanted: string | undefined,
  options: GlobalOptions,
): Promise<void> {
  const { session, params, where } = await openNamespace(terminal, options)
  const lobby_ids =
    wanted === undefined
      ? (await session.client.call(getAnalyticsMatchmakerLive, { params })).lobbies
          .filter(({ is_idle }) => !is_idle)
          .map(({ lobby_id }) => lobby_id)
      : [await findLobbyId(session.client, params, wanted)]
  const asked = lobby_ids.slice(0, LOBBIES_ASKED_MAX)
  const players = []
  for (const lobby_id of asked) players.push(...(await playersIn(session, params, lobby_id, wanted !== undefined)))
  const is_cut = asked.length < lobby_ids.length
  terminal.note(`Players in ${where}`)
  if (terminal.is_json) return terminal.json({ players, is_cut })
  const short = shortIds(lobby_ids)
  printTable(
    terminal,
    players,
    [
      { title: 'PLAYER', text: ({ player_id }) => player_id, is_whole: true },
      { title: 'LOBBY', text: ({ lobby_id }) => short(lobby_id), is_whole: true },
      { title: 'STATE', text: seatText },
      { title: 'SINCE', text: ({ create_ts, connect_ts }) => ago(terminal, connect_ts ?? create_ts) },
    ],
    'Nobody plays now.',
  )
  if (is_cut) terminal.note(`Only the players of ${asked.length} lobbies are shown. Name one: muster players LOBBY`)
}

export async function removePlayer(
  terminal: Terminal,
  player_id: string,
  { lobby, ...options }: GlobalOptions & { lobby: string },
): Promise<void> {
  const { session, params } = await openNamespace(terminal, options)
  const lobby_id = await findLobbyId(session.client, params, lobby)
  const response = await session.client.call(deleteMatchmakerLobbyPlayer, {
    params: { game_id: params.game_id, lobby_id, player_id },
  })
  if (terminal.is_json) return terminal.json(response)
  if (!response.did_remove) throw new Failure(`The player ${player_id} has no seat in the lobby ${lobby_id}.`)
  terminal.note(`Removed the player ${player_id} from the lobby ${lobby_id}. The server closes the connection.`)
}

function seatText({ connect_ts, role }: { connect_ts?: string; role?: string }): string {
  const state = connect_ts === undefined ? 'reserved' : 'connected'
  return role === undefined ? state : `${state} ${role}`
}

async function playersIn(session: Session, { game_id }: Params, lobby_id: string, is_named: boolean) {
  try {
    const { players } = await session.client.call(listMatchmakerLobbyPlayers, { params: { game_id, lobby_id } })
    return players.map((player) => ({ ...player, lobby_id }))
  } catch (error) {
    // A lobby of the list may have stopped meanwhile.
    if (!is_named && (error as { code?: unknown }).code === 'LOBBY_NOT_FOUND') return []
    throw error
  }
}

export function regionName(game: GameFull, region_id: string): string {
  return game.available_regions.find((region) => region.region_id === region_id)?.region_name_id ?? region_id
}

function printLive(terminal: Terminal, game: GameFull, lobbies: readonly LobbySummaryAnalytics[]): void {
  const short = shortIds(lobbies.map(({ lobby_id }) => lobby_id))
  printTable(
    terminal,
    lobbies,
    [
      { title: 'LOBBY', text: ({ lobby_id }) => short(lobby_id), is_whole: true },
      { title: 'MODE', text: ({ lobby_group_name_id }) => lobby_group_name_id },
      { title: 'REGION', text: ({ region_id }) => regionName(game, region_id) },
      { title: 'PLAYERS', text: playersOf, align: 'right' },
      { title: 'STATE', text: stateOf },
      { title: 'AGE', text: ({ create_ts }) => ago(terminal, create_ts) },
    ],
    'No lobby runs. The first player starts one; past ones: muster lobbies --all',
  )
}

function printPast(
  terminal: Terminal,
  game: GameFull,
  lobbies: readonly LogsLobbySummary[],
  live: readonly LobbySummaryAnalytics[],
): void {
  const short = shortIds(lobbies.map(({ lobby_id }) => lobby_id))
  const running = new Map(live.map((lobby) => [lobby.lobby_id, lobby]))
  printTable(
    terminal,
    lobbies,
    [
      { title: 'LOBBY', text: ({ lobby_id }) => short(lobby_id), is_whole: true },
      { title: 'MODE', text: ({ lobby_group_name_id }) => lobby_group_name_id },
      { title: 'REGION', text: ({ region_id }) => regionName(game, region_id) },
      {
        title: 'STATE',
        text: (lobby) => {
          const now = running.get(lobby.lobby_id)
          return now === undefined ? stoppedText(terminal, lobby) : stateOf(now)
        },
      },
      { title: 'CREATED', text: ({ create_ts }) => ago(terminal, create_ts) },
    ],
    'The namespace has had no lobby yet.',
  )
}

function stateOf(lobby: LobbySummaryAnalytics): string {
  if (lobby.is_stalled) return 'stalled'
  if (!lobby.is_ready) return 'starting'
  const words = [lobby.is_idle ? 'idle' : 'ready']
  if (lobby.is_closed) words.push('closed')
  if (lobby.is_outdated) words.push('old version')
  return words.join(', ')
}

function stoppedText(terminal: Terminal, { status: { stopped } }: LogsLobbySummary): string {
  if (stopped === undefined) return 'running'
  const { exit_reason: reason, exit_code } = stopped
  const why = reason === undefined || reason === 'exit' ? '' : `${reason}, `
  const end = stopped.failed ? `failed (${why}exit code ${exit_code})` : 'stopped'
  return `${end} ${ago(terminal, stopped.stop_ts)}`
}

function playersOf({ total_player_count, max_players_normal }: LobbySummaryAnalytics): string {
  return `${total_player_count}/${max_players_normal}`
}

function elapsed(from: string, to: string): number {
  return Date.parse(to) - Date.parse(from)
}
