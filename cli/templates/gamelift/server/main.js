// The server of one lobby, made for GameLift. It speaks to the WebSocket of the server SDK 5, as an SDK does, and knows nothing
// of the platform. In your game, the server SDK for your engine does the same.
import { randomUUID } from 'node:crypto'
import { servePages } from './pages.js'

const SDK = { sdkVersion: '5.1.2', sdkLanguage: 'Go' }
const HEALTH_MS = 60_000
const { env } = process

// InitSDK()
const query = new URLSearchParams({
  ...SDK,
  pID: env.GAMELIFT_SDK_PROCESS_ID,
  ComputeId: env.GAMELIFT_SDK_HOST_ID,
  FleetId: env.GAMELIFT_SDK_FLEET_ID,
  Authorization: env.GAMELIFT_SDK_AUTH_TOKEN,
  IdempotencyToken: randomUUID(),
})
const socket = new WebSocket(`${env.GAMELIFT_SDK_WEBSOCKET_URL}?${query}`)
const waiting = new Map() // Requests without a response, by id.
let session_id = null

function ask(Action, members = {}) {
  return new Promise((resolve, reject) => {
    const RequestId = randomUUID()
    waiting.set(RequestId, { resolve, reject })
    socket.send(JSON.stringify({ Action, RequestId, ...members }))
  })
}

socket.onmessage = ({ data }) => {
  const message = JSON.parse(data)
  if (message.Action === 'CreateGameSession') {
    // OnStartGameSession, and ActivateGameSession(): the first players wait for this.
    session_id = message.GameSessionId
    ask('ActivateGameSession', { GameSessionId: session_id }).catch(console.error)
  }
  if (message.Action === 'TerminateProcess') process.exit(0) // OnProcessTerminate
  const request = waiting.get(message.RequestId)
  waiting.delete(message.RequestId)
  if (message.StatusCode === 200) request?.resolve(message)
  else request?.reject(new Error(message.ErrorMessage))
}
socket.onclose = () => process.exit(1)
await new Promise((resolve) => {
  socket.onopen = resolve
})

// A player session is `psess-` and the player token, which the page sends. The server accepts it, so the seat is taken.
const playerSession = (token) => ({ GameSessionId: session_id, PlayerSessionId: `psess-${token}` })
await servePages({
  playerOf: ({ url }) => new URL(url, 'http://game').searchParams.get('player_token'),
  enter: (token) => ask('AcceptPlayerSession', playerSession(token)),
  leave: (token) => ask('RemovePlayerSession', playerSession(token)),
})

// ProcessReady()
await ask('ActivateServerProcess', {
  SdkVersion: SDK.sdkVersion,
  SdkLanguage: SDK.sdkLanguage,
  Port: Number(env.PORT),
  LogPaths: [],
})
setInterval(() => ask('HeartbeatServerProcess', { HealthStatus: true }).catch(console.error), HEALTH_MS)
