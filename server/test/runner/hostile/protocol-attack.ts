// A hostile server of a lobby: it sends anything to the endpoint of its protocol, and tries the addresses of others. It runs
// inside a lobby, so it imports nothing but Node and the pseudorandom numbers. The page `/attack` starts it with a Task, and
// `/report` returns what has happened.
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { createRandom } from '../../faults/random.ts'

/** `host`: empty: where a lobby reaches the platform. `from`: another address than the lobby's own. */
export type Target = { host: string; port: number; from?: string }
/** `secrets`: of others; none may be received. `targets`: addresses that no lobby may reach. */
export type Task = {
  requests: number
  seed: number
  victim_id: string
  secrets: string[]
  targets: Target[]
  gateway_port: number
}
export type Report = {
  is_done: boolean
  sent: number
  /** By status of HTTP, and messages of WebSockets. */
  received: Record<string, number>
  /** Which of `secrets` were received. */
  leaks: number[]
  reached: string[]
  /** What the gateway returns to Agones' GET /gameserver at its own address, by the Host of the request. */
  own_ids: string[]
}

const AT_ONCE = 28
const PIPELINED_MAX = 20
const MESSAGES_MAX = 200
const TALKING_MAX = 3
/** How long a connection waits for responses before it is left. */
const STAY_MS_MAX = 500
const OWN_MS_MAX = 10_000
/** The first connections, one after the other, wait longer. */
const PATIENT_MS = 2_000
const TRIES_MIN = 3
const TRIES_MAX = 10
/** Garbage may be half of a request, which the endpoint waits for. */
const GARBAGE_MS_MAX = 50
const CONNECT_MS_MAX = 500
const ID_LENGTH = 36

/** Where a lobby reaches the platform. */
const SERVICES = new URL(process.env.PLATFORM_API_URL!).hostname
const [, , protocol = ''] = process.argv
const report: Report = { is_done: false, sent: 0, received: {}, leaks: [], reached: [], own_ids: [] }
let task: Task = { requests: 0, seed: 1, victim_id: '', secrets: [], targets: [], gateway_port: 0 }
let random = createRandom(1)

type Endpoint = {
  port: number
  /** What the routes have as ID, if it is the right one. */
  own: string
  routes: string[]
  bodies: () => object[]
  socket_path: string | null
  messages: () => string[]
}

const readJson = (path: string): Record<string, string> => JSON.parse(readFileSync(path, 'utf8'))
const idOf = (own: string): string =>
  random.pick([
    own,
    own,
    own,
    task.victim_id,
    '..',
    '%00',
    '',
    'x'.repeat(random.pick([1, 64, 300, 5_000])),
    randomBytes(4).toString('hex'),
  ])

function agones(): Endpoint {
  const bodies = () => [
    { key: 'a', value: `player-${random.int(100)}`, seconds: random.int(3) },
    { value: idOf('player'), playerID: idOf('player'), count: `${random.int(9)}`, countDiff: 1 },
    { key: `${idOf('a')}/../${task.victim_id}`, value: random.pick(['', 'x'.repeat(70_000), 'b']) },
  ]
  const routes = [
    ...['POST /ready', 'POST /allocate', 'POST /reserve', 'POST /health', 'GET /gameserver'],
    ...[
      'PUT /metadata/label',
      'PUT /metadata/annotation',
      'GET /v1beta1/lists/players',
      'PATCH /v1beta1/lists/players',
    ],
    ...['POST /v1beta1/lists/players:addValue', 'POST /v1beta1/lists/players:removeValue', 'GET /v1beta1/counters/ID'],
    ...['PATCH /v1beta1/counters/rooms', 'POST /alpha/player/connect', 'POST /alpha/player/disconnect'],
    ...['PUT /alpha/player/capacity', 'GET /alpha/player/connected/ID', 'GET /%', 'GET //', 'OPTIONS *', 'GET /../ID'],
  ]
  const port = Number(process.env.AGONES_SDK_HTTP_PORT)
  return { port, own: 'players', routes, bodies, socket_path: '/watch/gameserver', messages: () => ['{}', 'x'] }
}

function gsdk(): Endpoint {
  const { heartbeatEndpoint = '', sessionHostId = '' } = readJson(process.env.GSDK_CONFIG_FILE!)
  const states = ['Active', 'Active', 'Active', 'StandingBy', 'Initializing', 'Nothing', '', null]
  const players = () => Array.from({ length: random.int(40) }, () => ({ PlayerId: idOf('player') }))
  const bodies = () => [
    {
      CurrentGameState: random.pick(states),
      CurrentGameHealth: random.pick(['Healthy', 'Unhealthy', '', 1]),
      CurrentPlayers: random.pick([players(), null, 'all', [null], [{ PlayerId: 5 }]]),
    },
    { Flavor: idOf('x'), Version: random.int(9) },
  ]
  const routes = [
    ...['PATCH /v1/sessionHosts/ID', 'POST /v1/sessionHosts/ID/heartbeats', 'POST /v1/metrics/ID/gsdkinfo'],
  ]
  const port = Number(heartbeatEndpoint.split(':')[1])
  return { port, own: sessionHostId, routes, bodies, socket_path: null, messages: () => [] }
}

function gamelift(): Endpoint {
  const {
    GAMELIFT_SDK_WEBSOCKET_URL: url = '',
    GAMELIFT_SDK_AUTH_TOKEN: token = '',
    PLATFORM_LOBBY_ID: own = '',
  } = process.env
  const actions = [
    ...['ActivateServerProcess', 'HeartbeatServerProcess', 'ActivateGameSession', 'AcceptPlayerSession', 'Nothing', ''],
    ...['RemovePlayerSession', 'DescribePlayerSessions', 'UpdatePlayerSessionCreationPolicy', 'StartMatchBackfill'],
    ...['StopMatchBackfill', 'GetComputeCertificate', 'GetFleetRoleCredentials', '__proto__', 'constructor'],
  ]
  const session = () => ({
    Action: random.pick(actions),
    RequestId: random.pick([randomBytes(8).toString('hex'), '', 'x'.repeat(300), null]),
    GameSessionId: idOf(own),
    PlayerSessionId: `psess-${idOf(own)}`,
    PlayerSessionPolicy: random.pick(['DENY_ALL', 'ACCEPT_ALL', 'none']),
    HealthStatus: random.chance(0.5),
    Limit: random.pick([0, -1, 5, 1e9]),
    NextToken: idOf(own),
    Port: random.int(70_000),
    LogPaths: [idOf('/')],
  })
  const query = () => `?pID=${own}&Authorization=${random.pick([token, token, token, idOf('x'), ''])}`
  const routes = ['GET /', 'POST /', 'GET /ID', `GET /?Authorization=${token}`]
  const messages = () => [
    ...Array.from({ length: 8 }, () => JSON.stringify(session())),
    random.pick(['{', 'null', '[]', '', '"Action"', random.chance(0.05) ? 'x'.repeat(100_000) : '[[[[']),
  ]
  const port = Number(new URL(url).port)
  return { port, own, routes, bodies: () => [session()], socket_path: query(), messages }
}

function multiplay(): Endpoint {
  const { localProxyUrl = '', serverID = '', allocatedUUID = '' } = readJson(`${process.env.HOME}/server.json`)
  const routes = ['v1/server/SERVER/allocation/ID/ready-for-players POST', 'v1/server/SERVER/unready POST']
    .concat(['v1/servers/SERVER/allocations/ID PATCH', 'v1/servers/SERVER/hold POST', 'v1/servers/SERVER/hold GET'])
    .concat(['v1/servers/SERVER/hold DELETE', 'v1/servers/SERVER/reservations POST', 'v1/payload/allocations/ID GET'])
    .concat([
      'payload/ID GET',
      'token GET',
      'v4/token GET',
      `payload/${allocatedUUID} GET`,
      'v2/backfill/ID/approvals POST',
    ])
    .map((text) => text.replace('SERVER', random.pick([serverID, serverID, '1', '-1', '9'.repeat(30)])).split(' '))
    .map(([path, verb]) => `${verb} /${path}`)
  const command = () => ({
    id: random.pick([1, 2, 0, -1, 1e99, null, 'x']),
    method: random.pick([0, 1, 2, 3, 7, 99, 'connect', null]),
    params: random.pick([{ token: 'x' }, { channel: `server#${random.pick([serverID, '1', '#'])}` }, null, [], {}]),
  })
  const messages = () => [
    JSON.stringify(command()),
    `${JSON.stringify(command())}\n${JSON.stringify(command())}`,
    '{',
    '\n',
  ]
  const bodies = () => [
    { ready: random.pick([true, false, null]) },
    { timeout: random.pick(['2m', '-1h', '9'.repeat(99), 1]) },
  ]
  return {
    port: Number(new URL(localProxyUrl).port),
    own: allocatedUUID,
    routes,
    bodies,
    socket_path: '/v1/connection/websocket',
    messages,
  }
}

function count(what: string): void {
  report.received[what] = (report.received[what] ?? 0) + 1
}

/** Looks for secrets of others. `before`: the end of what came before on the same connection. */
function hear(before: string, text: string): string {
  const all = before + text
  for (const [index, secret] of task.secrets.entries())
    if (all.includes(secret) && !report.leaks.includes(index)) report.leaks.push(index)
  return all.slice(-Math.max(ID_LENGTH, ...task.secrets.map(({ length }) => length)))
}

type Stay = { responses: number; stay_ms: number }

/** Sends bytes and stays until `responses` have arrived, or leaves early. */
function sendRaw({ host, port }: Target, content: Buffer, { responses, stay_ms }: Stay): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host, port })
    const leave = setTimeout(() => socket.destroy(), stay_ms)
    let [heard, first, missing] = ['', '', responses]
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => {
      const text = chunk.toString('latin1')
      first ||= text
      heard = hear(heard, text)
      for (const [, status] of text.matchAll(/HTTP\/1\.1 (\d{3})/g)) {
        count(status!)
        missing--
      }
      if (missing <= 0) socket.destroy()
    })
    socket.on('close', () => {
      clearTimeout(leave)
      resolve(first)
    })
    socket.write(content)
  })
}

/** `is_last`: later ones on the connection may be lost. */
function requestBytes({ routes, bodies, port, own }: Endpoint, is_last: boolean): Buffer {
  const [verb = '', path = ''] = (is_last && random.chance(0.1) ? 'GET /watch/gameserver' : random.pick(routes))
    .replace('ID', idOf(own))
    .split(' ')
  const method = random.chance(0.1)
    ? random.pick(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD', 'TRACE'])
    : verb
  const body = random.chance(0.1) ? randomBytes(random.int(300)) : Buffer.from(JSON.stringify(random.pick(bodies())))
  const length = is_last && random.chance(0.2) ? random.int(1e5) : body.length
  const hosts = [`127.0.0.1:${port}`, task.targets[0]?.host ?? 'x', 'localhost', '', `${SERVICES}:1`, task.victim_id]
  const forged = random.pick([
    `x-forwarded-for: ${task.targets[0]?.host}`,
    'x-forwarded-host: gateway',
    `authorization: Bearer ${task.victim_id}`,
    'cookie: a=b',
  ])
  const upgrade =
    is_last && random.chance(0.2) ? 'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n' : ''
  const head = `${method} ${path} HTTP/1.1\r\nhost: ${random.pick(hosts)}\r\n${forged}\r\n${upgrade}content-length: ${length}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), body])
}

async function sendHttp(endpoint: Endpoint, amount: number, stay_ms = STAY_MS_MAX): Promise<void> {
  const requests = Array.from({ length: amount }, (_, index) => requestBytes(endpoint, index === amount - 1))
  await sendRaw({ host: '127.0.0.1', port: endpoint.port }, Buffer.concat(requests), {
    responses: amount,
    stay_ms: stay_ms === STAY_MS_MAX && random.chance(0.1) ? 5 : stay_ms,
  })
}

/** Connections that begin with something else than a request. */
async function sendGarbage({ port }: Endpoint, amount: number): Promise<void> {
  for (let index = 0; index < amount; index++) {
    const beginning = random.pick(['', 'PRI', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'GET / HTTP/1.1\r\n', '\x16\x03\x01'])
    const content = Buffer.concat([Buffer.from(beginning, 'latin1'), randomBytes(random.int(2_000))])
    await sendRaw({ host: '127.0.0.1', port }, content, { responses: 1, stay_ms: GARBAGE_MS_MAX })
  }
}

/** A WebSocket as it should be, with messages that should not. */
function sendMessages({ port, socket_path, messages }: Endpoint, amount: number, stay_ms = STAY_MS_MAX): Promise<void> {
  return new Promise((resolve) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}${socket_path}`)
    let [heard, received] = ['', 0]
    const leave = setTimeout(() => socket.close(), stay_ms)
    socket.onopen = () => {
      for (let index = 0; index < amount; index++) socket.send(random.pick(messages()))
    }
    socket.onmessage = ({ data }) => {
      count('message')
      heard = hear(heard, String(data))
      if (++received >= amount) socket.close()
    }
    socket.onerror = () => undefined
    socket.onclose = () => {
      clearTimeout(leave)
      resolve()
    }
  })
}

function sendGrpc({ port }: Endpoint, amount: number): Promise<void> {
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  session.on('error', () => undefined)
  return new Promise((resolve) => {
    setTimeout(() => session.destroy(), STAY_MS_MAX)
    session.on('close', () => resolve())
    for (let index = 0; index < amount; index++) {
      const name = random.pick(['Ready', 'SetLabel', 'Health', 'WatchGameServer', 'GetGameServer', 'Nothing', '..'])
      const stream = session.request({
        ':method': random.pick(['POST', 'POST', 'GET']),
        ':path': `/${random.pick(['agones.dev.sdk.SDK', 'agones.dev.sdk.SDK', 'x'])}/${name}`,
        ':authority': random.pick(['localhost', task.victim_id]),
        'content-type': random.pick(['application/grpc', 'application/grpc+json', 'application/grpc-web']),
        'grpc-timeout': random.pick(['1S', '0n', '99999999H', 'x']),
        te: 'trailers',
      })
      stream.on('error', () => undefined)
      stream.on('response', ({ ':status': status }) => count(String(status)))
      let heard = ''
      stream.on('data', (chunk: Buffer) => {
        heard = hear(heard, chunk.toString('latin1'))
      })
      const message = randomBytes(random.int(200))
      const frame = Buffer.concat([Buffer.alloc(5), message])
      frame.writeUInt32BE(random.pick([message.length, message.length, 0, 0xffff_ffff, 70_000]), 1)
      stream.write(frame)
      if (random.chance(0.7)) stream.end()
    }
  })
}

function isReached({ host, port, from }: Target): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({
      host: host === '' ? SERVICES : host,
      port,
      ...(from !== undefined && { localAddress: from }),
    })
    const late = setTimeout(() => socket.destroy(), CONNECT_MS_MAX)
    socket.on('error', () => undefined)
    socket.on('connect', () => {
      clearTimeout(late)
      resolve(true)
      socket.destroy()
    })
    socket.on('close', () => {
      clearTimeout(late)
      resolve(false)
    })
  })
}

async function tryAddresses(): Promise<void> {
  await Promise.all(
    task.targets.map(async (target) => {
      if (await isReached(target)) report.reached.push(`${target.from ?? ''}>${target.host}:${target.port}`)
    }),
  )
  for (const host of ['x', task.victim_id, ...task.targets.map((target) => target.host)]) {
    const content = Buffer.from(`GET /gameserver HTTP/1.1\r\nhost: ${host}\r\n\r\n`)
    const text = await sendRaw({ host: SERVICES, port: task.gateway_port }, content, {
      responses: 1,
      stay_ms: OWN_MS_MAX,
    })
    report.own_ids.push(/"uid":"([^"]*)"/.exec(text)?.[1] ?? '')
  }
}

async function attack(): Promise<void> {
  const endpoint = () => ({ agones, gsdk, gamelift, multiplay })[protocol]!()
  await tryAddresses()
  const { socket_path } = endpoint()
  const kinds = [sendHttp, sendHttp, sendHttp, sendGarbage]
  if (protocol === 'agones') kinds.push(sendMessages, sendGrpc)
  else if (socket_path !== null) kinds.push(sendMessages, sendMessages, sendMessages)
  // On a loaded machine a response takes longer than the others stay for.
  for (let tries = 0; tries < TRIES_MIN; tries++) await sendHttp(endpoint(), PIPELINED_MAX, PATIENT_MS)
  for (let tries = 0; socket_path !== null && tries < TRIES_MAX && !('message' in report.received); tries++)
    await sendMessages(endpoint(), MESSAGES_MAX, PATIENT_MS)
  let [started, talking] = [0, 0]
  const work = async (): Promise<void> => {
    while (started < task.requests) {
      const picked = random.pick(kinds)
      // An endpoint keeps the newest few WebSockets, and closes the others.
      const send = picked === sendMessages && talking >= TALKING_MAX ? sendHttp : picked
      const amount = Math.min(
        1 + random.int(send === sendMessages ? MESSAGES_MAX : PIPELINED_MAX),
        task.requests - started,
      )
      started += amount
      if (send === sendMessages) talking++
      await send(endpoint(), amount)
      if (send === sendMessages) talking--
      report.sent += amount
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  report.is_done = true
}

process.on('SIGTERM', () => process.exit(0))
createServer(async (request, response) => {
  if (request.url?.startsWith('/attack') === true) {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    task = JSON.parse(Buffer.concat(parts).toString()) as Task
    random = createRandom(task.seed)
    attack().catch((error: unknown) => {
      report.reached.push(String(error))
      report.is_done = true
    })
  }
  response.end(JSON.stringify(report))
}).listen(Number(process.env.PORT), process.env.HOST)
