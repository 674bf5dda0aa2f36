// Allocates a lobby for players that another matchmaker has matched: `node allocate.mjs ADDRESS...`. One call starts the lobby and
// gives each player a seat, or changes nothing. Node 20 or newer; no packages.
//
//   MUSTER_URL          the platform: http://localhost:8000
//   MUSTER_CLOUD_TOKEN  a cloud token of the game: muster tokens create
//   MUSTER_NAMESPACE    the id of the namespace
//   MATCH_ID            the id of the match in the other matchmaker: the same match never gets two lobbies
import { randomUUID } from 'node:crypto'

const { MUSTER_URL, MUSTER_CLOUD_TOKEN, MUSTER_NAMESPACE, MATCH_ID = randomUUID() } = process.env
/** The platform responds after 50 s at the latest. */
const RESPONSE_MS_MAX = 60_000
const ATTEMPTS_MAX = 3

/** `players`: `{ address, identity_id }` of each player, both optional. Returns the lobby, its ports and a token for each. */
async function allocate(match_id, players) {
  const body = { namespace_id: MUSTER_NAMESPACE, game_mode: 'default', players }
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(`${MUSTER_URL}/matchmaker/lobbies/allocate`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${MUSTER_CLOUD_TOKEN}`,
        'content-type': 'application/json',
        // A repeated call with the same key gets the same lobby.
        'idempotency-key': match_id,
      },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(RESPONSE_MS_MAX),
    })
    const answer = await response.json()
    if (response.ok) return answer
    if (response.status < 502 || attempt === ATTEMPTS_MAX) throw new Error(`${answer.code}: ${answer.message}`)
    await new Promise((resolve) => setTimeout(resolve, 1_000 * attempt))
  }
}

const { lobby, ports, players } = await allocate(
  MATCH_ID,
  process.argv.slice(2).map((address) => ({ address })),
)
console.log(
  JSON.stringify({ lobby_id: lobby.lobby_id, url: ports.game?.url, tokens: players.map(({ token }) => token) }),
)
