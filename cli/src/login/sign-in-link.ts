// A link that signs an administrator in to the hub once. The link is printed alone on standard output, for scripts.
import { createSignInLink } from '@musterhost/contract'
import { EXIT, Failure } from '../failure.ts'
import type { GlobalOptions } from '../options.ts'
import { createCommandClient, openSession } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { inspect } from './login.ts'

export async function signInLink(terminal: Terminal, options: GlobalOptions): Promise<void> {
  const session = await openSession(terminal, options)
  const { agent, who } = await inspect(terminal, session.url, session.token)
  if (agent.access_token === undefined) {
    throw new Failure(`A sign-in link is for administrators, and the token is of ${who}.`, {
      exit_code: EXIT.not_allowed,
      remedy: 'Use the token of the operator: muster admin-token | muster login --url URL --token-stdin',
    })
  }
  const client = createCommandClient(session.url, session.token, terminal.signal)
  const link = await client.call(createSignInLink, {})
  if (terminal.is_json) return terminal.json(link)
  terminal.print(link.url)
  terminal.note(`It signs in once, until ${link.expire_ts}. Keep it secret.`)
}
