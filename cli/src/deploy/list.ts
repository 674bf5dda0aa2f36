// muster versions: the deploys of a namespace, newest first.
import type { Session } from '../session.ts'
import { printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { type Deploy, hasGameModes, readDeploys, readVersion, readVersions } from './versions.ts'

export async function listDeploys(terminal: Terminal, session: Session, count_max: number): Promise<void> {
  const game = await session.game()
  const namespace = await session.namespace()
  terminal.note(`Deploys of ${game.name_id} to ${namespace.name_id} on ${session.url}, newest first`)
  const deploys = await readDeploys(session, count_max)
  const names = new Map((await readVersions(session)).map(({ version_id, display_name }) => [version_id, display_name]))
  // Only the newest 1,000 versions of a game are in its record.
  const nameOf = ({ version_id }: Deploy): string => names.get(version_id) ?? version_id
  if (terminal.is_json) {
    terminal.json({ versions: deploys.map((deploy) => ({ ...deploy, display_name: nameOf(deploy) })) })
    return
  }
  const outcomes = await outcomesOf(session, deploys)
  printTable(
    terminal,
    deploys.map((deploy, index) => ({ deploy, index })),
    [
      { title: '', text: ({ index }) => (index === 0 ? '*' : '') },
      { title: 'VERSION', text: ({ deploy }) => nameOf(deploy), is_whole: true },
      {
        title: 'DEPLOYED',
        text: ({ deploy }) => deploy.deploy_ts.slice(0, 'yyyy-mm-ddThh:mm:ss'.length).replace('T', ' '),
      },
      { title: 'BY', text: ({ deploy: { deployed_by } }) => deployed_by.name ?? deployed_by.kind },
      { title: 'FIRST LOBBY', text: ({ deploy }) => outcomes.get(deploy.deploy_id) ?? '' },
      { title: 'MESSAGE', text: ({ deploy }) => deploy.message ?? '' },
    ],
    'Nothing was deployed yet.',
  )
}

/** When the first lobby was ready, by deploy; a version without lobbies never has one. */
async function outcomesOf(session: Session, deploys: readonly Deploy[]): Promise<Map<string, string>> {
  const without_ready = new Set(deploys.filter((one) => one.first_ready_ts === undefined).map((one) => one.version_id))
  const without_modes = new Set<string>()
  for (const version_id of without_ready) {
    if (!hasGameModes((await readVersion(session, version_id)).config)) without_modes.add(version_id)
  }
  return new Map(deploys.map((deploy) => [deploy.deploy_id, outcomeOf(deploy, without_modes)]))
}

function outcomeOf({ rolled_back_ts, ...deploy }: Deploy, without_modes: ReadonlySet<string>): string {
  const outcome = startOf(deploy, without_modes)
  return rolled_back_ts === undefined ? outcome : `${outcome}, rolled back`
}

function startOf({ version_id, deploy_ts, first_ready_ts }: Deploy, without_modes: ReadonlySet<string>): string {
  if (without_modes.has(version_id)) return 'has no lobbies'
  if (first_ready_ts === undefined) return 'none ready'
  const after_ms = Date.parse(first_ready_ts) - Date.parse(deploy_ts)
  return `ready after ${(after_ms / 1000).toFixed(1)} s`
}
