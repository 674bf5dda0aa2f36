// Providers of sign-ins. The client secret is read from standard input, and never printed.
import {
  type BodyOf,
  checkSignInIssuer,
  deleteSignInProvider,
  listSignInProviders,
  putSignInProvider,
} from '@musterhost/contract'
import { EXIT, Failure } from '../failure.ts'
import type { GlobalOptions } from '../options.ts'
import { openSession } from '../session.ts'
import { printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { confirmRemoval, type RemovalOptions } from './removal.ts'

export type ProviderOptions = GlobalOptions & {
  issuer: string
  clientId: string
  title?: string
  scopes?: string[]
  groupsClaim?: string
  role?: string[]
  admin?: string[]
  onlyWithValue?: boolean
  linkByEmail?: boolean
  sessionHours?: number
  keep?: boolean
}

type Rule = NonNullable<BodyOf<typeof putSignInProvider>['rules']>[number]

export async function listProviders(terminal: Terminal, options: GlobalOptions): Promise<void> {
  const session = await openSession(terminal, options)
  const { providers } = await session.client.call(listSignInProviders, {})
  terminal.note(`Providers of sign-ins of the platform at ${session.url}`)
  if (terminal.is_json) return terminal.json({ providers })
  printTable(
    terminal,
    providers,
    [
      { title: 'NAME', text: ({ name }) => name, is_whole: true },
      { title: 'TITLE', text: ({ title }) => title },
      { title: 'CLIENT', text: ({ client_id }) => client_id },
      { title: 'ACCOUNTS', text: ({ account_count }) => String(account_count) },
      { title: 'ISSUER', text: ({ issuer }) => issuer },
    ],
    'There is no provider. Add one: muster sign-in-providers set keycloak --issuer URL --client-id muster',
  )
}

export async function checkIssuer(terminal: Terminal, issuer: string, options: GlobalOptions): Promise<void> {
  const session = await openSession(terminal, options)
  const found = await session.client.call(checkSignInIssuer, { body: { issuer } })
  if (terminal.is_json) terminal.json(found)
  else if (found.is_ok) terminal.note(`${issuer} works, with ${found.key_count ?? 0} keys.`)
  if (found.is_ok) return
  throw new Failure(`${issuer} cannot be used: ${found.problem ?? ''}`, {
    remedy: 'Compare it with the issuer that the provider shows.',
  })
}

export async function setProvider(terminal: Terminal, name: string, options: ProviderOptions): Promise<void> {
  const { issuer, clientId, title = name, scopes, groupsClaim, role = [], admin, sessionHours } = options
  const rules = role.map(ruleOf)
  const client_secret = options.keep === true ? null : await terminal.readSecret('The client secret')
  const session = await openSession(terminal, options)
  const body = {
    ...{ title, issuer, client_id: clientId, rules },
    ...(client_secret === null ? {} : { client_secret }),
    ...(scopes === undefined ? {} : { scopes }),
    ...(groupsClaim === undefined ? {} : { groups_claim: groupsClaim }),
    ...(admin === undefined ? {} : { admin_values: admin }),
    ...(options.onlyWithValue === true ? { requires_value: true } : {}),
    ...(options.linkByEmail === true ? { links_by_email: true } : {}),
    ...(sessionHours === undefined ? {} : { session_hours: sessionHours }),
  }
  const { provider } = await session.client.call(putSignInProvider, { params: { provider_name: name }, body })
  if (terminal.is_json) return terminal.json({ provider })
  terminal.note(`Set ${name} of the platform at ${session.url}. Register these addresses there:`)
  terminal.print(`Redirect URI:             ${provider.redirect_url}`)
  terminal.print(`Post-logout redirect URI: ${provider.sign_out_url}`)
  terminal.print(`Back-channel logout URL:  ${provider.backchannel_logout_url}`)
}

/** A value may contain colons, so the text is read from its end. */
function ruleOf(text: string): Rule {
  const parts = text.split(':')
  const [group_id = '', role] = parts.slice(-2)
  const value = parts.slice(0, -2).join(':')
  if (value !== '' && (role === 'developer' || role === 'viewer')) return { value, group_id, role }
  throw new Failure(`--role ${text} is not a value, the id of a group and a role.`, {
    exit_code: EXIT.usage,
    remedy: 'Write it as arena-developers:GROUP_ID:developer. muster groups list shows the ids.',
  })
}

export async function removeProvider(
  terminal: Terminal,
  name: string,
  options: GlobalOptions & RemovalOptions,
): Promise<void> {
  const session = await openSession(terminal, options)
  await confirmRemoval(terminal, `Remove ${name}? People who signed in with it are signed out.`, options)
  const { ended_count } = await session.client.call(deleteSignInProvider, { params: { provider_name: name } })
  if (terminal.is_json) return terminal.json({ ended_count })
  terminal.note(`Removed ${name}. ${ended_count} sessions ended.`)
}
