// Notifies a long poll or a WebSocket when the rights of its caller may have changed. The token was revoked, the session has
// ended, the person has another role or has left the group, or the game, namespace or lobby is gone. The rules are not
// repeated here: a follower is notified that anything changed, and checks the rules again.
//
// One query for all followed callers reads the database a few times a second. So no writer has to announce its changes, and
// a lost notification leaves no feed open.
import type { Context } from '../context.ts'
import { createPoller, type Poller } from '../database/poller.ts'
import { createTimerWhileNeeded } from '../flow/timer-while-needed.ts'

/** Together with the delay of revoked tokens, a change is noticed within a second. */
const POLL_MS = 250
/** Rows of one query. */
const GROUNDS_AT_ONCE_MAX = 1_000

/** What the rights of a caller depend on; null where they do not depend on such a thing. */
export type Grounds = {
  /** Tokens that must not be revoked. */
  token_ids: readonly string[]
  session_id: string | null
  group_id: string | null
  game_id: string | null
  namespace_id: string | null
  lobby_id: string | null
}

/** One set of rows, shared by all callers that depend on it. */
type Row = Omit<Grounds, 'token_ids'>
type Followed = { row: Row; value: string; followers: Set<Follower> }
type Follower = { token_ids: readonly string[]; is_revoked: boolean; changed: () => void }

/** The value where there are no rows to read. */
const NOTHING = ''

const VALUES = `
  select concat_ws(' ', s.session_id, g.game_id, n.namespace_id, m.role,
      a.lobby_id is null or (l.lobby_id is not null and (l.stop_ts is null or r.exit_ts is null and r.lobby_id is not null))
    ) as value, s.access_token_id
  from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $6::uuid[]) with ordinality
    as a (session_id, game_id, namespace_id, lobby_id, group_id, place)
  left join user_sessions s on s.session_id = a.session_id and s.end_ts is null and s.expire_ts > $5
  left join namespaces n on n.namespace_id = a.namespace_id
  left join games g on g.game_id = coalesce(a.game_id, n.game_id)
  left join group_members m on m.group_id = coalesce(a.group_id, g.developer_group_id) and m.user_id = s.user_id
  left join lobbies l on l.lobby_id = a.lobby_id
  left join lobby_runs r on r.lobby_id = a.lobby_id
  order by a.place`

export class CallerWatch {
  readonly #ctx: Context
  readonly #followed = new Map<string, Followed>()
  readonly #poller: Poller
  /** Runs while any caller is followed. */
  readonly #timer = createTimerWhileNeeded(POLL_MS, () => {
    this.#poller.wake()
    return this.#followed.size > 0
  })
  #revoked_count = 0

  constructor(ctx: Context) {
    this.#ctx = ctx
    const failure = 'whether callers are still allowed could not be read; trying again'
    this.#poller = createPoller(ctx, { run: () => this.#check(), failure })
  }

  /**
   * Calls `changed` whenever anything that the caller's rights depend on differs from now, and at once when a token or the
   * session has already ended. Call it before the rules are checked. Returns a function that ends it.
   */
  async follow({ token_ids, ...row }: Grounds, changed: () => void): Promise<() => void> {
    const key = Object.values(row).join(' ')
    const known = this.#followed.get(key)
    const value = known?.value ?? (isEmpty(row) ? NOTHING : (await this.#read([row]))[0]!)
    // Read after the query: a token that is revoked from here on is found by the next query.
    const follower: Follower = { token_ids, is_revoked: this.#isRevoked(token_ids), changed }
    // Another caller may have begun to follow the same rows meanwhile.
    const followed = this.#followed.get(key) ?? { row, value, followers: new Set() }
    this.#followed.set(key, followed)
    followed.followers.add(follower)
    this.#timer.need()
    const has_ended = row.session_id !== null && !value.startsWith(row.session_id)
    if (follower.is_revoked || has_ended || followed.value !== value) changed()
    return () => {
      followed.followers.delete(follower)
      if (followed.followers.size === 0 && this.#followed.get(key) === followed) this.#followed.delete(key)
    }
  }

  async close(): Promise<void> {
    this.#timer.close()
    await this.#poller.close()
  }

  async #check(): Promise<void> {
    this.#checkTokens()
    const all = [...this.#followed.values()].filter(({ value }) => value !== NOTHING)
    for (let start = 0; start < all.length; start += GROUNDS_AT_ONCE_MAX) {
      const part = all.slice(start, start + GROUNDS_AT_ONCE_MAX)
      const values = await this.#read(part.map(({ row }) => row))
      for (const [i, followed] of part.entries()) {
        if (followed.value === values[i]) continue
        followed.value = values[i]!
        for (const { changed } of [...followed.followers]) changed()
      }
    }
  }

  #checkTokens(): void {
    const revoked_count = this.#ctx.revoked.count()
    if (revoked_count === this.#revoked_count) return
    this.#revoked_count = revoked_count
    for (const { followers } of [...this.#followed.values()]) {
      for (const follower of [...followers]) {
        if (follower.is_revoked || !this.#isRevoked(follower.token_ids)) continue
        follower.is_revoked = true
        follower.changed()
      }
    }
  }

  #isRevoked(token_ids: readonly string[]): boolean {
    return token_ids.some((token_id) => this.#ctx.revoked.has(token_id))
  }

  /** The values of the rows, in the same order. */
  async #read(rows: readonly Row[]): Promise<string[]> {
    const found = await this.#ctx.pool.query<{ value: string; access_token_id: string | null }>({
      name: 'caller-grounds',
      text: VALUES,
      values: [
        rows.map(({ session_id }) => session_id),
        rows.map(({ game_id }) => game_id),
        rows.map(({ namespace_id }) => namespace_id),
        rows.map(({ lobby_id }) => lobby_id),
        new Date(this.#ctx.now()),
        rows.map(({ group_id }) => group_id),
      ],
    })
    return found.rows.map(({ value, access_token_id }) => {
      const is_revoked = access_token_id !== null && this.#ctx.revoked.has(access_token_id)
      return is_revoked ? `revoked ${value}` : value
    })
  }
}

function isEmpty(row: Row): boolean {
  return Object.values(row).every((id) => id === null)
}
