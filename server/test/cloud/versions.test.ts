import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { gzipSync } from 'node:zlib'
import {
  completeUpload,
  createGameBuild,
  createGameCdnSite,
  createGameVersion,
  getGameVersionById,
  reserveVersionName,
  validateGameVersion,
} from '@musterhost/contract'
import { tarOf, zipOf } from '../archives/forgery.ts'
import { startPlatform } from '../support/platform.ts'
import {
  arrives,
  buildBody,
  detailsOf,
  newBuild,
  newGame,
  newSite,
  refused,
  UNKNOWN_ID,
  withoutMessages,
} from './steps.ts'

test('versions', async (t) => {
  const env = { MUSTER_REGISTRIES: 'registry.example.com/games' }
  const platform = await startPlatform(t, { roles: 'api', env })
  const { client } = platform
  const { game_id } = await newGame(platform)
  const other = await newGame(platform)
  const image_id = await newBuild(platform, game_id)
  const site_id = await newSite(platform, game_id)
  const params = { game_id }
  const docker = { image_id, args: ['node', 'server.js'] }
  const matchmakerPath = ['matchmaker']

  const create = (display_name: string, config: unknown) =>
    client.call(createGameVersion, { params, body: { display_name, config: config as object } })
  const validate = async (display_name: string, config: unknown) =>
    withoutMessages((await client.call(validateGameVersion, { params, body: { display_name, config } })).errors)

  let names = 0
  /** Both operations must say the same. */
  async function wrong(config: unknown, expected: { path: string[]; reason: string }[]): Promise<void> {
    const name = `wrong-${names++}`
    const error = await refused('VALIDATION_ERROR', create(name, config))
    const sorted = (details: object[]) => details.map((detail) => JSON.stringify(detail)).sort()
    assert.deepEqual(sorted(detailsOf(error)), sorted(expected), JSON.stringify(config))
    assert.deepEqual(sorted(await validate(name, config)), sorted(expected), JSON.stringify(config))
  }

  await t.test('a version is read as it was written', async () => {
    const config = {
      cdn: { site_id },
      matchmaker: {
        max_players: 12,
        regions: { local: {} },
        docker: { ...docker, env: { LOG_LEVEL: 'info' }, ports: { http: { protocol: 'http' as const } } },
        game_modes: {
          default: {},
          duel: {
            max_players: 2,
            taggable: true,
            docker: { ...docker, env: { MODE: 'duel' } },
            actions: { find: { enabled: false } },
          },
        },
      },
    }
    assert.deepEqual(await validate('1.0.0', config), [])
    const { version_id } = await create('1.0.0', config)
    const { version } = await client.call(getGameVersionById, { params: { game_id, version_id } })
    assert.deepEqual(version.config, config)
    assert.equal(version.display_name, '1.0.0')
    assert.match(version.create_ts, /\.\d{3}Z$/)
  })

  await t.test('what only container images have is refused for an archive', async () => {
    const members = { entrypoint: ['node'], working_folder: '/srv', user: '1:1', stop_signal: 'SIGINT' }
    const path = ['matchmaker', 'docker']
    await wrong(
      { matchmaker: { docker: { ...docker, ...members }, game_modes: { default: {} } } },
      Object.keys(members).map((name) => ({ path: [...path, name], reason: 'needs_image' })),
    )
  })

  await t.test('an image of a registry is named by its digest, and the operator allows its registry', async () => {
    const page = readFileSync(new URL('../../../docs/images.md', import.meta.url), 'utf8')
    const [, block = ''] = /^```json\n("docker": .*?)^```$/ms.exec(page) ?? []
    const { docker: of_page } = JSON.parse(`{${block}}`) as { docker: { image: string } }
    const configOf = (image: string, members = {}) => ({
      matchmaker: { docker: { ...of_page, image, ...members }, game_modes: { default: {} } },
    })
    await create('image', configOf(of_page.image))
    const path = ['matchmaker', 'docker', 'image']
    const [name = ''] = of_page.image.split('@')
    await wrong(configOf(`${name}:latest`), [{ path, reason: 'needs_digest' }])
    await wrong(configOf(of_page.image.replace('registry.', 'foreign.')), [{ path, reason: 'not_allowed' }])
    await wrong(configOf(of_page.image, { image_id, args: ['x'] }), [{ path, reason: 'conflicts' }])
  })

  await t.test('an empty version is one', async () => {
    const { version_id } = await create('empty', {})
    const { version } = await client.call(getGameVersionById, { params: { game_id, version_id } })
    assert.deepEqual(version.config, {})
  })

  await t.test('a display name is unique in its game', async () => {
    await create('twice', {})
    const error = await refused('NAME_TAKEN', create('twice', {}))
    assert.deepEqual(detailsOf(error), [{ path: ['display_name'], reason: 'not_unique' }])
    assert.deepEqual(await validate('twice', {}), [{ path: ['display_name'], reason: 'not_unique' }])
    await client.call(createGameVersion, {
      params: { game_id: other.game_id },
      body: { display_name: 'twice', config: {} },
    })
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => create('raced', {})))
    assert.equal(outcomes.filter((outcome) => outcome.status === 'fulfilled').length, 1)
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') await refused('NAME_TAKEN', Promise.reject(outcome.reason))
    }
  })

  await t.test('a name that is reserved is given out once, and is none that a version has', async () => {
    const { game_id } = await newGame(platform)
    const call = async () => (await client.call(reserveVersionName, { params: { game_id } })).version_display_name
    assert.equal(await call(), 'v1')
    const names = await Promise.all(Array.from({ length: 10 }, call))
    assert.deepEqual(new Set(names), new Set(Array.from({ length: 10 }, (_, index) => `v${index + 2}`)))
    for (const display_name of ['v20', 'v9999999999', 'v30-beta', 'v07']) {
      await client.call(createGameVersion, { params: { game_id }, body: { display_name, config: {} } })
    }
    assert.equal(await call(), 'v21')
    await refused('GAME_NOT_FOUND', client.call(reserveVersionName, { params: { game_id: UNKNOWN_ID } }))
  })

  await t.test('a build must be of the game and complete', async () => {
    const foreign = await newBuild(platform, other.game_id)
    const body = buildBody(Buffer.alloc(4))
    const { build_id } = await client.call(createGameBuild, { params, body })
    const path = [...matchmakerPath, 'game_modes', 'default', 'docker', 'image_id']
    const withImage = (id: string) => ({
      matchmaker: { game_modes: { default: { docker: { ...docker, image_id: id } } } },
    })
    await wrong(withImage(UNKNOWN_ID), [{ path, reason: 'not_found' }])
    await wrong(withImage(foreign), [{ path, reason: 'not_found' }])
    await wrong(withImage(build_id), [{ path, reason: 'incomplete' }])
    const shared = { matchmaker: { docker: { ...docker, image_id: UNKNOWN_ID }, game_modes: { a: {}, b: {} } } }
    await wrong(shared, [{ path: [...matchmakerPath, 'docker', 'image_id'], reason: 'not_found' }])
  })

  await t.test('a site must be named, of the game and complete', async () => {
    const path = ['cdn', 'site_id']
    const foreign = await newSite(platform, other.game_id)
    const body = { display_name: 'Late', files: [{ path: 'a', content_length: 1 }] }
    const incomplete = await client.call(createGameCdnSite, { params, body })
    await wrong({ cdn: {} }, [{ path, reason: 'required' }])
    await wrong({ cdn: { site_id: UNKNOWN_ID } }, [{ path, reason: 'not_found' }])
    await wrong({ cdn: { site_id: foreign } }, [{ path, reason: 'not_found' }])
    await wrong({ cdn: { site_id: incomplete.site_id } }, [{ path, reason: 'incomplete' }])
    // Its only file is index.html.
    await wrong({ cdn: { site_id, not_found: '404.html' } }, [{ path: ['cdn', 'not_found'], reason: 'not_found' }])
    const config = { cdn: { site_id, not_found: 'index.html' as const } }
    await client.call(createGameVersion, { params, body: { display_name: 'Pages', config } })
  })

  await t.test('every game mode has something to run', async () => {
    const mode = [...matchmakerPath, 'game_modes', 'default', 'docker']
    await wrong({ matchmaker: { game_modes: {} } }, [{ path: [...matchmakerPath, 'game_modes'], reason: 'too_few' }])
    await wrong({ matchmaker: { game_modes: { default: {} } } }, [{ path: [...mode, 'image_id'], reason: 'required' }])
    await wrong({ matchmaker: { docker: {}, game_modes: { default: {}, more: {} } } }, [
      { path: [...matchmakerPath, 'docker', 'image_id'], reason: 'required' },
    ])
    // The block of a mode inherits what it does not name.
    const inherited = { matchmaker: { docker, game_modes: { default: { docker: { env: {} } } } } }
    await wrong({ ...inherited, cdn: { site_id: UNKNOWN_ID } }, [{ path: ['cdn', 'site_id'], reason: 'not_found' }])
    await wrong({ matchmaker: { game_modes: { default: { docker: { image_id } } } } }, [
      { path: [...mode, 'args'], reason: 'too_few' },
    ])
    await wrong({ matchmaker: { game_modes: { default: { docker: { image_id, args: [] } } } } }, [
      { path: [...mode, 'args'], reason: 'too_few' },
    ])
  })

  await t.test('regions exist, and there is one', async () => {
    const mode = [...matchmakerPath, 'game_modes', 'default', 'regions']
    await wrong({ matchmaker: { docker, game_modes: { default: { regions: { local: {}, moon: {} } } } } }, [
      { path: [...mode, 'moon'], reason: 'not_found' },
    ])
    await wrong({ matchmaker: { docker, regions: { moon: {} }, game_modes: { default: {} } } }, [
      { path: [...matchmakerPath, 'regions', 'moon'], reason: 'not_found' },
    ])
    await wrong({ matchmaker: { docker, game_modes: { default: { regions: {} } } } }, [
      { path: mode, reason: 'too_few' },
    ])
  })

  await t.test('environment and ports do not collide with each other or with the platform', async () => {
    const path = [...matchmakerPath, 'docker']
    const env = { PLATFORM_TOKEN: 'x', PORT_HTTP: '1', PLATFORMS: 'fine', REPORT_X: 'fine' }
    await wrong({ matchmaker: { docker: { ...docker, env }, game_modes: { default: {} } } }, [
      { path: [...path, 'env', 'PLATFORM_TOKEN'], reason: 'conflicts_with_default' },
      { path: [...path, 'env', 'PORT_HTTP'], reason: 'conflicts_with_default' },
    ])
    const ports = { one: { protocol: 'tcp', port: 80 }, two: { protocol: 'http' } }
    const host = { ...docker, ports, network_mode: 'host' }
    await wrong({ matchmaker: { docker: host, game_modes: { default: {} } } }, [
      { path: [...path, 'network_mode'], reason: 'host_networking_disabled' },
      { path: [...path, 'ports', 'one', 'port'], reason: 'not_supported' },
    ])
    const some = (prefix: string) =>
      Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`${prefix}${index}`, '']))
    const modes = { default: { docker: { ...docker, env: some('B') } } }
    await wrong({ matchmaker: { docker: { ...docker, env: some('A') }, game_modes: modes } }, [
      { path: [...matchmakerPath, 'game_modes', 'default', 'docker', 'env'], reason: 'too_many' },
    ])
  })

  await t.test('registered players are required of no action, as there are none', async () => {
    const asking = (identity_requirement: string) => ({ enabled: true, identity_requirement })
    const withActions = (actions: object) => ({ matchmaker: { docker, game_modes: { default: { actions } } } })
    const path = [...matchmakerPath, 'game_modes', 'default', 'actions']
    await wrong(
      withActions({ find: asking('registered'), join: asking('guest'), create: asking('registered') }),
      ['find', 'create'].map((action) => ({
        path: [...path, action, 'identity_requirement'],
        reason: 'not_supported',
      })),
    )
  })

  await t.test('shape errors have one path and one reason, whether created or validated', async () => {
    const withMode = (mode: object) => ({ matchmaker: { docker, game_modes: { default: mode } } })
    const path = [...matchmakerPath, 'game_modes', 'default']
    await wrong([], [{ path: ['config'], reason: 'wrong_type' }])
    await wrong('x', [{ path: ['config'], reason: 'wrong_type' }])
    await wrong(null, [{ path: ['config'], reason: 'wrong_type' }])
    await wrong({ engine: {} }, [{ path: ['engine'], reason: 'unknown' }])
    await wrong({ kv: { ttl: 1 } }, [{ path: ['kv', 'ttl'], reason: 'unknown' }])
    await wrong({ matchmaker: {} }, [{ path: [...matchmakerPath, 'game_modes'], reason: 'required' }])
    await wrong({ matchmaker: { docker, game_modes: { 'a b': {} } } }, [
      { path: [...matchmakerPath, 'game_modes', 'a b'], reason: 'unknown' },
    ])
    await wrong({ matchmaker: { docker, game_modes: { 'a/b~c': {} } } }, [
      { path: [...matchmakerPath, 'game_modes', 'a/b~c'], reason: 'unknown' },
    ])
    await wrong(withMode({ max_players: 257 }), [{ path: [...path, 'max_players'], reason: 'too_high' }])
    await wrong(withMode({ max_players: 0 }), [{ path: [...path, 'max_players'], reason: 'too_low' }])
    await wrong(withMode({ max_players: 1.5 }), [{ path: [...path, 'max_players'], reason: 'wrong_type' }])
    await wrong(withMode({ max_players: '5' }), [{ path: [...path, 'max_players'], reason: 'wrong_type' }])
    await wrong(withMode({ listable: 1, taggable: 'x' }), [
      { path: [...path, 'listable'], reason: 'wrong_type' },
      { path: [...path, 'taggable'], reason: 'wrong_type' },
    ])
    await wrong(withMode({ actions: { find: {} } }), [
      { path: [...path, 'actions', 'find', 'enabled'], reason: 'required' },
    ])
    await wrong(
      withMode({ actions: { join: { enabled: true, verification: { url: 'http://x.org', method: 'GET' } } } }),
      [{ path: [...path, 'actions', 'join', 'verification', 'method'], reason: 'unknown' }],
    )
    await wrong(withMode({ docker, actions: { create: { enabled: true, enable_private: false } } }), [
      { path: [...path, 'actions', 'create', 'enable_private'], reason: 'conflicts' },
    ])
    await wrong(withMode({ docker: { image_id: 'x' } }), [{ path: [...path, 'docker', 'image_id'], reason: 'invalid' }])
    await wrong(withMode({ docker: { ...docker, args: Array(65).fill('x') } }), [
      { path: [...path, 'docker', 'args'], reason: 'too_many' },
    ])
    await wrong(withMode({ docker: { ...docker, args: ['x', 'y'.repeat(513)] } }), [
      { path: [...path, 'docker', 'args', '1'], reason: 'too_long' },
    ])
    await wrong(withMode({ docker: { ...docker, ports: { x: { protocol: 'quic' } } } }), [
      { path: [...path, 'docker', 'ports', 'x', 'protocol'], reason: 'not_allowed' },
    ])
    const modes = Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`m${index}`, {}]))
    await wrong({ matchmaker: { docker, game_modes: modes } }, [
      { path: [...matchmakerPath, 'game_modes'], reason: 'too_many' },
    ])
  })

  await t.test(
    'a program that the build does not have, or that is not executable, is refused with the remedy',
    async () => {
      const build = async (bytes: Buffer, path: string): Promise<string> => {
        const made = await client.call(createGameBuild, { params, body: buildBody(bytes, path) })
        await arrives(platform, made.image_presigned_request!, bytes)
        await client.call(completeUpload, { params: { upload_id: made.upload_id } })
        return made.build_id
      }
      const tar = gzipSync(
        tarOf({ name: './dist/server', mode: 0o755 }, { name: 'tool', mode: 0o644 }, { name: './run', mode: 0o755 }),
      )
      // Packed where there is no such mark (0): the first bytes decide.
      const windows = { made_by: 0, mode: 0 }
      const zip = zipOf([
        { name: 'server.x86_64', body: Buffer.from('\x7fELF\x02', 'latin1'), ...windows },
        { name: 'run.sh', body: Buffer.from('#!/bin/sh\n'), ...windows },
        { name: 'notes', body: Buffer.from('text'), ...windows },
        { name: 'unix', mode: 0o100755 },
        { name: 'plain', mode: 0o100644, body: Buffer.from('#!/bin/sh\n') },
      ])
      const arm = Buffer.alloc(64)
      arm.write('\x7fELF\x02\x01', 'latin1')
      arm.writeUInt16LE(process.arch === 'arm64' ? 62 : 183, 18)
      const with_foreign = await build(
        gzipSync(
          tarOf(
            { name: 'server.arm', mode: 0o644, body: arm },
            { name: 'start.sh', mode: 0o755, body: Buffer.from('#!/bin/sh\r\n') },
            { name: 'game.exe', mode: 0o644, body: Buffer.from('MZ') },
            { name: 'bin/main.mjs', mode: 0o755, body: Buffer.from('import http') },
            { name: 'bin/lib.mjs', mode: 0o644, body: Buffer.from('import http') },
            { name: 'server.jar', mode: 0o644, body: Buffer.from('PK\x03\x04') },
          ),
        ),
        'foreign.tar.gz',
      )
      const with_tar = await build(tar, 'server.tar.gz')
      const with_zip = await build(zip, 'server.zip')
      const config = (image_id: string, program: string) => ({
        matchmaker: { game_modes: { default: {} }, docker: { image_id, args: [program, '--port'] } },
      })
      const at = (reason: string) => [{ path: ['matchmaker', 'docker', 'args', '0'], reason }]

      const starts = ['./dist/server', 'dist/server', '/build/dist/server', './dist/../run', 'run', 'node', 'python3']
      for (const program of [...starts, '/usr/bin/env']) {
        assert.deepEqual(await validate('started', config(with_tar, program)), [], program)
      }
      for (const program of ['./server', '/build/server', 'dist', './dist', '../dist/server', 'run/']) {
        // Without a slash it may be a program of the runner's machine.
        const expected = program === 'dist' ? [] : at('not_found')
        assert.deepEqual(await validate('missing', config(with_tar, program)), expected, program)
      }
      await wrong(config(with_tar, './server'), at('not_found'))
      await wrong(config(with_tar, 'tool'), at('not_executable'))
      for (const program of ['./server.x86_64', 'run.sh', 'unix']) {
        assert.deepEqual(await validate('started', config(with_zip, program)), [], program)
      }
      await wrong(config(with_zip, './notes'), at('not_executable'))
      await wrong(config(with_zip, 'plain'), at('not_executable'))
      for (const [program, sentence] of [
        [
          './server.arm',
          /"\.\/server\.arm" of the build is built for \w+; this machine is \w+: build the server for linux/,
        ],
        ['./start.sh', /CR LF.*dos2unix/],
        ['game.exe', /program of Windows.*for Linux/],
        ['bin/main.mjs', /is not a program: node runs it\. Let args begin with "node", and then this file\./],
        ['server.jar', /java runs it\. Let args begin with "java", "-jar"/],
      ] as const) {
        const error = await refused('VALIDATION_ERROR', create('foreign', config(with_foreign, program)))
        assert.match(error.message, sentence)
        assert.deepEqual(await validate('foreign', config(with_foreign, program)), at('not_runnable'))
      }
      const own = { matchmaker: { game_modes: { duel: { docker: { image_id: with_tar, args: ['./server'] } } } } }
      for (const [program, sentence] of [
        ['./bin/lib.mjs', /"\.\/bin\/lib\.mjs", but it is not executable\. Let args begin with "node"/],
        ['./bin', /"\.\/bin" is a folder of the build, and no program\. Name a file in it\./],
        ['python3 main.py', /args is a list with one entry for each word: \["python3", "main\.py"\]\./],
      ] as const) {
        const error = await refused('VALIDATION_ERROR', create('foreign', config(with_foreign, program)))
        assert.match(error.message, sentence)
      }
      await wrong(own, [{ path: ['matchmaker', 'game_modes', 'duel', 'docker', 'args', '0'], reason: 'not_found' }])

      const messageOf = async (program: string) =>
        (await refused('VALIDATION_ERROR', create('told', config(with_tar, program)))).message
      assert.match(
        await messageOf('./tool'),
        /"\.\/tool", but it is not executable\. Run chmod \+x on it, pack the archive again/,
      )
      assert.match(await messageOf('./server'), /no file "\.\/server"\..*It has "dist\/server"\./)
    },
  )

  await t.test('a mistake is reported with its line, its column and what was meant, by both operations', async () => {
    const text = '{\n  "display_name": "x",\n  "config": {\n    "matchmaker": {\n      "max_playerz": 2\n    }\n  }\n}'
    const expected =
      /Line 5, column 7: (config\.)?matchmaker\.max_playerz is not a member here\. Did you mean max_players\?/
    for (const path of [`/cloud/games/${game_id}/versions`, `/cloud/games/${game_id}/versions/validate`]) {
      const response = await fetch(`${platform.api_url}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${platform.token}`, 'content-type': 'application/json' },
        body: text,
      })
      assert.match(await response.text(), expected)
    }
  })

  await t.test('display names of versions have 1 to 128 characters', async () => {
    await create('y'.repeat(128), {})
    assert.deepEqual(await validate('z'.repeat(129), {}), [{ path: ['display_name'], reason: 'too_long' }])
    assert.deepEqual(detailsOf(await refused('VALIDATION_ERROR', create('z'.repeat(129), {}))), [
      { path: ['display_name'], reason: 'too_long' },
    ])
    assert.deepEqual(await validate('', {}), [{ path: ['display_name'], reason: 'too_short' }])
  })

  await t.test('a version of another game is not found', async () => {
    for (const version_id of [UNKNOWN_ID, other.version_id]) {
      await refused('VERSION_NOT_FOUND', client.call(getGameVersionById, { params: { game_id, version_id } }))
    }
  })
})
