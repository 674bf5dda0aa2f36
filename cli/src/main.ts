#!/usr/bin/env node
// The `muster` command: what a game developer types. A command loads its code only when it is asked for.
import { readFileSync } from 'node:fs'
import { Command, InvalidArgumentError } from 'commander'
import { onPlatformNode } from './platform-node.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }

const DAY_MS = 24 * 60 * 60_000
/** Mistakes in settings; the server's config.ts has the same, which is not loaded for every command. */
const CONFIG_EXIT_CODE = 2
/** Cloud tokens live for a year: with it none of them is cut short. */
const GRACE_DAYS_DEFAULT = 365

const program = new Command('muster')
  .description('A self-hosted multiplayer game hosting platform.')
  .version(version, '-v, --version')
  .showHelpAfterError()

program
  .command('start')
  .description('Run the whole platform on this machine: database, API, matchmaker, runner and edge.')
  .addHelpText('after', '\nSettings come from the environment, for example MUSTER_DATA and MUSTER_EDGE_HTTP_PORT.')
  .action(() =>
    onPlatformNode(process.env, async () => {
      const { supervise } = await import('@muster/server/supervisor')
      await supervise(process.env)
    }),
  )

program
  .command('admin-token')
  .description("Print the operator's token of the data folder; with --rotate, revoke it and make another one.")
  .option('--rotate', 'revoke it and make another one; the platform must run')
  .action(({ rotate }: { rotate?: boolean }) =>
    onPlatformNode(process.env, async () => {
      const { readAdminToken, rotateAdminToken } = await import('@muster/server/supervisor/credentials')
      if (rotate)
        console.error(`The old token is revoked; ${(await rotateAdminToken(process.env)).file} has the new one.`)
      else console.log(readAdminToken(process.env))
    }),
  )

program
  .command('keys')
  .description("The platform's own keys.")
  .command('rotate')
  .description('Sign with new keys. What the old ones signed is valid for a while yet; nothing is restarted.')
  .option('--grace-days <days>', 'how long what the old keys signed stays valid', parseDays, GRACE_DAYS_DEFAULT)
  .action(({ graceDays }: { graceDays: number }) =>
    onPlatformNode(process.env, async () => {
      const { rotateKeys } = await import('@muster/server/supervisor/credentials')
      const { sign_from_ms, verify_until_ms } = await rotateKeys(process.env, graceDays * DAY_MS)
      const time = (ms: number): string => new Date(ms).toISOString()
      console.log(`New keys sign from ${time(sign_from_ms)} on.`)
      console.log(
        `Tokens of the old ones are valid until ${time(verify_until_ms)}: public tokens in games, cloud tokens in CI`,
      )
      console.log('and the admin token (muster admin-token --rotate) must have been made anew by then.')
    }),
  )

program
  .command('backup')
  .description('Write a backup of the platform, running or stopped: rows, stored files and keys, as of one moment.')
  .argument('<folder>', 'a folder that is not there yet')
  .action((folder: string) =>
    onPlatformNode(process.env, async () => {
      const { backup } = await import('@muster/server/backup')
      tell(await backup(process.env, folder))
    }),
  )

program
  .command('restore')
  .description('Restore a backup into an empty data folder (MUSTER_DATA) and an empty database.')
  .argument('<folder>', 'the backup')
  .action((folder: string) =>
    onPlatformNode(process.env, async () => {
      const { restore } = await import('@muster/server/backup')
      tell(await restore(process.env, folder))
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
    onPlatformNode(process.env, async () => {
      const { verify } = await import('@muster/server/backup')
      const { report, ...outcome } = await verify(process.env, folder ?? null)
      tell(json ? { ...outcome, lines: [JSON.stringify(report, null, 2)] } : outcome)
    }),
  )

try {
  await program.parseAsync()
} catch (error) {
  // These say in whole sentences what to do; where in our code they were thrown is no help.
  if (!(error instanceof Error) || !['StartError', 'ConfigError'].includes(error.name)) throw error
  console.error(error.message)
  process.exitCode = error.name === 'ConfigError' ? CONFIG_EXIT_CODE : 1
}

/** What went wrong is in the lines; a script hears of it by the exit code. */
function tell({ lines, is_good }: { lines: readonly string[]; is_good: boolean }): void {
  for (const line of lines) console.log(line)
  if (!is_good) process.exitCode = 1
}

function parseDays(text: string): number {
  if (/^\d{1,4}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It takes whole days, from 0 to 9999.')
}
