#!/usr/bin/env node
// The `muster` command: what a game developer types. A command loads its code only when it is asked for.
import { readFileSync } from 'node:fs'
import { Command } from 'commander'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }

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

await program.parseAsync()
