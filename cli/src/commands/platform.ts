// The commands of a platform's operator, which act on its data folder: start, backup, restore, verify, admin-token, keys.
import { type Command, InvalidArgumentError } from 'commander'
import { onPlatformNode } from '../platform-node.ts'
import type { Terminal } from '../terminal.ts'

const DAY_MS = 24 * 60 * 60_000
/** Cloud tokens live for a year: with it none of them is cut short. */
const GRACE_DAYS_DEFAULT = 365

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
        const { supervise } = await import('@muster/server/supervisor')
        await supervise(env)
      }),
    )
}

export function addPlatformCommands(program: Command, { env }: Terminal): void {
  addKeyCommands(program, env)

  program
    .command('backup')
    .description('Write a backup of the platform, running or stopped: rows, stored files and keys, as of one moment.')
    .argument('<folder>', 'a folder that is not there yet')
    .action((folder: string) =>
      onPlatformNode(env, async () => {
        const { backup } = await import('@muster/server/backup')
        report(await backup(env, folder))
      }),
    )

  program
    .command('restore')
    .description('Restore a backup into an empty data folder (MUSTER_DATA) and an empty database.')
    .argument('<folder>', 'the backup')
    .action((folder: string) =>
      onPlatformNode(env, async () => {
        const { restore } = await import('@muster/server/backup')
        report(await restore(env, folder))
      }),
    )

  program
    .command('verify')
    .description(
      'Check a backup, or without one the platform: every stored byte, the seats, what versions name, the keys.',
    )
    .argument('[folder]', 'the backup')
    .option('--json', 'the report for programs')
    .action((folder: string | undefined, { json }: { json?: boolean }) =>
      onPlatformNode(env, async () => {
        const { verify } = await import('@muster/server/backup')
        const { report: details, ...outcome } = await verify(env, folder ?? null)
        report(json ? { ...outcome, lines: [JSON.stringify(details, null, 2)] } : outcome)
      }),
    )
}

function addKeyCommands(program: Command, env: Terminal['env']): void {
  program
    .command('admin-token')
    .description("Print the operator's token of the data folder; with --rotate, revoke it and make another one.")
    .option('--rotate', 'revoke it and make another one; the platform must run')
    .action(({ rotate }: { rotate?: boolean }) =>
      onPlatformNode(env, async () => {
        const { readAdminToken, rotateAdminToken } = await import('@muster/server/supervisor/credentials')
        if (rotate) console.error(`The old token is revoked; ${(await rotateAdminToken(env)).file} has the new one.`)
        else console.log(readAdminToken(env))
      }),
    )

  program
    .command('keys')
    .description("The platform's own keys.")
    .command('rotate')
    .description('Sign with new keys. What the old ones signed is valid for a while yet; nothing is restarted.')
    .option('--grace-days <days>', 'how long what the old keys signed stays valid', parseDays, GRACE_DAYS_DEFAULT)
    .action(({ graceDays }: { graceDays: number }) =>
      onPlatformNode(env, async () => {
        const { rotateKeys } = await import('@muster/server/supervisor/credentials')
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
