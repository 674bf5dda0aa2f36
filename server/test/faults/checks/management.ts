// Tokens, domains, identities and parties: an acknowledged one has a row, a removed one has none, and a revoked token is
// refused.
import { getGameById } from '@musterhost/contract'
import type { ClientBase } from 'pg'
import { acknowledged, type Entry, type History, type Outcome, outcomeOf } from '../history.ts'
import type { FaultyPlatform } from '../platform.ts'
import type { Findings } from './findings.ts'
import { possibleValues } from './last-value.ts'

/** Newest tokens of each kind that are sent to the platform. */
const TOKENS_SHOWN_MAX = 10

export async function checkTokens(db: ClientBase, history: History, findings: Findings): Promise<void> {
  const created = await idsOf(db, 'select token_id as id from tokens')
  for (const { result } of acknowledged(history.of('token'))) {
    findings.require(created.has(result.token_id), `the acknowledged token ${result.token_id} is lost`)
  }
  const revoked = await idsOf(db, 'select token_id as id from revoked_tokens')
  for (const { token_id, outcome } of history.of('revocation')) {
    if (outcome.status === 'acknowledged') {
      findings.require(revoked.has(token_id), `the acknowledged revocation of token ${token_id} is lost`)
    }
    if (outcome.status === 'refused') {
      findings.require(!revoked.has(token_id), `the revocation of token ${token_id} was refused, and it is revoked`)
    }
  }
}

/** Sends tokens to the running platform. */
export async function checkTokensInUse(platform: FaultyPlatform, history: History, findings: Findings): Promise<void> {
  const { game_id } = platform.game
  const ask = (token: string) => outcomeOf(platform.as(token).call(getGameById, { params: { game_id } }))
  const revocations = history.of('revocation')
  const touched = new Set(revocations.map(({ token_id }) => token_id))
  for (const { token, token_id } of acknowledged(revocations).slice(-TOKENS_SHOWN_MAX)) {
    const outcome = await ask(token)
    const is_refused = outcome.status === 'refused' && outcome.code === 'TOKEN_REVOKED'
    findings.require(is_refused, `the revoked token ${token_id} gets ${JSON.stringify(outcome).slice(0, 100)}`)
  }
  const valid = acknowledged(history.of('token')).filter(({ result }) => !touched.has(result.token_id))
  for (const { result } of valid.slice(-TOKENS_SHOWN_MAX)) {
    const outcome = await ask(result.token)
    findings.require(
      outcome.status === 'acknowledged',
      `token ${result.token_id} is not taken: ${JSON.stringify(outcome)}`,
    )
  }
}

export async function checkDomains(db: ClientBase, history: History, findings: Findings): Promise<void> {
  const { rows } = await db.query<{ claim: string }>(`select namespace_id || ' ' || domain as claim from domains`)
  const claims = new Set(rows.map(({ claim }) => claim))
  const by_claim = Map.groupBy(history.of('domain'), ({ namespace_id, domain }) => `${namespace_id} ${domain}`)
  for (const [claim, changes] of by_claim) {
    const possible = possibleValues(changes, ({ is_wanted }) => is_wanted, false)
    const is_there = claims.has(claim)
    findings.require(possible.has(is_there), `the claim ${claim} is ${is_there ? 'there' : 'not there'}`)
  }
}

export async function checkParties(db: ClientBase, history: History, findings: Findings): Promise<void> {
  const identities = await idsOf(db, 'select identity_id as id from identities')
  for (const { result } of acknowledged(history.of('identity'))) {
    findings.require(identities.has(result.identity_id), `the acknowledged identity ${result.identity_id} is lost`)
  }
  const parties = await idsOf(db, 'select party_id as id from parties')
  for (const { result } of acknowledged(history.of('party'))) {
    findings.require(parties.has(result.party_id), `the acknowledged party ${result.party_id} is lost`)
  }
  const { rows } = await db.query<{ party_id: string; identity_id: string; is_leader: boolean }>(
    `select party_id, member ->> 'identity_id' as identity_id, leader_identity_id::text = member ->> 'identity_id' as is_leader
      from parties, jsonb_array_elements(members) member where end_ts is null`,
  )
  const membership = Map.groupBy(rows, ({ identity_id }) => identity_id)
  for (const [identity_id, own] of membership) {
    findings.require(own.length === 1, `identity ${identity_id} is in ${own.length} parties`)
  }
  const led = new Map(rows.filter(({ is_leader }) => is_leader).map((row) => [row.identity_id, row.party_id]))
  for (const [identity_id, changes] of membershipChanges(history, led)) {
    const possible = possibleValues(changes, ({ party_id }) => party_id, null)
    const party_id = membership.get(identity_id)?.[0]?.party_id ?? null
    findings.require(possible.has(party_id), `identity ${identity_id} is in party ${party_id}, of ${[...possible]}`)
  }
}

type MembershipChange = Omit<Entry<'membership'>, 'outcome'> & { outcome: Outcome }

/** In order, by identity. Making a party is a change too; one whose outcome is unknown made the party in `led`. */
function membershipChanges(history: History, led: ReadonlyMap<string, string>): Map<string, MembershipChange[]> {
  const made = history.of('party').map(({ leader_identity_id, ...entry }) => {
    const { outcome } = entry
    const known = outcome.status === 'acknowledged' ? outcome.result.party_id : undefined
    return { ...entry, identity_id: leader_identity_id, party_id: known ?? led.get(leader_identity_id) ?? null }
  })
  const changes = [...made, ...history.of('membership')].toSorted((a, b) => a.end_ms - b.end_ms)
  return Map.groupBy(changes, ({ identity_id }) => identity_id)
}

async function idsOf(db: ClientBase, text: string): Promise<Set<string>> {
  const { rows } = await db.query<{ id: string }>(text)
  return new Set(rows.map(({ id }) => id))
}
