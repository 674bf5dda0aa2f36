// Which rows belong to one game, by table. What is not listed stays on its platform: tokens and domains, because another platform
// must prove them again; lobbies and seats, because they ended with their machine; the journal, logs and the audit log.
import assert from 'node:assert'
import { ID_FORM } from '../../ids.ts'

/** Tables with one partition per day or per width. Each partition is a table of a backup. */
const PARTITIONED = /^(?<parent>analytics_(?:roll_ups|exit_codes|events))_\d+s?$/

/** The name of the table that this one is a partition of, or its own name. */
export function parentOf(table: string): string {
  return PARTITIONED.exec(table)?.groups?.parent ?? table
}

/** In an order in which each row's references come first. */
export const GAME_TABLES = [
  'groups',
  'games',
  'versions',
  'namespaces',
  'namespace_versions',
  'namespace_auth_users',
  'uploads',
  'upload_files',
  'builds',
  'sites',
  'game_images',
  'game_secrets',
  'notice_targets',
  'schedules',
  'status_pages',
  'status_incidents',
  'status_updates',
  'status_days',
  'kv_usage',
  'kv_entries',
  'identities',
  'ratings',
  'analytics_lines',
  'analytics_series',
  'analytics_roll_ups',
  'analytics_exit_codes',
  'analytics_events',
] as const
export type GameTable = (typeof GAME_TABLES)[number]

/** A condition in SQL for each table. */
export function rowsOfGame(game_id: string): Readonly<Record<GameTable, string>> {
  assert(new RegExp(`^${ID_FORM}$`).test(game_id), 'The id becomes a part of statements.')
  const game = `game_id = '${game_id}'`
  const namespace = `namespace_id in (select namespace_id from namespaces where ${game})`
  const upload = `upload_id in (select upload_id from uploads where ${game} and complete_ts is not null)`
  const line = `line_id in (select line_id from analytics_lines where ${namespace})`
  const ofGame = { games: game, versions: game, namespaces: game, builds: game, sites: game, schedules: game }
  const ofNamespace = { namespace_versions: namespace, namespace_auth_users: namespace, status_days: namespace }
  const ofPlayers = { kv_usage: namespace, kv_entries: namespace, identities: namespace, ratings: namespace }
  return {
    ...{ ...ofGame, ...ofNamespace, ...ofPlayers },
    groups: `group_id in (select developer_group_id from games where ${game})`,
    uploads: upload,
    upload_files: upload,
    game_images: game,
    game_secrets: game,
    notice_targets: game,
    status_pages: game,
    status_incidents: game,
    status_updates: `incident_id in (select incident_id from status_incidents where ${game})`,
    analytics_lines: namespace,
    analytics_series: namespace,
    analytics_roll_ups: line,
    analytics_exit_codes: line,
    analytics_events: `series_id in (select series_id from analytics_series where ${namespace})`,
  }
}
