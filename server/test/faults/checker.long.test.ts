// The checker finds damage: on an unharmed platform, one kind of damage after the other is planted in a transaction, found,
// and undone.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { ClientBase } from 'pg'
import { temporaryFolder } from '../supervisor/started.ts'
import { until } from '../support/until.ts'
import { type Checked, checkPlatform, checkTables, inSettledSnapshot } from './checks/check.ts'
import { Findings } from './checks/findings.ts'
import { JournalLaws } from './checks/laws.ts'
import { serversOf } from './checks/processes.ts'
import { acknowledged, History, type Kind } from './history.ts'
import { fullLoad } from './load/load.ts'
import { FaultyPlatform, PROD_LIMITS } from './platform.ts'
import { createRandom } from './random.ts'
import { acknowledge } from './run.ts'

const OPERATIONS = 150
const SEED = 1
/** At least one operation of each of these kinds must be acknowledged before damage can be planted. */
const KINDS: readonly Kind[] = ['seat', 'connect', 'disconnect', 'upload', 'deploy', 'revocation', 'identity']

type Damage = { what: string; plant: (db: ClientBase, checked: Checked) => Promise<unknown>; found: RegExp }

const DAMAGES: readonly Damage[] = [
  {
    what: 'an acknowledged seat is lost',
    plant: (db, { history }) =>
      db.query('delete from players where player_id = $1', [lastOf(history, 'seat').result.player_id]),
    found: /the acknowledged seat of key \S+, player \S+, is lost/,
  },
  {
    what: 'a seat is doubled',
    plant: (db, { history }) =>
      db.query(
        `insert into players select (json_populate_record(p, json_build_object('player_id', gen_random_uuid()))).*
          from players p where player_id = $1`,
        [lastOf(history, 'connect').player_id],
      ),
    found: /key \S+ has several seats/,
  },
  {
    what: 'a player leaves and stays',
    plant: (db, { history }) =>
      db.query('update players set remove_ts = null where player_id = $1', [lastOf(history, 'disconnect').player_id]),
    found: /the acknowledged departure of player \S+ is lost[\s\S]*lives by its table, and not by the journal/,
  },
  {
    what: 'an entry has a value that nobody wrote last',
    plant: (db) => db.query(`update kv_entries set value = '"other"' where key like '%/single-%'`),
    found: /the keys \S+ have the value other/,
  },
  {
    what: 'a batch is written by halves',
    plant: (db) => db.query(`delete from kv_entries where key like '%/batch-0'`),
    found: /were written together[\s\S]*does not add up/,
  },
  {
    what: 'a complete upload has another hash',
    plant: (db, { history }) =>
      db.query(`update upload_files set sha256 = repeat('0', 64) where upload_id = $1`, [
        lastOf(history, 'upload').upload_id,
      ]),
    found: /of the complete upload \S+ was sent as \S+, is recorded as 0{64}/,
  },
  {
    what: 'a deploy is lost',
    plant: (db, { history }) =>
      db.query('delete from namespace_versions where version_id = $1', [lastOf(history, 'deploy').version_id]),
    found: /the acknowledged deploy of \S+ is lost/,
  },
  {
    what: 'a revoked token is valid again',
    plant: (db, { history }) =>
      db.query('delete from revoked_tokens where token_id = $1', [lastOf(history, 'revocation').token_id]),
    found: /the acknowledged revocation of token \S+ is lost/,
  },
  {
    what: 'a lobby counts twice in the room of its node',
    plant: (db) =>
      db.query(`update place_room set lobby_count = lobby_count + 1, cpu_micro_max = -1 where place like 'node %'`),
    found: /node \S+ has the sums[\s\S]*exceed its room/,
  },
  {
    what: 'a run ends before it began',
    plant: (db) => db.query(`update lobby_runs set exit_ts = start_ts - interval '1 second'`),
    found: /L9: run \S+ is from/,
  },
]

test('the checker finds every kind of planted damage, and nothing without it', async (t) => {
  const checked = await loadedPlatform(t)
  assert.deepEqual(await checkPlatform(checked), [])
  for (const { what, plant, found } of DAMAGES) {
    const findings = new Findings()
    await checked.platform.withDatabase((db) =>
      inSettledSnapshot(db, async () => {
        const { rowCount } = (await plant(db, checked)) as { rowCount: number }
        assert.ok(rowCount > 0, `nothing was planted: ${what}`)
        await checkTables(db, checked, findings)
      }),
    )
    assert.match(findings.texts.join('\n'), found, what)
  }
  assert.deepEqual(await checkPlatform(checked), [], 'nothing of it has stayed')
})

/** After a while of load, paused. */
async function loadedPlatform(t: TestContext): Promise<Checked> {
  const folder = temporaryFolder(t)
  const platform = await FaultyPlatform.start({ folder })
  const history = new History()
  const load = fullLoad({ platform, history, random: createRandom(SEED) })
  await until('everything that can be damaged to exist', async () => {
    load.resume()
    await acknowledge(history, OPERATIONS)
    // Otherwise the law of processes would hold as soon as no lobby lives.
    await until('the checker to see the process of a lobby', () => serversOf(platform).length > 0)
    await load.pause()
    return KINDS.every((kind) => acknowledged(history.of(kind)).length > 0) && platform.withDatabase(hasEntries)
  })
  const laws = new JournalLaws(new Map([[platform.game.namespaces.prod, PROD_LIMITS]]))
  return { platform, history, laws }
}

/** A part of the writes of the load deletes: now and then nothing is left. */
async function hasEntries(db: ClientBase): Promise<boolean> {
  const { rows } = await db.query(
    `select bool_or(key like '%/single-%') and bool_or(key like '%/batch-0') as has_both from kv_entries`,
  )
  return rows[0].has_both === true
}

function lastOf<K extends Kind>(history: History, kind: K) {
  const last = acknowledged(history.of(kind)).at(-1)
  if (last === undefined) throw new Error(`no operation of the kind ${kind} was acknowledged`)
  return last
}
