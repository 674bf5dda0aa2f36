// What a backup holds, what a restore refuses, and what `verify` sees: on a platform with a game, files, seats and a
// planned job, whose database is one that DATABASE_URL names. With the embedded one: server/test/end-to-end.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { cp, mkdir, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { findLobby } from '@musterhost/contract'
import fc from 'fast-check'
import { backup, restore, verify } from '../../src/backup/command.ts'
import { filesOf } from '../../src/backup/files.ts'
import type { Manifest } from '../../src/backup/manifest.ts'
import { checkBackup } from '../../src/backup/verify/backup.ts'
import { addDomainCheck } from '../../src/cloud/jobs.ts'
import { sweep } from '../../src/cloud/sweep/sweep.ts'
import { connect } from '../../src/database/connect.ts'
import { MIGRATIONS } from '../../src/database/migrations/index.ts'
import { lockObjects } from '../../src/database/objects-lock.ts'
import { newObjectKey } from '../../src/objects/objects.ts'
import { makeFormerDatabase } from '../database/former-migrations.ts'
import { administer } from '../run/database-server.ts'
import { createDatabase } from '../support/database.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import {
  bareDatabase,
  changeByte,
  dataFolder,
  emptyPlatform,
  isStartError,
  openClient,
  query,
  replaceManifest,
  rowsOf,
  seatPlayers,
  temporary,
} from './steps.ts'

const FLIPS = 80
const DAY_MS = 86_400_000

test('backup, restore, verify', async (t) => {
  const platform = await startPlatform(t)
  const { ctx, data_dir } = platform
  const env = { MUSTER_DATA: data_dir, DATABASE_URL: ctx.config.database_url! }
  const game = await platform.game()
  const lobby_id = await seatPlayers(platform, game, 5)
  const job_key = randomUUID()
  await addDomainCheck(ctx.db, job_key, ctx.now() + DAY_MS)
  await ctx.db
    .insertInto('lobby_runs')
    .values({ lobby_id, runner_id: 'elsewhere', driver: 'process', handle: '{}', ports: '{}' })
    .execute()
  // The matchmaker notes where the lobby runs, and the row must be a part of the backup.
  await ctx.listener.notify('lobby_runs', lobby_id)
  await until('the node of the lobby', async () => {
    const lobby = await ctx.db
      .selectFrom('lobbies')
      .select('node_id')
      .where('lobby_id', '=', lobby_id)
      .executeTakeFirst()
    return lobby?.node_id === 'elsewhere'
  })
  await until(
    'explanations of the finds',
    async () => (await ctx.db.selectFrom('explanations').select('ray_id').execute()).length > 0,
  )
  await until('analytics of the finds', async () => {
    const { rows } = await ctx.pool.query(`select bool_and(read_seq = (
      select max(seq) from journal where journal.shard = journal_readers.shard)) as is_all from journal_readers`)
    return rows[0].is_all as boolean
  })
  await until('durations of the finds', async () => {
    const { rows } = await ctx.pool.query('select sum(find_count)::integer as count from platform_find_durations')
    return rows[0].count === 5
  })
  const folder = join(await temporary(t), 'first')
  const taken = await backup(env, folder)
  assert.equal(taken.is_good, true, taken.lines.join('\n'))

  await t.test('what is restored is what was there: every row, object and key', async (t) => {
    const target = await emptyPlatform(t)
    const { is_good, lines } = await restore(target, folder)
    assert.equal(is_good, true)
    assert.match(lines.join('\n'), /1 lobby ran then/)
    const [source_rows, restored_rows] = [await rowsOf(t, env.DATABASE_URL), await rowsOf(t, target.DATABASE_URL)]
    const runs = await query(t, target.DATABASE_URL, 'select exit_reason, exit_ts is null as is_open from lobby_runs')
    assert.deepEqual(runs, [{ exit_reason: 'lost', is_open: false }])
    delete source_rows.lobby_runs
    delete restored_rows.lobby_runs
    // Rays are written behind the answers: of the last finds some may have come after the backup.
    for (const table of ['explanations', 'ray_spans']) {
      const later_rows = new Set(source_rows[table])
      assert.ok(restored_rows[table]!.length > 0 && restored_rows[table]!.every((row) => later_rows.has(row)), table)
      delete source_rows[table]
      delete restored_rows[table]
    }
    assert.deepEqual(restored_rows, source_rows)
    assert.equal(source_rows.players?.length, 5)
    const events = Object.keys(source_rows).filter((name) => /^analytics_events_\d{8}$/.test(name))
    assert.ok(events.length > 0 && source_rows[events[0]!]!.length >= 7, 'partitions are tables of a backup')
    const objects = (await ctx.db.selectFrom('upload_files').select('object_key').execute()).map(
      (row) => row.object_key,
    )
    assert.ok(objects.length > 0)
    for (const key of objects) {
      const path = join('objects', key.slice(0, 2), key)
      assert.deepEqual(readFileSync(join(target.MUSTER_DATA, path)), readFileSync(join(data_dir, path)))
    }
    assert.equal(
      readFileSync(join(target.MUSTER_DATA, 'keys/ring.json'), 'utf8'),
      readFileSync(join(data_dir, 'keys/ring.json'), 'utf8'),
    )
    assert.equal(statSync(join(target.MUSTER_DATA, 'keys', 'ring.json')).mode & 0o777, 0o600)
    const { report } = await verify(target, null)
    assert.equal(report.is_sound, true, JSON.stringify(report))

    const planned = `select payload::text, j.key, j.run_at, j.max_attempts from graphile_worker._private_jobs j`
    assert.deepEqual(await query(t, target.DATABASE_URL, planned), await query(t, env.DATABASE_URL, planned))
    const next = `select nextval('namespace_versions_deploy_number_seq')`
    const [{ nextval }] = (await query(t, target.DATABASE_URL, next)) as [{ nextval: string }]
    const numbers = await ctx.db.selectFrom('namespace_versions').select('deploy_number').execute()
    assert.ok(
      numbers.every(({ deploy_number }) => deploy_number < Number(nextval)),
      'the next deploy is the last',
    )
  })

  await t.test(
    'what is restored goes on: the same tokens, and the seats end because their lobbies are lost',
    async (t) => {
      const target = await emptyPlatform(t)
      await restore(target, folder)
      const next = await startPlatform(t, { database_url: target.DATABASE_URL, data_dir: target.MUSTER_DATA })
      next.playServers()
      const seat = await next.as(game.public_token).call(findLobby, { body: { game_modes: ['default'] } })
      assert.notEqual(seat.lobby.lobby_id, lobby_id)
      const ended = next.ctx.db.selectFrom('players').select('remove_reason').where('remove_ts', 'is not', null)
      const players = await until('the tables to show it', async () => {
        const rows = await ended.execute()
        return rows.length > 0 && rows
      })
      assert.deepEqual(players, Array(5).fill({ remove_reason: 'lobby_stopped' }))
    },
  )

  await t.test('only its owner can look into a backup, and it is not taken twice', async () => {
    for (const path of await filesOf(folder)) assert.equal(statSync(join(folder, path)).mode & 0o777, 0o600, path)
    assert.equal(statSync(folder).mode & 0o777, 0o700)
    await assert.rejects(backup(env, folder), isStartError(/is there already/))
    assert.deepEqual(
      await filesOf(join(folder, '..')),
      (await filesOf(folder)).map((path) => `first/${path}`),
    )
  })

  await t.test('any byte that is changed is named, and nothing of the backup is restored', async (t) => {
    const target = await emptyPlatform(t)
    const paths = (await filesOf(folder)).filter((path) => statSync(join(folder, path)).size > 0).sort()
    const flip = fc.record({
      path: fc.constantFrom(...paths),
      place: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      mask: fc.integer({ min: 1, max: 255 }),
    })
    await fc.assert(
      fc.asyncProperty(flip, async ({ path, place, mask }) => {
        const undo = await changeByte(join(folder, path), place, mask)
        try {
          const findings = (await checkBackup({ label: folder, folder, objects: null }, ctx.now())).checks.flatMap(
            (check) => check.findings,
          )
          assert.ok(findings.length > 0)
          if (path !== 'SHA256SUMS')
            assert.ok(
              findings.some((finding) => finding.startsWith(`${path} `)),
              findings.join('; '),
            )
          await assert.rejects(restore(target, folder), isStartError(/is damaged; nothing has been restored/))
        } finally {
          await undo()
        }
      }),
      { numRuns: FLIPS },
    )
    assert.equal(existsSync(target.MUSTER_DATA), false)
    assert.equal(
      (await checkBackup({ label: folder, folder, objects: null }, ctx.now())).checks.flatMap((check) => check.findings)
        .length,
      0,
    )
  })

  await t.test('a file too many or too few is named', async (t) => {
    const copy = join(await temporary(t), 'copy')
    await cp(folder, copy, { recursive: true })
    await writeFile(join(copy, 'tables', 'more.copy'), '')
    await rm(join(copy, 'tables', 'games.copy'))
    const { lines, is_good } = await verify({}, copy)
    assert.equal(is_good, false)
    assert.match(
      lines.join('\n'),
      /WRONG {2}files[\s\S]*tables\/games\.copy is missing[\s\S]*tables\/more\.copy is not named/,
    )
    await assert.rejects(verify({}, join(copy, 'keys')), isStartError(/is not a backup/))
  })

  await t.test('a folder or a database that is not empty is refused, and nothing in it changes', async (t) => {
    const target = await emptyPlatform(t)
    // A restored database, because the platform that was backed up still writes to its own.
    const restored = await emptyPlatform(t)
    await restore(restored, folder)
    const { DATABASE_URL } = restored
    const rows = await rowsOf(t, DATABASE_URL)
    await assert.rejects(restore({ ...target, DATABASE_URL }, folder), isStartError(/is not empty: it has the table/))
    assert.deepEqual(await rowsOf(t, DATABASE_URL), rows)
    assert.equal(existsSync(target.MUSTER_DATA), false)

    const letters = await temporary(t)
    await writeFile(join(letters, 'letters.txt'), 'dear')
    await assert.rejects(restore({ ...target, MUSTER_DATA: letters }, folder), isStartError(/letters\.txt is there/))
    assert.deepEqual(await filesOf(letters), ['letters.txt'])
    assert.equal((await rowsOf(t, target.DATABASE_URL)).games?.length, 0)
  })

  await t.test('a backup of a newer format, of a newer version or of another past is refused', async (t) => {
    const target = await emptyPlatform(t)
    const altered = async (alter: (manifest: Manifest) => object): Promise<string> => {
      const copy = join(await temporary(t), 'copy')
      await cp(folder, copy, { recursive: true })
      await replaceManifest(copy, alter)
      return copy
    }
    const format = await altered((manifest) => ({ ...manifest, format: 2 }))
    await assert.rejects(restore(target, format), isStartError(/has the format 2/))
    const newer = await altered(({ migrations, ...rest }) => ({
      ...rest,
      migrations: [...migrations, { name: '9999-more', checksum: '' }],
    }))
    await assert.rejects(
      restore(target, newer),
      isStartError(/newer version of Muster, which has the migration 9999-more/),
    )
    const other = await altered(({ migrations, ...rest }) => ({
      ...rest,
      migrations: migrations.map((item, index) => (index === 0 ? { ...item, checksum: 'f' } : item)),
    }))
    await assert.rejects(restore(target, other), isStartError(/another migration 0001/))
    assert.equal(existsSync(target.MUSTER_DATA), false)
  })

  await t.test(
    'what the platform lacks is named, left out, and keeps nothing else from being backed up and restored',
    async (t) => {
      const target = await emptyPlatform(t)
      const { object_key } = await ctx.db.selectFrom('upload_files').select('object_key').executeTakeFirstOrThrow()
      const path = ctx.objects.localPath(object_key)!
      const undo = await changeByte(path, 0.5, 1)
      const lacking = join(await temporary(t), 'lacking')
      const { is_good, lines } = await backup(env, lacking)
      await undo()
      assert.equal(is_good, false)
      assert.match(lines.join('\n'), new RegExp(`object ${object_key} was damaged already`))
      assert.deepEqual(
        (await filesOf(lacking)).filter((file) => file.includes(object_key)),
        [],
      )
      assert.equal((await verify({}, lacking)).is_good, false)
      assert.match(
        (await restore(target, lacking)).lines.join('\n'),
        new RegExp(`object ${object_key} was damaged already`),
      )
      const { report } = await verify(target, null)
      assert.deepEqual(
        report.checks.flatMap((check) => check.findings),
        [`object ${object_key} is missing`],
      )
    },
  )

  await t.test('a backup that fails leaves nothing', async (t) => {
    const parent = await temporary(t)
    const read = ctx.objects.localPath(
      (await ctx.db.selectFrom('upload_files').select('object_key').executeTakeFirstOrThrow()).object_key,
    )!
    await rename(read, `${read}.away`)
    await mkdir(read)
    try {
      // What should be a file is none: the disk is not as we know it.
      await assert.rejects(backup(env, join(parent, 'failing')), { code: 'EISDIR' })
    } finally {
      await rmdir(read)
      await rename(`${read}.away`, read)
    }
    assert.deepEqual(readdirSync(parent), [])
  })

  await t.test('while a backup is taken nothing that is stored is removed', async (t) => {
    const client = await openClient(t, env.DATABASE_URL)
    await lockObjects(client)
    const key = newObjectKey()
    await ctx.objects.put(key, [Buffer.from('x')] as unknown as AsyncIterable<Uint8Array>, 1)
    await ctx.db
      .insertInto('removed_objects')
      .values({ object_key: key, due_ts: new Date(0), upload_id: null })
      .execute()
    await sweep(ctx)
    assert.ok(await ctx.objects.stat(key))
    await client.end()
    await sweep(ctx)
    assert.equal(await ctx.objects.stat(key), null)
  })

  await t.test('a restore that was broken off keeps the platform from starting, and begins anew', async (t) => {
    const target = await emptyPlatform(t)
    await restore(target, folder)
    await writeFile(join(target.MUSTER_DATA, 'restore-unfinished'), '')
    await assert.rejects(verify(target, null), isStartError(/has not finished/))
    const fresh = { ...target, DATABASE_URL: await createDatabase(t) }
    await restore(fresh, folder)
    assert.equal((await verify(fresh, null)).is_good, true)
  })
})

test('a backup of a version before the first release is restored', async (t) => {
  const source = { MUSTER_DATA: await dataFolder(t), DATABASE_URL: await bareDatabase(t) }
  const { db, close } = connect({ url: source.DATABASE_URL, application_name: 'test' })
  t.after(close)
  await makeFormerDatabase(db)
  const [group_id, game_id, version_id, namespace_id] = Array.from({ length: 4 }, () => randomUUID())
  await administer(
    source.DATABASE_URL,
    `insert into groups values ('${group_id}', 'Group'); insert into games values ('${game_id}', '${group_id}', 'g', E'G\\t\\\\\\n');
     insert into versions values ('${version_id}', '${game_id}', '1', '{}');
     insert into namespaces (namespace_id, game_id, name_id, display_name, version_id)
       values ('${namespace_id}', '${game_id}', 'prod', 'Prod', '${version_id}')`,
  )
  const folder = join(await temporary(t), 'older')
  await backup(source, folder)
  const target = { MUSTER_DATA: join(await temporary(t), 'data'), DATABASE_URL: await bareDatabase(t) }
  const { lines } = await restore(target, folder)
  const later_count = MIGRATIONS.length - 1
  assert.equal(/of an earlier version: (\d+) migrations? ran/.exec(lines.join('\n'))?.[1] ?? '0', String(later_count))
  const namespaces = await query(t, target.DATABASE_URL, 'select namespace_id, version_id from namespaces')
  assert.deepEqual(namespaces, [{ namespace_id, version_id }])
  assert.deepEqual(await query(t, target.DATABASE_URL, 'select display_name from games'), [{ display_name: 'G\t\\\n' }])
  const { is_good, lines: found } = await verify(target, null)
  assert.equal(is_good, true, found.join('\n'))
})
