// Each thing that can be wrong with a platform is done to one, and `muster verify` names it.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { verify } from '../../src/backup/command.ts'
import type { Change } from '../../src/journal/changes.ts'
import { encodePage } from '../../src/journal/pages.ts'
import { administer } from '../run/database-server.ts'
import { startPlatform } from '../support/platform.ts'
import { changeByte, openClient, seatPlayers } from './steps.ts'

const STRANGER = '00000000-0000-0000-0000-000000000000'

test('verify names what is wrong, and nothing else', async (t) => {
  const platform = await startPlatform(t)
  const { ctx, data_dir } = platform
  const url = ctx.config.database_url!
  const env = { MUSTER_DATA: data_dir, DATABASE_URL: url }
  const game = await platform.game()
  const lobby_id = await seatPlayers(platform, game, 5)
  const player_id = randomUUID()
  // The matchmaker would mend some of it.
  await platform.close()
  const sound = await verify(env, null)
  assert.equal(sound.is_good, true, sound.lines.join('\n'))
  assert.match(sound.lines.join('\n'), /5 seats in 1 lobby/)

  const expectFinding = async (expected: RegExp): Promise<void> => {
    const { report, is_good, lines } = await verify(env, null)
    const findings = report.checks.flatMap((check) => check.findings)
    assert.equal(is_good, false)
    assert.ok(
      findings.some((finding) => expected.test(finding)),
      `${expected}: ${findings.join('; ')}`,
    )
    assert.match(lines.join('\n'), /WRONG/)
  }
  const expectSound = async (): Promise<void> => {
    const { is_good, lines } = await verify(env, null)
    assert.equal(is_good, true, lines.join('\n'))
  }

  const rows: [expected: RegExp, damage: string, undo: string][] = [
    [
      /^lobby \S+ says that it has 4 players, and has 5$/,
      'update lobbies set player_count = 4',
      'update lobbies set player_count = 5',
    ],
    [
      /^lobby \S+ has 5 players, and holds 4$/,
      'update lobbies set max_players_normal = 4, max_players_direct = 4, max_players_party = 4',
      'update lobbies set max_players_normal = 32, max_players_direct = 32, max_players_party = 32',
    ],
    [
      /^player \S+ left as expired, and had connected$/,
      "update players set connect_ts = create_ts, remove_ts = create_ts, remove_reason = 'expired'; update lobbies set player_count = 0",
      'update players set connect_ts = null, remove_ts = null, remove_reason = null; update lobbies set player_count = 5',
    ],
    [
      /^player \S+ connected or left before he came$/,
      "update players set connect_ts = create_ts - interval '1 second'",
      'update players set connect_ts = null',
    ],
    [
      /^player \S+ has a seat in lobby \S+, which has stopped$/,
      'update lobbies set stop_ts = now()',
      'update lobbies set stop_ts = null',
    ],
    [
      /^the journal of shard \d+ has \d+ rows from 1 to \d+$/,
      `insert into journal (shard, seq, writer, payload)
        select shard, max(seq) + 2, '${STRANGER}', (array_agg(payload order by seq))[1] from journal group by shard`,
      `delete from journal where writer = '${STRANGER}'`,
    ],
    [
      /^the tables of shard \d+ reflect row \d+, and its journal has the rows/,
      'update shards set projected_seq = projected_seq + 1000',
      'update shards set projected_seq = projected_seq - 1000',
    ],
    [
      /^version \S+ names build \S+, which is not complete$/,
      'update uploads set complete_ts = null',
      'update uploads set complete_ts = create_ts',
    ],
    [
      /^version \S+ names site \S+, which is not there$/,
      `update versions set config = config || '{"cdn":{"site_id":"${STRANGER}"}}' where version_id = '${game.version_id}'`,
      `update versions set config = config - 'cdn'`,
    ],
    [
      /^private_key of certificates play\.example does not open: .*sealed with a key that seals\.json does not contain/,
      `insert into certificates (host, wish_ts, next_ts, private_key)
        values ('play.example', now(), now(), 's1.0123456789ab.${'A'.repeat(60)}')`,
      'delete from certificates',
    ],
    [
      /^It was made by a newer version of Muster/,
      "insert into migrations values ('9999-more', '')",
      "delete from migrations where name = '9999-more'",
    ],
  ]
  for (const [expected, damage, undo] of rows) {
    await t.test(`rows: ${expected.source}`, async () => {
      await administer(url, damage)
      await expectFinding(expected)
      await administer(url, undo)
      await expectSound()
    })
  }

  const seat: Change = {
    kind: 'player_reserved',
    player: {
      player_id,
      lobby_id,
      client: '10.0.0.1',
      create_ms: 1,
      deadline_ms: 2,
      seat_key: null,
      identity_id: null,
      leader_player_id: null,
    },
  }
  const connected: Change = { kind: 'player_connected', player_id, ms: 1, deadline_ms: 2, connect_key: null }
  const removed: Change = { kind: 'player_removed', player_id, ms: 1, reason: 'disconnected', disconnect_key: null }
  const stopped: Change = { kind: 'lobby_stopped', lobby_id, ms: 1, reason: 'idle' }
  const many_seats = Array.from(
    { length: 28 },
    (): Change => ({ ...seat, player: { ...seat.player, player_id: randomUUID() } }),
  )
  const journals: [expected: RegExp, changes: Change[]][] = [
    [/gets player 33 of 32$/, many_seats],
    [/gets a second seat$/, [seat, seat]],
    [/connects twice$/, [seat, connected, connected]],
    [/connects and has no seat$/, [seat, removed, connected]],
    [/leaves and has no seat$/, [seat, removed, removed]],
    [/gets a seat in lobby \S+, which does not live$/, [stopped, seat]],
    [/stops and does not live$/, [stopped, stopped]],
  ]
  const client = await openClient(t, url)
  const append = (changes: Change[]): Promise<unknown> =>
    client.query(
      `insert into journal (shard, seq, writer, payload) select shard, max(seq) + 1, $1, $2 from journal
        where shard = (select shard from lobbies where lobby_id = $3) group by shard`,
      [STRANGER, encodePage({ format: 1, ms: 1, entries: [{ namespace_id: game.namespace_id, changes }] }), lobby_id],
    )
  const forget = (): Promise<unknown> => client.query('delete from journal where writer = $1', [STRANGER])
  for (const [expected, changes] of journals) {
    await t.test(`journal: ${expected.source}`, async () => {
      await append(changes)
      await expectFinding(new RegExp(`^row \\d+ of the journal of shard \\d+: .*${expected.source}`))
      await forget()
    })
  }
  await t.test('a journal that goes on legally is no fault, and a limit that was lowered is a remark', async () => {
    await append([seat, connected, removed, stopped])
    await expectSound()
    await forget()
    await administer(url, 'update namespaces set max_players_per_client = 2')
    const { is_good, lines } = await verify(env, null)
    assert.equal(is_good, true)
    assert.match(lines.join('\n'), /has a client with 5 players of 2; unless its limits were lowered/)
  })

  await t.test('stored files and keys', async () => {
    const { object_key } = (await client.query<{ object_key: string }>('select object_key from upload_files')).rows[0]!
    const path = ctx.objects.localPath(object_key)!
    const undo = await changeByte(path, 0.5, 1)
    await expectFinding(new RegExp(`^object ${object_key} has other bytes than its upload had$`))
    await undo()
    await rename(path, `${path}.away`)
    await expectFinding(new RegExp(`^object ${object_key} is missing$`))
    await rename(`${path}.away`, path)
    await expectSound()
    const account = ['https://acme.example/', ctx.seals.seal('acme account https://acme.example/', 'key', ctx.now())]
    await client.query('insert into acme_accounts values ($1, $2)', account)
    await expectSound()
    const seals = join(data_dir, 'keys', 'seals.json')
    await rename(seals, `${seals}.away`)
    await expectFinding(/^private_key of acme_accounts \S+ does not open: keys\/seals\.json is missing$/)
    await rename(`${seals}.away`, seals)
    await expectSound()
    const ring = join(data_dir, 'keys', 'ring.json')
    await changeByte(ring, 0, 1)
    await expectFinding(/is not a key ring/)
    await rm(ring)
    await assert.rejects(verify(env, null), /There is no platform in/)
  })
})
