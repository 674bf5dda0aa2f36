// The parties of a namespace: players who get their seats together. A command returns a refusal or the changes that grant it.
// put() and end() make a change true and return how to undo it.
//
// A party exists from its first member until the last has left, or until its time is over: UNPLAYED_MS after it was last
// changed or read, PLAYED_MS after its last seats. An identity is in one party at a time. An ended party is remembered until
// its end is durable.
//
// A client has a limited number of members in the parties of a namespace. When a namespace has PARTIES_MAX parties, a new
// party ends the party that expires first, unless that party plays. So a few clients cannot keep others from making a party.

import type { Change, PartyMember, PartyRecord } from '../../journal/changes.ts'
import type { Decision, Granted, Undo } from './commands.ts'
import { createHeap } from './heap.ts'

/** Members of a party. */
export const PARTY_MEMBERS_MAX = 32
/** Parties of a namespace, about 1 kB each. */
export const PARTIES_MAX = 50_000
/** Members of one client, which may be a large school or office; an IPv6 network has more (addresses/client-networks.ts). */
export const CLIENT_MEMBERS_MAX = 512
/** How long a party without seats is kept after its last use. A page that shows the party uses it. */
const UNPLAYED_MS = 30 * 60_000
/** How long a party is kept after its last seats. */
const PLAYED_MS = 24 * 60 * 60_000

/** The networks that a client counts in. `factor`: the network's limit, in limits of one client. */
export type NetworksOf = (client_key: string) => readonly { key: string; factor: number }[]

export type Party = PartyRecord & { end_ms: number | null }

type RefusalCode =
  | 'API_NOT_AVAILABLE'
  | 'PARTY_NOT_FOUND'
  | 'PARTY_CODE_INVALID'
  | 'PARTY_FULL'
  | 'PARTY_ALREADY_MEMBER'
  | 'PARTY_LEADER_REQUIRED'
  | 'PARTY_MEMBER_NOT_FOUND'
  | 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE'

const refuse = (refused: RefusalCode) => ({ refused })

export class Parties {
  readonly #networksOf: NetworksOf
  readonly #parties = new Map<string, Party>()
  readonly #by_member = new Map<string, Party>()
  readonly #by_code = new Map<string, Party>()
  /** Members in parties, by network. */
  readonly #members_by_network = new Map<string, number>()
  readonly #by_expiry = createHeap<Party>((a, b) => a.expire_ms < b.expire_ms)
  readonly #ended = createHeap<Party>((a, b) => a.end_ms! < b.end_ms!)

  constructor(networksOf: NetworksOf) {
    this.#networksOf = networksOf
  }

  get size(): number {
    return this.#parties.size
  }

  all(): Iterable<Party> {
    return this.#parties.values()
  }

  /** Includes parties that have just ended. */
  get(party_id: string): Party | undefined {
    return this.#parties.get(party_id)
  }

  ofMember(identity_id: string): Party | undefined {
    return this.#by_member.get(identity_id)
  }

  create(member: PartyMember, { party_id, code }: { party_id: string; code: string }): Decision<PartyRecord> {
    const { identity_id, join_ms } = member
    const own = this.#by_member.get(identity_id)
    // A leader gets its own party, so that a repeated call returns the same as the first.
    if (own !== undefined) {
      return own.leader_identity_id === identity_id ? unchanged(own) : refuse('PARTY_ALREADY_MEMBER')
    }
    if (!this.#mayAddMember(member.client)) return refuse('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
    const ended = this.#by_code.size < PARTIES_MAX ? [] : this.#endOfUnused(join_ms)
    if (ended === null || this.#by_code.has(code)) return refuse('API_NOT_AVAILABLE')
    const times = { create_ms: join_ms, expire_ms: join_ms + UNPLAYED_MS }
    const party = { party_id, code, leader_identity_id: identity_id, members: [member], ...times, revision: 1 }
    return { changes: [...ended, { kind: 'party_put', party, left: null }], result: party }
  }

  join(member: PartyMember, code: string): Decision<PartyRecord> {
    const party = this.#by_code.get(code)
    if (party === undefined) return refuse('PARTY_CODE_INVALID')
    const own = this.#by_member.get(member.identity_id)
    if (own !== undefined) return own === party ? this.#joinAgain(party, member) : refuse('PARTY_ALREADY_MEMBER')
    if (party.members.length >= PARTY_MEMBERS_MAX) return refuse('PARTY_FULL')
    if (!this.#mayAddMember(member.client)) return refuse('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
    return changed(party, { members: [...party.members, member] }, member.join_ms)
  }

  /** The member may come from another network now. */
  #joinAgain(party: Party, member: PartyMember): Decision<PartyRecord> {
    const before = party.members.find(({ identity_id }) => identity_id === member.identity_id)!
    if (before.address === member.address && before.user_agent === member.user_agent) return unchanged(party)
    if (before.client !== member.client && !this.#mayAddMember(member.client)) {
      return refuse('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
    }
    const members = party.members.map((one) => (one === before ? { ...member, join_ms: before.join_ms } : one))
    return changed(party, { members }, member.join_ms)
  }

  leave(identity_id: string, now_ms: number): Decision<null> {
    const party = this.#by_member.get(identity_id)
    if (party === undefined) return { changes: [], result: null }
    const members = without(party, identity_id)
    const next = members[0]
    if (next === undefined) {
      return { changes: [{ kind: 'party_ended', party_id: party.party_id, ms: now_ms }], result: null }
    }
    const { leader_identity_id } = party
    const leader = leader_identity_id === identity_id ? next.identity_id : leader_identity_id
    return { ...changed(party, { members, leader_identity_id: leader }, now_ms, identity_id), result: null }
  }

  /** Makes another member the leader. */
  lead(identity_id: string, leader_identity_id: string, now_ms: number): Decision<PartyRecord> {
    const party = this.#by_member.get(identity_id)
    if (party === undefined) return refuse('PARTY_NOT_FOUND')
    if (party.leader_identity_id !== identity_id) return refuse('PARTY_LEADER_REQUIRED')
    if (this.#by_member.get(leader_identity_id) !== party) return refuse('PARTY_MEMBER_NOT_FOUND')
    return leader_identity_id === identity_id ? unchanged(party) : changed(party, { leader_identity_id }, now_ms)
  }

  /** `code` replaces the code that the removed member knows. */
  remove(identity_id: string, member_id: string, { code }: { code: string }, now_ms: number): Decision<PartyRecord> {
    const party = this.#by_member.get(identity_id)
    if (party === undefined) return refuse('PARTY_NOT_FOUND')
    if (party.leader_identity_id !== identity_id) return refuse('PARTY_LEADER_REQUIRED')
    if (member_id === identity_id || this.#by_member.get(member_id) !== party) return refuse('PARTY_MEMBER_NOT_FOUND')
    if (this.#by_code.has(code)) return refuse('API_NOT_AVAILABLE')
    return changed(party, { members: without(party, member_id), code }, now_ms, member_id)
  }

  /** The change that keeps a party which gets seats; none while its time is still long. */
  renew(party: Party, now_ms: number): Change[] {
    if (party.expire_ms - now_ms > PLAYED_MS / 2) return []
    return [...changed(party, {}, now_ms, null, PLAYED_MS).changes]
  }

  /** The party of a member. Reading it keeps it, by a change only if it was not used lately. */
  read(identity_id: string, now_ms: number): Decision<PartyRecord> {
    const party = this.#by_member.get(identity_id)
    if (party === undefined) return refuse('PARTY_NOT_FOUND')
    return party.expire_ms - now_ms > UNPLAYED_MS / 2 ? unchanged(party) : changed(party, {}, now_ms)
  }

  put(party: PartyRecord): Undo {
    return this.#replace(this.#parties.get(party.party_id), { ...party, end_ms: null })
  }

  end(party_id: string, ms: number): Undo {
    const party = this.#parties.get(party_id)
    if (party === undefined) throw new Error(`the book has no party ${party_id}`)
    return this.#replace(party, { ...party, end_ms: ms })
  }

  load(parties: readonly PartyRecord[]): void {
    for (const party of parties) this.#add({ ...party, end_ms: null })
  }

  /** Every party ends this much later. */
  postpone(by_ms: number): void {
    for (const party of this.#by_code.values()) {
      party.expire_ms += by_ms
      this.#by_expiry.put(party)
    }
  }

  expire(now_ms: number): Change | null {
    const first = this.#by_expiry.peek()
    if (first === undefined || first.expire_ms > now_ms) return null
    return { kind: 'party_ended', party_id: first.party_id, ms: now_ms }
  }

  nextDueMs(): number | null {
    return this.#by_expiry.peek()?.expire_ms ?? null
  }

  /** `durable_ms`: changes until then cannot be undone any more. */
  forget(durable_ms: number): void {
    const ended = this.#ended
    for (let first = ended.peek(); first !== undefined && first.end_ms! <= durable_ms; first = ended.peek()) {
      this.#drop(first)
    }
  }

  #add(party: Party): void {
    this.#parties.set(party.party_id, party)
    if (party.end_ms !== null) {
      this.#ended.put(party)
      return
    }
    this.#by_code.set(party.code, party)
    for (const { identity_id } of party.members) this.#by_member.set(identity_id, party)
    this.#count(party, 1)
    this.#by_expiry.put(party)
  }

  #drop(party: Party): void {
    if (party.end_ms === null) this.#count(party, -1)
    this.#parties.delete(party.party_id)
    this.#by_expiry.remove(party)
    this.#ended.remove(party)
    if (this.#by_code.get(party.code) === party) this.#by_code.delete(party.code)
    for (const { identity_id } of party.members) {
      if (this.#by_member.get(identity_id) === party) this.#by_member.delete(identity_id)
    }
  }

  #replace(before: Party | undefined, after: Party): Undo {
    if (before !== undefined) this.#drop(before)
    this.#add(after)
    return () => {
      this.#drop(after)
      if (before !== undefined) this.#add(before)
    }
  }

  #count({ members }: Party, sign: 1 | -1): void {
    const counts = this.#members_by_network
    for (const { client: client_key } of members) {
      for (const { key } of this.#networksOf(client_key)) {
        const left = (counts.get(key) ?? 0) + sign
        if (left === 0) counts.delete(key)
        else counts.set(key, left)
      }
    }
  }

  /** Whether the client may have one more member in a party. */
  #mayAddMember(client_key: string): boolean {
    return this.#networksOf(client_key).every(
      ({ key, factor }) => (this.#members_by_network.get(key) ?? 0) < CLIENT_MEMBERS_MAX * factor,
    )
  }

  /** The end of the party that expires first; null: that party plays, and so do all others. */
  #endOfUnused(now_ms: number): Change[] | null {
    const first = this.#by_expiry.peek()
    if (first === undefined || first.expire_ms > now_ms + UNPLAYED_MS) return null
    return [{ kind: 'party_ended', party_id: first.party_id, ms: now_ms }]
  }
}

/** The party with these members replaced, used just now, with its next revision. `keep_ms`: how long it is kept at least. */
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

function unchanged({ end_ms, ...record }: Party): Decision<PartyRecord> {
  return { changes: [], result: record }
}

function without(party: Party, identity_id: string): PartyMember[] {
  return party.members.filter((member) => member.identity_id !== identity_id)
}
