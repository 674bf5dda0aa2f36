// Seats: every acknowledged one is a player's row, under its key, in its lobby. A key has one seat at a time; one that its
// request never returned (taken back, or its lobby did not start) makes room for another. A refused request left no seat.
// A party is seated as a whole or not at all.
import type { ClientBase } from 'pg'
import { acknowledged, type Entry, type History } from '../history.ts'
import type { Findings } from './findings.ts'

type PlayerRow = {
  player_id: string
  lobby_id: string
  create_ms: number
  connect_ms: number | null
  remove_ms: number | null
  remove_reason: string | null
  seat_key: string | null
  connect_key: string | null
  leader_player_id: string | null
  player_deadline_ms: number
}

export async function checkSeats(db: ClientBase, history: History, findings: Findings): Promise<void> {
  const rows = await readPlayers(db)
  const by_id = new Map(rows.map((row) => [row.player_id, row]))
  const by_key = Map.groupBy(
    rows.filter(({ seat_key }) => seat_key !== null),
    ({ seat_key }) => seat_key!,
  )
  for (const [key, same] of by_key) {
    const ids = same.map(({ player_id }) => player_id)
    findings.require(same.filter(mayBeReturned).length <= 1, `key ${key} has several seats: ${ids}`)
    findings.require(isOneAfterTheOther(same), `key ${key} had several seats at a time: ${ids}`)
  }
  for (const seat of history.of('seat')) {
    const same = by_key.get(seat.key) ?? []
    checkSeat(seat, same, findings)
    if (seat.party_size > 1) for (const leader of same) checkParty(seat, leader, rows, findings)
  }
  const holders = Map.groupBy(acknowledged(history.of('seat')), ({ result }) => result.player_id)
  for (const [player_id, seats] of holders) {
    const keys = seats.map(({ key }) => key)
    findings.require(keys.length === 1, `player ${player_id} was given to ${keys.length} requests: ${keys}`)
  }
  checkConnections(history, by_id, findings)
}

/** Not of a seat that ended before any response named it. */
function mayBeReturned({ connect_ms, remove_reason }: PlayerRow): boolean {
  return connect_ms !== null || (remove_reason !== 'unanswered' && remove_reason !== 'lobby_stopped')
}

function isOneAfterTheOther(rows: readonly PlayerRow[]): boolean {
  const sorted = rows.toSorted((a, b) => a.create_ms - b.create_ms)
  return sorted.every(({ create_ms }, index) => {
    const before = sorted[index - 1]
    return before === undefined || (before.remove_ms !== null && before.remove_ms <= create_ms)
  })
}

/** `same`: the rows of its key. */
function checkSeat(seat: Entry<'seat'>, same: readonly PlayerRow[], findings: Findings): void {
  const { outcome, key } = seat
  if (outcome.status === 'refused') {
    const left = same.filter(({ connect_ms, remove_ms }) => connect_ms !== null || remove_ms === null)
    const ids = left.map(({ player_id }) => player_id)
    findings.require(ids.length === 0, `the seat of key ${key} was refused (${outcome.code}), and player ${ids} has it`)
  }
  if (outcome.status !== 'acknowledged') return
  const { player_id, lobby_id } = outcome.result
  const row = same.find((other) => other.player_id === player_id)
  if (row === undefined) {
    findings.add(`the acknowledged seat of key ${key}, player ${player_id}, is lost`)
    return
  }
  findings.require(
    row.lobby_id === lobby_id,
    `player ${player_id} was acknowledged in lobby ${lobby_id}, and its row says ${row.lobby_id}`,
  )
  checkEnd(row, findings)
}

/** Why an acknowledged seat ended. */
function checkEnd(row: PlayerRow, findings: Findings): void {
  const { player_id, remove_reason, remove_ms, create_ms, player_deadline_ms } = row
  findings.require(remove_reason !== 'unanswered', `player ${player_id} was acknowledged, and taken back as unanswered`)
  if (remove_reason !== 'expired') return
  const lived_ms = remove_ms! - create_ms
  findings.require(
    lived_ms >= player_deadline_ms,
    `player ${player_id} expired after ${lived_ms} of ${player_deadline_ms} ms`,
  )
}

function checkParty(seat: Entry<'seat'>, leader: PlayerRow, rows: readonly PlayerRow[], findings: Findings): void {
  const members = rows.filter(({ leader_player_id }) => leader_player_id === leader.player_id)
  const lobbies = new Set(members.map(({ lobby_id }) => lobby_id))
  findings.require(
    members.length === seat.party_size && lobbies.size === 1,
    `the party of key ${seat.key} has ${members.length} of ${seat.party_size} seats, in ${lobbies.size} lobbies`,
  )
}

function checkConnections(history: History, by_id: ReadonlyMap<string, PlayerRow>, findings: Findings): void {
  const connects = history.of('connect')
  for (const { player_id } of acknowledged(connects)) {
    findings.require(
      by_id.get(player_id)?.connect_ms != null,
      `the acknowledged connection of player ${player_id} is lost`,
    )
  }
  for (const { player_id, key, outcome } of connects) {
    if (outcome.status !== 'refused') continue
    const taken = by_id.get(player_id)?.connect_key === key
    findings.require(!taken, `a connection of player ${player_id} was refused (${outcome.code}), and took effect`)
  }
  for (const [player_id, several] of Map.groupBy(acknowledged(connects), ({ player_id }) => player_id)) {
    findings.require(several.length === 1, `the token of player ${player_id} was consumed ${several.length} times`)
  }
  for (const { player_id } of acknowledged(history.of('disconnect'))) {
    findings.require(
      by_id.get(player_id)?.remove_ms != null,
      `the acknowledged departure of player ${player_id} is lost`,
    )
  }
}

async function readPlayers(db: ClientBase): Promise<PlayerRow[]> {
  const { rows } = await db.query<PlayerRow>(
    `select p.player_id, p.lobby_id, p.remove_reason, p.leader_player_id, l.player_deadline_ms::float8,
        (extract(epoch from p.create_ts) * 1000)::float8 as create_ms,
        (extract(epoch from p.connect_ts) * 1000)::float8 as connect_ms,
        (extract(epoch from p.remove_ts) * 1000)::float8 as remove_ms,
        -- A key is stored behind its action and its caller.
        regexp_replace(p.seat_key, '^.* ', '') as seat_key, regexp_replace(p.connect_key, '^.* ', '') as connect_key
      from players p join lobbies l on l.lobby_id = p.lobby_id`,
  )
  return rows
}
