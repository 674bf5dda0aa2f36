// The part of the server that players reach: a page reads the state as server-sent events (GET /events), and sends where its
// pointer is (POST /steer). Nothing here knows on which platform it runs.
import { createServer } from 'node:http'
import { createGame } from './game.js'

const STEP_MS = 50
const BODY_BYTES_MAX = 64

/**
 * `playerOf`: names the player of a request; null: a stranger. `enter` and `leave`: called when a player comes and goes; `enter`
 * throws to refuse one.
 */
export function servePages({ playerOf, enter = async () => {}, leave = async () => {} }) {
  const game = createGame()
  const pages = new Map() // The open page and the id in the game, by player.

  async function welcome(player, response) {
    if (pages.has(player)) return response.writeHead(409).end()
    const page = { response, id: null }
    pages.set(player, page)
    try {
      await enter(player)
    } catch (error) {
      pages.delete(player)
      return response.writeHead(401).end(error.message)
    }
    const { id } = Object.assign(page, { id: game.enter() })
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(`data: ${JSON.stringify({ id })}\n\n`)
    const end = () => {
      pages.delete(player)
      game.leave(id)
      leave(player).catch(console.error)
    }
    if (response.destroyed)
      end() // The page was closed meanwhile.
    else response.once('close', end)
  }

  async function respond(request, response) {
    response.setHeader('access-control-allow-origin', '*')
    const { pathname } = new URL(request.url, 'http://game')
    const player = playerOf(request)
    if (player === null) return response.writeHead(401).end()
    if (request.method === 'GET' && pathname === '/events') return welcome(player, response)
    const page = pages.get(player)
    if (request.method !== 'POST' || pathname !== '/steer' || page === undefined) return response.writeHead(404).end()
    game.steer(page.id, await bodyOf(request))
    response.writeHead(204).end()
  }

  setInterval(() => {
    game.step(STEP_MS / 1000)
    const state = `data: ${JSON.stringify(game.state())}\n\n`
    for (const { response, id } of pages.values()) if (id !== null) response.write(state)
  }, STEP_MS)

  const server = createServer((request, response) => {
    respond(request, response).catch(() => response.destroy())
  })
  process.once('SIGTERM', () => process.exit(0)) // The platform ends the lobby.
  return new Promise((resolve) => server.listen(process.env.PORT, process.env.HOST, resolve))
}

async function bodyOf(request) {
  let body = ''
  for await (const part of request) {
    body += part
    if (body.length > BODY_BYTES_MAX) throw new Error('The body is too long.')
  }
  return body
}
