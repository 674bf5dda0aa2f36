// Long polls: calls that wait for news. Each takes a slot of its client's share. It ends when the caller hangs up, when its
// slot is given to another client, or when the caller's rights may have changed. In the last case the operation runs once
// more without waiting, so that the rules decide what the caller receives.
import { ApiError, type Operation } from '@musterhost/contract'
import type { FastifyRequest } from 'fastify'
import { ClientShare } from '../addresses/client-share.ts'
import type { Context } from '../context.ts'
import type { Caller } from '../tokens/caller.ts'
import { isValid } from '../tokens/keys.ts'
import { authenticate, bearerOf } from './auth.ts'
import type { Grounds } from './caller-watch.ts'
import type { OperationRequest } from './implement.ts'
import type { MountOptions, WatchShares } from './mount-options.ts'

type SlotLimits = { slots_max: number; client_max: number }

/** Long polls of a role and of one client, by the operation's id or by its first part. */
const SLOTS: Readonly<Record<string, SlotLimits>> = {
  devices: { slots_max: 1_000, client_max: 64 },
  games: { slots_max: 1_000, client_max: 128 },
  groups: { slots_max: 500, client_max: 64 },
  identities: { slots_max: 30_000, client_max: 2_048 },
  'identities.getSelfProfile': { slots_max: 500, client_max: 64 },
  kv: { slots_max: 5_000, client_max: 512 },
  lobbies: { slots_max: 20_000, client_max: 4 },
  parties: { slots_max: 20_000, client_max: 2_048 },
}
const RETRY_AFTER_S = 5

export function createWatchShares(): WatchShares {
  return new Map(Object.entries(SLOTS).map(([kind, slots]) => [kind, new ClientShare(slots)]))
}

/** A long poll responds when there is news, which may take long. */
export function isWatch(query: unknown): boolean {
  return (query as { watch_index?: string }).watch_index !== undefined
}

/** Throws API_RATE_LIMIT and API_NOT_AVAILABLE when there is no slot, and the errors of the operation. */
export async function answerWatch(
  options: MountOptions,
  operation: Operation,
  { request, onGone }: { request: FastifyRequest; onGone: (listener: () => void) => void },
  call: OperationRequest<Operation>,
  handle: (call: OperationRequest<Operation>) => unknown,
): Promise<unknown> {
  const ending = new AbortController()
  const end = (): void => ending.abort()
  onGone(end)
  const slot = shareOf(options, operation).enter(shareKeyOf(call), end)
  if (typeof slot === 'string') throw noSlot(slot)
  let is_changed = false
  try {
    const unfollow = await options.callers.follow(groundsOf(options.ctx, call.caller, request), () => {
      is_changed = true
      end()
    })
    try {
      const isGone = (): boolean => ending.signal.aborted || call.isGone()
      const answer = await handle({ ...call, isGone, gone: ending.signal })
      if (!is_changed) return answer
      const { authorization, origin } = request.headers
      const caller = await authenticate(options.ctx, operation, { authorization, origin }, options.namespaceOfOrigin)
      return await handle({ ...call, caller, isGone: () => true, gone: AbortSignal.abort() })
    } finally {
      unfollow()
    }
  } finally {
    slot.leave()
  }
}

export function noSlot(reason: 'client_full' | 'full'): ApiError {
  const code = reason === 'client_full' ? 'API_RATE_LIMIT' : 'API_NOT_AVAILABLE'
  return new ApiError(code, {}, { retry_after_s: RETRY_AFTER_S })
}

function shareOf({ watches }: MountOptions, { id }: Operation): ClientShare {
  const share = watches.get(id) ?? watches.get(id.split('.', 1)[0]!)
  if (share === undefined) throw new Error(`watches.ts has no slots for ${id}`)
  return share
}

/** The lobbies of a machine share an address: each counts as a client of its own. */
function shareKeyOf({ caller, client_key }: OperationRequest<Operation>): string {
  return caller.kind === 'lobby' ? caller.lobby_id : client_key
}

/** What the rights of a long poll depend on: its credential, and the group, game or namespace that it names. */
function groundsOf(ctx: Context, caller: Caller, { headers, query, params }: FastifyRequest): Grounds {
  const named = { ...(query as object), ...(params as object) } as Record<string, string | undefined>
  const token = bearerOf(headers.authorization) ?? named.device_link_token
  return groundsOfToken(ctx, caller, token, named)
}

/** `named`: the parameters and the query of the call. */
export function groundsOfToken(
  ctx: Context,
  caller: Caller,
  text: string | undefined,
  named: Readonly<Record<string, string | undefined>>,
): Grounds {
  const grounds: Grounds = {
    token_ids: [],
    session_id: null,
    group_id: named.group_id ?? null,
    game_id: named.game_id ?? null,
    namespace_id: 'namespace_id' in caller ? caller.namespace_id : (named.namespace_id ?? null),
    lobby_id: caller.kind === 'lobby' ? caller.lobby_id : null,
  }
  const now_ms = ctx.now()
  // A token that is no longer valid is refused by the rules.
  if (text === undefined || !isValid(ctx.keys, text, now_ms)) return grounds
  const token = ctx.keys.verify(text, now_ms)
  if (token.kind === 'device') return { ...grounds, token_ids: [token.token_id, token.device_link_id] }
  return { ...grounds, token_ids: [token.token_id], session_id: token.kind === 'user' ? token.session_id : null }
}
