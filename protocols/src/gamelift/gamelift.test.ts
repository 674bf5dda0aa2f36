import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { WebSocket } from 'ws'
import { FACTS, TestLobby } from '../test-lobby.ts'
import { randomJson, seededRandom, serveForTest, until } from '../test-server.ts'
import { GameLiftEndpoint, gamelift } from './gamelift.ts'
import { type Message, SECRET, StrictSdk } from './strict-sdk.ts'

async function start(t: TestContext, lobby = new TestLobby(), look_ms?: number) {
  const endpoint = new GameLiftEndpoint(lobby, SECRET, look_ms)
  const port = await serveForTest(t, endpoint)
  const sdk = new StrictSdk(port)
  t.after(() => sdk.socket.terminate())
  await sdk.open()
  return { lobby, endpoint, port, sdk }
}

async function pass(lobby: TestLobby, endpoint: GameLiftEndpoint, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 1_000) {
    lobby.clock_ms = lobby.now() + 1_000
    endpoint.look()
  }
}

test('the environment names the address and the token, and leaves the compute type unset', () => {
  const { env, files } = gamelift.additions(FACTS, { websocket: { host: '127.0.0.1', port: 5757 } }, {}, SECRET)
  assert.equal(env.GAMELIFT_SDK_WEBSOCKET_URL, 'ws://127.0.0.1:5757')
  assert.equal(env.GAMELIFT_SDK_AUTH_TOKEN, SECRET)
  for (const name of ['PROCESS_ID', 'HOST_ID', 'FLEET_ID']) assert.ok(env[`GAMELIFT_SDK_${name}`])
  assert.equal(env.GAMELIFT_REGION, FACTS.region_id)
  assert.ok(!('GAMELIFT_COMPUTE_TYPE' in env))
  assert.deepEqual(files, [])
})

test('a process that is ready gets its game session at once, and activating it makes the lobby ready', async (t) => {
  const lobby = new TestLobby({ config: { map: 'ice' }, tags: { mode: 'duel' } })
  lobby.seat('a', { team: 'red', attributes: { skill: 12, maps: ['ice'], name: 'A' } })
  const { sdk } = await start(t, lobby)
  const id = await sdk.activate()
  assert.match(id, new RegExp(`^arn:aws:gamelift:.*gamesession/.*${FACTS.lobby_id}$`))
  const { MatchmakerData, Action: _action, ...session } = await sdk.pushed('CreateGameSession')
  assert.deepEqual(session, {
    GameSessionId: id,
    GameSessionName: FACTS.lobby_id,
    GameSessionData: '{"map":"ice"}',
    MaximumPlayerSessionCount: 4,
    IpAddress: 'play.example.com',
    DnsName: 'play.example.com',
    Port: 20_005,
    GameProperties: { mode: 'duel' },
  })
  const match = JSON.parse(MatchmakerData as string)
  assert.equal(match.matchId, FACTS.lobby_id)
  assert.deepEqual(match.teams, [
    {
      name: 'red',
      players: [
        {
          playerId: 'a',
          attributes: {
            skill: { attributeType: 'DOUBLE', valueAttribute: 12 },
            maps: { attributeType: 'STRING_LIST', valueAttribute: ['ice'] },
            name: { attributeType: 'STRING', valueAttribute: 'A' },
          },
        },
      ],
    },
  ])
  await sdk.ok('ActivateGameSession', { GameSessionId: id })
  assert.deepEqual(lobby.calls, ['ready'])
  assert.equal(lobby.reports.at(-1)?.state, 'GameSessionActive')
})

test('a process that reports twice that it is ready gets one game session', async (t) => {
  const { sdk } = await start(t)
  await sdk.activate()
  await sdk.ok('ActivateServerProcess')
  await sdk.ok('HeartbeatServerProcess', { HealthStatus: true })
  assert.equal(sdk.pushes.length, 1)
  assert.equal(sdk.pushes[0]?.MatchmakerData, '')
})

test('a process is activated while the platform restarts', async (t) => {
  const { lobby, sdk } = await start(t)
  lobby.held = new Promise(() => undefined)
  await sdk.activate()
  await sdk.ok('HeartbeatServerProcess', { HealthStatus: true })
})

test('a player is accepted once by its token, found by it, and removed', async (t) => {
  const { lobby, sdk } = await start(t)
  const GameSessionId = await sdk.activate()
  lobby.seat('a')
  lobby.seat('b')
  const session = { GameSessionId, PlayerSessionId: 'psess-token-a' }
  await sdk.ok('AcceptPlayerSession', session)
  assert.match(await sdk.refused('AcceptPlayerSession', session), /connected/)
  assert.match(await sdk.refused('AcceptPlayerSession', { ...session, PlayerSessionId: 'psess-forged' }), /token/)
  const { PlayerSessions } = await sdk.ok('DescribePlayerSessions', { PlayerSessionId: 'psess-token-a', Limit: 1 })
  const [found] = PlayerSessions as Message[]
  assert.equal(found?.PlayerId, 'a')
  assert.equal(found?.PlayerSessionId, 'psess-token-a')
  await sdk.ok('RemovePlayerSession', session)
  assert.deepEqual(
    lobby.view.seats.map(({ player_id }) => player_id),
    ['b'],
  )
})

test('a player is accepted by the token only, removed by the id too, and no other player is sent away', async (t) => {
  const { lobby, sdk } = await start(t)
  const GameSessionId = await sdk.activate()
  for (const id of ['a', 'b', 'c']) lobby.seat(id)
  await Promise.all([
    sdk.ok('AcceptPlayerSession', { GameSessionId, PlayerSessionId: 'psess-token-a' }),
    sdk.ok('AcceptPlayerSession', { GameSessionId, PlayerSessionId: 'psess-token-b' }),
  ])
  assert.match(await sdk.refused('AcceptPlayerSession', { GameSessionId, PlayerSessionId: 'psess-c' }), /token/)
  await sdk.ok('AcceptPlayerSession', { GameSessionId, PlayerSessionId: 'psess-token-c' })
  assert.ok(lobby.view.seats.every(({ is_connected }) => is_connected))
  await sdk.ok('RemovePlayerSession', { GameSessionId, PlayerSessionId: 'psess-b' })
  assert.deepEqual(
    lobby.view.seats.map(({ player_id }) => player_id),
    ['a', 'c'],
  )
})

test('a call waits until the view shows the one before it', async (t) => {
  const { lobby, sdk } = await start(t)
  await sdk.activate()
  lobby.seat('a')
  lobby.seat('b')
  const { connected, change } = lobby
  const shown: (() => void)[] = []
  lobby.connected = async (token) => {
    lobby.change = (part) => void shown.push(() => change.call(lobby, part))
    await connected.call(lobby, token)
    lobby.change = change
  }
  await sdk.ok('AcceptPlayerSession', { PlayerSessionId: 'psess-token-a' })
  const second = sdk.ok('RemovePlayerSession', { PlayerSessionId: 'psess-a' })
  await sdk.ok('HeartbeatServerProcess', { HealthStatus: true })
  assert.deepEqual(lobby.calls, ['connected token-a'])
  for (const show of shown) show()
  await second
  assert.deepEqual(lobby.calls, ['connected token-a', 'setPlayers '])
})

test('the list of player sessions has filters and pages', async (t) => {
  const { lobby, sdk } = await start(t)
  const GameSessionId = await sdk.activate()
  for (const id of ['a', 'b', 'c']) lobby.seat(id, { is_connected: id === 'b', create_ts: 5 })
  const ids = async (members: Message) => {
    const { PlayerSessions, NextToken } = await sdk.ok('DescribePlayerSessions', members)
    return [(PlayerSessions as Message[]).map(({ PlayerId }) => PlayerId).join(), NextToken]
  }
  assert.deepEqual(await ids({ GameSessionId, PlayerId: '', PlayerSessionStatusFilter: '' }), ['a,b,c', undefined])
  assert.deepEqual(await ids({ GameSessionId, Limit: 2 }), ['a,b', '2'])
  assert.deepEqual(await ids({ GameSessionId, Limit: 2, NextToken: '2' }), ['c', undefined])
  assert.deepEqual(await ids({ PlayerSessionStatusFilter: 'ACTIVE' }), ['b', undefined])
  assert.deepEqual(await ids({ PlayerSessionStatusFilter: 'COMPLETED' }), ['', undefined])
  assert.deepEqual(await ids({ PlayerId: 'c' }), ['c', undefined])
  assert.deepEqual(await ids({ PlayerSessionId: 'psess-b' }), ['b', undefined])
  assert.deepEqual(await ids({ PlayerSessionId: 'psess-unknown' }), ['', undefined])
  const { PlayerSessions } = await sdk.ok('DescribePlayerSessions', { PlayerId: 'a' })
  assert.deepEqual((PlayerSessions as Message[])[0], {
    PlayerId: 'a',
    PlayerSessionId: 'psess-a',
    GameSessionId,
    FleetId: `fleet-${FACTS.version_id}`,
    PlayerData: '',
    IpAddress: 'play.example.com',
    Port: 20_005,
    CreationTime: 5,
    TerminationTime: 0,
    DnsName: 'play.example.com',
    Status: 'RESERVED',
  })
  assert.match(await sdk.refused('DescribePlayerSessions', { PlayerSessionStatusFilter: 'GONE' }), /RESERVED/)
  assert.match(await sdk.refused('DescribePlayerSessions', { Limit: -1 }), /Limit/)
  assert.match(await sdk.refused('DescribePlayerSessions', { NextToken: 'x' }), /NextToken/)
})

test('the policy closes and opens the lobby, and a backfill opens it and reports who has come', async (t) => {
  const { lobby, sdk } = await start(t)
  const GameSessionId = await sdk.activate()
  const policy = (PlayerSessionPolicy: string) => ({ GameSessionId, PlayerSessionPolicy })
  await sdk.ok('UpdatePlayerSessionCreationPolicy', policy('DENY_ALL'))
  await sdk.ok('UpdatePlayerSessionCreationPolicy', policy('ACCEPT_ALL'))
  await sdk.ok('UpdatePlayerSessionCreationPolicy', policy('DENY_ALL'))
  await sdk.refused('UpdatePlayerSessionCreationPolicy', policy('SOME'))
  const { TicketId } = await sdk.ok('StartMatchBackfill', { GameSessionArn: GameSessionId, TicketId: '', Players: [] })
  assert.match(TicketId as string, /./)
  assert.deepEqual(lobby.calls, ['setClosed true', 'setClosed false', 'setClosed true', 'setClosed false'])
  lobby.seat('late', { team: 'blue' })
  const { GameSession, UpdateReason, BackfillTicketId } = await sdk.pushed('UpdateGameSession')
  assert.equal(UpdateReason, 'MATCHMAKING_DATA_UPDATED')
  assert.equal(BackfillTicketId, TicketId)
  assert.match((GameSession as Message).MatchmakerData as string, /"late"/)
  await sdk.ok('StopMatchBackfill', { GameSessionArn: GameSessionId, TicketId })
  lobby.seat('later')
  await sdk.ok('HeartbeatServerProcess', { HealthStatus: true })
  assert.equal(sdk.pushes.filter(({ Action }) => Action === 'UpdateGameSession').length, 1)
})

test('a backfill opens a lobby that its server has just closed, before the view shows it', async (t) => {
  const { lobby, sdk } = await start(t)
  lobby.change = () => undefined
  await sdk.ok('UpdatePlayerSessionCreationPolicy', { PlayerSessionPolicy: 'DENY_ALL' })
  await sdk.ok('StartMatchBackfill', { Players: [] })
  assert.deepEqual(lobby.calls, ['setClosed true', 'setClosed false'])
})

test('a process that ends has its response before the lobby is stopped', async (t) => {
  const { lobby, sdk } = await start(t)
  await sdk.activate()
  let resume = () => {}
  lobby.held = new Promise((resolve) => {
    resume = resolve
  })
  await sdk.ok('TerminateServerProcess')
  resume()
  await until('stop', () => lobby.calls.includes('stop'))
})

test('what this platform does not have is refused with a reason', async (t) => {
  const { lobby, sdk } = await start(t)
  assert.match(await sdk.refused('GetComputeCertificate'), /certificate/)
  assert.match(await sdk.refused('GetFleetRoleCredentials', { RoleArn: 'r', RoleSessionName: 's' }), /credentials/)
  assert.match(await sdk.refused('toString'), /No such Action/)
  assert.match(await sdk.refused('ActivateGameSession', { GameSessionId: 'another' }), /GameSessionId/)
  assert.match(await sdk.refused('AcceptPlayerSession', { PlayerSessionId: 'token-a' }), /psess-/)
  assert.match(await sdk.refused('AcceptPlayerSession', {}), /PlayerSessionId is missing/)
  assert.deepEqual(lobby.calls, [])
})

test('a lobby that drains ends the process once, with a time in milliseconds', async (t) => {
  const { lobby, sdk } = await start(t)
  lobby.change({ is_draining: true })
  await sdk.activate()
  const { TerminationTime } = await sdk.pushed('TerminateProcess')
  assert.ok((TerminationTime as number) > Date.now() && (TerminationTime as number) < Date.now() + 600_000)
  lobby.seat('a')
  await sdk.ok('HeartbeatServerProcess', { HealthStatus: true })
  assert.deepEqual(
    sdk.pushes.map(({ Action }) => Action),
    ['CreateGameSession', 'TerminateProcess'],
  )
})

test('health is shown; three minutes of silence are reported once', async (t) => {
  const lobby = new TestLobby()
  lobby.clock_ms = 1_000_000
  const { endpoint, sdk } = await start(t, lobby, 3_600_000)
  await pass(lobby, endpoint, 600_000)
  assert.deepEqual(lobby.calls, [], 'a process that is not ready yet has no heartbeats')
  await sdk.activate()
  await sdk.ok('HeartbeatServerProcess', { HealthStatus: false })
  assert.equal(lobby.reports.at(-1)?.is_healthy, false)
  await pass(lobby, endpoint, 180_000)
  assert.deepEqual(lobby.calls, [])
  await pass(lobby, endpoint, 180_000)
  assert.deepEqual(lobby.calls, ['unhealthy GameLift: no heartbeat for 180 s.'])
  await sdk.refused('HeartbeatServerProcess', { HealthStatus: 'yes' })
})

test('a newer connection replaces an older one, which is still served', async (t) => {
  const { endpoint, lobby, port, sdk } = await start(t)
  await sdk.activate()
  endpoint.refresh('ws://127.0.0.1:5758', 'other-token')
  const { RefreshConnectionEndpoint, AuthToken } = await sdk.pushed('RefreshConnection')
  assert.deepEqual([RefreshConnectionEndpoint, AuthToken], ['ws://127.0.0.1:5758', 'other-token'])
  const newer = new StrictSdk(port)
  t.after(() => newer.socket.terminate())
  await newer.open()
  await newer.ok('HeartbeatServerProcess', { HealthStatus: true })
  await sdk.ok('HeartbeatServerProcess', { HealthStatus: true })
  lobby.change({ is_draining: true })
  await newer.pushed('TerminateProcess')
  assert.equal(newer.pushes.length, 1, 'the game session is not sent a second time')
  assert.ok(!sdk.pushes.some(({ Action }) => Action === 'TerminateProcess'))
})

test('a server that was ready before a restart of the platform is notified when its lobby drains', async (t) => {
  const { lobby, sdk } = await start(t)
  lobby.change({ is_draining: true })
  await sdk.ok('HeartbeatServerProcess', { HealthStatus: true })
  await sdk.pushed('TerminateProcess')
  assert.equal(sdk.pushes.length, 1)
})

test('a fifth connection closes the oldest', async (t) => {
  const { port, sdk } = await start(t)
  const more = Array.from({ length: 4 }, () => new StrictSdk(port))
  t.after(() => {
    for (const one of more) one.socket.terminate()
  })
  await Promise.all(more.map((one) => one.open()))
  await until('the oldest', () => sdk.is_closed)
  for (const one of more) await one.ok('HeartbeatServerProcess', { HealthStatus: true })
})

test('a connection without the token, or with the signature of AWS, is refused', async (t) => {
  const { port } = await start(t)
  for (const query of ['Authorization=x', 'Authorization=', 'X-Amz-Signature=abc']) {
    const path = `/?pID=p&${query}`
    const head = 'host: x\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n'
    const socket = connect(port, '127.0.0.1')
    socket.end(`GET ${path} HTTP/1.1\r\n${head}sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`)
    let text = ''
    socket.on('data', (part) => {
      text += part
    })
    await new Promise((resolve) => socket.once('close', resolve))
    assert.match(text, /^HTTP\/1\.1 401 Unauthorized\r\n/)
    assert.match(text, /Authorization is/)
  }
  assert.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 426)
})

test('a message of more than 64 KiB ends its connection, and no other', async (t) => {
  const { port, sdk } = await start(t)
  const long = new StrictSdk(port)
  await long.open()
  long.socket.send(JSON.stringify({ Action: 'x'.repeat(70_000), RequestId: '1' }))
  await until('the end', () => long.is_closed)
  await sdk.ok('HeartbeatServerProcess', { HealthStatus: true })
})

test('a thousand random messages neither end the process nor call what they did not ask for', async (t) => {
  const { lobby, sdk, port } = await start(t)
  const random = seededRandom(11)
  const hostile = new WebSocket(`ws://127.0.0.1:${port}/?Authorization=${SECRET}`)
  t.after(() => hostile.terminate())
  await until('the connection', () => hostile.readyState === WebSocket.OPEN)
  const names = [
    'Action',
    'RequestId',
    'GameSessionId',
    'PlayerSessionId',
    'psess-token-a',
    'psess-',
    'HealthStatus',
    'Limit',
  ]
  const actions = ['AcceptPlayerSession', 'RemovePlayerSession', 'DescribePlayerSessions', 'HeartbeatServerProcess']
  lobby.seat('a')
  for (let count = 0; count < 1_000; count++) {
    const value = randomJson(random, names)
    const almost = {
      Action: actions[random(4)],
      RequestId: 'r',
      PlayerSessionId: value,
      Limit: value,
      HealthStatus: value,
    }
    const text = JSON.stringify(random(2) === 0 ? almost : value)
    hostile.send(random(4) === 0 ? Buffer.from(text.slice(0, random(text.length + 1))) : text)
  }
  await sdk.ok('HeartbeatServerProcess', { HealthStatus: true })
  await sdk.ok('DescribePlayerSessions', {})
  assert.notEqual(lobby.calls.length, 0)
  assert.deepEqual(
    lobby.calls.filter((call) => !/^(connected|disconnected|setPlayers)\b/.test(call)),
    [],
  )
})
