// What a schedule may do, what became of a run, and the limits of its settings. The hub and the command import them.
export const SCHEDULE_KINDS = ['idle_lobbies', 'announce', 'restart', 'drain'] as const
export type ScheduleKind = (typeof SCHEDULE_KINDS)[number]

export const SCHEDULE_OUTCOMES = ['waiting', 'active', 'done', 'failed', 'missed', 'cancelled'] as const
export type ScheduleOutcome = (typeof SCHEDULE_OUTCOMES)[number]

/** Schedules of a game. */
export const SCHEDULES_MAX = 100
/** Characters of the name of a schedule. */
export const SCHEDULE_NAME_LENGTH_MAX = 32
/** Characters of a cron expression. */
export const SCHEDULE_CRON_LENGTH_MAX = 100
/** Characters of the name of a time zone. */
export const SCHEDULE_TIME_ZONE_LENGTH_MAX = 64
/** Characters of an announcement. */
export const SCHEDULE_TEXT_LENGTH_MAX = 500
/** Announcements before a restart or a drain. */
export const SCHEDULE_ANNOUNCEMENTS_MAX = 5
/** How long before a restart or a drain it is announced. */
export const SCHEDULE_BEFORE_S_MAX = 86_400
/** Length of a window. */
export const SCHEDULE_DURATION_S_MAX = 7 * 86_400
/** How long players may go on in a lobby that restarts or is drained. */
export const SCHEDULE_DEADLINE_S_MAX = 86_400
/** Shortest window, and shortest time between an announcement and what it announces. */
export const SCHEDULE_SECONDS_MIN = 60
/** Game modes, and regions, that a schedule can be limited to. */
export const SCHEDULE_FILTERS_MAX = 32
/** Lobbies without players of one game mode and region: as many as `idle_lobbies.max` of a version config allows. */
export const SCHEDULE_IDLE_LOBBIES_MAX = 32
/** Next times of a schedule in a response. */
export const SCHEDULE_NEXT_MAX = 5
/** Runs of a schedule that are kept. */
export const SCHEDULE_RUNS_MAX = 100
