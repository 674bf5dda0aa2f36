// The game without the platform, to work on it: serves the site as it is in the sources right now, runs one server (in
// the SDK's development mode, restarted when its files change), and answers `find` with it.

import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { buildSite, contentTypeOf } from './build.ts'

const SITE_PORT = Number(process.env.PORT ?? 5173)
const GAME_PORT = SITE_PORT + 1
const NO_SPECTATORS = { code: 'MATCHMAKER_SPECTATORS_DISABLED', message: 'Watching needs the platform.' }

const server = spawn(process.execPath, ['--watch', join(import.meta.dirname, 'server/main.ts')], {
  env: { ...process.env, PORT_GAME: String(GAME_PORT), PLATFORM_MAX_PLAYERS_NORMAL: '8' },
  stdio: 'inherit',
})

/** The shape of the platform's answer, for a lobby that is always there. */
function seat(host: string) {
  const url = `http://${host}:${GAME_PORT}`
  const ports = { game: { host: `${host}:${GAME_PORT}`, hostname: host, port: GAME_PORT, is_tls: false, url } }
  const lobby_id = '00000000-0000-0000-0000-000000000000'
  const player = { token: 'development' }
  return { lobby: { lobby_id, region: { region_id: 'local', display_name: 'Local' }, ports, player }, ports, player }
}

const site = createServer(async (request, response) => {
  const { pathname, host, hostname } = new URL(`http://${request.headers.host}${request.url}`)
  const answer = (status: number, type: string, content: string | Buffer) =>
    response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(content)
  if (pathname === '/.well-known/muster.json') {
    answer(200, 'application/json', JSON.stringify({ matchmaker_url: `http://${host}`, game_id: '', namespace_id: '' }))
  } else if (pathname === '/matchmaker/lobbies/find' && request.method === 'POST') {
    const { role } = (await json(request)) as { role?: string }
    // Without the platform no token says who is a spectator.
    if (role === 'spectator') answer(400, 'application/json', JSON.stringify(NO_SPECTATORS))
    else answer(200, 'application/json', JSON.stringify(seat(hostname)))
  } else {
    const path = pathname === '/' ? 'index.html' : pathname.slice(1)
    const file = (await buildSite()).find((candidate) => candidate.path === path)
    if (file === undefined) answer(404, 'text/plain', 'There is no such file.\n')
    else answer(200, contentTypeOf(path), file.content)
  }
})

site.listen(SITE_PORT, '127.0.0.1', () => console.log(`Play at http://localhost:${SITE_PORT}/`))

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    server.kill(signal)
    site.close()
    site.closeAllConnections()
  })
}
