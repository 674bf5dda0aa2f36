// Tokens that a command needs while it runs. It creates one, and revokes it at its end. A created token is returned without its
// id, so the list of tokens before and after shows which one is new.

import { createCloudToken, inspectAuth, listGameCloudTokens, revokeGameCloudToken } from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { createCommandClient, type Session } from './session.ts'
import type { Terminal } from './terminal.ts'

/** What is cleaned up is cleaned up after Ctrl-C too. */
const ALWAYS = new AbortController().signal

export type TokenCalls = {
  create(): Promise<{ token: string }>
  /** Newest first. */
  list(): Promise<{ tokens: { token_id: string }[] }>
  revoke(token_id: string): Promise<unknown>
}

export type TemporaryToken = { token: string; revoke(): Promise<void> }

/** When another command creates a token at the same time, both are left to expire: nobody keeps their secrets. */
export async function createTemporaryToken(calls: TokenCalls): Promise<TemporaryToken> {
  const before = new Set((await calls.list()).tokens.map(({ token_id }) => token_id))
  const { token } = await calls.create()
  const added = (await calls.list()).tokens.filter(({ token_id }) => !before.has(token_id))
  return {
    token,
    async revoke() {
      if (added.length === 1) await calls.revoke(added[0]!.token_id)
    },
  }
}

/** Only a cloud token may act as the backend of a game. One that is created here is revoked at the end. */
export async function withBackend<T>(
  terminal: Terminal,
  session: Pick<Session, 'client' | 'token' | 'url'>,
  game_id: string,
  work: (backend: { client: Client; token: string }) => Promise<T>,
): Promise<T> {
  const { client, token, url } = session
  const { agent } = await client.call(inspectAuth, {})
  if (agent.game_cloud !== undefined) return work({ client, token })
  const params = { game_id }
  const temporary = await createTemporaryToken({
    create: () => client.call(createCloudToken, { params }),
    list: () => client.call(listGameCloudTokens, { params }),
    revoke: (token_id) => client.call(revokeGameCloudToken, { params: { game_id, token_id }, signal: ALWAYS }),
  })
  try {
    const backend = createCommandClient(url, temporary.token, terminal.signal)
    return await work({ client: backend, token: temporary.token })
  } finally {
    await temporary.revoke()
  }
}
