// Commands on providers of sign-ins.
import type { Command } from 'commander'
import type { RemovalOptions } from '../manage/removal.ts'
import type { ProviderOptions } from '../manage/sign-in-providers.ts'
import { type GlobalOptions, withPlatform } from '../options.ts'
import type { Terminal } from '../terminal.ts'
import { withRemoval } from './games.ts'

export function addSignInProviderCommands(program: Command, terminal: Terminal): void {
  const load = () => import('../manage/sign-in-providers.ts')
  const providers = program
    .command('sign-in-providers')
    .description('Providers of OpenID Connect with which people sign in to the hub, for administrators.')
  withPlatform(providers.command('list', { isDefault: true }))
    .description('List the providers, without their secrets.')
    .action(async (options: GlobalOptions) => (await load()).listProviders(terminal, options))
  withPlatform(providers.command('check'))
    .description('Read the configuration of an issuer, and say what is wrong with it.')
    .argument('<issuer>', 'for example https://accounts.google.com')
    .action(async (issuer: string, options: GlobalOptions) => (await load()).checkIssuer(terminal, issuer, options))
  withPlatform(providers.command('set'))
    .description('Add a provider, or replace the one with this name. Its client secret is read from standard input.')
    .argument('<name>', 'part of its addresses, for example keycloak')
    .requiredOption('--issuer <url>', 'issuer, without /.well-known/openid-configuration')
    .requiredOption('--client-id <id>', 'client id that the provider gave')
    .option('--title <text>', 'text of the button; default the name')
    .option('--scopes <scope...>', 'scopes; default openid profile email')
    .option('--groups-claim <claim>', 'claim with groups, for example groups')
    .option('--role <value:group:role...>', 'a value, the id of a group, and developer or viewer')
    .option('--admin <value...>', 'values that make an administrator of the platform')
    .option('--only-with-value', 'let in only people with one of these values')
    .option('--link-by-email', 'the same verified e-mail address is the same person')
    .option('--session-hours <hours>', 'hours of a session at most; default 168', Number)
    .option('--keep', 'keep the client secret that it has, or have none')
    .action(async (name: string, options: ProviderOptions) => (await load()).setProvider(terminal, name, options))
  withRemoval(withPlatform(providers.command('remove')))
    .description('Remove a provider, and end the sessions that were opened with it.')
    .argument('<name>', 'as sign-in-providers list shows it')
    .action(async (name: string, options: GlobalOptions & RemovalOptions) =>
      (await load()).removeProvider(terminal, name, options),
    )
}
