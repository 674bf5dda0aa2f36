// Who the user is, and on which platform: login, logout, whoami, sign-in-link and context.
import type { Command } from 'commander'
import type { LoginOptions } from '../login/login.ts'
import type { GlobalOptions } from '../options.ts'
import { withOutput, withPlatform } from '../options.ts'
import type { Terminal } from '../terminal.ts'

export function addLoginCommands(program: Command, terminal: Terminal): void {
  withOutput(program.command('login'))
    .description('Log in to a platform: by a link that you confirm in the browser, or by a token from standard input.')
    .option('--url <url>', 'the address of the platform; default MUSTER_URL, or url of muster.yaml')
    .option('--name <context>', 'the name of the context; default: the host of the address')
    .option('--token-stdin', 'read a token from standard input: a cloud token, or the token of the operator')
    .addHelpText(
      'after',
      '\nIn CI, set MUSTER_URL and MUSTER_TOKEN instead.\nExample: muster admin-token | muster login --url http://localhost:8080 --token-stdin',
    )
    .action(async (options: LoginOptions) => (await import('../login/login.ts')).login(terminal, options))

  withOutput(program.command('logout'))
    .description('Forget the token of the current context, or of another one.')
    .option('--context <name>', 'the context (muster context list)')
    .action(async ({ context }: { context?: string }) =>
      (await import('../login/contexts.ts')).logout(terminal, context),
    )

  withPlatform(program.command('whoami'))
    .description('Show the platform, where its address and token come from, and what the token proves.')
    .action(async (options: GlobalOptions) => (await import('../login/login.ts')).whoami(terminal, options))

  withPlatform(program.command('sign-in-link'))
    .description('Create a link that signs an administrator in to the hub once, within an hour.')
    .addHelpText('after', '\nThe link is a secret. Example: muster sign-in-link --context operator')
    .action(async (options: GlobalOptions) => (await import('../login/sign-in-link.ts')).signInLink(terminal, options))

  addContextCommands(program.command('context'), terminal)
}

function addContextCommands(context: Command, terminal: Terminal): void {
  const load = () => import('../login/contexts.ts')
  context.description('The platforms that you have logged in to. One of them is the current one.')

  withOutput(context.command('list'))
    .description('List the contexts.')
    .action(async () => (await load()).listContexts(terminal))

  withOutput(context.command('use'))
    .description('Make a context the current one.')
    .argument('<name>', 'the context')
    .action(async (name: string) => (await load()).useContext(terminal, name))

  withOutput(context.command('add'))
    .description('Add a context with a token from standard input, and leave the current one as it is.')
    .argument('<name>', 'the name of the context')
    .requiredOption('--url <url>', 'the address of the platform')
    .action(async (name: string, { url }: { url: string }) => (await load()).addContext(terminal, { name, url }))

  withOutput(context.command('remove'))
    .description('Remove a context and its token.')
    .argument('<name>', 'the context')
    .action(async (name: string) => (await load()).removeContext(terminal, name))
}
