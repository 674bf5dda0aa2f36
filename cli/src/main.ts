#!/usr/bin/env node
// The `muster` command: what a game developer types. A command loads its code only when it is asked for.
import { readFileSync } from 'node:fs'
import { Command, InvalidArgumentError } from 'commander'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }

const DAY_MS = 24 * 60 * 60_000
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
  .action(async () => {
    const { supervise } = await import('@muster/server/supervisor')
    await supervise(process.env)
  })

program
  .command('admin-token')
  .description("Print the operator's token of the data folder; with --rotate, revoke it and make another one.")
  .option('--rotate', 'revoke it and make another one; the platform must run')
  .action(async ({ rotate }: { rotate?: boolean }) => {
    const { readAdminToken, rotateAdminToken } = await import('@muster/server/supervisor/credentials')
    if (rotate)
      console.error(`The old token is revoked; ${(await rotateAdminToken(process.env)).file} has the new one.`)
    else console.log(readAdminToken(process.env))
  })

program
  .command('keys')
  .description("The platform's own keys.")
  .command('rotate')
  .description('Sign with new keys. What the old ones signed is valid for a while yet; nothing is restarted.')
  .option('--grace-days <days>', 'how long what the old keys signed stays valid', parseDays, GRACE_DAYS_DEFAULT)
  .action(async ({ graceDays }: { graceDays: number }) => {
    const { rotateKeys } = await import('@muster/server/supervisor/credentials')
    const { sign_from_ms, verify_until_ms } = await rotateKeys(process.env, graceDays * DAY_MS)
    const time = (ms: number): string => new Date(ms).toISOString()
    console.log(`New keys sign from ${time(sign_from_ms)} on.`)
    console.log(
      `Tokens of the old ones are valid until ${time(verify_until_ms)}: public tokens in games, cloud tokens in CI`,
    )
    console.log('and the admin token (muster admin-token --rotate) must have been made anew by then.')
  })

await program.parseAsync()

function parseDays(text: string): number {
  if (/^\d{1,4}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It takes whole days, from 0 to 9999.')
}
