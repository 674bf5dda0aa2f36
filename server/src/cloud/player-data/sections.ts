// What the platform knows of a player, by section: how it is found, and how it is erased. In the SQL, `$identity` and the others
// are members of the subject. A player that is named by an address only has no identity, and matches nothing by it.
import { type PlayerSubject, subjectPattern } from './subject.ts'

export type PlayerSection = {
  name: string
  /** Selects `key`, in whose order rows are read, and `row`, as JSON. */
  select: string
  /** Erases up to `$limit` rows, and returns how many. Null: erased with another section, or left. */
  erase: string | null
}

const OF_PLAYER = 'namespace_id = any($namespaces) and (identity_id = $identity or client = $client)'
const OF_MEMBER = `(m->>'identity_id' = $identity::text or m->>'client' = $client)`
const IN_PARTY = `namespace_id = any($namespaces) and exists (select from jsonb_array_elements(members) m where ${OF_MEMBER})`
/** A seat whose end was written long enough ago that its shard writes it no more. */
const SETTLED = `remove_ts < $settled`

/**
 * Erased in this order: seats come last, because the others are found by them. Entries of the key-value store are erased through
 * the store, so that its usage stays exact.
 */
export const PLAYER_SECTIONS: readonly PlayerSection[] = [
  {
    name: 'identity',
    select: `select identity_id::text as key, to_jsonb(i) as row from identities i
      where namespace_id = any($namespaces) and identity_id = $identity`,
    erase: `delete from identities where ctid in (
      select ctid from identities where namespace_id = any($namespaces) and identity_id = $identity limit $limit)`,
  },
  {
    name: 'ratings',
    select: `select namespace_id || ' ' || game_mode as key, to_jsonb(r) as row from ratings r
      where namespace_id = any($namespaces) and identity_id = $identity`,
    // They are deleted with the identity.
    erase: null,
  },
  {
    name: 'kv',
    select: `select namespace_id || ' ' || key as key,
        jsonb_build_object('namespace_id', namespace_id, 'key', key, 'value', value, 'update_ts', update_ts) as row
      from kv_entries where namespace_id = any($namespaces) and position($identity::text in key) > 0`,
    erase: null,
  },
  {
    name: 'waits',
    select: `select player_id::text as key, jsonb_build_object('player_id', player_id, 'namespace_id', namespace_id,
        'create_ts', create_ts, 'end_ts', end_ts, 'end_reason', end_reason) as row
      from tickets where namespace_id = any($namespaces) and player_id = any($players)`,
    erase: `delete from tickets where ctid in (
      select ctid from tickets where namespace_id = any($namespaces) and player_id = any($players) and end_ts < $settled limit $limit)`,
  },
  {
    name: 'parties',
    select: `select party_id::text as key, jsonb_build_object('party_id', party_id, 'namespace_id', namespace_id,
        'create_ts', create_ts, 'end_ts', end_ts,
        'member', (select jsonb_agg(m) from jsonb_array_elements(members) m where ${OF_MEMBER})) as row
      from parties where ${IN_PARTY}`,
    erase: `update parties set members = coalesce((select jsonb_agg(m) from jsonb_array_elements(members) m where not ${OF_MEMBER}), '[]')
      where ctid in (select ctid from parties where ${IN_PARTY} and end_ts < $settled limit $limit)`,
  },
  {
    name: 'explanations',
    select: `select ray_id::text as key, jsonb_build_object('ray_id', ray_id, 'namespace_id', namespace_id,
        'operation', operation, 'create_ts', create_ts, 'code', code, 'explanation', explanation) as row
      from explanations where namespace_id = any($namespaces) and explanation ~ $pattern`,
    erase: `delete from explanations where ctid in (
      select ctid from explanations where namespace_id = any($namespaces) and explanation ~ $pattern limit $limit)`,
  },
  {
    name: 'rays',
    select: `select ray_id || ' ' || service || ' ' || ts as key, to_jsonb(r) as row from ray_spans r
      where player_id = any($players)`,
    erase: `delete from ray_spans where ctid in (select ctid from ray_spans where player_id = any($players) limit $limit)`,
  },
  {
    name: 'seats',
    select: `select player_id::text as key, jsonb_build_object('player_id', player_id, 'lobby_id', lobby_id,
        'namespace_id', namespace_id, 'client', client, 'identity_id', identity_id, 'create_ts', create_ts,
        'connect_ts', connect_ts, 'remove_ts', remove_ts, 'remove_reason', remove_reason,
        'is_spectator', is_spectator, 'match', match) as row
      from players where ${OF_PLAYER}`,
    // The row stays for the history of the lobby, and names no person.
    erase: `update players set client = '-', identity_id = null, match = null,
        seat_key = null, connect_key = null, disconnect_key = null where ctid in (
      select ctid from players where ${OF_PLAYER} and ${SETTLED} limit $limit)`,
  },
  {
    name: 'lobbies',
    select: `select lobby_id::text as key, jsonb_build_object('lobby_id', lobby_id, 'namespace_id', namespace_id,
        'create_ts', create_ts, 'stop_ts', stop_ts) as row
      from lobbies where namespace_id = any($namespaces) and creator_identity_id = $identity`,
    erase: `update lobbies set creator_identity_id = null where ctid in (
      select ctid from lobbies where namespace_id = any($namespaces) and creator_identity_id = $identity
        and stop_ts < $settled limit $limit)`,
  },
  {
    name: 'captcha_clients',
    select: `select namespace_id || ' ' || client as key, to_jsonb(c) as row from captcha_clients c
      where namespace_id = any($namespaces) and client = $client`,
    erase: null,
  },
  {
    name: 'audit_events',
    // Events of people who develop the game are theirs.
    select: `select event_id::text as key, jsonb_build_object('event_id', event_id, 'create_ts', create_ts,
        'operation', operation, 'outcome', outcome, 'code', code, 'client_ip', client_ip, 'ray_id', ray_id) as row
      from audit_events where game_id = $game and client_ip = $address and user_id is null and actor_name is null`,
    erase: null,
  },
]

/** Values by name. A name is replaced by a parameter where the text has it. */
export function bindSubject(
  text: string,
  subject: PlayerSubject,
  more: Readonly<Record<string, unknown>>,
): { text: string; values: unknown[] } {
  const named: Record<string, readonly [value: unknown, type: string]> = {
    game: [subject.game_id, 'uuid'],
    namespaces: [subject.namespace_ids, 'uuid[]'],
    identity: [subject.identity_id, 'uuid'],
    client: [subject.client_key, 'text'],
    address: [subject.address, 'text'],
    players: [subject.player_ids, 'uuid[]'],
    pattern: [subjectPattern(subject), 'text'],
    after: [more.after, 'text'],
    limit: [more.limit, 'integer'],
    settled: [more.settled, 'timestamptz'],
  }
  const values: unknown[] = []
  const bound = text.replace(/\$([a-z]+)/g, (whole, name: string) => {
    const parameter = named[name]
    if (parameter === undefined) return whole
    values.push(parameter[0])
    return `$${values.length}::${parameter[1]}`
  })
  return { text: bound, values }
}
