// Commands on schedules.
import {
  SCHEDULE_DEADLINE_S_MAX,
  SCHEDULE_DURATION_S_MAX,
  SCHEDULE_IDLE_LOBBIES_MAX,
  SCHEDULE_KINDS,
} from '@musterhost/contract'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { RemovalOptions } from '../manage/removal.ts'
import type { ScheduleOptions } from '../manage/schedules.ts'
import { type GlobalOptions, parseDuration, parseDurationUpTo, parseWhole, withNamespace } from '../options.ts'
import type { Terminal } from '../terminal.ts'
import { withRemoval } from './games.ts'

const DAY_S = 86_400
const NAME = 'as schedules list shows it'

export function addScheduleCommands(program: Command, terminal: Terminal): void {
  const load = () => import('../manage/schedules.ts')
  const schedules = program
    .command('schedules')
    .description('What happens in a namespace at planned times: idle lobbies, announcements, restarts and drains.')
  withNamespace(schedules.command('list', { isDefault: true }))
    .description('List the schedules of a namespace, with the last run and the next time of each.')
    .action(async (options: GlobalOptions) => (await load()).listSchedules(terminal, options))
  withNamespace(schedules.command('set'))
    .description('Make a schedule, or replace the one with this name.')
    .argument('<name>', 'for example friday-peak')
    .addOption(new Option('--kind <kind>', 'what it does').choices(SCHEDULE_KINDS).makeOptionMandatory())
    .requiredOption('--cron <times>', 'when it begins: minute, hour, day, month, weekday; for example "0 18 * * FRI"')
    .requiredOption('--zone <name>', 'time zone of these times, for example Europe/Berlin')
    .option('--mode <name...>', 'only these game modes; default: all')
    .option('--region <name...>', 'only these regions; default: all')
    .option('--count <number>', 'idle_lobbies: how many', parseWhole(1, SCHEDULE_IDLE_LOBBIES_MAX))
    .option(
      '--duration <time>',
      'idle_lobbies and drain: length of the window, for example 4h',
      parseDurationUpTo(SCHEDULE_DURATION_S_MAX / DAY_S),
    )
    .option(
      '--deadline <time>',
      'restart and drain: when lobbies with players end as well, for example 30m; 0s: at once',
      parseDeadline,
    )
    .option('--text <line>', 'announce: the line for the lobbies')
    .option(
      '--before <time:line...>',
      'restart and drain: lines for the lobbies before it, for example "15m:say Restart in {minutes} minutes"',
    )
    .option('--pause', 'do nothing for now')
    .action(async (name: string, options: ScheduleOptions) => (await load()).setSchedule(terminal, name, options))
  withNamespace(schedules.command('run'))
    .description('Do now what the schedule does at its times, once.')
    .argument('<name>', NAME)
    .action(async (name: string, options: GlobalOptions) => (await load()).runNow(terminal, name, options))
  withNamespace(schedules.command('runs'))
    .description('List the last runs of a schedule and what became of them.')
    .argument('<name>', NAME)
    .action(async (name: string, options: GlobalOptions) => (await load()).listRuns(terminal, name, options))
  withNamespace(schedules.command('pause'))
    .description('Do nothing at the times of a schedule. A window or restart under way is cancelled.')
    .argument('<name>', NAME)
    .action(async (name: string, options: GlobalOptions) => (await load()).pauseSchedule(terminal, name, true, options))
  withNamespace(schedules.command('resume'))
    .description('Go on with a schedule that was paused.')
    .argument('<name>', NAME)
    .action(async (name: string, options: GlobalOptions) =>
      (await load()).pauseSchedule(terminal, name, false, options),
    )
  withRemoval(withNamespace(schedules.command('remove')))
    .description('Remove a schedule with its runs. A window under way ends.')
    .argument('<name>', NAME)
    .action(async (name: string, options: GlobalOptions & RemovalOptions) =>
      (await load()).removeSchedule(terminal, name, options),
    )
}

function parseDeadline(text: string): number {
  if (text === '0' || text === '0s') return 0
  const deadline_ms = parseDuration(text)
  if (deadline_ms <= SCHEDULE_DEADLINE_S_MAX * 1_000) return deadline_ms
  throw new InvalidArgumentError('It is at most 1d.')
}
