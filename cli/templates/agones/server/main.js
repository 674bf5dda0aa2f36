// The server of one lobby, made for Agones. It calls the REST interface of the Agones SDK server, as an SDK does, and knows
// nothing of the platform. In your game, the SDK of Agones for your engine does the same.
import { servePages } from './pages.js'

const SDK_URL = `http://127.0.0.1:${process.env.AGONES_SDK_HTTP_PORT ?? 9358}`
const HEALTH_MS = 2000

async function sdk(method, path, body) {
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(SDK_URL + path, { method, headers, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`${path}: ${await response.text()}`)
  return response.json()
}

// The platform checks the seats (`seats: edge` of muster.yaml), and names the player of each request.
await servePages({ playerOf: ({ headers }) => headers['x-player-id'] ?? null })

// SDK.Health(): at least every 5 seconds.
setInterval(() => sdk('POST', '/health', {}).catch(console.error), HEALTH_MS)
// SDK.SetLabel(): lists of lobbies show it.
await sdk('PUT', '/metadata/label', { key: 'map', value: 'field' })
// SDK.Ready(): the first players wait for this. The first seat makes the server `Allocated`.
await sdk('POST', '/ready', {})
