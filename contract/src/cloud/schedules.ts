// Schedules: what the platform does in a namespace at planned times. Times are in cron form, in a time zone.
import Type, { type Static } from 'typebox'
import { GameId, Id, NamespaceId } from '../ids.ts'
import { operation } from '../operation.ts'
import { described, Empty, object, Timestamp } from '../records.ts'
import {
  SCHEDULE_ANNOUNCEMENTS_MAX,
  SCHEDULE_BEFORE_S_MAX,
  SCHEDULE_CRON_LENGTH_MAX,
  SCHEDULE_DEADLINE_S_MAX,
  SCHEDULE_DURATION_S_MAX,
  SCHEDULE_FILTERS_MAX,
  SCHEDULE_IDLE_LOBBIES_MAX,
  SCHEDULE_KINDS,
  SCHEDULE_NAME_LENGTH_MAX,
  SCHEDULE_NEXT_MAX,
  SCHEDULE_OUTCOMES,
  SCHEDULE_RUNS_MAX,
  SCHEDULE_SECONDS_MIN,
  SCHEDULE_TEXT_LENGTH_MAX,
  SCHEDULE_TIME_ZONE_LENGTH_MAX,
} from '../schedule-kinds.ts'

const ScheduleId = Id('Id of the schedule.')
const RunId = Id('Id of the run.')
const Kind = Type.Enum([...SCHEDULE_KINDS], {
  description:
    '`idle_lobbies`: at least `count` lobbies wait for players. `announce`: lobbies get a line. `restart`: lobbies end, and others start for new players. `drain`: the lobbies of the namespace end, and none starts until the window is over.',
})
const ScheduleName = Type.String({
  pattern: '^[a-z0-9]+(-[a-z0-9]+)*$',
  minLength: 1,
  maxLength: SCHEDULE_NAME_LENGTH_MAX,
  description: 'Name of the schedule, unique in its namespace. Example: `friday-peak`.',
})
const Cron = Type.String({
  pattern: '^[\\x21-\\x7e]+( +[\\x21-\\x7e]+){4}$',
  minLength: 9,
  maxLength: SCHEDULE_CRON_LENGTH_MAX,
  description:
    'When it begins: minute, hour, day of the month, month and day of the week, with blanks between. Example: `0 18 * * FRI`, each Friday at 18:00.',
})
const TimeZone = Type.String({
  pattern: '^[A-Za-z][A-Za-z0-9_+/-]*$',
  minLength: 1,
  maxLength: SCHEDULE_TIME_ZONE_LENGTH_MAX,
  description: 'Time zone of `cron`: a name of the IANA database. Example: `Europe/Berlin`.',
})
const Text = Type.String({
  minLength: 1,
  maxLength: SCHEDULE_TEXT_LENGTH_MAX,
  pattern: '^[^\\u0000-\\u0008\\u000a-\\u001f\\u007f-\\u009f]*$',
  description:
    'Line for the lobbies, without control characters except tab. Before a restart or a drain, `{minutes}` becomes the minutes until it. Example: `say The server restarts in {minutes} minutes`.',
})
const Announcement = object(
  {
    before_s: Type.Integer({
      minimum: SCHEDULE_SECONDS_MIN,
      maximum: SCHEDULE_BEFORE_S_MAX,
      description: 'Seconds before the begin of the restart or drain, at most a day. Example: 900.',
    }),
    text: Text,
  },
  'A line for the lobbies before a restart or a drain.',
)

const settings = {
  name: ScheduleName,
  kind: Kind,
  cron: Cron,
  time_zone: TimeZone,
  game_modes: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
      minItems: 1,
      maxItems: SCHEDULE_FILTERS_MAX,
      description: 'Only lobbies of these game modes. Default: of all. Not for `drain`.',
    }),
  ),
  regions: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
      minItems: 1,
      maxItems: SCHEDULE_FILTERS_MAX,
      description: 'Only lobbies in these regions, by their names. Default: in all. Not for `drain`.',
    }),
  ),
  count: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: SCHEDULE_IDLE_LOBBIES_MAX,
      description:
        'For `idle_lobbies`, which requires it: lobbies without players of each game mode and region, at least. It raises `idle_lobbies.min` of the version config, and never lowers it.',
    }),
  ),
  duration_s: Type.Optional(
    Type.Integer({
      minimum: SCHEDULE_SECONDS_MIN,
      maximum: SCHEDULE_DURATION_S_MAX,
      description:
        'Length of the window in seconds, at most a week. `idle_lobbies` and `drain` require it. Example: 14400.',
    }),
  ),
  deadline_s: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: SCHEDULE_DEADLINE_S_MAX,
      description:
        'Seconds after the begin at which lobbies with players end as well, at most a day. `restart` requires it. For `drain` it is at most `duration_s`; absent, players are never cut off.',
    }),
  ),
  text: Type.Optional(described(Text, 'For `announce`, which requires it: the line for the lobbies.')),
  announce_before: Type.Optional(
    Type.Array(Announcement, {
      minItems: 1,
      maxItems: SCHEDULE_ANNOUNCEMENTS_MAX,
      description: 'Lines for the lobbies before a `restart` or a `drain`.',
    }),
  ),
}

export const ScheduleRun = object(
  {
    run_id: RunId,
    due_ts: Timestamp('When the schedule was due.'),
    before_s: Type.Integer({
      minimum: 0,
      description: 'Seconds before `due_ts` of an announcement; 0: the run is what the schedule does.',
    }),
    is_requested: Type.Boolean({ description: 'Whether a person started it, and not its time.' }),
    outcome: Type.Enum([...SCHEDULE_OUTCOMES], {
      description:
        '`waiting`: a person has requested it. `active`: it is under way. `done`: it has ended. `failed`: no lobby could be reached, or the platform stopped in between. `missed`: the platform could not begin it in time. `cancelled`: the schedule was paused meanwhile.',
    }),
    begin_ts: Type.Optional(Timestamp('When it began. Absent when it did not.')),
    until_ts: Type.Optional(Timestamp('When its window or its deadline ends. Absent when it has none.')),
    end_ts: Type.Optional(Timestamp('When it ended. Absent while it is under way.')),
    lobby_count: Type.Integer({
      minimum: 0,
      description: 'Lobbies that got the line, or that it has ended.',
    }),
    failed_count: Type.Integer({ minimum: 0, description: 'Lobbies that did not take the line.' }),
    missed_count: Type.Integer({
      minimum: 0,
      description: 'Occurrences that this entry stands for, when they were missed. The last was due at `due_ts`.',
    }),
    message: Type.Optional(Type.String({ description: 'What a person should know of it. Absent: nothing.' })),
  },
  'An occurrence of a schedule, and what became of it.',
)
export type ScheduleRun = Static<typeof ScheduleRun>

export const Schedule = object(
  {
    schedule_id: ScheduleId,
    namespace_id: NamespaceId,
    ...settings,
    is_paused: Type.Boolean({ description: 'Whether nothing happens at its times.' }),
    create_ts: Timestamp('When the schedule was made.'),
    next: Type.Array(Timestamp('A time at which it begins.'), {
      maxItems: SCHEDULE_NEXT_MAX,
      description: 'The next five times at which it begins, also those of a paused schedule.',
    }),
    active_run: Type.Optional(described(ScheduleRun, 'The run that is under way. Absent: none is.')),
    last_run: Type.Optional(described(ScheduleRun, 'The last run that has ended. Absent: none has.')),
  },
  'What the platform does in a namespace at planned times.',
)
export type Schedule = Static<typeof Schedule>

const defaults = { service: 'api', auth: ['admin', 'user', 'cloud'], rate_limit: 'cloud' } as const
const path = '/cloud/games/{game_id}/schedules'
const params = object({ game_id: GameId })
const of_schedule = {
  params: object({ game_id: GameId, schedule_id: ScheduleId }),
  errors: ['GAME_NOT_FOUND', 'SCHEDULE_NOT_FOUND'],
} as const

export const listSchedules = operation({
  ...defaults,
  id: 'games.schedules.listSchedules',
  method: 'GET',
  path,
  summary: 'Lists the schedules of a game, or of one namespace, by name, each with its last run and its next times.',
  role: 'viewer',
  params,
  query: object({
    namespace_id: Type.Optional(described(NamespaceId, 'Only schedules of this namespace. Default: of all.')),
  }),
  response: object({ schedules: Type.Array(Schedule, { description: 'The schedules.' }) }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})

export const putSchedule = operation({
  ...defaults,
  id: 'games.schedules.putSchedule',
  method: 'PUT',
  path,
  summary:
    'Makes a schedule, or replaces the one of the namespace with this name and kind. A run under way keeps its end, and is cancelled when the schedule is paused.',
  role: 'developer',
  params,
  body: object({
    namespace_id: NamespaceId,
    ...settings,
    is_paused: Type.Optional(
      Type.Boolean({
        description: 'Whether nothing happens at its times. A run under way is cancelled. Default: false.',
      }),
    ),
  }),
  response: object({ schedule: Schedule }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND', 'QUOTA_REACHED', 'VALIDATION_ERROR'],
})

export const deleteSchedule = operation({
  ...defaults,
  ...of_schedule,
  id: 'games.schedules.deleteSchedule',
  method: 'DELETE',
  path: `${path}/{schedule_id}`,
  summary: 'Deletes a schedule with its runs. A window under way ends.',
  role: 'developer',
  response: Empty,
})

export const runSchedule = operation({
  ...defaults,
  ...of_schedule,
  id: 'games.schedules.runSchedule',
  method: 'POST',
  path: `${path}/{schedule_id}/run`,
  summary:
    'Does now what the schedule does at its times, once, without its announcements. A paused schedule does it as well.',
  role: 'developer',
  response: object({ run_id: RunId }),
})

export const listScheduleRuns = operation({
  ...defaults,
  ...of_schedule,
  id: 'games.schedules.listScheduleRuns',
  method: 'GET',
  path: `${path}/{schedule_id}/runs`,
  summary: 'Lists the last 100 runs of a schedule and what became of them, newest first.',
  role: 'viewer',
  response: object({
    runs: Type.Array(ScheduleRun, { maxItems: SCHEDULE_RUNS_MAX, description: 'Runs, newest first.' }),
  }),
})
