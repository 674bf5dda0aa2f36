// Schedules of a namespace: what happens there at planned times.
import {
  type BodyOf,
  deleteSchedule,
  listSchedules as listOperation,
  listScheduleRuns,
  putSchedule,
  runSchedule,
  type Schedule,
  type ScheduleKind,
  type ScheduleRun,
} from '@musterhost/contract'
import { scheduleSettings } from '@musterhost/contract/schedule-settings'
import { didYouMean } from '@musterhost/contract/suggestion'
import { EXIT, Failure } from '../failure.ts'
import { type GlobalOptions, parseDuration } from '../options.ts'
import { openSession, type Session } from '../session.ts'
import { counted, printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { ago } from '../times.ts'
import { confirmRemoval, type RemovalOptions } from './removal.ts'

export type ScheduleOptions = GlobalOptions & {
  kind: ScheduleKind
  cron: string
  zone: string
  mode?: string[]
  region?: string[]
  count?: number
  duration?: number
  deadline?: number
  text?: string
  before?: string[]
  pause?: boolean
}
type Body = BodyOf<typeof putSchedule>
type OpenNamespace = { session: Session; game_id: string; namespace_id: string; where: string }

async function openNamespace(terminal: Terminal, options: GlobalOptions): Promise<OpenNamespace> {
  const session = await openSession(terminal, options)
  const { game_id, name_id } = await session.game()
  const namespace = await session.namespace()
  const where = `${name_id}/${namespace.name_id} at ${session.url}`
  return { session, game_id, namespace_id: namespace.namespace_id, where }
}

async function readSchedules({ session, game_id, namespace_id }: OpenNamespace): Promise<Schedule[]> {
  return (await session.client.call(listOperation, { params: { game_id }, query: { namespace_id } })).schedules
}

async function openSchedule(terminal: Terminal, name: string, options: GlobalOptions) {
  const open = await openNamespace(terminal, options)
  const schedules = await readSchedules(open)
  const schedule = schedules.find((one) => one.name === name || one.schedule_id === name)
  if (schedule === undefined) {
    const names = schedules.map((one) => one.name)
    throw new Failure(`${open.where} has no schedule ${name}.${didYouMean(name, names)}`, {
      remedy:
        names.length === 0 ? 'Make one: muster schedules set NAME --kind restart' : `It has: ${names.join(', ')}.`,
    })
  }
  return { ...open, schedule, params: { game_id: open.game_id, schedule_id: schedule.schedule_id } }
}

export async function listSchedules(terminal: Terminal, options: GlobalOptions): Promise<void> {
  const open = await openNamespace(terminal, options)
  const schedules = await readSchedules(open)
  terminal.note(`Schedules of ${open.where}`)
  if (terminal.is_json) return terminal.json({ schedules })
  printTable(
    terminal,
    schedules,
    [
      { title: 'NAME', text: ({ name }) => name, is_whole: true },
      { title: 'KIND', text: ({ kind }) => kind },
      { title: 'TIMES', text: ({ cron }) => cron, is_whole: true },
      { title: 'ZONE', text: ({ time_zone }) => time_zone },
      { title: 'STATE', text: stateOf },
      { title: 'LAST', text: ({ last_run }) => (last_run === undefined ? 'never' : lastOf(terminal, last_run)) },
      { title: 'NEXT', text: (schedule) => nextOf(terminal, schedule) },
    ],
    'There is no schedule. Make one: muster schedules set nightly --kind restart --cron "0 5 * * *" --zone Europe/Berlin --deadline 30m',
  )
}

function stateOf({ is_paused, active_run }: Schedule): string {
  if (active_run !== undefined) return 'under way'
  return is_paused ? 'paused' : 'on'
}

function lastOf(terminal: Terminal, { outcome, due_ts }: ScheduleRun): string {
  return `${outcome} ${ago(terminal, due_ts)}`
}

function nextOf(terminal: Terminal, { is_paused, next }: Schedule): string {
  return is_paused || next[0] === undefined ? 'none' : ago(terminal, next[0])
}

export async function setSchedule(terminal: Terminal, name: string, options: ScheduleOptions): Promise<void> {
  const { kind, cron, zone, mode, region, count, duration, deadline, text, before, pause = false } = options
  const announce_before = before?.map(announcementOf)
  const { session, game_id, namespace_id, where } = await openNamespace(terminal, options)
  const body: Body = {
    ...{ namespace_id, name, kind, cron, time_zone: zone },
    ...(mode === undefined ? {} : { game_modes: mode }),
    ...(region === undefined ? {} : { regions: region }),
    ...(count === undefined ? {} : { count }),
    ...(duration === undefined ? {} : { duration_s: duration / 1_000 }),
    ...(deadline === undefined ? {} : { deadline_s: deadline / 1_000 }),
    ...(text === undefined ? {} : { text }),
    ...(announce_before === undefined ? {} : { announce_before }),
    ...(pause ? { is_paused: true } : {}),
  }
  const { schedule } = await session.client.call(putSchedule, { params: { game_id }, body })
  if (terminal.is_json) return terminal.json({ schedule })
  const next = schedule.is_paused ? 'It is paused.' : `It begins ${nextOf(terminal, schedule)}.`
  terminal.note(`Set ${name} of ${where}. ${next}`)
}

/** `15m:text`. */
function announcementOf(given: string): { before_s: number; text: string } {
  const [, time, text] = /^([^:]{1,16}):(.{1,1000})$/s.exec(given) ?? []
  if (time === undefined || text === undefined) {
    throw new Failure(`--before has the form TIME:LINE, and is ${given}.`, {
      exit_code: EXIT.usage,
      remedy: 'For example: --before "15m:say Restart in {minutes} minutes"',
    })
  }
  return { before_s: parseDuration(time) / 1_000, text }
}

export async function runNow(terminal: Terminal, name: string, options: GlobalOptions): Promise<void> {
  const { session, where, params } = await openSchedule(terminal, name, options)
  const result = await session.client.call(runSchedule, { params })
  if (terminal.is_json) return terminal.json(result)
  terminal.note(`${name} of ${where} begins now. See what becomes of it: muster schedules runs ${name}`)
}

export async function listRuns(terminal: Terminal, name: string, options: GlobalOptions): Promise<void> {
  const { session, where, params } = await openSchedule(terminal, name, options)
  const { runs } = await session.client.call(listScheduleRuns, { params })
  terminal.note(`Last runs of ${name} of ${where}`)
  if (terminal.is_json) return terminal.json({ runs })
  printTable(
    terminal,
    runs,
    [
      { title: 'DUE', text: ({ due_ts }) => ago(terminal, due_ts) },
      { title: 'WHAT', text: whatOf },
      { title: 'OUTCOME', text: ({ outcome }) => outcome },
      { title: 'LOBBIES', text: ({ lobby_count }) => String(lobby_count) },
      { title: 'NOTE', text: noteOf },
    ],
    'It has not run yet.',
  )
}

function whatOf({ before_s, is_requested }: ScheduleRun): string {
  if (before_s > 0) return `announcement ${counted(Math.round(before_s / 60), 'minute')} before`
  return is_requested ? 'by hand' : 'at its time'
}

function noteOf({ message = '', failed_count, missed_count }: ScheduleRun): string {
  const failed = failed_count === 0 ? '' : `${counted(failed_count, 'lobby server')} did not take the line.`
  const missed = missed_count < 2 ? '' : `${missed_count} times in a row.`
  return [missed, failed, message].filter((part) => part !== '').join(' ')
}

export async function pauseSchedule(
  terminal: Terminal,
  name: string,
  is_paused: boolean,
  options: GlobalOptions,
): Promise<void> {
  const { session, game_id, where, schedule } = await openSchedule(terminal, name, options)
  const result = await session.client.call(putSchedule, {
    params: { game_id },
    body: { ...scheduleSettings(schedule), is_paused },
  })
  if (terminal.is_json) return terminal.json(result)
  terminal.note(
    is_paused
      ? `Paused ${name} of ${where}. Go on: muster schedules resume ${name}`
      : `Resumed ${name} of ${where}. It begins ${nextOf(terminal, result.schedule)}.`,
  )
}

export async function removeSchedule(
  terminal: Terminal,
  name: string,
  options: GlobalOptions & RemovalOptions,
): Promise<void> {
  const { session, where, params } = await openSchedule(terminal, name, options)
  await confirmRemoval(terminal, `Remove ${name} from ${where}? A window under way ends.`, options)
  await session.client.call(deleteSchedule, { params })
  if (terminal.is_json) return terminal.json({})
  terminal.note(`Removed ${name} from ${where}.`)
}
