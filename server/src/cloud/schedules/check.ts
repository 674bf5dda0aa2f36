// Checks of a schedule: its times, what its kind requires and does not take, and the game modes, regions and limits that exist.
import {
  type BodyOf,
  type ErrorDetail,
  gameModesOf,
  type putSchedule as putOperation,
  type ScheduleKind,
  type VersionConfig,
} from '@musterhost/contract'
import { didYouMean } from '@musterhost/contract/suggestion'
import type { Context } from '../../context.ts'
import { cronFault, isTimeZone } from '../../schedules/occurrences.ts'

type Body = BodyOf<typeof putOperation>
type Member = 'count' | 'duration_s' | 'deadline_s' | 'text' | 'announce_before' | 'game_modes' | 'regions'

const MEMBERS: Readonly<Record<ScheduleKind, { required: readonly Member[]; taken: readonly Member[] }>> = {
  idle_lobbies: { required: ['count', 'duration_s'], taken: ['game_modes', 'regions'] },
  announce: { required: ['text'], taken: ['game_modes', 'regions'] },
  restart: { required: ['deadline_s'], taken: ['game_modes', 'regions', 'announce_before'] },
  drain: { required: ['duration_s'], taken: ['deadline_s', 'announce_before'] },
}
const ALL: readonly Member[] = [
  ...(['count', 'duration_s', 'deadline_s', 'text', 'announce_before', 'game_modes', 'regions'] as const),
]

/** What is wrong with the schedule, as fields. */
export async function checkSchedule(ctx: Context, body: Body): Promise<ErrorDetail[]> {
  const errors = [...checkTimes(body), ...checkMembers(body), ...checkLengths(body)]
  return errors.length > 0 ? errors : checkScope(ctx, body)
}

function checkTimes({ cron, time_zone }: Body): ErrorDetail[] {
  const errors: ErrorDetail[] = []
  const fault = cronFault(cron)
  if (fault !== null) {
    const message = `${cron} is no time: ${fault} Example: 0 18 * * FRI.`
    errors.push({ path: ['cron'], reason: 'invalid', message })
  }
  if (!isTimeZone(time_zone)) {
    const message = `There is no time zone ${time_zone}. Use a name such as Europe/Berlin.`
    errors.push({ path: ['time_zone'], reason: 'invalid', message })
  }
  return errors
}

function checkMembers(body: Body): ErrorDetail[] {
  const { required, taken } = MEMBERS[body.kind]
  return ALL.flatMap((member): ErrorDetail[] => {
    const path = [member]
    if (required.includes(member)) {
      if (body[member] !== undefined) return []
      return [{ path, reason: 'required', message: `A schedule of the kind ${body.kind} needs ${member}.` }]
    }
    if (taken.includes(member) || body[member] === undefined) return []
    const why = body.kind === 'drain' ? 'A drain is of the whole namespace' : `The kind ${body.kind} does not use it`
    return [{ path, reason: 'not_allowed', message: `${why}. Leave ${member} out.` }]
  })
}

function checkLengths({ kind, duration_s, deadline_s, announce_before = [] }: Body): ErrorDetail[] {
  const errors: ErrorDetail[] = []
  if (kind === 'drain' && duration_s !== undefined && deadline_s !== undefined && deadline_s > duration_s) {
    const message = 'The deadline of a drain is within its window. Make deadline_s at most duration_s.'
    errors.push({ path: ['deadline_s'], reason: 'too_high', message })
  }
  const offsets = announce_before.map(({ before_s }) => before_s)
  const at = offsets.findIndex((offset, index) => offsets.indexOf(offset) !== index)
  if (at === -1) return errors
  const message = `Two announcements are ${offsets[at]} seconds before. Leave one of them out.`
  return [...errors, { path: ['announce_before', String(at), 'before_s'], reason: 'conflicts', message }]
}

/** Game modes of the deployed version, regions of the platform, and the limit of lobbies of the namespace. */
async function checkScope(ctx: Context, { namespace_id, game_modes = [], regions = [], count }: Body) {
  const errors: ErrorDetail[] = []
  const { lobby_count_max, config } = await ctx.db
    .selectFrom('namespaces')
    .innerJoin('versions', 'versions.version_id', 'namespaces.version_id')
    .select(['lobby_count_max', 'config'])
    .where('namespace_id', '=', namespace_id)
    .executeTakeFirstOrThrow()
  const modes = [...gameModesOf(config as VersionConfig).keys()]
  for (const [index, mode] of game_modes.entries()) {
    if (modes.includes(mode)) continue
    const message = `The deployed version has no game mode ${mode}.${didYouMean(mode, modes)}`
    errors.push({ path: ['game_modes', String(index)], reason: 'unknown', message })
  }
  const names = ctx.config.regions.map(({ name }) => name)
  for (const [index, region] of regions.entries()) {
    if (names.includes(region)) continue
    const message = `The platform has no region ${region}.${didYouMean(region, names)}`
    errors.push({ path: ['regions', String(index)], reason: 'unknown', message })
  }
  if (count !== undefined && count > lobby_count_max) {
    const message = `The namespace may have ${lobby_count_max} lobbies. Lower count, or raise lobby_count_max.`
    errors.push({ path: ['count'], reason: 'too_high', message })
  }
  return errors
}
