// The server of one lobby, made for PlayFab. It sends the heartbeats of GSDK, as an SDK does, and knows nothing of the platform.
// In your game, the GSDK for your engine does the same.
import { readFileSync } from 'node:fs'
import { servePages } from './pages.js'

const { heartbeatEndpoint, sessionHostId } = JSON.parse(readFileSync(process.env.GSDK_CONFIG_FILE, 'utf8'))
const HEARTBEAT_URL = `http://${heartbeatEndpoint}/v1/sessionHosts/${sessionHostId}`
const HEARTBEAT_MS = 1000

let state = 'Initializing'

async function beat() {
  const response = await fetch(HEARTBEAT_URL, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json' },
    // Without CurrentPlayers: the platform checks the seats (`seats: edge` of muster.yaml), so it knows the players.
    body: JSON.stringify({ CurrentGameState: state, CurrentGameHealth: 'Healthy' }),
  })
  if (!response.ok) throw new Error(await response.text())
  const { operation, sessionConfig } = await response.json()
  if (operation === 'Active' && state === 'StandingBy') {
    state = 'Active'
    console.log(`session ${sessionConfig.sessionId} begins`)
  }
  if (operation === 'Terminate') process.exit(0)
}

setInterval(() => beat().catch(console.error), HEARTBEAT_MS)

// The platform names the player of each request.
await servePages({ playerOf: ({ headers }) => headers['x-player-id'] ?? null })

// ReadyForPlayers(): the first players wait for this. The first seat makes the server `Active`.
state = 'StandingBy'
await beat()
