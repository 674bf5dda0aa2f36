// One game alone: exported as a file and imported into another platform, and restored from a backup of the whole platform.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  createGameNamespaceTokenPublic,
  deleteGame,
  exportGame,
  getGameById,
  listAuditEvents,
  putKvEntry,
  putSchedule,
  setGameSecret,
} from '@musterhost/contract'
import { backup, verify } from '../../src/backup/command.ts'
import { filesOf } from '../../src/backup/files.ts'
import { importGameFile, restoreGame } from '../../src/backup/game/command.ts'
import { unpackGame } from '../../src/backup/game/unpack-game.ts'
import { gameFileUrl } from '../../src/cloud/export-urls.ts'
import { openSecrets } from '../../src/tokens/lobby-credentials.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'
import { runCommand } from './commands.ts'
import { changeByte, isStartError, query, rowsOf, seatPlayers, temporary } from './steps.ts'

const NONE = { game: null, group_id: null, name_id: null }
/** Places at which a file is cut. */
const CUTS = 48
const PASSWORD = 'a password that only lobbies read'

type Scene = { platform: Platform; game: TestGame; beside: TestGame; file: string }

const placeOf = ({ data_dir, ctx }: Platform) => ({ MUSTER_DATA: data_dir, DATABASE_URL: ctx.config.database_url! })

/** As a developer does. */
async function exportTo({ edge_url, token }: Platform, game_id: string, file: string): Promise<void> {
  const env = { MUSTER_URL: edge_url, MUSTER_TOKEN: token }
  const { code, output } = await runCommand(['games', 'export', game_id, file], env)
  assert.equal(code, 0, output)
  assert.match(output, /game\.tar has the game game \(\d/)
  const again = await runCommand(['games', 'export', game_id, file], env)
  assert.match(again.output, /is there already\. Name a new file/)
  assert.notEqual(again.code, 0)
}

/** Two games, each with a build, players, analytics, key-value data, a secret and a schedule. */
async function prepare(t: TestContext): Promise<Scene> {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge' })
  const games: TestGame[] = []
  for (const [index, name] of ['first', 'second'].entries()) {
    const game = await platform.game()
    games.push(game)
    const { game_id, namespace_id } = game
    await seatPlayers(platform, game, index + 2)
    const key = `scores/${name}`
    await platform.client.call(putKvEntry, { body: { namespace_id, key, value: { best: index } } })
    const params = { game_id, name: `PASSWORD_${index}` }
    await platform.client.call(setGameSecret, { params, body: { value: PASSWORD } })
  }
  const [game, beside] = games as [TestGame, TestGame]
  const { game_id, namespace_id } = game
  await platform.client.call(putSchedule, {
    params: { game_id },
    body: {
      namespace_id,
      name: 'nightly',
      kind: 'announce',
      cron: '0 3 * * *',
      time_zone: 'UTC',
      text: 'Good night.',
    },
  })
  await until('analytics of the finds', async () => {
    const { rows } = await platform.ctx.pool.query(
      `select (select coalesce(sum(new_player_count), 0)::integer from analytics_roll_ups where width = 86400
        and line_id in (select line_id from analytics_lines where region is null and game_mode is null)) as count`,
    )
    return rows[0].count === 5
  })
  return { platform, game, beside, file: join(await temporary(t), 'game.tar') }
}

/** What people see of the game, and analytics by what they mean. */
async function contentsOf(t: TestContext, platform: Platform, game_id: string): Promise<Record<string, unknown[]>> {
  const url = platform.ctx.config.database_url!
  const of_game = `namespace_id in (select namespace_id from namespaces where game_id = '${game_id}')`
  const texts: Record<string, string> = {
    namespaces: `select * from namespaces where game_id = '${game_id}' order by 1`,
    versions: `select * from versions where game_id = '${game_id}' order by 1`,
    deploys: `select namespace_id, version_id, deploy_ts, message, row_number() over (order by deploy_number) from namespace_versions where ${of_game} order by deploy_number`,
    builds: `select * from builds where game_id = '${game_id}' order by 1`,
    files: `select path, upload_files.content_length, sha256 from upload_files join uploads using (upload_id) where game_id = '${game_id}' order by 1, 2`,
    kv: `select * from kv_entries where ${of_game} order by 1, 2`,
    usage: `select * from kv_usage where ${of_game} order by 1`,
    schedules: `select schedule_id, namespace_id, name, kind, cron, settings from schedules where game_id = '${game_id}'`,
    roll_ups: `select region, game_mode, width, ts, new_player_count, new_lobby_count from analytics_roll_ups join analytics_lines using (line_id) where ${of_game} order by 1, 2, 3, 4`,
    events: `select region, game_mode, kind, ts from analytics_events join analytics_series using (series_id) where ${of_game} order by 1, 2, 3, 4`,
  }
  const contents: Record<string, unknown[]> = {}
  for (const [name, text] of Object.entries(texts)) contents[name] = await query(t, url, text)
  return contents
}

/** Whether a player gets a seat in a lobby of the imported game, whose build is there. */
async function play(t: TestContext, platform: Platform, { game_id, namespace_id }: TestGame): Promise<void> {
  platform.playServers()
  const params = { game_id, namespace_id }
  const { token } = await platform.client.call(createGameNamespaceTokenPublic, { params })
  const { game } = await platform.client.call(getGameById, { params: { game_id } })
  const imported = { ...(await platform.game()), player: platform.as(token), namespace_id }
  const seat = await until('the matchmaker to serve the namespace', () => imported.find().catch(() => null))
  assert.ok(seat.lobby.lobby_id)
  assert.equal(game.namespaces.length, 2)
  const { report } = await verify(placeOf(platform), null)
  assert.ok(report.is_sound, JSON.stringify(report))
  const files = await query(
    t,
    platform.ctx.config.database_url!,
    `select object_key, sha256 from upload_files join uploads using (upload_id) where game_id = '${game_id}'`,
  )
  assert.ok(files.length > 0)
  for (const { object_key, sha256 } of files)
    assert.equal((await platform.ctx.objects.stat(String(object_key)))?.sha256, sha256)
}

test('one game alone', async (t) => {
  const scene = await prepare(t)
  await exportTo(scene.platform, scene.game.game_id, scene.file)

  await t.test('a game file has one game, and no secret of it', (t) => lookInto(t, scene))
  await t.test('another platform imports it: players get seats, and all is there as it was', (t) => move(t, scene))
  await t.test('a damaged, cut or foreign file is refused, and nothing is changed', (t) => refuseFiles(t, scene))
  await t.test('one game of a backup comes back where it was deleted, with its secrets', (t) => bringBack(t, scene))
  await t.test('an export of a game that was deleted, and an address that was altered, are refused', () =>
    refuse(scene),
  )
})

async function lookInto(t: TestContext, { file, game, beside }: Scene): Promise<void> {
  const folder = await temporary(t)
  await unpackGame(file, folder)
  const list = await filesOf(folder)
  const manifest = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8'))
  assert.equal(manifest.game.game_id, game.game_id)
  assert.deepEqual(manifest.game.left_out.secrets, ['PASSWORD_0'])
  assert.ok(manifest.object_count > 0)
  assert.ok(
    !list.some((path) =>
      /^keys|admin-token|tables\/(game_secrets|tokens|audit_events|journal|users|players)\.copy/.test(path),
    ),
    list.join(' '),
  )
  for (const path of list.filter((one) => one.startsWith('tables/'))) {
    const text = await readFile(join(folder, path), 'utf8')
    for (const strange of [beside.game_id, beside.namespace_id, PASSWORD]) assert.ok(!text.includes(strange), path)
  }
}

async function move(t: TestContext, { platform, game, file }: Scene): Promise<void> {
  const other = await startPlatform(t)
  const place = placeOf(other)
  const taken = await other.game()
  const name_id = (await query(t, place.DATABASE_URL, 'select name_id from games'))[0]?.name_id
  assert.equal(name_id, taken.name_id)
  assert.equal(game.name_id, taken.name_id, 'both platforms gave their first game this name')
  await assert.rejects(importGameFile(place, file, NONE), isStartError(/Another game has the name .* --name/))
  const strange = { ...NONE, name_id: 'moved', group_id: randomUUID() }
  await assert.rejects(importGameFile(place, file, strange), isStartError(/There is no group/))

  const { code, output } = await runCommand(['import-game', file, '--name', 'moved'], place)
  assert.equal(code, 0, output)
  assert.match(output, /The game moved is here as of/)
  assert.match(output, /Set its secrets again .*: PASSWORD_0/)
  assert.deepEqual(await contentsOf(t, other, game.game_id), await contentsOf(t, platform, game.game_id))
  await play(t, other, game)
  await assert.rejects(importGameFile(place, file, { ...NONE, name_id: 'again' }), isStartError(/has the game already/))
  const { events } = await other.client.call(listAuditEvents, { query: { group_id: game.group_id } })
  assert.ok(events.some(({ operation }) => operation === 'admin.restoreGame'))
  const lines_now = await query(t, place.DATABASE_URL, 'select distinct player_count from analytics_lines')
  assert.ok(
    lines_now.every(({ player_count }) => Number(player_count) <= 1),
    'players of the other platform are not here',
  )
}

async function refuseFiles(t: TestContext, { file }: Scene): Promise<void> {
  const other = await startPlatform(t, { roles: 'api' })
  const place = placeOf(other)
  const before = await rowsOf(t, place.DATABASE_URL)
  const bytes = await readFile(file)
  const undo = await changeByte(file, 0.5, 1)
  await assert.rejects(importGameFile(place, file, NONE), isStartError(/damaged|not a game file/))
  await undo()
  const cut = `${file}.cut`
  await writeFile(cut, bytes.subarray(0, Math.floor(bytes.length * 0.7)))
  await assert.rejects(importGameFile(place, cut, NONE), isStartError(/not a game file|damaged/))
  for (let part = 0; part < CUTS; part++) {
    await writeFile(cut, bytes.subarray(0, Math.floor((bytes.length * part) / CUTS)))
    const folder = await temporary(t)
    // A file that ends between two entries is whole as an archive, and lacks files of the backup.
    await unpackGame(cut, folder).catch((error: unknown) => assert.ok(isStartError(/is not a game file/)(error)))
  }
  const foreign = `${file}.foreign`
  await writeFile(foreign, 'not an archive at all')
  await assert.rejects(importGameFile(place, foreign, NONE), isStartError(/not a game file/))
  await assert.rejects(importGameFile(place, `${file}.none`, NONE), isStartError(/There is no file/))
  assert.deepEqual(await rowsOf(t, place.DATABASE_URL), before)
}

async function bringBack(t: TestContext, { platform, game, beside }: Scene): Promise<void> {
  const place = placeOf(platform)
  const folder = join(await temporary(t), 'whole')
  await backup(place, folder)
  const before = await contentsOf(t, platform, game.game_id)
  const choice = { ...NONE, game: game.name_id }
  await assert.rejects(restoreGame(place, folder, choice), isStartError(/has the game already/))
  await assert.rejects(restoreGame(place, folder, NONE), isStartError(/has several games/))
  await assert.rejects(restoreGame(place, folder, { ...NONE, game: 'unknown' }), isStartError(/has no game unknown/))

  const other = await startPlatform(t)
  const target = placeOf(other)
  await restoreGame(target, folder, choice)
  assert.deepEqual(await contentsOf(t, other, game.game_id), before)
  const games = await query(t, target.DATABASE_URL, 'select game_id from games')
  assert.ok(!games.some(({ game_id }) => game_id === beside.game_id))
  await deleteFrom(other, game)
  const { lines } = await restoreGame(target, folder, choice)
  assert.match(lines.join('\n'), /Its group is Developers/)
  assert.deepEqual(await contentsOf(t, other, game.game_id), before)
  const secrets = await openSecrets(other.ctx.pool, other.ctx.seals, game)
  assert.equal(secrets.PASSWORD_0, PASSWORD, 'the secret is sealed with a key of the other platform')
  await play(t, other, game)
}

/** Nothing is deployed of a game that is deleted. */
async function deleteFrom(platform: Platform, { game_id }: TestGame): Promise<void> {
  const params = { game_id }
  const { game } = await platform.client.call(getGameById, { params })
  const empty = game.versions.find(({ display_name }) => display_name === '0.0.0')!
  for (const { namespace_id } of game.namespaces) await platform.putVersion({ game_id, namespace_id }, empty.version_id)
  await platform.client.call(deleteGame, { params })
}

async function refuse({ platform, game }: Scene): Promise<void> {
  const strange = await failureOf(platform.client.call(exportGame, { params: { game_id: randomUUID() } }))
  assert.equal(strange.code, 'GAME_NOT_FOUND')
  const address = new URL(gameFileUrl(platform.ctx, game.game_id))
  const altered = address.pathname.replace(game.game_id, randomUUID()) + address.search
  assert.equal((await fetch(new URL(altered, platform.api_url))).status, 403)
}
