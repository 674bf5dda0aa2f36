// The operations on parties. Each is a command of the namespace's book, and as durable as a seat when it returns.
import { randomInt } from 'node:crypto'
import type { getParty, ResponseOf } from '@musterhost/contract'
import { newId } from '../../ids.ts'
import type { PartyMember, PartyRecord } from '../../journal/changes.ts'
import type { CallerOf } from '../../tokens/caller.ts'
import type { MatchmakerContext } from '../seats/context.ts'
import type { Decide } from '../shards/pending.ts'

/** Letters and digits that are not confused when they are read aloud. */
const CODE_LETTERS = 'ABCDEFGHJKMNPQRSTUVWXYZ23456789'
const CODE_LENGTH = 8
/** Characters of a user agent that are stored; the rest is cut off. */
const USER_AGENT_LENGTH_MAX = 1_024
/** A watch of a party ends after this, changed or not. */
const WATCH_MS = 40_000

type Player = CallerOf<'identity'>
type Answer = { party: ResponseOf<typeof getParty>['party'] }
/** The client of a member. */
export type From = { client_ip: string; client_key: string; user_agent: string | null }

export async function createParty(ctx: MatchmakerContext, caller: Player, from: From): Promise<Answer> {
  return decide(ctx, caller, (book, { now_ms }) =>
    book.parties.create(memberOf(caller, from, now_ms), { party_id: newId(now_ms), code: newCode() }),
  )
}

export async function joinParty(ctx: MatchmakerContext, caller: Player, from: From, code: string): Promise<Answer> {
  const normalized = code.trim().toUpperCase()
  return decide(ctx, caller, (book, { now_ms }) => book.parties.join(memberOf(caller, from, now_ms), normalized))
}

export async function leaveParty(ctx: MatchmakerContext, caller: Player): Promise<Record<string, never>> {
  const { namespace_id } = await ctx.namespaces.get(caller.namespace_id)
  await ctx.books.commit(namespace_id, (book, { now_ms }) => book.parties.leave(caller.identity_id, now_ms))
  return {}
}

export async function setLeader(ctx: MatchmakerContext, caller: Player, identity_id: string): Promise<Answer> {
  return decide(ctx, caller, (book, { now_ms }) => book.parties.lead(caller.identity_id, identity_id, now_ms))
}

export async function removeMember(ctx: MatchmakerContext, caller: Player, identity_id: string): Promise<Answer> {
  return decide(ctx, caller, (book, { now_ms }) =>
    book.parties.remove(caller.identity_id, identity_id, { code: newCode() }, now_ms),
  )
}

/** With a watch_index: waits for a later revision. Throws PARTY_NOT_FOUND, also when a watched party ends. */
export async function partyOf(
  ctx: MatchmakerContext,
  caller: Player,
  watch_index: string | undefined,
  isGone: () => boolean,
): Promise<ResponseOf<typeof getParty>> {
  const { books } = ctx
  const { namespace_id } = await ctx.namespaces.get(caller.namespace_id)
  const deadline_ms = ctx.elapsed() + WATCH_MS
  for (;;) {
    const woken = watch_index === undefined ? null : books.watch.next(caller.identity_id, { deadline_ms, isGone })
    const party = await books.commit(namespace_id, (book, { now_ms }) => book.parties.read(caller.identity_id, now_ms))
    const index = `${party.party_id}.${party.revision}`
    const is_over = books.isWaitingOver() || deadline_ms <= ctx.elapsed() || isGone()
    if (index !== watch_index || woken === null || is_over) return { ...answerOf(party), watch: { index } }
    await woken
  }
}

async function decide(ctx: MatchmakerContext, caller: Player, command: Decide<PartyRecord>): Promise<Answer> {
  const { namespace_id } = await ctx.namespaces.get(caller.namespace_id)
  return answerOf(await ctx.books.commit(namespace_id, command))
}

function memberOf({ identity_id }: Player, { client_ip, client_key, user_agent }: From, join_ms: number): PartyMember {
  const agent = user_agent === null ? null : user_agent.slice(0, USER_AGENT_LENGTH_MAX)
  return { identity_id, address: client_ip, client: client_key, user_agent: agent, join_ms }
}

function answerOf(party: PartyRecord): Answer {
  const { party_id, code, leader_identity_id, members, create_ms, expire_ms } = party
  return {
    party: {
      party_id,
      code,
      leader_identity_id,
      members: members.map(({ identity_id, join_ms }) => ({ identity_id, join_ts: timestamp(join_ms) })),
      create_ts: timestamp(create_ms),
      expire_ts: timestamp(expire_ms),
    },
  }
}

function newCode(): string {
  return Array.from({ length: CODE_LENGTH }, () => CODE_LETTERS.charAt(randomInt(CODE_LETTERS.length))).join('')
}

function timestamp(ms: number): string {
  return new Date(ms).toISOString()
}
