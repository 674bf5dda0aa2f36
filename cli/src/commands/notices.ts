// Commands on notices.
import { NOTICE_DELIVERIES_MAX, NOTICE_EVENT_NAMES, NOTICE_KINDS } from '@musterhost/contract'
import { type Command, Option } from 'commander'
import type { NoticeOptions, TargetOptions } from '../manage/notices.ts'
import type { RemovalOptions } from '../manage/removal.ts'
import { withGame } from '../options.ts'
import type { Terminal } from '../terminal.ts'
import { withRemoval } from './games.ts'

const LINES_DEFAULT = 20

export function addNoticeCommands(program: Command, terminal: Terminal): void {
  const load = () => import('../manage/notices.ts')
  const notices = program
    .command('notices')
    .description('Notices of what happens, to Discord, Slack, Telegram, ntfy, e-mail or a webhook.')
  withScope(notices.command('list', { isDefault: true }))
    .description('List the targets, without their secrets.')
    .action(async (options: NoticeOptions) => (await load()).listTargets(terminal, options))
  withScope(notices.command('set'))
    .description('Make a target, or replace the one with this name. Its address or token is read from standard input.')
    .argument('<name>', 'for example team-chat')
    .addOption(new Option('--kind <kind>', 'where notices go').choices(NOTICE_KINDS).makeOptionMandatory())
    .addOption(
      new Option('--events <event...>', 'which events it gets').choices(NOTICE_EVENT_NAMES).makeOptionMandatory(),
    )
    .option('--server <url>', 'server of ntfy or Telegram; default the public one')
    .option('--topic <topic>', 'topic of ntfy')
    .option('--chat <id>', 'chat of Telegram: a number, or @name')
    .option('--to <address...>', 'addresses of e-mail')
    .option('--access-token', 'ntfy: read its access token from standard input')
    .option('--only-game <name...>', 'only notices about these games, names or ids; default: as before, or all')
    .option('--only-namespace <name...>', 'only notices about these namespaces of the game, names or ids')
    .option('--everything', 'about all games and namespaces again')
    .option('--pause', 'send nothing for now')
    .option('--keep', 'keep the address or token that it has')
    .option('--new-key', 'sign with a new key, which is printed once')
    .action(async (name: string, options: TargetOptions) => (await load()).setTarget(terminal, name, options))
  withScope(notices.command('test'))
    .description('Send a test notice now, and say what came back.')
    .argument('<name>', 'as notices list shows it')
    .action(async (name: string, options: NoticeOptions) => (await load()).testTarget(terminal, name, options))
  withScope(notices.command('deliveries'))
    .description('List the last notices of a target and what became of them.')
    .argument('<name>', 'as notices list shows it')
    .option('--lines <count>', `how many, at most ${NOTICE_DELIVERIES_MAX}`, Number, LINES_DEFAULT)
    .action(async (name: string, options: NoticeOptions & { lines: number }) =>
      (await load()).listDeliveries(terminal, name, options),
    )
  withScope(notices.command('resend'))
    .description('Send a notice again. Its id stays the same.')
    .argument('<name>', 'as notices list shows it')
    .argument('<notice-id>', 'as notices deliveries shows it')
    .action(async (name: string, notice_id: string, options: NoticeOptions) =>
      (await load()).resend(terminal, name, notice_id, options),
    )
  withRemoval(withScope(notices.command('remove')))
    .description('Remove a target. Notices that wait are not sent.')
    .argument('<name>', 'as notices list shows it')
    .action(async (name: string, options: NoticeOptions & RemovalOptions) =>
      (await load()).removeTarget(terminal, name, options),
    )
}

function withScope(command: Command): Command {
  return withGame(command)
    .option('--group <name>', 'targets of this group, name or id; default: of the game')
    .option('--platform', 'targets of the platform, for administrators')
}
