// Tokens of a game: cloud tokens for CI, public tokens for game clients.
import {
  createCloudToken,
  createGameNamespaceTokenPublic,
  listGameCloudTokens,
  listGameNamespaceTokensDevelopment,
  listGameNamespaceTokensPublic,
  revokeGameCloudToken,
  revokeGameNamespaceTokenDevelopment,
  revokeGameNamespaceTokenPublic,
} from '@musterhost/contract'
import { EXIT, Failure } from '../failure.ts'
import type { GlobalOptions } from '../options.ts'
import { openSession, type Session } from '../session.ts'
import { printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { ago } from '../times.ts'

export type TokenKind = 'cloud' | 'public' | 'development'
export type TokenOptions = GlobalOptions & { kind: TokenKind }

export async function listTokens(terminal: Terminal, { kind, ...options }: TokenOptions): Promise<void> {
  const session = await openSession(terminal, options)
  const response = await listOf(session, kind)
  terminal.note(`Tokens (${kind}) of ${await nameOf(session, kind)}`)
  if (terminal.is_json) return terminal.json(response)
  printTable(
    terminal,
    response.tokens,
    [
      { title: 'TOKEN', text: ({ token_id }) => token_id, is_whole: true },
      { title: 'NAME', text: ({ name }) => name ?? '' },
      { title: 'BY', text: ({ created_by }) => created_by?.name ?? created_by?.kind ?? '' },
      { title: 'CREATED', text: ({ create_ts }) => ago(terminal, create_ts) },
      { title: 'USED', text: ({ use_ts }) => (use_ts === undefined ? '' : ago(terminal, use_ts)) },
      { title: 'EXPIRES', text: ({ expire_ts }) => (expire_ts === undefined ? 'never' : ago(terminal, expire_ts)) },
      { title: 'REVOKED', text: ({ revoke_ts }) => (revoke_ts === undefined ? '' : ago(terminal, revoke_ts)) },
    ],
    `There is no ${kind} token. Create one: muster tokens create --kind ${kind}`,
  )
}

export async function createToken(
  terminal: Terminal,
  { kind, expires, name, ...options }: TokenOptions & { expires?: number; name?: string },
): Promise<void> {
  if (kind !== 'cloud' && expires !== undefined) {
    throw new Failure('Only a cloud token takes --expires: public tokens are valid for 15 years.', {
      exit_code: EXIT.usage,
    })
  }
  if (kind !== 'cloud' && name !== undefined) {
    throw new Failure('Only a cloud token takes --name.', { exit_code: EXIT.usage })
  }
  if (kind === 'development') {
    throw new Failure('A development token names the ports of your machine.', {
      exit_code: EXIT.usage,
      remedy: 'The command muster dev creates one.',
    })
  }
  const session = await openSession(terminal, options)
  terminal.note(`Creating a ${kind} token of ${await nameOf(session, kind)}`)
  const { game_id } = await session.game()
  const { token } =
    kind === 'cloud'
      ? await session.client.call(createCloudToken, {
          params: { game_id },
          body: { ...(expires === undefined ? {} : { ttl: expires }), ...(name === undefined ? {} : { name }) },
        })
      : await session.client.call(createGameNamespaceTokenPublic, { params: await paramsOf(session) })
  if (terminal.is_json) return terminal.json({ token })
  terminal.print(token)
  terminal.note('The token is shown once. In CI, set MUSTER_TOKEN to it.')
}

export async function revokeToken(
  terminal: Terminal,
  token_id: string,
  { kind, ...options }: TokenOptions,
): Promise<void> {
  const session = await openSession(terminal, options)
  const { client } = session
  if (kind === 'cloud') {
    const { game_id } = await session.game()
    await client.call(revokeGameCloudToken, { params: { game_id, token_id } })
  } else {
    const operation = kind === 'public' ? revokeGameNamespaceTokenPublic : revokeGameNamespaceTokenDevelopment
    await client.call(operation, { params: { ...(await paramsOf(session)), token_id } })
  }
  if (terminal.is_json) return terminal.json({})
  terminal.note(`Revoked the ${kind} token ${token_id} of ${await nameOf(session, kind)}.`)
}

async function listOf(session: Session, kind: TokenKind) {
  const { client } = session
  if (kind === 'cloud') {
    const { game_id } = await session.game()
    return client.call(listGameCloudTokens, { params: { game_id } })
  }
  const operation = kind === 'public' ? listGameNamespaceTokensPublic : listGameNamespaceTokensDevelopment
  return client.call(operation, { params: await paramsOf(session) })
}

async function paramsOf(session: Session) {
  const [{ game_id }, { namespace_id }] = [await session.game(), await session.namespace()]
  return { game_id, namespace_id }
}

async function nameOf(session: Session, kind: TokenKind): Promise<string> {
  const { name_id } = await session.game()
  return `${kind === 'cloud' ? name_id : `${name_id}/${(await session.namespace()).name_id}`} at ${session.url}`
}
