// Parties of the plain book.
import { type Outcome, type PlainBook, type PlainMember, type PlainParty, refused } from './state.ts'

const HALF_HOUR_MS = 1_800_000

const partyWith = (book: PlainBook, identity: string): PlainParty | undefined =>
  book.parties.find(({ members }) => members.some((member) => member.identity === identity))

export function makeParty(
  book: PlainBook,
  member: PlainMember,
  made: { id: string; code: string },
  now: number,
): Outcome {
  const own = partyWith(book, member.identity)
  if (own !== undefined) return own.leader === member.identity ? null : refused('PARTY_ALREADY_MEMBER')
  book.parties.push({ ...made, leader: member.identity, members: [member], until: now + HALF_HOUR_MS })
  return null
}

export function joinParty(book: PlainBook, member: PlainMember, code: string, now: number): Outcome {
  const party = book.parties.find((one) => one.code === code)
  if (party === undefined) return refused('PARTY_CODE_INVALID')
  const own = partyWith(book, member.identity)
  if (own !== undefined && own !== party) return refused('PARTY_ALREADY_MEMBER')
  const before = party.members.find(({ identity }) => identity === member.identity)
  if (before?.client === member.client) return null
  if (before === undefined) party.members.push({ ...member })
  else before.client = member.client
  party.until = Math.max(party.until, now + HALF_HOUR_MS)
  return null
}

/** A member reads its party, which extends the life of the party. */
export function lookAtParty(book: PlainBook, identity: string, now: number): Outcome {
  const party = partyWith(book, identity)
  if (party === undefined) return refused('PARTY_NOT_FOUND')
  if (party.until - now <= HALF_HOUR_MS / 2) party.until = now + HALF_HOUR_MS
  return null
}

export function leaveParty(book: PlainBook, identity: string, now: number): Outcome {
  const party = partyWith(book, identity)
  if (party === undefined) return null
  party.members = party.members.filter((member) => member.identity !== identity)
  if (party.members.length === 0) book.parties = book.parties.filter((one) => one !== party)
  else if (party.leader === identity) party.leader = party.members[0]!.identity
  party.until = Math.max(party.until, now + HALF_HOUR_MS)
  return null
}

export function leadParty(book: PlainBook, by: string, identity: string, now: number): Outcome {
  const party = partyWith(book, by)
  if (party === undefined) return refused('PARTY_NOT_FOUND')
  if (party.leader !== by) return refused('PARTY_LEADER_REQUIRED')
  if (partyWith(book, identity) !== party) return refused('PARTY_MEMBER_NOT_FOUND')
  if (identity === by) return null
  party.leader = identity
  party.until = Math.max(party.until, now + HALF_HOUR_MS)
  return null
}

export function kickMember(book: PlainBook, by: string, identity: string, code: string, now: number): Outcome {
  const party = partyWith(book, by)
  if (party === undefined) return refused('PARTY_NOT_FOUND')
  if (party.leader !== by) return refused('PARTY_LEADER_REQUIRED')
  if (identity === by || partyWith(book, identity) !== party) return refused('PARTY_MEMBER_NOT_FOUND')
  party.members = party.members.filter((member) => member.identity !== identity)
  party.code = code
  party.until = Math.max(party.until, now + HALF_HOUR_MS)
  return null
}
