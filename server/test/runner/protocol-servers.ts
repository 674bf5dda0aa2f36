// Servers that speak the protocols of other platforms, as their SDKs do, and nothing of this one. A player comes and goes by
// GET /come?id= and /go?id=; GET / returns what the server knows.

const GAME = `
  import { readFileSync } from 'node:fs'
  import { createServer } from 'node:http'
  export const play = (handlers, onListening) => {
    const server = createServer(async (request, response) => {
      const { pathname, searchParams } = new URL(request.url, 'http://game')
      try {
        await handlers[pathname.slice(1)]?.(searchParams.get('id'))
        response.end(JSON.stringify(await handlers.known()))
      } catch (error) {
        response.writeHead(500).end(String(error))
      }
    })
    server.listen(process.env.PORT, process.env.HOST, onListening)
    process.on('SIGTERM', () => process.exit(0))
  }
  export const call = async (method, url, body) => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const response = await fetch(url, { method, headers: { 'content-type': 'application/json' }, body: text })
    if (!response.ok) throw new Error(url + ' ' + response.status + ' ' + (await response.text()))
    return response.status === 204 ? null : response.json()
  }
  export const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'))`

const AGONES = `
  import { call, play } from './game.mjs'
  const sdk = (method, path, body) => call(method, 'http://127.0.0.1:' + process.env.AGONES_SDK_HTTP_PORT + path, body)
  const failed = []
  play({
    come: (value) => sdk('POST', '/v1beta1/lists/players:addValue', { value }),
    go: (value) => sdk('POST', '/v1beta1/lists/players:removeValue', { value }),
    shutdown: () => sdk('POST', '/shutdown', {}),
    known: async () => ({ ...(await sdk('GET', '/gameserver')), failed, grpc_port: process.env.AGONES_SDK_GRPC_PORT }),
  }, async () => {
    setInterval(() => sdk('POST', '/health', {}).catch((error) => failed.push(String(error))), 200)
    await sdk('PUT', '/metadata/label', { key: 'map', value: 'cliff' })
    await sdk('POST', '/ready', {})
  })`

const GSDK = `
  import { call, play, readJson } from './game.mjs'
  const { heartbeatEndpoint, sessionHostId } = readJson(process.env.GSDK_CONFIG_FILE)
  const url = 'http://' + heartbeatEndpoint + '/v1/sessionHosts/' + sessionHostId
  const failed = []
  let state = 'Initializing'
  let session = null
  let players = []
  let beating
  const beat = async () => {
    const CurrentPlayers = players.map((PlayerId) => ({ PlayerId }))
    const answer = await call('PATCH', url, { CurrentGameState: state, CurrentGameHealth: 'Healthy', CurrentPlayers })
    if (answer.operation === 'Active' && state === 'StandingBy') [state, session] = ['Active', answer.sessionConfig]
  }
  play({
    come: (id) => { players.push(id) },
    go: (id) => { players = players.filter((one) => one !== id) },
    hush: () => clearInterval(beating),
    known: () => ({ state, session, failed }),
  }, () => {
    state = 'StandingBy'
    beating = setInterval(() => beat().catch((error) => failed.push(String(error))), 200)
  })`

const GAMELIFT = `
  import { randomUUID } from 'node:crypto'
  import { play } from './game.mjs'
  const query = new URLSearchParams({
    pID: process.env.GAMELIFT_SDK_PROCESS_ID, sdkVersion: '5.1.2', sdkLanguage: 'Go', ComputeId: process.env.GAMELIFT_SDK_HOST_ID,
    FleetId: process.env.GAMELIFT_SDK_FLEET_ID, IdempotencyToken: randomUUID(), Authorization: process.env.GAMELIFT_SDK_AUTH_TOKEN,
  })
  const socket = new WebSocket(process.env.GAMELIFT_SDK_WEBSOCKET_URL + '?' + query)
  const waiting = new Map()
  let session = null
  const ask = (Action, members) => new Promise((resolve, reject) => {
    const RequestId = randomUUID()
    waiting.set(RequestId, { resolve, reject })
    socket.send(JSON.stringify({ Action, RequestId, ...members }))
  })
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data)
    if (message.Action === 'CreateGameSession') {
      session = message
      ask('ActivateGameSession', { GameSessionId: message.GameSessionId }).catch(console.error)
      return
    }
    const { resolve, reject } = waiting.get(message.RequestId) ?? {}
    if (message.StatusCode === 200) resolve?.(message)
    else reject?.(new Error(message.ErrorMessage))
  }
  const of = (id) => ({ GameSessionId: session.GameSessionId, PlayerSessionId: 'psess-' + id })
  play({
    come: (id) => ask('AcceptPlayerSession', of(id)),
    go: (id) => ask('RemovePlayerSession', of(id)),
    known: async () => {
      const { PlayerSessions } = await ask('DescribePlayerSessions', { GameSessionId: session.GameSessionId, Limit: 10 })
      return { session, players: PlayerSessions }
    },
  }, () => {
    const start = () => ask('ActivateServerProcess', { SdkVersion: '5.1.2', SdkLanguage: 'Go', Port: Number(process.env.PORT), LogPaths: [] })
    if (socket.readyState === 1) start()
    else socket.onopen = start
  })`

const MULTIPLAY = `
  import { call, play, readJson } from './game.mjs'
  const file = readJson(process.env.HOME + '/server.json')
  const socket = new WebSocket(file.localProxyUrl.replace('http', 'ws') + '/v1/connection/websocket')
  const send = (command) => socket.send(JSON.stringify(command))
  const events = []
  const failed = []
  const path = '/v1/servers/' + file.serverID + '/allocations/' + file.allocatedUUID
  const report = () => Promise.all([
    call('GET', file.localProxyUrl + '/v1/payload/allocations/' + file.allocatedUUID),
    call('PATCH', file.localProxyUrl + path, { ready: true }),
  ])
  socket.onclose = ({ code }) => failed.push('closed with ' + code)
  socket.onopen = () => send({ id: 1, params: { token: 'x' } })
  socket.onmessage = ({ data }) => {
    for (const line of data.split('\\n')) {
      const { id, result } = JSON.parse(line)
      if (id === 1) send({ id: 2, method: 1, params: { channel: 'server#' + file.serverID, token: 'x' } })
      const event = result?.data?.data
      if (event?.EventType !== 'AllocateEventType') continue
      if (events.push(event) > 1) failed.push('allocated again')
      const path = '/v1/server/' + file.serverID + '/allocation/' + event.AllocationID + '/ready-for-players'
      call('POST', file.localProxyUrl + path).catch(console.error)
    }
  }
  play({ known: () => ({ file, events, failed }) }, () => {
    setInterval(() => report().catch((error) => failed.push(String(error))), 500)
  })`

export const PROTOCOL_SERVERS = {
  'game.mjs': GAME,
  'agones.mjs': AGONES,
  'gsdk.mjs': GSDK,
  'gamelift.mjs': GAMELIFT,
  'multiplay.mjs': MULTIPLAY,
}

/** Calls the SDK server by gRPC, with messages as bytes. Arguments: the port, the lobby id. */
export const AGONES_IN_PYTHON = `
import sys, grpc
port, lobby_id = sys.argv[1:]
channel = grpc.insecure_channel('127.0.0.1:' + port)
raw = {'request_serializer': bytes, 'response_deserializer': bytes}
path = '/agones.dev.sdk.SDK/'
def call(name, message=b''):
    return channel.unary_unary(path + name, **raw)(message, timeout=10)
assert lobby_id.encode() in call('GetGameServer')
assert call('SetLabel', b'\\n\\x02by\\x12\\x06python') == b''
assert channel.stream_unary(path + 'Health', **raw)(iter([b'', b'', b'']), timeout=10) == b''
first = next(iter(channel.unary_stream(path + 'WatchGameServer', **raw)(b'', timeout=10)))
assert b'agones.dev/sdk-by' in first and b'python' in first
try:
    call('SetLabel', b'\\n\\x01-\\x12\\x01x')
    sys.exit('a wrong key was taken')
except grpc.RpcError as error:
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
assert call('Reserve', b'\\x08\\x05') == b''
assert call('Allocate') == b''
assert b'Allocated' in call('GetGameServer')
print('as expected')
`
