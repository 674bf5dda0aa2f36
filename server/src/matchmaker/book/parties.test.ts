import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientKey } from '../../addresses/client-ip.ts'
import { clientNetworks } from '../../addresses/client-networks.ts'
import type { Change } from '../../journal/changes.ts'
import type { Decision } from './commands.ts'
import { CLIENT_MEMBERS_MAX, PARTIES_MAX, Parties } from './parties.ts'

const START_MS = 1_790_000_000_000
const MINUTE_MS = 60_000
const TOO_MANY = { refused: 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE' }

let people = 0

function member(client_ip: string, join_ms = START_MS, identity_id = `person ${people++}`) {
  return { identity_id, address: client_ip, client: clientKey(client_ip), user_agent: null, join_ms }
}

/** Makes the changes true, as the book does. */
function grant<T>(parties: Parties, decision: Decision<T>): T {
  assert.ok('changes' in decision, JSON.stringify(decision))
  for (const change of decision.changes) apply(parties, change)
  return decision.result
}

function apply(parties: Parties, change: Change): void {
  if (change.kind === 'party_put') parties.put(change.party)
  else if (change.kind === 'party_ended') parties.end(change.party_id, change.ms)
  else assert.fail(change.kind)
}

function make(parties: Parties, who: ReturnType<typeof member>) {
  return parties.create(who, { party_id: `party of ${who.identity_id}`, code: who.identity_id })
}

/** Ends the parties that expire until then, and returns their ids. */
function expireAll(parties: Parties, now_ms: number): string[] {
  const ended: string[] = []
  for (let change = parties.expire(now_ms); change !== null; change = parties.expire(now_ms)) {
    assert.ok(change.kind === 'party_ended')
    apply(parties, change)
    ended.push(change.party_id)
  }
  return ended
}

test('a client has a limited number of members in parties, whether it makes them or joins them', () => {
  const parties = new Parties(clientNetworks)
  const host = grant(parties, make(parties, member('203.0.113.9')))
  for (let i = 0; i < CLIENT_MEMBERS_MAX - 1; i++) grant(parties, make(parties, member('192.0.2.1')))
  const last = member('192.0.2.1')
  grant(parties, parties.join(last, host.code))
  assert.deepEqual(make(parties, member('192.0.2.1')), TOO_MANY)
  assert.deepEqual(parties.join(member('192.0.2.1'), host.code), TOO_MANY)
  // Nor by a member who comes again from there.
  assert.deepEqual(parties.join({ ...member('192.0.2.1'), identity_id: host.leader_identity_id }, host.code), TOO_MANY)
  grant(parties, make(parties, member('192.0.2.2')))
  grant(parties, parties.leave(last.identity_id, START_MS))
  grant(parties, make(parties, member('192.0.2.1')))
})

test('the /64 of a network share its larger limit', () => {
  const parties = new Parties(clientNetworks)
  const made = (count: number, client_ip: (i: number) => string): number =>
    Array.from({ length: count }, (_, i) => client_ip(i)).filter((from) => {
      const decision = make(parties, member(from))
      if ('changes' in decision) grant(parties, decision)
      return 'changes' in decision
    }).length
  assert.equal(
    made(3_000, (i) => `2001:db8:0:${(i % 256).toString(16)}::1`),
    4 * CLIENT_MEMBERS_MAX,
  )
  assert.equal(
    made(10_000, (i) => `2001:db8:0:${i.toString(16)}::1`),
    12 * CLIENT_MEMBERS_MAX,
  )
  assert.equal(
    made(1, () => '2001:db8:1::1'),
    1,
  )
})

test('a namespace that is full of parties that nobody plays in takes another one for the one that was used least lately', () => {
  const parties = new Parties(clientNetworks)
  const attackers = Math.ceil(PARTIES_MAX / CLIENT_MEMBERS_MAX)
  assert.ok(attackers > 64, 'so few clients cannot even fill it')
  for (let i = 0; i < PARTIES_MAX; i++) {
    grant(parties, make(parties, member(`198.51.100.${i % attackers}`, START_MS + i)))
  }
  const first = parties.get('party of person 0') ?? [...parties.all()][0]!
  const honest = grant(parties, make(parties, member('203.0.113.1', START_MS + PARTIES_MAX)))
  assert.ok(parties.get(honest.party_id)!.end_ms === null && parties.get(first.party_id)!.end_ms !== null)
  // Parties that play stay: when all play, the namespace is full.
  for (const party of [...parties.all()]) {
    if (party.end_ms === null) for (const change of parties.renew(party, START_MS + PARTIES_MAX)) apply(parties, change)
  }
  assert.deepEqual(make(parties, member('203.0.113.1', START_MS + PARTIES_MAX)), { refused: 'API_NOT_AVAILABLE' })
})

test('a party that is not read and does not play ends after half an hour, one that plays after a day', () => {
  const parties = new Parties(clientNetworks)
  const [unused, looked_at, playing] = [1, 2, 3].map((i) => grant(parties, make(parties, member(`192.0.2.${i}`))))
  const later_ms = START_MS + 20 * MINUTE_MS
  grant(parties, parties.read(looked_at!.leader_identity_id, later_ms))
  // Looking again writes nothing while it was used lately.
  const again = parties.read(looked_at!.leader_identity_id, later_ms + 10 * MINUTE_MS)
  assert.ok('changes' in again && again.changes.length === 0)
  for (const change of parties.renew(parties.get(playing!.party_id)!, START_MS)) apply(parties, change)
  assert.deepEqual(expireAll(parties, START_MS + 30 * MINUTE_MS - 1), [])
  assert.deepEqual(expireAll(parties, START_MS + 30 * MINUTE_MS), [unused!.party_id])
  assert.deepEqual(expireAll(parties, later_ms + 30 * MINUTE_MS - 1), [])
  assert.deepEqual(expireAll(parties, later_ms + 30 * MINUTE_MS), [looked_at!.party_id])
  // To be joined or led does not shorten the time of one that has played.
  grant(parties, parties.join(member('192.0.2.9', START_MS + 60 * MINUTE_MS), playing!.code))
  assert.deepEqual(expireAll(parties, START_MS + 24 * 60 * MINUTE_MS - 1), [])
  assert.deepEqual(expireAll(parties, START_MS + 24 * 60 * MINUTE_MS), [playing!.party_id])
})
