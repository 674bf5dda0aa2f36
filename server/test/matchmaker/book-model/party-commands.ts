// Calls of party members. The party itself is compared after every step, so the result of a call is not.
import * as plain from '../plain-book/parties.ts'
import { type Command, withoutResult } from './draw.ts'
import { IDENTITIES, pick } from './steps.ts'

export const PARTY_COMMANDS = {
  create_party({ book, reference, member, plain_member, ids: { lobby_id: id }, now_ms }) {
    return {
      decision: withoutResult(book.parties.create(member, { party_id: id, code: id })),
      expected: plain.makeParty(reference, plain_member, { id, code: id }, now_ms),
    }
  },

  join_party({ book, reference, member, plain_member, choice, now_ms }) {
    const code = pick([...reference.parties.map((party) => party.code), 'nowhere'], choice)
    return {
      decision: withoutResult(book.parties.join(member, code)),
      expected: plain.joinParty(reference, plain_member, code, now_ms),
    }
  },

  lead_party({ book, reference, identity, choice, now_ms }) {
    const next = pick(IDENTITIES, choice)
    return {
      decision: withoutResult(book.parties.lead(identity, next, now_ms)),
      expected: plain.leadParty(reference, identity, next, now_ms),
    }
  },

  remove_member({ book, reference, identity, choice, ids, now_ms }) {
    const [removed, code] = [pick(IDENTITIES, choice), ids.lobby_id]
    return {
      decision: withoutResult(book.parties.remove(identity, removed, { code }, now_ms)),
      expected: plain.kickMember(reference, identity, removed, code, now_ms),
    }
  },

  look_at_party({ book, reference, identity, now_ms }) {
    return {
      decision: withoutResult(book.parties.read(identity, now_ms)),
      expected: plain.lookAtParty(reference, identity, now_ms),
    }
  },

  leave_party({ book, reference, identity, now_ms }) {
    return {
      decision: withoutResult(book.parties.leave(identity, now_ms)),
      expected: plain.leaveParty(reference, identity, now_ms),
    }
  },
} satisfies Record<string, Command>
