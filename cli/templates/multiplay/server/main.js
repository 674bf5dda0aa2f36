// The server of one lobby, made for Unity Multiplay. It reads server.json and speaks to the local proxy, as an SDK does, and
// knows nothing of the platform. In your game, the Multiplay SDK does the same.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { servePages } from './pages.js'

const { serverID, localProxyUrl } = JSON.parse(readFileSync(join(process.env.HOME, 'server.json'), 'utf8'))
const CONNECT = { id: 1, params: { token: 'any' } }
const SUBSCRIBE = { id: 2, method: 1, params: { channel: `server#${serverID}`, token: 'any' } }

// The platform checks the seats (`seats: edge` of muster.yaml), and names the player of each request.
await servePages({ playerOf: ({ headers }) => headers['x-player-id'] ?? null })

// SubscribeToServerEventsAsync(): a Centrifuge connection.
const socket = new WebSocket(`${localProxyUrl.replace('http', 'ws')}/v1/connection/websocket`)
socket.onopen = () => socket.send(JSON.stringify(CONNECT))
socket.onmessage = ({ data }) => {
  for (const line of data.split('\n')) {
    const { id, result } = JSON.parse(line)
    if (id === CONNECT.id) socket.send(JSON.stringify(SUBSCRIBE))
    const event = result?.data?.data
    if (event?.EventType === 'AllocateEventType') allocated(event.AllocationID).catch(console.error)
    if (event?.EventType === 'DeallocateEventType') console.log('the lobby is about to end')
  }
}
socket.onclose = () => process.exit(1)

async function allocated(allocation) {
  console.log(`allocation ${allocation}`)
  // ReadyServerForPlayersAsync(): the first players wait for this.
  const path = `/v1/server/${serverID}/allocation/${allocation}/ready-for-players`
  const response = await fetch(localProxyUrl + path, { method: 'POST' })
  if (!response.ok) throw new Error(await response.text())
}
