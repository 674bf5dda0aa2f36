import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type BodyOf,
  createGameNamespaceTokenDevelopment,
  createLobby,
  findLobby,
  getLobbyState,
  joinLobby,
  listGameNamespaceTokensDevelopment,
  listLobbies,
  playerConnected,
  playerDisconnected,
  revokeGameNamespaceTokenDevelopment,
  setLobbyClosed,
  setLobbyReady,
  setLobbyState,
  validateGameNamespaceTokenDevelopment,
} from '@musterhost/contract'
import { idOfName } from '../../src/ids.ts'
import { detailsOf, newGame, refused, UNKNOWN_ID, withoutMessages } from '../cloud/steps.ts'
import { dump } from '../http/dump.ts'
import { startPlatform } from '../support/platform.ts'

const ZERO_ID = '00000000-0000-0000-0000-000000000000'

type Body = BodyOf<typeof createGameNamespaceTokenDevelopment>

test('development tokens', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const { client, ctx } = platform
  const game = await platform.game({ matchmaker: { game_modes: { default: {}, duel: { max_players: 2 } } } })
  const params = { game_id: game.game_id, namespace_id: game.namespace_id }
  const create = (body: Body) => client.call(createGameNamespaceTokenDevelopment, { params, body })
  const validate = async (hostname: string, ports?: unknown) => {
    const body = { hostname, ...(ports === undefined ? {} : { ports }) }
    const { errors } = await client.call(validateGameNamespaceTokenDevelopment, { params, body })
    return withoutMessages(errors)
  }

  await t.test('a token says host and ports, for a year, and has the label of its namespace', async () => {
    const { token } = await create({ hostname: 'dev.local', ports: { game: { port: 7777, protocol: 'tcp_tls' } } })
    assert.match(token, /^dev_prod\./)
    const { token_id, issue_ms, expire_ms, ...said } = ctx.keys.verify(token, ctx.now())
    assert.deepEqual(said, {
      kind: 'development',
      namespace_id: game.namespace_id,
      hostname: 'dev.local',
      ports: [{ name: 'game', protocol: 'tcp_tls', port: 7777, port_range: null }],
    })
    assert.equal(expire_ms! - issue_ms, 365 * 24 * 60 * 60_000)
    const most = Object.fromEntries(
      Array.from({ length: 16 }, (_, index) => [
        `port-name-abc-${String(index).padStart(2, '0')}`,
        { port_range: { min: 65_000, max: 65_535 }, protocol: 'udp' as const },
      ]),
    )
    const label = 'x'.repeat(62)
    const long = await create({ hostname: `${label}.${label}.${label}.${label}.y`, ports: most })
    await platform.as(long.token).call(listLobbies, {})
  })

  const cases: [string, unknown, { path: string[]; reason: string }[]][] = [
    ['localhost', undefined, []],
    ['192.168.1.20', {}, []],
    ['::1', {}, []],
    ['', {}, [{ path: ['hostname'], reason: 'too_short' }]],
    ['http://a', {}, [{ path: ['hostname'], reason: 'invalid' }]],
    ['a:80', {}, [{ path: ['hostname'], reason: 'invalid' }]],
    ['1.2.3', {}, [{ path: ['hostname'], reason: 'invalid' }]],
    ['a..b', {}, [{ path: ['hostname'], reason: 'invalid' }]],
    ['a', { x: { protocol: 'tcp' } }, [{ path: ['ports', 'x'], reason: 'missing_port_and_port_range' }]],
    [
      'a',
      { x: { port: 1, port_range: { min: 1, max: 2 }, protocol: 'tcp' } },
      [{ path: ['ports', 'x'], reason: 'duplicate_port_and_port_range' }],
    ],
    ['a', { x: { port: 0, protocol: 'http' } }, [{ path: ['ports', 'x', 'port'], reason: 'too_low' }]],
    ['a', { x: { port: 65_536, protocol: 'http' } }, [{ path: ['ports', 'x', 'port'], reason: 'too_high' }]],
    ['a', { x: { port: 65_535, protocol: 'https' }, y: { port: 1, protocol: 'udp' } }, []],
    ['a', { X: { port: 1, protocol: 'http' } }, [{ path: ['ports', 'X'], reason: 'invalid' }]],
    ['a', { x: { port: 1, protocol: 'sctp' } }, [{ path: ['ports', 'x', 'protocol'], reason: 'not_allowed' }]],
    ['a', { x: { port: 1 } }, [{ path: ['ports', 'x', 'protocol'], reason: 'required' }]],
    [
      'a',
      { x: { port: 5, protocol: 'tcp' }, y: { port: 5, protocol: 'tcp' }, z: { port: 5, protocol: 'udp' } },
      [{ path: ['ports', 'y', 'port'], reason: 'port_protocol_not_unique' }],
    ],
    [
      'a',
      { x: { port_range: { min: 0, max: 65_536 }, protocol: 'tcp' } },
      [
        { path: ['ports', 'x', 'port_range', 'min'], reason: 'too_low' },
        { path: ['ports', 'x', 'port_range', 'max'], reason: 'too_high' },
      ],
    ],
    [
      'a',
      { x: { port_range: { min: 9, max: 8 }, protocol: 'udp' } },
      [{ path: ['ports', 'x', 'port_range'], reason: 'range_min_gt_max' }],
    ],
    [
      'a',
      { x: { port_range: { min: 8, max: 9 }, protocol: 'https' } },
      [{ path: ['ports', 'x', 'protocol'], reason: 'not_allowed' }],
    ],
    [
      'a',
      { game: { port_range: { min: 8, max: 9 }, protocol: 'udp' } },
      [{ path: ['ports', 'game', 'port_range'], reason: 'needs_host_network' }],
    ],
    [
      'a',
      {
        x: { port_range: { min: 8, max: 9 }, protocol: 'udp' },
        y: { port_range: { min: 9, max: 9 }, protocol: 'udp' },
      },
      [],
    ],
    [
      'a',
      Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`p${index}`, { port: index + 1, protocol: 'tcp' }])),
      [{ path: ['ports'], reason: 'too_many' }],
    ],
  ]
  for (const [hostname, ports, expected] of cases) {
    await t.test(`${hostname} ${JSON.stringify(ports)?.slice(0, 80)}: ${expected[0]?.reason ?? 'good'}`, async () => {
      assert.deepEqual(await validate(hostname, ports), expected)
      const body = { hostname, ...(ports === undefined ? {} : { ports }) } as Body
      if (expected.length === 0) await create(body)
      else assert.deepEqual(detailsOf(await refused('VALIDATION_ERROR', create(body))), expected)
    })
  }

  const body: Body = {
    hostname: '10.0.0.5',
    ports: {
      game: { port: 7777, protocol: 'http' },
      voice: { port_range: { min: 8000, max: 8010 }, protocol: 'udp' },
      admin: { port: 8443, protocol: 'https' },
    },
  }
  const developer = platform.as((await create(body)).token)

  await t.test('find, join and create answer the host and ports of the token, and nothing else happens', async () => {
    const other = await newGame(platform)
    const before = await dump(platform)
    const watching = { lobby_id: UNKNOWN_ID, role: 'spectator' } as const
    const { player: spectator } = await developer.call(joinLobby, { body: watching })
    assert.equal(spectator.role, 'spectator')
    const connect = { body: { player_token: spectator.token } }
    assert.deepEqual(await developer.call(playerConnected, connect), { role: 'spectator' })
    const answers = [
      await developer.call(findLobby, { body: { game_modes: ['nothing'], regions: ['mars'] } }),
      await developer.call(joinLobby, { body: { lobby_id: UNKNOWN_ID } }),
      await developer.call(createLobby, { body: { game_mode: 'default' } }),
    ]
    for (const { lobby, ports, player } of answers) {
      assert.equal(lobby.lobby_id, ZERO_ID)
      assert.deepEqual(lobby.region, { region_id: 'dev-lcl', display_name: 'Local' })
      assert.deepEqual(ports, {
        game: { host: '10.0.0.5:7777', hostname: '10.0.0.5', port: 7777, is_tls: false, url: 'http://10.0.0.5:7777' },
        voice: {
          hostname: '10.0.0.5',
          port_range: { min: 8000, max: 8010 },
          is_tls: false,
          url: 'udp://10.0.0.5:8000',
        },
        admin: { host: '10.0.0.5:8443', hostname: '10.0.0.5', port: 8443, is_tls: true, url: 'https://10.0.0.5:8443' },
      })
      assert.deepEqual([lobby.ports, lobby.player], [ports, player])
      assert.match(player.token, /^dev_player\./)
      const player_token = player.token
      for (let again = 0; again < 2; again++) await developer.call(playerConnected, { body: { player_token } })
      await developer.call(playerDisconnected, { body: { player_token } })
      const elsewhere = await client.call(createGameNamespaceTokenDevelopment, {
        params: { game_id: other.game_id, namespace_id: other.prod_id },
        body: { hostname: 'a' },
      })
      const stranger = platform.as(elsewhere.token)
      await refused('PLAYER_TOKEN_INVALID', stranger.call(playerConnected, { body: { player_token } }))
    }
    const rows = await ctx.db.selectFrom('lobbies').select('lobby_id').execute()
    assert.deepEqual(rows, [])
    assert.ok(before.length > 0)
  })

  await t.test('the lobby calls answer nothing, and the list has the real game modes with one lobby each', async () => {
    assert.deepEqual(await developer.call(setLobbyReady, {}), {})
    assert.deepEqual(await developer.call(setLobbyClosed, { body: { is_closed: true } }), {})
    assert.deepEqual(await developer.call(setLobbyState, { body: { a: 1 } }), {})
    const list = await developer.call(listLobbies, { query: { include_state: true } })
    assert.deepEqual(list.game_modes.map((mode) => mode.game_mode_name_id).sort(), ['default', 'duel'])
    assert.equal(list.lobbies.length, 2)
    assert.deepEqual(
      list.lobbies.find((lobby) => lobby.game_mode_name_id === 'duel'),
      {
        region_id: 'dev-lcl',
        game_mode_id: idOfName('duel', game.game_id),
        game_mode_name_id: 'duel',
        lobby_id: ZERO_ID,
        max_players_normal: 2,
        max_players_direct: 2,
        max_players_party: 2,
        total_player_count: 0,
        state: { foo: 'bar' },
      },
    )
    assert.equal('state' in (await developer.call(listLobbies, {})).lobbies[0]!, false)
    assert.deepEqual(list.regions[0]?.region_id, 'dev-lcl')
  })

  await t.test('real players and lobbies of a production namespace are out of its reach', async () => {
    const seat = await game.player.call(findLobby, { body: { game_modes: ['default'] } })
    const { lobby_id } = seat.lobby
    const lobby = platform.as(platform.lobbyToken({ lobby_id, namespace_id: game.namespace_id }))
    await lobby.call(setLobbyState, { body: { secret: 1 } })
    assert.deepEqual(await developer.call(getLobbyState, { params: { lobby_id } }), {})
    assert.equal((await developer.call(joinLobby, { body: { lobby_id } })).lobby.lobby_id, ZERO_ID)
    await developer.call(setLobbyClosed, { body: { is_closed: true } })
    const { token: player_token } = seat.player
    await refused('PLAYER_TOKEN_INVALID', developer.call(playerConnected, { body: { player_token } }))
    const mock = await developer.call(findLobby, { body: { game_modes: ['default'] } })
    await refused('PLAYER_TOKEN_INVALID', lobby.call(playerConnected, { body: { player_token: mock.player.token } }))
    await refused(
      'API_FORBIDDEN',
      platform.as(mock.player.token).call(findLobby, { body: { game_modes: ['default'] } }),
    )
    const { lobbies } = await game.player.call(listLobbies, { query: { include_state: true } })
    assert.deepEqual(
      lobbies.map((item) => [item.lobby_id, item.total_player_count, item.state]),
      [[lobby_id, 1, { secret: 1 }]],
    )
  })

  await t.test('it is listed, and once revoked it is refused', async () => {
    const { token } = await create({ hostname: 'a' })
    const { tokens } = await client.call(listGameNamespaceTokensDevelopment, { params })
    const { token_id } = ctx.keys.verify(token, ctx.now())
    assert.equal(tokens[0]?.token_id, token_id)
    await platform.as(token).call(listLobbies, {})
    await client.call(revokeGameNamespaceTokenDevelopment, { params: { ...params, token_id } })
    await refused('TOKEN_REVOKED', platform.as(token).call(listLobbies, {}))
    await developer.call(listLobbies, {})
  })

  await t.test('after the end of its namespace nothing is answered', async () => {
    const now_ms = ctx.now()
    const gone = { kind: 'development', namespace_id: UNKNOWN_ID, hostname: 'a', ports: [] } as const
    const orphan = platform.as(ctx.keys.issue(gone, { now_ms, lifetime_ms: 60_000, name: 'prod' }))
    await refused('NAMESPACE_NOT_FOUND', orphan.call(findLobby, { body: { game_modes: ['default'] } }))
    await refused('NAMESPACE_NOT_FOUND', orphan.call(setLobbyReady, {}))
    await refused('NAMESPACE_NOT_FOUND', orphan.call(listLobbies, {}))
  })
})
