import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import test from 'node:test'
import {
  completeUpload,
  createGame,
  createGameBuild,
  createGameCdnSite,
  createGameNamespace,
  createGameVersion,
  deleteGame,
  deleteGameBuild,
  deleteGameCdnSite,
  deleteGameNamespace,
  deleteGameVersion,
  deleteGroup,
  findLobby,
  getGameById,
  getGameNamespaceById,
  getGameVersionById,
  getGroupSummary,
  listGameBuilds,
  listGameCdnSites,
  renameGame,
  renameGameBuild,
  renameGameCdnSite,
  renameGameNamespace,
  renameGameVersion,
  updateGameNamespaceVersion,
} from '@musterhost/contract'
import { sweep } from '../../src/cloud/sweep/sweep.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { arrives, buildBody, newBuild, newGame, newSite, putFile, refused, tarGz, UNKNOWN_ID } from './steps.ts'

const HOUR_MS = 3_600_000
const ROUNDS = 20

test('deleting and renaming', async (t) => {
  const platform = await startPlatform(t)
  const { client, ctx } = platform

  const versionWith = async (game_id: string, config: object, display_name = `v ${randomUUID()}`) =>
    (await client.call(createGameVersion, { params: { game_id }, body: { display_name, config: config as never } }))
      .version_id
  const running = (image_id: string) => ({
    matchmaker: { game_modes: { default: { docker: { image_id, args: ['node', 'server.js'] } } } },
  })
  const keysOf = async (game_id: string) =>
    (
      await ctx.db
        .selectFrom('upload_files')
        .innerJoin('uploads', 'uploads.upload_id', 'upload_files.upload_id')
        .select('object_key')
        .where('game_id', '=', game_id)
        .execute()
    ).map((row) => row.object_key)

  await t.test('a build or site that a version names is held by it, whatever block names it', async () => {
    const { game_id } = await newGame(platform)
    const params = { game_id }
    const [build_id, site_id] = [await newBuild(platform, game_id), await newSite(platform, game_id)]
    const of_mode = await versionWith(game_id, { ...running(build_id), cdn: { site_id } })
    const of_all = await versionWith(game_id, {
      matchmaker: { docker: { image_id: build_id, args: ['x'] }, game_modes: { default: {} } },
    })
    const held = await refused('IN_USE', client.call(deleteGameBuild, { params: { game_id, build_id } }))
    assert.equal(held.status, 409)
    const ids = (held.metadata.held_by as { kind: string; id: string }[]).map(({ kind, id }) => `${kind} ${id}`)
    assert.deepEqual(ids.sort(), [`version ${of_mode}`, `version ${of_all}`].sort())
    const site = await refused('IN_USE', client.call(deleteGameCdnSite, { params: { game_id, site_id } }))
    assert.deepEqual(site.metadata, { held_by: [{ kind: 'version', id: of_mode }] })

    for (const version_id of [of_mode, of_all]) {
      await client.call(deleteGameVersion, { params: { game_id, version_id } })
      await refused('VERSION_NOT_FOUND', client.call(getGameVersionById, { params: { game_id, version_id } }))
    }
    const keys = await keysOf(game_id)
    assert.equal(keys.length, 2)
    await client.call(deleteGameBuild, { params: { game_id, build_id } })
    await client.call(deleteGameCdnSite, { params: { game_id, site_id } })
    assert.deepEqual(await client.call(listGameBuilds, { params }), { builds: [], is_cut: false })
    assert.deepEqual(await client.call(listGameCdnSites, { params }), { sites: [], is_cut: false })
    await refused('BUILD_NOT_FOUND', client.call(deleteGameBuild, { params: { game_id, build_id } }))
    await refused('SITE_NOT_FOUND', client.call(deleteGameCdnSite, { params: { game_id, site_id } }))

    // The bytes go when they are due, and not before.
    await sweep(ctx)
    for (const key of keys) assert.notEqual(await ctx.objects.stat(key), null)
    platform.advance(1.1 * HOUR_MS)
    await sweep(ctx)
    for (const key of keys) assert.equal(await ctx.objects.stat(key), null)
  })

  await t.test('a version that is deployed is held by its namespaces', async () => {
    const { game_id, prod_id, staging_id, version_id } = await newGame(platform)
    const second = await versionWith(game_id, {})
    await client.call(updateGameNamespaceVersion, {
      params: { game_id, namespace_id: prod_id },
      body: { version_id: second },
    })
    const error = await refused('IN_USE', client.call(deleteGameVersion, { params: { game_id, version_id: second } }))
    assert.deepEqual(error.metadata, { held_by: [{ kind: 'namespace', id: prod_id }] })
    await client.call(deleteGameNamespace, { params: { game_id, namespace_id: prod_id } })
    const get = client.call(getGameNamespaceById, { params: { game_id, namespace_id: prod_id } })
    await refused('NAMESPACE_NOT_FOUND', get)
    await client.call(deleteGameVersion, { params: { game_id, version_id: second } })
    await refused('IN_USE', client.call(deleteGameVersion, { params: { game_id, version_id } }))
    await client.call(deleteGameNamespace, { params: { game_id, namespace_id: staging_id } })
    await client.call(deleteGameVersion, { params: { game_id, version_id } })
  })

  await t.test('a namespace, its version and its game are held while a lobby lives', async () => {
    platform.playServers()
    const game = await platform.game()
    const { game_id, namespace_id, version_id } = game
    const params = { game_id, namespace_id }
    const { lobby } = await game.player.call(findLobby, { body: { game_modes: ['default'] } })
    await until('the lobby is in the table', () =>
      ctx.db.selectFrom('lobbies').select('lobby_id').where('lobby_id', '=', lobby.lobby_id).executeTakeFirst(),
    )
    const holder = { kind: 'lobby', id: lobby.lobby_id }
    const error = await refused('IN_USE', client.call(deleteGameNamespace, { params }))
    assert.deepEqual(error.metadata, { held_by: [holder] })
    const of_game = await refused('IN_USE', client.call(deleteGame, { params: { game_id } }))
    assert.deepEqual(of_game.metadata, { held_by: [{ kind: 'namespace', id: namespace_id }, holder] })

    const empty = await versionWith(game_id, {})
    await client.call(updateGameNamespaceVersion, { params, body: { version_id: empty } })
    const of_version = await refused('IN_USE', client.call(deleteGameVersion, { params: { game_id, version_id } }))
    assert.deepEqual(of_version.metadata, { held_by: [holder] })

    // First the player's time to connect runs out, then the empty lobby's.
    await until('the lobby has ended', () => {
      platform.advance(60_000)
      return ctx.db
        .selectFrom('lobbies')
        .select('lobby_id')
        .where('lobby_id', '=', lobby.lobby_id)
        .where('stop_ts', 'is not', null)
        .executeTakeFirst()
    })
    await client.call(deleteGameNamespace, { params })
    await refused('NAMESPACE_NOT_FOUND', game.player.call(findLobby, { body: { game_modes: ['default'] } }))
  })

  await t.test('a game goes with all that is its own, a group only when it is empty', async () => {
    const { game_id, group_id, prod_id } = await newGame(platform)
    const params = { game_id }
    const build_id = await newBuild(platform, game_id)
    await newSite(platform, game_id)
    const version_id = await versionWith(game_id, running(build_id))
    const body = { display_name: 'P', files: [{ path: 'a', content_length: 1 }] }
    const pending = await client.call(createGameCdnSite, { params, body })
    const namespace = { params: { game_id, namespace_id: prod_id } }
    await client.call(updateGameNamespaceVersion, { ...namespace, body: { version_id } })
    assert.deepEqual((await refused('IN_USE', client.call(deleteGroup, { params: { group_id } }))).metadata, {
      held_by: [{ kind: 'game', id: game_id }],
    })
    assert.deepEqual((await refused('IN_USE', client.call(deleteGame, { params }))).metadata, {
      held_by: [{ kind: 'namespace', id: prod_id }],
    })
    await client.call(deleteGameNamespace, namespace)
    const keys = await keysOf(game_id)
    await client.call(deleteGame, { params })
    await refused('GAME_NOT_FOUND', client.call(getGameById, { params }))
    const { upload_id } = pending
    await refused('UPLOAD_NOT_FOUND', client.call(completeUpload, { params: { upload_id } }))
    assert.equal((await putFile(platform, pending.presigned_requests[0]!, 'a')).status, 404)
    platform.advance(1.1 * HOUR_MS)
    await sweep(ctx)
    for (const key of keys) assert.equal(await ctx.objects.stat(key), null)
    await client.call(deleteGroup, { params: { group_id } })
    await refused('GROUP_NOT_FOUND', client.call(getGroupSummary, { params: { group_id } }))
    await refused('GROUP_NOT_FOUND', client.call(deleteGroup, { params: { group_id } }))
  })

  await t.test('who races with a deletion gets either, and nothing rests on what is gone', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { game_id, group_id, prod_id } = await newGame(platform)
      const params = { game_id }
      const build_id = await newBuild(platform, game_id)
      const spare = await versionWith(game_id, {})
      const bytes = await tarGz({ 'server.js': '1' })
      const codes = await Promise.all(
        [
          client.call(deleteGameBuild, { params: { game_id, build_id } }),
          versionWith(game_id, running(build_id)),
          client.call(deleteGameVersion, { params: { game_id, version_id: spare } }),
          client.call(updateGameNamespaceVersion, {
            params: { game_id, namespace_id: prod_id },
            body: { version_id: spare },
          }),
        ].map((call) =>
          call.then(
            () => 'ok',
            (error: { code: string }) => error.code,
          ),
        ),
      )
      const [of_build, of_version, of_spare, of_deploy] = codes
      const outcomes = [
        ['ok', 'VALIDATION_ERROR'],
        ['IN_USE', 'ok'],
      ]
      assert.ok(
        outcomes.some(([a, b]) => a === of_build && b === of_version),
        codes.join(),
      )
      const deploys = [
        ['ok', 'VERSION_NOT_FOUND'],
        ['IN_USE', 'ok'],
      ]
      assert.ok(
        deploys.some(([a, b]) => a === of_spare && b === of_deploy),
        codes.join(),
      )

      const more = await Promise.all(
        [
          client.call(deleteGame, { params }),
          client.call(createGameBuild, { params, body: buildBody(bytes) }),
          client.call(createGameNamespace, { params, body: { display_name: 'N', name_id: 'n', version_id: spare } }),
          client.call(createGame, { body: { display_name: 'Game', developer_group_id: group_id } }),
        ].map((call) =>
          call.then(
            () => 'ok',
            (error: { code: string }) => error.code,
          ),
        ),
      )
      assert.ok(!more.includes('INTERNAL_ERROR'), more.join())
    }
  })

  await t.test('an upload that nobody completed is removed, with its build and what had arrived', async () => {
    const { game_id } = await newGame(platform)
    const params = { game_id }
    const bytes = await tarGz({ 'server.js': '1' })
    const kept = await newBuild(platform, game_id)
    const build = await client.call(createGameBuild, { params, body: buildBody(bytes) })
    await arrives(platform, build.image_presigned_request!, bytes)
    const key = new URL(build.image_presigned_request!.url).pathname.split('/').at(-1)!
    platform.advance(23 * HOUR_MS)
    await sweep(ctx)
    assert.equal((await client.call(listGameBuilds, { params })).builds.length, 2)
    platform.advance(2 * HOUR_MS)
    await sweep(ctx)
    const { builds } = await client.call(listGameBuilds, { params })
    assert.deepEqual(
      builds.map((item) => item.build_id),
      [kept],
    )
    await refused('UPLOAD_NOT_FOUND', client.call(completeUpload, { params: { upload_id: build.upload_id } }))
    platform.advance(2 * HOUR_MS)
    await sweep(ctx)
    assert.equal(await ctx.objects.stat(key), null)
  })

  await t.test('renaming changes the display name and nothing else', async () => {
    const { game_id, prod_id, version_id } = await newGame(platform)
    const params = { game_id }
    const [build_id, site_id] = [await newBuild(platform, game_id), await newSite(platform, game_id)]
    const body = { display_name: 'Another name' }
    const snapshot = async () => ({
      game: (await client.call(getGameById, { params })).game,
      builds: (await client.call(listGameBuilds, { params })).builds,
      sites: (await client.call(listGameCdnSites, { params })).sites,
    })
    const before = JSON.parse(JSON.stringify(await snapshot()))
    await client.call(renameGame, { params, body })
    await client.call(renameGameNamespace, { params: { game_id, namespace_id: prod_id }, body })
    await client.call(renameGameVersion, { params: { game_id, version_id }, body })
    await client.call(renameGameBuild, { params: { game_id, build_id }, body })
    await client.call(renameGameCdnSite, { params: { game_id, site_id }, body })
    before.game.display_name = before.builds[0].display_name = before.sites[0].display_name = body.display_name
    before.game.versions[0].display_name = body.display_name
    before.game.namespaces.find((item: { namespace_id: string }) => item.namespace_id === prod_id).display_name =
      body.display_name
    assert.deepEqual(await snapshot(), before)

    const second = await versionWith(game_id, {}, 'Second')
    const twin = client.call(renameGameVersion, { params: { game_id, version_id: second }, body })
    await refused('NAME_TAKEN', twin)
    const wrong = { display_name: '\u0007' }
    await refused('VALIDATION_ERROR', client.call(renameGame, { params, body: wrong }))
    const none = UNKNOWN_ID
    await refused('GAME_NOT_FOUND', client.call(renameGame, { params: { game_id: none }, body }))
    await refused('BUILD_NOT_FOUND', client.call(renameGameBuild, { params: { game_id, build_id: none }, body }))
    await refused('SITE_NOT_FOUND', client.call(renameGameCdnSite, { params: { game_id, site_id: none }, body }))
    const other = await newGame(platform)
    const foreign = { params: { game_id: other.game_id, namespace_id: prod_id } }
    await refused('NAMESPACE_NOT_FOUND', client.call(renameGameNamespace, { ...foreign, body }))
    await refused('NAMESPACE_NOT_FOUND', client.call(deleteGameNamespace, foreign))
  })
})
