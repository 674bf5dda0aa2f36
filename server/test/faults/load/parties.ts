// A party: three players make one, the leader finds seats for all of them, and everybody leaves it.
import { randomUUID } from 'node:crypto'
import { createParty, findLobby, joinParty, leaveParty, setupIdentity } from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import type { LoadContext, Step } from './load.ts'
import { repeat } from './repeat.ts'
import { seatOf } from './seats.ts'

const MEMBERS = 3
/** The party is made by other players now and then. */
const NEW_PLAYERS_CHANCE = 0.1

type Member = { identity_id: string; client: Client }

export function partyPlayers({ platform, history, random }: LoadContext): Step {
  const namespace_id = platform.game.namespaces.staging
  const game = platform.as(platform.game.public_tokens.staging)
  const members: Member[] = []

  const addMember = async (): Promise<void> => {
    const attempts = await repeat(random, async (signal) => {
      const { identity, identity_token } = await game.call(setupIdentity, { body: {}, signal })
      return { identity_id: identity.identity_id, identity_token }
    })
    history.record('identity', { namespace_id }, attempts)
    if (attempts.outcome.status !== 'acknowledged') return
    const { identity_id, identity_token } = attempts.outcome.result
    members.push({ identity_id, client: platform.as(identity_token) })
  }

  const gather = async (): Promise<string | null> => {
    const leader = members[0]!
    const made = await repeat(random, async (signal) => {
      const { party } = await leader.client.call(createParty, { signal })
      return { party_id: party.party_id, code: party.code }
    })
    history.record('party', { leader_identity_id: leader.identity_id }, made)
    if (made.outcome.status !== 'acknowledged') return null
    const { party_id, code } = made.outcome.result
    for (const { identity_id, client } of members.slice(1)) {
      const joined = await repeat(random, (signal) => client.call(joinParty, { body: { code }, signal }))
      history.record('membership', { identity_id, party_id }, joined)
      if (joined.outcome.status !== 'acknowledged') return null
    }
    return party_id
  }

  const findSeats = async (): Promise<void> => {
    const key = randomUUID()
    const body = { game_modes: ['default'], party: true }
    const headers = { 'idempotency-key': key }
    const found = await repeat(random, async (signal) =>
      seatOf(platform, await members[0]!.client.call(findLobby, { body, headers, signal })),
    )
    history.record('seat', { namespace_id, key, party_size: MEMBERS }, found)
  }

  return async () => {
    if (random.chance(NEW_PLAYERS_CHANCE)) members.length = 0
    while (members.length < MEMBERS) {
      const before = members.length
      await addMember()
      if (members.length === before) return
    }
    if ((await gather()) !== null) await findSeats()
    for (const { identity_id, client } of members) {
      const left = await repeat(random, (signal) => client.call(leaveParty, { signal }))
      history.record('membership', { identity_id, party_id: null }, left)
      // A player whose membership is not known makes no other party.
      if (left.outcome.status !== 'acknowledged') members.length = 0
    }
  }
}
