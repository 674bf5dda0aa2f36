// The parties of a namespace: players who are seated together. A part of the book: it knows no clock and no I/O; a command
// answers a refusal or the changes that grant it, and every change answers how to undo it.
//
// A party is there from its first member on, until the last has left or its time is over: UNPLAYED_MS after it was last
// changed or looked at, PLAYED_MS after its last seats. An identity is in one party at a time. What has ended is remembered
// until that is durable.
//
// A client has a limited number of members in the parties of a namespace. When the namespace has as many parties as it may
// have, a new one takes the place of the one whose time is over first, unless that one plays. So a few clients keep nobody
// from making a party.

import type { Change, PartyMember, PartyRecord } from '../../journal/changes.ts'
import type { Decision, Granted, Undo } from './commands.ts'
import { createHeap } from './heap.ts'

export const PARTY_MEMBERS_MAX = 32
/** Of a namespace, about a kilobyte each. */
export const PARTIES_MAX = 50_000
/** Members of one client; a network of IPv6 has more (addresses/client-networks.ts). A large school or office is one client. */
export const CLIENT_MEMBERS_MAX = 512
/** How long a party that has no seats is kept without being used: it waits for friends on a page that looks at it. */
const UNPLAYED_MS = 30 * 60_000
const PLAYED_MS = 24 * 60 * 60_000

/** The networks that a client is counted by, each with how many times the limit of one client it has. */
export type NetworksOf = (client_key: string) => readonly { key: string; factor: number }[]

export type Party = PartyRecord & { end_ms: number | null }

export type Parties = {
  /** Also one that has just ended. */
  get: (party_id: string) => Party | undefined
  ofMember: (identity_id: string) => Party | undefined
  create: (member: PartyMember, fresh: { party_id: string; code: string }) => Decision<PartyRecord>
  join: (member: PartyMember, code: string) => Decision<PartyRecord>
  leave: (identity_id: string, now_ms: number) => Decision<null>
  lead: (identity_id: string, leader_identity_id: string, now_ms: number) => Decision<PartyRecord>
  /** `fresh.code` takes the place of the one that the removed member knows. */
  remove: (identity_id: string, member_id: string, fresh: { code: string }, now_ms: number) => Decision<PartyRecord>
  /** The change by which a party that gets seats lives on; none while it got some lately. */
  renew: (party: Party, now_ms: number) => Change[]
  /** The party that a member looks at, which it thereby keeps; a change of it only where it was not used lately. */
  look: (identity_id: string, now_ms: number) => Decision<PartyRecord>
  put: (party: PartyRecord) => Undo
  end: (party_id: string, ms: number) => Undo
  load: (parties: readonly PartyRecord[]) => void
  /** Every party ends this much later. */
  postpone: (by_ms: number) => void
  expire: (now_ms: number) => Change | null
  nextDueMs: () => number | null
  /** `durable_ms`: what has happened until then cannot be undone. */
  forget: (durable_ms: number) => void
  size: () => number
  all: () => Iterable<Party>
}

const refuse = (
  refused:
    | 'API_NOT_AVAILABLE'
    | 'PARTY_NOT_FOUND'
    | 'PARTY_CODE_INVALID'
    | 'PARTY_FULL'
    | 'PARTY_ALREADY_MEMBER'
    | 'PARTY_LEADER_REQUIRED'
    | 'PARTY_MEMBER_NOT_FOUND'
    | 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE',
) => ({ refused })

export function createParties(networksOf: NetworksOf): Parties {
  const parties = new Map<string, Party>()
  const by_member = new Map<string, Party>()
  const by_code = new Map<string, Party>()
  /** Members in parties, by network. */
  const by_network = new Map<string, number>()
  const due = createHeap<Party>((a, b) => a.expire_ms < b.expire_ms)
  const over = createHeap<Party>((a, b) => a.end_ms! < b.end_ms!)

  function enter(party: Party): void {
    parties.set(party.party_id, party)
    if (party.end_ms !== null) {
      over.place(party)
      return
    }
    by_code.set(party.code, party)
    for (const { identity_id } of party.members) by_member.set(identity_id, party)
    count(party, 1)
    due.place(party)
  }

  function count({ members }: Party, sign: 1 | -1): void {
    for (const { client } of members) {
      for (const { key } of networksOf(client)) {
        const left = (by_network.get(key) ?? 0) + sign
        if (left === 0) by_network.delete(key)
        else by_network.set(key, left)
      }
    }
  }

  /** Whether the client may have one more member in a party. */
  function hasRoomFor(client: string): boolean {
    return networksOf(client).every(({ key, factor }) => (by_network.get(key) ?? 0) < CLIENT_MEMBERS_MAX * factor)
  }

  function exit(party: Party): void {
    if (party.end_ms === null) count(party, -1)
    parties.delete(party.party_id)
    due.remove(party)
    over.remove(party)
    if (by_code.get(party.code) === party) by_code.delete(party.code)
    for (const { identity_id } of party.members) if (by_member.get(identity_id) === party) by_member.delete(identity_id)
  }

  function replace(before: Party | undefined, after: Party): Undo {
    if (before !== undefined) exit(before)
    enter(after)
    return () => {
      exit(after)
      if (before !== undefined) enter(before)
    }
  }

  /** The party as it will be: used just now, and changed once more. `keep_ms`: how long it is kept at least. */
  function changed(
    party: Party,
    what: Partial<PartyRecord>,
    now_ms: number,
    left: string | null = null,
    keep_ms: number = UNPLAYED_MS,
  ): Granted<PartyRecord> {
    const { end_ms, ...record } = party
    const expire_ms = Math.max(record.expire_ms, now_ms + keep_ms)
    const next = { ...record, ...what, expire_ms, revision: record.revision + 1 }
    return { changes: [{ kind: 'party_put', party: next, left }], result: next }
  }

  /** The end of the party whose time is over first; null: it plays, as all others do then. */
  function endOfUnused(now_ms: number): Change[] | null {
    const first = due.peek()
    if (first === undefined || first.expire_ms > now_ms + UNPLAYED_MS) return null
    return [{ kind: 'party_ended', party_id: first.party_id, ms: now_ms }]
  }

  const unchanged = ({ end_ms, ...record }: Party): Decision<PartyRecord> => ({ changes: [], result: record })

  function without(party: Party, identity_id: string): PartyMember[] {
    return party.members.filter((member) => member.identity_id !== identity_id)
  }

  return {
    get: (party_id) => parties.get(party_id),
    ofMember: (identity_id) => by_member.get(identity_id),
    create(member, { party_id, code }) {
      const own = by_member.get(member.identity_id)
      // Who leads one has it: so a repetition is answered what the first call was.
      if (own !== undefined) {
        return own.leader_identity_id === member.identity_id ? unchanged(own) : refuse('PARTY_ALREADY_MEMBER')
      }
      if (!hasRoomFor(member.client)) return refuse('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
      const { identity_id, join_ms } = member
      const room = by_code.size < PARTIES_MAX ? [] : endOfUnused(join_ms)
      if (room === null || by_code.has(code)) return refuse('API_NOT_AVAILABLE')
      const times = { create_ms: join_ms, expire_ms: join_ms + UNPLAYED_MS }
      const party = { party_id, code, leader_identity_id: identity_id, members: [member], ...times, revision: 1 }
      return { changes: [...room, { kind: 'party_put', party, left: null }], result: party }
    },
    join(member, code) {
      const party = by_code.get(code)
      if (party === undefined) return refuse('PARTY_CODE_INVALID')
      const own = by_member.get(member.identity_id)
      if (own !== undefined && own !== party) return refuse('PARTY_ALREADY_MEMBER')
      if (own === undefined) {
        if (party.members.length >= PARTY_MEMBERS_MAX) return refuse('PARTY_FULL')
        if (!hasRoomFor(member.client)) return refuse('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
        return changed(party, { members: [...party.members, member] }, member.join_ms)
      }
      // He came again, perhaps from another network.
      const before = own.members.find(({ identity_id }) => identity_id === member.identity_id)!
      if (before.address === member.address && before.user_agent === member.user_agent) return unchanged(own)
      if (before.client !== member.client && !hasRoomFor(member.client)) {
        return refuse('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
      }
      const members = own.members.map((one) => (one === before ? { ...member, join_ms: before.join_ms } : one))
      return changed(party, { members }, member.join_ms)
    },
    leave(identity_id, now_ms) {
      const party = by_member.get(identity_id)
      if (party === undefined) return { changes: [], result: null }
      const members = without(party, identity_id)
      const next = members[0]
      if (next === undefined) {
        return { changes: [{ kind: 'party_ended', party_id: party.party_id, ms: now_ms }], result: null }
      }
      const { leader_identity_id } = party
      const leader = leader_identity_id === identity_id ? next.identity_id : leader_identity_id
      return { ...changed(party, { members, leader_identity_id: leader }, now_ms, identity_id), result: null }
    },
    lead(identity_id, leader_identity_id, now_ms) {
      const party = by_member.get(identity_id)
      if (party === undefined) return refuse('PARTY_NOT_FOUND')
      if (party.leader_identity_id !== identity_id) return refuse('PARTY_LEADER_REQUIRED')
      if (by_member.get(leader_identity_id) !== party) return refuse('PARTY_MEMBER_NOT_FOUND')
      return leader_identity_id === identity_id ? unchanged(party) : changed(party, { leader_identity_id }, now_ms)
    },
    remove(identity_id, member_id, { code }, now_ms) {
      const party = by_member.get(identity_id)
      if (party === undefined) return refuse('PARTY_NOT_FOUND')
      if (party.leader_identity_id !== identity_id) return refuse('PARTY_LEADER_REQUIRED')
      if (member_id === identity_id || by_member.get(member_id) !== party) return refuse('PARTY_MEMBER_NOT_FOUND')
      if (by_code.has(code)) return refuse('API_NOT_AVAILABLE')
      return changed(party, { members: without(party, member_id), code }, now_ms, member_id)
    },
    renew(party, now_ms) {
      if (party.expire_ms - now_ms > PLAYED_MS / 2) return []
      return [...changed(party, {}, now_ms, null, PLAYED_MS).changes]
    },
    look(identity_id, now_ms) {
      const party = by_member.get(identity_id)
      if (party === undefined) return refuse('PARTY_NOT_FOUND')
      return party.expire_ms - now_ms > UNPLAYED_MS / 2 ? unchanged(party) : changed(party, {}, now_ms)
    },
    put: (party) => replace(parties.get(party.party_id), { ...party, end_ms: null }),
    end(party_id, ms) {
      const party = parties.get(party_id)
      if (party === undefined) throw new Error(`the book has no party ${party_id}`)
      return replace(party, { ...party, end_ms: ms })
    },
    load(loaded) {
      for (const party of loaded) enter({ ...party, end_ms: null })
    },
    postpone(by_ms) {
      for (const party of by_code.values()) {
        party.expire_ms += by_ms
        due.place(party)
      }
    },
    expire(now_ms) {
      const first = due.peek()
      if (first === undefined || first.expire_ms > now_ms) return null
      return { kind: 'party_ended', party_id: first.party_id, ms: now_ms }
    },
    nextDueMs: () => due.peek()?.expire_ms ?? null,
    forget(durable_ms) {
      for (let first = over.peek(); first !== undefined && first.end_ms! <= durable_ms; first = over.peek()) exit(first)
    },
    size: () => parties.size,
    all: () => parties.values(),
  }
}
