// The proof of a backup: `muster start` under load is backed up, restored into an empty folder, verified and started. The
// seats are those of one moment of the journal; builds, sites, keys and tokens are the same.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import {
  createGameNamespaceTokenPublic,
  findLobby,
  getGameById,
  listLobbies,
  updateGameNamespaceMatchmakerConfig,
} from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import pino from 'pino'
import WebSocket from 'ws'
import { embeddedUrl, startEmbedded } from '../../src/database/embedded/embedded.ts'
import { openKeys } from '../../src/tokens/keys.ts'
import { runCommand, startCommand } from '../backup/commands.ts'
import { query, rowsOf, temporary } from '../backup/steps.ts'
import { freeSettings, processesOf, startMuster, temporaryFolder } from '../supervisor/started.ts'
import { placeCluster } from '../support/made-cluster.ts'
import { until } from '../support/until.ts'
import { type Arena, startArena } from './arena.ts'

const PLAYERS = 6
/** Seats that must have been acknowledged before, and after, the backup. */
const SEATS_MIN = 20
const UNLIMITED = {
  MUSTER_RATE_LIMIT_SEATS: '0',
  MUSTER_RATE_LIMIT_MATCHMAKER: '0',
  MUSTER_CAPACITY_CORES: '0',
  MUSTER_CAPACITY_MEMORY_MB: '0',
}
const FIND = { body: { game_modes: ['default'] } }

test('a backup under load is, restored, the same seats, builds and sites', async (t) => {
  const arena = await startArena(t, { deploy: ['--max-players', '32'], env: UNLIMITED })
  const url = `http://localhost:${arena.settings.MUSTER_EDGE_HTTP_PORT}`
  const token = readFileSync(join(arena.folder, 'admin-token'), 'utf8').trim()
  const admin = createClient({ url, token })
  const { namespace_id, game_id } = await raiseLimits(arena, admin)
  const { token: public_token } = await admin.call(createGameNamespaceTokenPublic, {
    params: { game_id, namespace_id },
  })
  const load = await startLoad(arena)
  await until('seats', () => load.acknowledged.length >= SEATS_MIN)

  const backup = join(await temporary(t), 'backup')
  const before = [...load.acknowledged]
  const taken = await runCommand(['backup', backup], arena.settings)
  assert.equal(taken.code, 0, taken.output)
  const after = load.acknowledged.length
  await until('more seats', () => load.acknowledged.length >= after + SEATS_MIN)
  const running = await runCommand(['verify'], arena.settings)
  assert.equal(running.code, 0, running.output)
  assert.match(running.output, /which is running[\s\S]*Nothing is wrong/)
  await load.stop()

  const data = temporaryFolder(t)
  const settings = { ...(await freeSettings(data)), ...UNLIMITED }
  const restored = await runCommand(['restore', backup], settings)
  assert.equal(restored.code, 0, restored.output)
  const verified = await runCommand(['verify'], settings)
  assert.equal(verified.code, 0, verified.output)

  // The seats, before a matchmaker has read them.
  const source_url = await embeddedUrl(arena.folder)
  const embedded = await startEmbedded({ data_dir: data, log: pino({ level: 'silent' }) })
  try {
    const seats = await sameMoment(t, source_url, embedded.url)
    const keys = await openKeys(join(data, 'keys'))
    for (const seat of before) {
      const claims = keys.verify(seat.token, Date.now())
      assert.ok(claims.kind === 'player' && seats.has(claims.player_id), 'a seat that was acknowledged is not there')
    }
    const [theirs, ours] = [await rowsOf(t, source_url), await rowsOf(t, embedded.url)]
    for (const table of ['games', 'namespaces', 'versions', 'builds', 'sites', 'uploads', 'upload_files', 'tokens']) {
      assert.ok((ours[table]?.length ?? 0) > 0, table)
      assert.deepEqual(ours[table], theirs[table], table)
    }
  } finally {
    await embedded.stop()
  }

  const paths = (await query(t, source_url, 'select path from upload_files join sites using (upload_id)')).map((row) =>
    String(row.path),
  )
  const site = await Promise.all(
    paths.map((path) => fileOf(arena.settings.MUSTER_EDGE_HTTP_PORT!, arena.play_url, path)),
  )
  arena.started().signalGroup('SIGINT')
  await arena.started().ended

  const next = startMuster(settings)
  await next.ready
  const again = await Promise.all(paths.map((path) => fileOf(settings.MUSTER_EDGE_HTTP_PORT, arena.play_url, path)))
  assert.deepEqual(again, site)
  assert.ok(site.length > 1 && site.every((file) => file.length > 0))
  const next_url = `http://localhost:${settings.MUSTER_EDGE_HTTP_PORT}`
  const player = createClient({ url: next_url, token: public_token })
  await createClient({ url: next_url, token }).call(getGameById, { params: { game_id } })
  // Its build runs, and none of the lobbies that are lost is found any more.
  const { lobby } = await player.call(findLobby, FIND)
  assert.ok(before.every((seat) => seat.lobby_id !== lobby.lobby_id))
  const { lobbies } = await player.call(listLobbies, {})
  assert.deepEqual(
    lobbies.map(({ lobby_id, total_player_count }) => [lobby_id, total_player_count]),
    [[lobby.lobby_id, 1]],
  )
  next.signalGroup('SIGINT')
  assert.deepEqual(await next.ended, { code: 0, signal: null })
  assert.deepEqual(processesOf(data), [])
})

test('a restore that is killed leaves what does not start, and the next one begins anew', async (t) => {
  const folder = temporaryFolder(t)
  await placeCluster(folder)
  const first = await freeSettings(folder)
  const muster = startMuster(first)
  await muster.ready
  muster.signalGroup('SIGINT')
  await muster.ended
  const backup = join(await temporary(t), 'backup')
  const stopped = await runCommand(['backup', backup], first)
  assert.equal(stopped.code, 0, stopped.output)

  if (process.geteuid?.() === 0) {
    // PostgreSQL's user cannot pass through the folder above it.
    const closed = join(temporaryFolder(t), 'data')
    const refused = await runCommand(['restore', backup], await freeSettings(closed))
    assert.equal(refused.code, 1)
    assert.match(refused.output, /cannot enter/)
    assert.ok(
      readdirSync(closed).every((name) => name.includes('lock')),
      readdirSync(closed).join(' '),
    )
  }

  const data = temporaryFolder(t)
  const settings = await freeSettings(data)
  const restoring = startCommand(['restore', backup], settings)
  await until('its database', () => existsSync(join(data, 'postgres', 'postmaster.pid')))
  restoring.kill('SIGKILL')
  assert.equal((await restoring.ended).signal, 'SIGKILL')
  const refused = startMuster(settings)
  assert.deepEqual(await refused.ended, { code: 1, signal: null })
  assert.match(refused.output(), /has not finished. Run "muster restore" again/)
  const restored = await runCommand(['restore', backup], settings)
  assert.equal(restored.code, 0, restored.output)
  const verified = await runCommand(['verify', '--json'], settings)
  assert.equal(verified.code, 0, verified.output)
  assert.equal((JSON.parse(verified.output) as { is_sound: boolean }).is_sound, true)
  assert.deepEqual(processesOf(data), [], 'the database of the killed one has ended')
})

type Load = { acknowledged: { token: string; lobby_id: string }[]; stop: () => Promise<void> }

/** Players who find a seat, connect and leave again, without a pause; each fifth stays. */
async function startLoad(arena: Arena): Promise<Load> {
  const acknowledged: Load['acknowledged'] = []
  const staying: WebSocket[] = []
  let isOver = false
  const play = async (): Promise<void> => {
    while (!isOver) {
      const seat = await arena.player.call(findLobby, FIND)
      const token = seat.player.token
      acknowledged.push({ token, lobby_id: seat.lobby.lobby_id })
      const port = arena.settings.MUSTER_EDGE_HTTP_PORT
      const socket = new WebSocket(`ws://127.0.0.1:${port}/lobbies/${seat.lobby.lobby_id}/game/?token=${token}`)
      await new Promise((resolve, reject) =>
        socket.once('message', resolve).once('close', reject).once('error', reject),
      )
      if (acknowledged.length % 5 === 0) staying.push(socket)
      else socket.close()
    }
  }
  const players = Array.from({ length: PLAYERS }, play)
  return {
    acknowledged,
    async stop() {
      isOver = true
      await Promise.all(players)
      for (const socket of staying) socket.terminate()
    },
  }
}

async function raiseLimits(arena: Arena, admin: ReturnType<typeof createClient>) {
  const found = await fileOf(arena.settings.MUSTER_EDGE_HTTP_PORT!, arena.play_url, '.well-known/muster.json')
  const { game_id, namespace_id } = JSON.parse(found.toString()) as { game_id: string; namespace_id: string }
  const body = { max_players_per_client: 100_000, lobby_count_max: 1_000 }
  await admin.call(updateGameNamespaceMatchmakerConfig, { params: { game_id, namespace_id }, body })
  return { game_id, namespace_id }
}

/** A file of the site, as a browser gets it from that edge. */
async function fileOf(port: string, play_url: string, path: string): Promise<Buffer> {
  const headers = { host: new URL(play_url).host }
  const answer = await new Promise<Parameters<typeof buffer>[0] & { statusCode?: number }>((resolve, reject) =>
    request({ host: '127.0.0.1', port, path: `/${path}`, headers }, resolve)
      .once('error', reject)
      .end(),
  )
  const body = await buffer(answer)
  assert.equal(answer.statusCode, 200, path)
  return body
}

/**
 * The restored journal is what the source's was at one moment: the first rows of every shard, to the letter. The
 * tables reflect no more than that. Returns the players that the journal knows.
 */
async function sameMoment(t: TestContext, source_url: string, restored_url: string): Promise<Set<string>> {
  const journal = `select shard, seq::int, writer, ts, encode(payload, 'escape') as payload from journal order by shard, seq`
  const theirs = await query(t, source_url, journal)
  const ours = await query(t, restored_url, journal)
  assert.ok(ours.length > 0 && theirs.length > ours.length, 'nothing was written while and after it was taken')
  const last = new Map(ours.map((row) => [row.shard, Number(row.seq)]))
  assert.deepEqual(
    ours,
    theirs.filter((row) => Number(row.seq) <= (last.get(row.shard) ?? 0)),
  )
  for (const { shard, projected_seq } of await query(t, restored_url, 'select shard, projected_seq from shards'))
    assert.ok(Number(projected_seq) <= (last.get(shard) ?? 0))
  const text = ours.map((row) => String(row.payload)).join('\n')
  return new Set([...text.matchAll(/"player_id":"([0-9a-f-]{36})"/g)].map((match) => match[1]!))
}
