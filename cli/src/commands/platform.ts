// The commands of a platform's operator, which act on its data folder: start, restart, upgrade, backup, restore, verify, admin-token, keys.
import { fileURLToPath } from 'node:url'
import { type Command, InvalidArgumentError } from 'commander'
import { onPlatformNode } from '../platform-node.ts'
import type { Terminal } from '../terminal.ts'

const DAY_MS = 24 * 60 * 60_000
/** Cloud tokens live for a year: with it none of them is cut short. */
const GRACE_DAYS_DEFAULT = 365

const GROUP_TEXT = 'the group that develops the game here; default: the same, made where it is missing'
const NAME_TEXT = 'short name of the game here; default: the same'

type RestoreOptions = { from?: string; game?: string; group?: string; name?: string }

/** How a command of the platform ended: what it prints, and whether it succeeded. */
type Outcome = { lines: readonly string[]; is_good: boolean }

export function addStartCommand(program: Command, terminal: Terminal): void {
  const { env } = terminal
  program
    .command('start')
    .description('Run the whole platform on this machine: database, API, matchmaker, runner and edge.')
    .addHelpText('after', '\nSettings come from the environment, for example MUSTER_DATA and MUSTER_EDGE_HTTP_PORT.')
    .action(() =>
      onPlatformNode(env, async () => {
        terminal.outlives_output = true
        const { supervise } = await import('@musterhost/server/supervisor')
        await supervise(env)
      }),
    )
}

export function addPlatformCommands(program: Command, { env }: Terminal): void {
  addKeyCommands(program, env)

  addBackupCommands(program, env)

  program
    .command('restart')
    .description('Restart the roles of the platform of this machine, with the program as it is installed now.')
    .addHelpText('after', '\nDatabase and lobbies run on, and players stay connected. Run it after an upgrade.')
    .action(() =>
      onPlatformNode(env, async () => {
        const { restartRoles } = await import('@musterhost/server/supervisor/restart-request')
        await restartRoles(env, (role, { done, of }) => console.log(`${done} of ${of}: ${role} runs in a new process.`))
        console.log('All roles run in new processes.')
      }),
    )

  program
    .command('upgrade')
    .description('Change the platform of this machine to the version of this command, while players play.')
    .addHelpText(
      'after',
      '\nInstall the new version beside the old one, and run its upgrade on each node, one after the other.',
    )
    .action(() =>
      onPlatformNode(env, async () => {
        const { upgrade } = await import('@musterhost/server/supervisor/upgrade')
        const cli_path = fileURLToPath(new URL('../main.ts', import.meta.url))
        const onStep = (name: string, detail: string, is_good = true): void =>
          console.log(`  ${is_good ? 'ok' : '! '}  ${name.padEnd(10)}${detail}`)
        const { version, next, has_joined } = await upgrade({ env, cli_path, onStep })
        console.log(`This node runs ${version}.`)
        if (has_joined) console.log('Its link to the platform changes with its next start.')
        else if (next.length === 0) console.log('All nodes run it.')
        else {
          console.log('Next, run muster upgrade on:')
          for (const node of next) console.log(`  ${node.node_id}, which runs ${node.version}`)
        }
      }),
    )

  program
    .command('restore')
    .description('Restore a backup into an empty data folder (MUSTER_DATA) and an empty database.')
    .argument('[backup]', 'the folder of the backup; with --from the name of the backup, by default the latest')
    .option('--from <repository>', 'a repository: a folder or s3://BUCKET/PREFIX')
    .option('--game <game>', 'restore this game alone, by name or id, into the platform that is there')
    .option('--group <id>', GROUP_TEXT)
    .option('--name <name>', NAME_TEXT)
    .action((name: string | undefined, options: RestoreOptions, command: Command) =>
      onPlatformNode(env, async () => {
        const where = placeOf(name, options.from)
        if (where === null)
          command.error('error: name the backup: muster restore FOLDER, or muster restore --from REPOSITORY')
        else if (options.game !== undefined) {
          const { restoreGame } = await import('@musterhost/server/backup/game')
          report(await restoreGame(env, where, choiceOf(options)))
        } else if (options.group !== undefined || options.name !== undefined)
          command.error('error: --group and --name belong to --game')
        else {
          const { restore } = await import('@musterhost/server/backup')
          report(await restore(env, where))
        }
      }),
    )

  program
    .command('import-game')
    .description('Import a file of "muster games export" into the platform of this machine, running or stopped.')
    .argument('<file>', 'the file: arena.tar')
    .option('--group <id>', GROUP_TEXT)
    .option('--name <name>', NAME_TEXT)
    .action((file: string, options: RestoreOptions) =>
      onPlatformNode(env, async () => {
        const { importGameFile } = await import('@musterhost/server/backup/game')
        report(await importGameFile(env, file, choiceOf(options)))
      }),
    )

  program
    .command('verify')
    .description(
      'Check a backup, or without one the platform: every stored byte, the seats, what versions name, the keys.',
    )
    .argument('[backup]', 'the folder of the backup; with --from the name of the backup, by default the latest')
    .option('--from <repository>', 'a repository: a folder or s3://BUCKET/PREFIX')
    .option('--json', 'the report for programs')
    .action((name: string | undefined, { from, json }: { from?: string; json?: boolean }) =>
      onPlatformNode(env, async () => {
        const { verify } = await import('@musterhost/server/backup')
        const { report: details, ...outcome } = await verify(env, placeOf(name, from))
        report(json ? { ...outcome, lines: [JSON.stringify(details, null, 2)] } : outcome)
      }),
    )
}

function addBackupCommands(program: Command, env: Terminal['env']): void {
  program
    .command('backup')
    .description('Write a backup of the platform, running or stopped: rows, stored files and keys, as of one moment.')
    .argument('[folder]', 'a folder that is not there yet')
    .option('--to <repository>', 'a folder or s3://BUCKET/PREFIX with many backups; only new stored files are copied')
    .option('--keep <rule>', 'with --to: a number of backups, or days, weeks and months such as "7d 4w 12m"')
    .addHelpText(
      'after',
      '\nWith MUSTER_BACKUP_KEY, a repository is encrypted. MUSTER_BACKUP_TO makes backups by a schedule.',
    )
    .action((folder: string | undefined, { to, keep }: { to?: string; keep?: string }, command: Command) =>
      onPlatformNode(env, async () => {
        const { backup, backupInto, readKeep } = await import('@musterhost/server/backup')
        if ((folder === undefined) === (to === undefined)) {
          command.error('error: name one place: muster backup FOLDER, or muster backup --to REPOSITORY')
        } else if (to !== undefined) report(await backupInto(env, to, keep === undefined ? null : readKeep(keep)))
        else report(await backup(env, folder!))
      }),
    )

  program
    .command('backups')
    .description('List the backups of a repository.')
    .argument('<repository>', 'a folder or s3://BUCKET/PREFIX')
    .action((repository: string) =>
      onPlatformNode(env, async () => {
        const { backups } = await import('@musterhost/server/backup')
        report(await backups(env, repository))
      }),
    )

  program
    .command('copy-objects')
    .description('Copy the stored files of the platform to a bucket or a folder, those that it does not have yet.')
    .argument('<place>', 's3://BUCKET/PREFIX, as MUSTER_OBJECTS will name it, or a data folder')
    .action((place: string) =>
      onPlatformNode(env, async () => {
        const { copyStored } = await import('@musterhost/server/backup')
        report(await copyStored(env, place))
      }),
    )
}

function choiceOf({ game, group, name }: RestoreOptions) {
  return { game: game ?? null, group_id: group ?? null, name_id: name ?? null }
}

/** Null: neither is given. */
function placeOf(name: string | undefined, from: string | undefined) {
  if (from !== undefined) return { repository: from, name: name ?? null }
  return name ?? null
}

function addKeyCommands(program: Command, env: Terminal['env']): void {
  program
    .command('admin-token')
    .description("Print the operator's token of the data folder; with --rotate, revoke it and make another one.")
    .option('--rotate', 'revoke it and make another one; the platform must run')
    .action(({ rotate }: { rotate?: boolean }) =>
      onPlatformNode(env, async () => {
        const { readAdminToken, rotateAdminToken } = await import('@musterhost/server/supervisor/credentials')
        if (rotate) console.error(`The old token is revoked; ${(await rotateAdminToken(env)).file} has the new one.`)
        else console.log(readAdminToken(env))
      }),
    )

  const keys = program.command('keys').description("The platform's own keys.")
  keys
    .command('backup')
    .description('Print a new key that encrypts backups, for MUSTER_BACKUP_KEY. Nothing is changed.')
    .action(() =>
      onPlatformNode(env, async () => {
        const { newBackupKey } = await import('@musterhost/server/backup')
        console.log(await newBackupKey())
      }),
    )

  keys
    .command('rotate')
    .description('Sign with new keys. What the old ones signed is valid for a while yet; nothing is restarted.')
    .option('--grace-days <days>', 'how long what the old keys signed stays valid', parseDays, GRACE_DAYS_DEFAULT)
    .action(({ graceDays }: { graceDays: number }) =>
      onPlatformNode(env, async () => {
        const { rotateKeys } = await import('@musterhost/server/supervisor/credentials')
        const { sign_from_ms, verify_until_ms } = await rotateKeys(env, graceDays * DAY_MS)
        const time = (ms: number): string => new Date(ms).toISOString()
        console.log(`New keys sign from ${time(sign_from_ms)} on.`)
        console.log(`Tokens that the old keys signed are valid until ${time(verify_until_ms)}. Make new ones before:`)
        console.log('  public tokens in games, cloud tokens in CI, and the admin token (muster admin-token --rotate).')
      }),
    )
}

/** The lines say what went wrong, for people; the exit code says it for a script. */
function report({ lines, is_good }: Outcome): void {
  for (const line of lines) console.log(line)
  if (!is_good) process.exitCode = 1
}

function parseDays(text: string): number {
  if (/^\d{1,4}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It takes whole days, from 0 to 9999.')
}
