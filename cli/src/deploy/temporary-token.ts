// Tokens that a command needs while it runs. It creates one, and revokes it at its end. A created token is returned without its
// id, so the list of tokens before and after shows which one is new.

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
