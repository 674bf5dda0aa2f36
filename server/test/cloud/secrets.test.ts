// Secrets of a game: what its lobbies have in their environment, and who can never read it again.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  createCloudToken,
  deleteGameNamespace,
  getLobbyLogs,
  listGameSecrets,
  listGroupAuditEvents,
  removeGameSecret,
  SECRET_BYTES_MAX,
  SECRETS_BYTES_MAX,
  SECRETS_MAX,
  setGameSecret,
} from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { sql } from 'kysely'
import { sweep } from '../../src/cloud/sweep/sweep.ts'
import { rotateSeals, SPREAD_MS } from '../../src/tokens/ring.ts'
import { LONG_MS } from '../http/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { dump, filesIn } from './planted.ts'
import { detailsOf, newGame, refused } from './steps.ts'

/** Sends its environment to everyone who connects: a test reads it there, and the log stays free of it. */
const SERVER = `
const http = process.getBuiltinModule('node:http')
const { PLATFORM_API_URL, PLATFORM_TOKEN, PORT_GAME } = process.env
http.createServer((_, answer) => answer.end(JSON.stringify(process.env))).listen(Number(PORT_GAME), '127.0.0.1', () => {
  const headers = { authorization: 'Bearer ' + PLATFORM_TOKEN }
  http.request(PLATFORM_API_URL + '/matchmaker/lobbies/ready', { method: 'POST', headers }).end()
})
process.on('SIGTERM', () => process.exit(0))
`
const GAME_VALUE = `planted-game-value with 'quotes', $HOME, \${PORT} and é`
const NAMESPACE_VALUE = 'planted-namespace-value\nof two lines'
const NEXT_VALUE = 'planted-next-value'
const FORMS = [GAME_VALUE, NAMESPACE_VALUE, NEXT_VALUE].flatMap((value) => {
  const begin = value.slice(0, 'planted-game-value'.length)
  return [begin, Buffer.from(begin).toString('hex'), Buffer.from(begin).toString('base64').slice(0, -4)]
})

let platform: Platform
function set(game_id: string, name: string, value: string, namespace_id?: string) {
  const body = { value, ...(namespace_id === undefined ? {} : { namespace_id }) }
  return platform.client.call(setGameSecret, { params: { game_id, name }, body })
}

async function namesOf(game_id: string): Promise<string[]> {
  const { secrets } = await platform.client.call(listGameSecrets, { params: { game_id } })
  return secrets.map(({ name, namespace_id }) => `${name} ${namespace_id === undefined ? 'all' : 'one'}`)
}

/** The environment of the server of a new lobby. */
async function environmentOf(game: TestGame): Promise<Record<string, string> & { lobby_id: string }> {
  const { lobby } = await game.find()
  const { ports } = await platform.ctx.db
    .selectFrom('lobby_runs')
    .select('ports')
    .where('lobby_id', '=', lobby.lobby_id)
    .executeTakeFirstOrThrow()
  const { hostname, port } = ports.game!
  const env = (await (await fetch(`http://${hostname}:${port}/`)).json()) as Record<string, string>
  return { ...env, lobby_id: lobby.lobby_id }
}

function commandLines(): string {
  const lines = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => join('/proc', pid, 'cmdline'))
    .map((file) => (existsSync(file) ? readFileSync(file, 'latin1') : ''))
  return lines.join('\n')
}

function gameWithServer(): Promise<TestGame> {
  const game_modes = { default: { idle_grace_ms: LONG_MS, max_players: 1 } }
  const env = { SHARED_KEY: 'of the version config', OWN: 'of the version config' }
  return platform.game({ files: { 'server.mjs': SERVER }, matchmaker: { game_modes }, docker: { env } })
}

test('secrets of a game', async (t) => {
  platform = await startPlatform(t, { roles: 'api,matchmaker,runner', has_sandboxes: true })

  await t.test(
    'a lobby has the secrets of its game and its namespace, the next lobby has a new value, and nothing else has any',
    async () => {
      const game = await gameWithServer()
      const { game_id, namespace_id, group_id } = game
      const before_any = await environmentOf(game)
      assert.equal(before_any.SHARED_KEY, 'of the version config')

      await set(game_id, 'SHARED_KEY', GAME_VALUE)
      await set(game_id, 'GAME_KEY', GAME_VALUE)
      await set(game_id, 'GAME_KEY', NAMESPACE_VALUE, namespace_id)
      const first = await environmentOf(game)
      assert.deepEqual(
        [first.SHARED_KEY, first.GAME_KEY, first.OWN],
        [GAME_VALUE, NAMESPACE_VALUE, 'of the version config'],
      )

      await set(game_id, 'GAME_KEY', NEXT_VALUE, namespace_id)
      assert.equal((await environmentOf(game)).GAME_KEY, NEXT_VALUE)
      await platform.client.call(removeGameSecret, {
        params: { game_id, name: 'GAME_KEY' },
        query: { namespace_id },
      })
      const last = await environmentOf(game)
      assert.equal(last.GAME_KEY, GAME_VALUE)
      assert.deepEqual(await namesOf(game_id), ['GAME_KEY all', 'SHARED_KEY all'])

      const said = await Promise.all([
        platform.client.call(listGameSecrets, { params: { game_id } }),
        platform.client.call(listGroupAuditEvents, { params: { group_id } }),
        platform.client.call(getLobbyLogs, {
          params: { game_id, lobby_id: last.lobby_id },
          query: { stream: 'std_out' as const },
        }),
      ])
      const places = {
        responses: JSON.stringify(said),
        rows: await dump(platform),
        files: await filesIn(platform.data_dir),
        command_lines: commandLines(),
      }
      assert.ok(places.command_lines.includes('server.mjs') && places.rows.includes('GAME_KEY'))
      assert.match(places.responses, /"operation":"games\.secrets\.setGameSecret"/)
      assert.match(places.responses, /"changes":\[\{"member":"GAME_KEY","is_secret":true\}\]/)
      for (const [place, text] of Object.entries(places)) {
        for (const form of FORMS) assert.ok(!text.includes(form), `${form} in ${place}`)
      }
    },
  )

  await t.test('a secret of another game or another namespace is in no lobby', async () => {
    const game = await gameWithServer()
    const other = await newGame(platform)
    await set(other.game_id, 'OTHER_GAME', 'x')
    const { namespace_id } = await platform.ctx.db
      .selectFrom('namespaces')
      .select('namespace_id')
      .where('game_id', '=', game.game_id)
      .where('namespace_id', '<>', game.namespace_id)
      .executeTakeFirstOrThrow()
    await set(game.game_id, 'OTHER_NAMESPACE', 'x', namespace_id)
    await refused('NAMESPACE_NOT_FOUND', set(game.game_id, 'A', 'x', other.prod_id))
    const env = await environmentOf(game)
    assert.deepEqual([env.OTHER_GAME, env.OTHER_NAMESPACE], [undefined, undefined])
    await platform.client.call(deleteGameNamespace, { params: { game_id: game.game_id, namespace_id } })
    assert.deepEqual(await namesOf(game.game_id), [])
  })

  await t.test('the list names who set a value last', async () => {
    const { game_id } = await newGame(platform)
    const setBy = async () => {
      const { secrets } = await platform.client.call(listGameSecrets, { params: { game_id } })
      return secrets[0]?.set_by
    }
    await set(game_id, 'KEY', 'x')
    assert.deepEqual(await setBy(), { kind: 'admin', name: 'test' })
    const { token } = await platform.client.call(createCloudToken, { params: { game_id } })
    const cloud = createClient({ url: platform.api_url, token })
    await cloud.call(setGameSecret, { params: { game_id, name: 'KEY' }, body: { value: 'y' } })
    assert.deepEqual(await setBy(), { kind: 'cloud' })
  })

  await t.test(
    'a secret that cannot be stored is refused by its name or its value, and the refusal does not repeat the value',
    async () => {
      const { game_id } = await newGame(platform)
      const reserved = ['PORT', 'HOST', 'PLATFORM_TOKEN', 'PORT_GAME', 'PUBLIC_URL_GAME', 'PATH', 'HOME', 'TMPDIR']
      for (const name of reserved) {
        const error = await refused('VALIDATION_ERROR', set(game_id, name, GAME_VALUE))
        assert.deepEqual(detailsOf(error), [{ path: ['name'], reason: 'reserved' }], name)
        assert.match(error.message + JSON.stringify(error.metadata), new RegExp(`GAME_${name}`))
      }
      for (const name of ['a-b', '1A', 'A B', 'a=b', 'Ä', `A${'x'.repeat(64)}`]) {
        await refused('VALIDATION_ERROR', set(game_id, name, GAME_VALUE))
      }
      const wrong = [
        '',
        `${GAME_VALUE}\0`,
        'planted-game-value'.padEnd(SECRET_BYTES_MAX + 1),
        'é'.repeat(SECRET_BYTES_MAX),
      ]
      for (const value of wrong) {
        const error = await refused('VALIDATION_ERROR', set(game_id, 'KEY', value))
        assert.ok(!JSON.stringify([error.message, error.metadata]).includes('planted'), error.message)
        assert.deepEqual(detailsOf(error)[0]!.path, ['value'])
      }
      assert.deepEqual(await namesOf(game_id), [])
      await refused(
        'SECRET_NOT_FOUND',
        platform.client.call(removeGameSecret, { params: { game_id, name: 'KEY' }, query: {} }),
      )
    },
  )

  await t.test(
    'a game and a namespace each have at most so many secrets and bytes, and a value can be replaced at the maximum',
    async () => {
      const { game_id, prod_id } = await newGame(platform)
      for (let index = 0; index < SECRETS_MAX; index++) await set(game_id, `KEY_${index}`, 'x')
      const error = await refused('VALIDATION_ERROR', set(game_id, 'ONE_MORE', 'x'))
      assert.deepEqual(detailsOf(error), [{ path: ['name'], reason: 'too_many' }])
      await set(game_id, 'KEY_0', 'y')
      const largest = 'x'.repeat(SECRET_BYTES_MAX)
      for (let index = 0; index < SECRETS_BYTES_MAX / SECRET_BYTES_MAX; index++)
        await set(game_id, `K${index}`, largest, prod_id)
      const large = await refused('VALIDATION_ERROR', set(game_id, 'ONE_MORE', 'x', prod_id))
      assert.deepEqual(detailsOf(large), [{ path: ['value'], reason: 'too_long' }])
      await set(game_id, 'K0', largest, prod_id)
    },
  )

  await t.test(
    'after a rotation of keys a lobby has its secrets, and a secret without its key is named in the log of the lobby',
    async () => {
      const { ctx } = platform
      const game = await gameWithServer()
      await set(game.game_id, 'KEPT', GAME_VALUE)
      const sealOf = () =>
        ctx.db.selectFrom('game_secrets').select('value').where('game_id', '=', game.game_id).executeTakeFirstOrThrow()
      const { value } = await sealOf()
      await rotateSeals(join(platform.data_dir, 'keys'), { now_ms: ctx.now() })
      await ctx.seals.refresh()
      platform.advance(SPREAD_MS)
      await sweep(ctx)
      assert.notEqual((await sealOf()).value.split('.')[1], value.split('.')[1])
      assert.equal((await environmentOf(game)).KEPT, GAME_VALUE)

      await sql`update game_secrets set value = overlay(value placing 'x1' from 4 for 2) where game_id = ${game.game_id}`.execute(
        ctx.db,
      )
      const { metadata } = await refused('MATCHMAKER_LOBBY_STOPPED', game.find())
      const { lines } = await platform.client.call(getLobbyLogs, {
        params: { game_id: game.game_id, lobby_id: String(metadata.lobby_id) },
        query: { stream: 'std_err', format: 'text' },
      })
      assert.match(lines.join('\n'), /secret KEPT .*muster secrets set KEPT/)
    },
  )
})
