// Device links: prepared -> complete, refused, or expired. Until it is complete a link is only its token, so that strangers who
// prepare links write nothing; the row is made by the person who completes it. The cloud token follows from the row: it
// is the same however often, and by whichever process, it is asked for.
import {
  ApiError,
  type BodyOf,
  type completeDeviceLink,
  type getDeviceLink,
  type inspectDeviceLink,
  type ResponseOf,
} from '@musterhost/contract'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import { mainUrl } from '../../config/addresses.ts'
import type { Context } from '../../context.ts'
import { createLongPoll } from '../../database/long-poll.ts'
import { newId } from '../../ids.ts'
import type { Caller } from '../../tokens/caller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { requireGame } from '../access.ts'
import { timestamp } from '../times.ts'
import { CLOUD_TOKEN_LIFETIME_MS, recordToken, revokeById } from './tokens.ts'

/** The page of the hub for people, followed by the token. */
export const LINK_PATH = '/devices/link/'
/** Characters of the id by which a person recognises a link. */
const CODE_LENGTH = 8
const LINK_LIFETIME_MS = 60 * 60_000
/** How often a waiting request reads the database: a wake-up may be lost. */
const POLL_MS = 4_000
/** All that http/watches.ts lets wait, and those that are just ending. */
const WAITING_MAX = 2_000
const RETRY_AFTER_S = 5

const PENDING = 'pending'
const COMPLETE = 'complete'

export type DeviceLinks = {
  /** Throws CLOUD_DEVICE_LINK_INVALID, or API_NOT_AVAILABLE when too many wait. */
  get: (
    query: { device_link_token: string; watch_index?: string },
    gone: AbortSignal,
  ) => Promise<ResponseOf<typeof getDeviceLink>>
  /** Ends all waiting requests with a response. */
  close: () => void
}

/** `name`: how the program calls its machine. `client_ip`: from where it calls. */
export function prepareLink(
  ctx: Context,
  asker: { name?: string | undefined; client_ip: string },
): {
  device_link_id: string
  device_link_token: string
  device_link_url: string
} {
  const now_ms = ctx.now()
  const device_link_id = newId(now_ms)
  const token = ctx.keys.issue(
    { kind: 'device', device_link_id, ...withoutUndefined(asker) },
    { now_ms, lifetime_ms: LINK_LIFETIME_MS },
  )
  return { device_link_id, device_link_token: token, device_link_url: `${mainUrl(ctx.config)}${LINK_PATH}${token}` }
}

function withoutUndefined({ name, client_ip }: { name?: string | undefined; client_ip: string }) {
  return { ...(name === undefined ? {} : { name }), client_ip }
}

/** What a link asks for, for the person who is to confirm it. Throws CLOUD_DEVICE_LINK_INVALID. */
export async function inspectLink(
  ctx: Context,
  device_link_token: string,
): Promise<ResponseOf<typeof inspectDeviceLink>> {
  const { device_link_id, name, client_ip, issue_ms } = readLink(ctx, device_link_token)
  return {
    device_link_id,
    code: device_link_id.slice(-CODE_LENGTH),
    ...(name === undefined ? {} : { name }),
    ...(client_ip === undefined ? {} : { client_ip }),
    create_ts: timestamp(new Date(issue_ms)),
    expire_ts: timestamp(new Date(issue_ms + LINK_LIFETIME_MS)),
    is_complete: (await cloudTokenOf(ctx, device_link_id)) !== null,
    grant: { kind: 'cloud_token', lifetime_ms: CLOUD_TOKEN_LIFETIME_MS },
  }
}

/** Throws CLOUD_DEVICE_LINK_INVALID, CLOUD_DEVICE_LINK_ALREADY_COMPLETE, GAME_NOT_FOUND or GROUP_INSUFFICIENT_PERMISSIONS. */
export async function completeLink(
  ctx: ChangeContext,
  caller: Caller,
  { device_link_token, game_id }: BodyOf<typeof completeDeviceLink>,
): Promise<void> {
  const { device_link_id, name } = readLink(ctx, device_link_token)
  await requireGame(ctx, caller, game_id)
  const now = ctx.now()
  await changes(ctx, { game_id }, async (trx) => {
    const { numInsertedOrUpdatedRows } = await trx
      .insertInto('device_links')
      .values({ device_link_id, game_id, complete_ts: new Date(now) })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst()
    if (numInsertedOrUpdatedRows === 0n) throw new ApiError('CLOUD_DEVICE_LINK_ALREADY_COMPLETE')
    // The id of the link is the id of its cloud token.
    const options = { token_id: device_link_id, now_ms: now, lifetime_ms: CLOUD_TOKEN_LIFETIME_MS, name }
    await recordToken(trx, caller, { kind: 'cloud', game_id }, options)
    const expire_ts = new Date(now + CLOUD_TOKEN_LIFETIME_MS)
    return { before: {}, after: { token_id: device_link_id, kind: 'cloud', expire_ts } }
  })
  await ctx.listener.notify(CHANNELS.device_links, device_link_id)
}

/** Throws CLOUD_DEVICE_LINK_INVALID or CLOUD_DEVICE_LINK_ALREADY_COMPLETE. */
export async function refuseLink(ctx: ChangeContext, device_link_token: string): Promise<void> {
  const { device_link_id } = readLink(ctx, device_link_token)
  if ((await cloudTokenOf(ctx, device_link_id)) !== null) throw new ApiError('CLOUD_DEVICE_LINK_ALREADY_COMPLETE')
  // Should somebody complete it at this moment, the cloud token has the same id and is revoked too.
  await revokeById(ctx, device_link_id, ctx.now() + CLOUD_TOKEN_LIFETIME_MS)
}

export function openDeviceLinks(ctx: Context): DeviceLinks {
  const waiting = createLongPoll(ctx, { channel: CHANNELS.device_links, poll_ms: POLL_MS, waiting_max: WAITING_MAX })
  return {
    async get({ device_link_token, watch_index }, gone) {
      const { device_link_id } = readLink(ctx, device_link_token)
      const read = () => cloudTokenOf(ctx, device_link_id)
      const wait = () => waiting.until([device_link_id], read, () => gone.aborted, gone)
      const cloud_token = await (watch_index === PENDING ? wait() : read())
      if (cloud_token === 'busy') throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: RETRY_AFTER_S })
      if (cloud_token === null) return { watch: { index: PENDING } }
      return { cloud_token, watch: { index: COMPLETE } }
    },
    close: waiting.close,
  }
}

async function cloudTokenOf(ctx: Context, device_link_id: string): Promise<string | null> {
  const link = await ctx.db
    .selectFrom('device_links')
    .select(['game_id', 'complete_ts'])
    .where('device_link_id', '=', device_link_id)
    .executeTakeFirst()
  if (link === undefined) return null
  const { game_id, complete_ts } = link
  const options = { now_ms: complete_ts.getTime(), lifetime_ms: CLOUD_TOKEN_LIFETIME_MS, token_id: device_link_id }
  return ctx.keys.issue({ kind: 'cloud', game_id }, options)
}

type DeviceToken = Extract<ReturnType<Context['keys']['verify']>, { kind: 'device' }>

/** The token is data here, not the caller's credential: whatever is wrong with it is one refusal. */
function readLink(ctx: Context, text: string): DeviceToken {
  try {
    const token = ctx.keys.verify(text, ctx.now())
    // Its id may have been revoked as a link, or as the cloud token that it answers.
    const is_revoked = ctx.revoked.has(token.token_id)
    if (token.kind === 'device' && !is_revoked && !ctx.revoked.has(token.device_link_id)) return token
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
  }
  throw new ApiError('CLOUD_DEVICE_LINK_INVALID')
}
