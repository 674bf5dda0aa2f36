// What the embedded PostgreSQL does when it, or the platform that started it, is killed. With real processes, once as
// the user who runs the tests and once, when that is root, as an ordinary user.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type pg from 'pg'
import { until } from '../support/until.ts'
import { findOrdinaryUser, isAlive, makeFolder, openClient, startPlatform, type User } from './harness.ts'

const HALF_ATTEMPTS_MAX = 5
const BUSY = 'do $$ begin loop null; end loop; end $$'

const ordinary = findOrdinaryUser()
const users: { who: string; user: User; skip: string | false }[] = [
  { who: 'the user of the tests', user: null, skip: false },
  {
    who: 'an ordinary user, started by root',
    user: 'user' in ordinary ? ordinary.user : null,
    skip: 'reason' in ordinary && ordinary.reason,
  },
]

for (const { who, user, skip } of users) {
  describe(`the embedded PostgreSQL of ${who}`, { skip }, () => {
    test('keeps its rows and its address over a stop and a start', async (t) => {
      const folder = await makeFolder(t, user)
      const first = startPlatform(t, folder, user)
      const before = await first.ready()
      await insertRows(await openTable(t, before.url), 10)
      await first.stop()
      assert(!isAlive(before.process_id))

      const second = startPlatform(t, folder, user)
      const after = await second.ready()
      assert.equal(after.url, before.url)
      assert.equal(await countRows(t, after.url), 10)
      await second.stop()
    })

    test('that lives on after a kill -9 of the platform is replaced, and every acknowledged row is there', async (t) => {
      const folder = await makeFolder(t, user)
      const first = startPlatform(t, folder, user)
      const before = await first.ready()
      const client = await openTable(t, before.url)
      await insertRows(client, 10)
      await first.kill()
      await insertRows(client, 10)
      assert(isAlive(before.process_id), 'an orphan that died of itself would make this test empty')

      const second = startPlatform(t, folder, user)
      const after = await second.ready()
      assert.notEqual(after.process_id, before.process_id)
      assert(!isAlive(before.process_id))
      assert.equal(after.url, before.url)
      assert.equal(await countRows(t, after.url), 20)
      await second.stop()
    })

    test('starts again after a kill -9 of the postmaster, though a busy backend lives on, with every acknowledged row', async (t) => {
      const folder = await makeFolder(t, user)
      const platform = startPlatform(t, folder, user)
      const before = await platform.ready()
      const client = await openTable(t, before.url)
      const busy = await openClient(t, before.url)
      const { rows } = await busy.query<{ id: number }>('select pg_backend_pid() as id')
      const backend = rows[0]!.id
      const broken = assert.rejects(busy.query(BUSY))
      const watcher = await openClient(t, before.url)
      await until('the busy backend', async () => {
        const { rowCount } = await watcher.query("select 1 from pg_stat_activity where pid = $1 and state = 'active'", [
          backend,
        ])
        return rowCount !== 0
      })
      let acknowledged = 0
      const writing = (async () => {
        for (;;) {
          await insertRows(client, 1)
          acknowledged++
        }
      })()
      await until('some rows', () => acknowledged > 20)
      process.kill(before.process_id, 'SIGKILL')
      await assert.rejects(writing)

      const after = await platform.ready()
      assert(!isAlive(backend))
      await broken
      assert.equal(after.url, before.url)
      const found = await countRows(t, after.url)
      // One row may have been committed without its answer.
      assert(found === acknowledged || found === acknowledged + 1, `${found} rows of ${acknowledged}`)
      await platform.stop()
    })

    test('is made anew when the making of it was killed half-way', async (t) => {
      const folder = await makeHalfFolder(t, user)
      const second = startPlatform(t, folder, user)
      const { url } = await second.ready()
      assert.deepEqual(readdirSync(folder).filter(isDraft), [])
      await insertRows(await openTable(t, url), 1)
      await second.stop()
    })
  })
}

async function openTable(t: TestContext, url: string): Promise<pg.Client> {
  const client = await openClient(t, url)
  await client.query('create table acknowledged (n bigint generated always as identity)')
  return client
}

async function insertRows(client: pg.Client, count: number): Promise<void> {
  for (let row = 0; row < count; row++) await client.query('insert into acknowledged default values')
}

async function countRows(t: TestContext, url: string): Promise<number> {
  const client = await openClient(t, url)
  const { rows } = await client.query<{ count: number }>('select count(*)::integer as count from acknowledged')
  return rows[0]!.count
}

function isDraft(name: string): boolean {
  return name.startsWith('postgres.making-')
}

/** A data folder whose platform was killed while initdb wrote. On a slow machine the kill may come too late: again. */
async function makeHalfFolder(t: TestContext, user: User): Promise<string> {
  for (let attempt = 0; attempt < HALF_ATTEMPTS_MAX; attempt++) {
    const folder = await makeFolder(t, user)
    const platform = startPlatform(t, folder, user)
    await until('files of initdb', () => {
      const draft = readdirSync(folder).find(isDraft)
      return readdirSync(folder).includes('postgres') || (draft && readdirSync(join(folder, draft)).includes('base'))
    })
    await platform.kill()
    if (!readdirSync(folder).includes('postgres')) return folder
  }
  throw new Error('Every kill came too late to try anything.')
}
