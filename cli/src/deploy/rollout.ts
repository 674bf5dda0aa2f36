// muster rollout and muster promote: a version that a part of the clients gets, and what happened with it.
import { endRollout, getRollout, type ResponseOf, setRollout } from '@musterhost/contract'
import { EXIT, Failure } from '../failure.ts'
import type { Session } from '../session.ts'
import { printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { ago } from '../times.ts'
import { readVersions } from './versions.ts'

export type RolloutLimits = { maxFailedLobbies?: number; maxRefusedFinds?: number }
export type RolloutOptions = RolloutLimits & { percent?: number }
type Rollout = NonNullable<ResponseOf<typeof getRollout>['rollout']>

/** What a namespace says when it has none under way. */
const NONE = 'No roll-out is under way'

/** Gives a part of the clients a version. */
export async function beginRollout(
  session: Session,
  version_id: string,
  percent: number,
  { maxFailedLobbies, maxRefusedFinds }: RolloutLimits,
): Promise<void> {
  const body = {
    version_id,
    percent,
    ...(maxFailedLobbies === undefined ? {} : { failed_lobbies_percent_max: maxFailedLobbies }),
    ...(maxRefusedFinds === undefined ? {} : { refused_finds_percent_max: maxRefusedFinds }),
  }
  await session.client.call(setRollout, { params: await paramsOf(session), body })
}

/** Throws a Failure (exit code 2) for limits without a percentage, and for a preview, which has no other version. */
export function checkRolloutOptions(options: RolloutOptions & { preview?: string | true }): void {
  const { percent, maxFailedLobbies, maxRefusedFinds, preview } = options
  if (percent !== undefined && preview !== undefined) {
    throw new Failure('--percent and --preview exclude each other.', {
      exit_code: EXIT.usage,
      remedy: 'Roll out to a namespace that runs a version, such as prod.',
    })
  }
  if (percent !== undefined || (maxFailedLobbies === undefined && maxRefusedFinds === undefined)) return
  throw new Failure('A limit is for roll-outs only.', { exit_code: EXIT.usage, remedy: 'Add --percent.' })
}

/** Shows the last roll-out, after changing its part where `percent` says so. A limit that is not named stays. */
export async function runRollout(terminal: Terminal, session: Session, options: RolloutOptions): Promise<void> {
  checkRolloutOptions(options)
  const { name_id } = await session.namespace()
  if (options.percent !== undefined) {
    const { version_id, failed_lobbies_percent_max, refused_finds_percent_max } = await underWay(session)
    const { maxFailedLobbies = failed_lobbies_percent_max, maxRefusedFinds = refused_finds_percent_max } = options
    await beginRollout(session, version_id, options.percent, {
      ...(maxFailedLobbies === undefined ? {} : { maxFailedLobbies }),
      ...(maxRefusedFinds === undefined ? {} : { maxRefusedFinds }),
    })
  }
  const rollout = await readRollout(session)
  if (terminal.is_json) {
    terminal.json({ rollout })
    return
  }
  if (rollout === null) {
    terminal.note(`${NONE} on ${name_id}, and none has been.`)
    return
  }
  const nameOf = await versionNames(session)
  terminal.note(headline(terminal, rollout, name_id, nameOf(rollout.version_id)))
  for (const line of limitLines(rollout)) terminal.note(line)
  const { figures } = rollout
  printTable(
    terminal,
    [
      { part: `${rollout.percent} %`, of: figures.rollout },
      { part: `${100 - rollout.percent} %`, of: figures.deployed },
    ],
    [
      { title: 'VERSION', text: ({ of }) => nameOf(of.version_id), is_whole: true },
      { title: 'CLIENTS', text: ({ part }) => part },
      { title: 'LOBBIES', text: ({ of }) => String(of.lobby_count) },
      { title: 'FAILED', text: ({ of }) => partText(of.failed_lobby_count, of.lobby_count) },
      { title: 'FINDS', text: ({ of }) => String(of.find_count) },
      { title: 'REFUSED', text: ({ of }) => partText(of.refused_find_count, of.find_count) },
    ],
    '',
  )
  if (rollout.end_ts === undefined) terminal.note('All clients: muster promote. None: muster rollback')
}

/** Deploys the version of the roll-out under way. */
export async function promote(terminal: Terminal, session: Session, { message }: { message?: string }): Promise<void> {
  const { version_id } = await underWay(session)
  const { name_id } = await session.namespace()
  await end(session, 'promoted', message)
  const display_name = (await versionNames(session))(version_id)
  terminal.note(`${name_id} runs version ${display_name} from now on. Running lobbies keep theirs.`)
  if (terminal.is_json) terminal.json({ ...(await paramsOf(session)), version_id, display_name })
}

/** Ends the roll-out under way for all clients, after a question. Returns false when there is none. */
export async function rollBackRollout(
  terminal: Terminal,
  session: Session,
  { message, yes }: { message?: string; yes?: boolean },
): Promise<boolean> {
  const rollout = await readRollout(session)
  if (rollout === null || rollout.end_ts !== undefined) return false
  const { name_id } = await session.namespace()
  const nameOf = await versionNames(session)
  const deployed = nameOf(rollout.deployed_version_id)
  terminal.note(`${rollout.percent} % of the clients of ${name_id} get version ${nameOf(rollout.version_id)}.`)
  if (yes !== true && !(await terminal.confirm(`Give all of them ${deployed} again?`, '--yes'))) {
    throw new Failure('Nothing was changed.')
  }
  const { version_id } = await end(session, 'rolled_back', message)
  terminal.note(`All clients of ${name_id} get version ${deployed} from now on. Running lobbies keep theirs.`)
  if (terminal.is_json) terminal.json({ ...(await paramsOf(session)), version_id, display_name: deployed })
  return true
}

async function end(session: Session, outcome: 'promoted' | 'rolled_back', message: string | undefined) {
  const body = message === undefined ? { outcome } : { outcome, message }
  return session.client.call(endRollout, { params: await paramsOf(session), body })
}

async function readRollout(session: Session): Promise<Rollout | null> {
  return (await session.client.call(getRollout, { params: await paramsOf(session) })).rollout ?? null
}

async function underWay(session: Session): Promise<Rollout> {
  const rollout = await readRollout(session)
  if (rollout !== null && rollout.end_ts === undefined) return rollout
  const { name_id } = await session.namespace()
  throw new Failure(`${NONE} on ${name_id}.`, { remedy: 'Begin one: muster deploy --percent 10' })
}

async function paramsOf(session: Session): Promise<{ game_id: string; namespace_id: string }> {
  const [{ game_id }, { namespace_id }] = [await session.game(), await session.namespace()]
  return { game_id, namespace_id }
}

/** Only the newest versions of a game are in its record: others are shown by their id. */
async function versionNames(session: Session): Promise<(version_id: string) => string> {
  const names = new Map((await readVersions(session)).map(({ version_id, display_name }) => [version_id, display_name]))
  return (version_id) => names.get(version_id) ?? version_id
}

const ENDS = { promoted: 'promoted', rolled_back: 'rolled back', replaced: 'replaced by another version' } as const

function headline(
  terminal: Terminal,
  { begin_ts, end_ts, outcome, reason, percent }: Rollout,
  name_id: string,
  version: string,
): string {
  if (end_ts === undefined) {
    return `${name_id} gives version ${version} to ${percent} % of the clients, since ${ago(terminal, begin_ts)}.`
  }
  const why = reason === undefined ? '' : ` ${reason}`
  return `${NONE} on ${name_id}. The last one, of version ${version}, was ${ENDS[outcome!]} ${ago(terminal, end_ts)}.${why}`
}

function limitLines({
  failed_lobbies_percent_max: failed,
  refused_finds_percent_max: refused,
  end_ts,
}: Rollout): string[] {
  if (end_ts !== undefined) return []
  return [
    ...(failed === undefined ? [] : [`It is rolled back when more than ${failed} % of its lobbies fail.`]),
    ...(refused === undefined ? [] : [`It is rolled back when more than ${refused} % of its finds are refused.`]),
  ]
}

function partText(part: number, all: number): string {
  return all === 0 || part === 0 ? String(part) : `${part} (${Math.round((part / all) * 100)} %)`
}
