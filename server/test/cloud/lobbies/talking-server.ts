// A game whose lobbies write the text that they receive: when they start, by their lobby config, later over their port, and
// by their standard input where that is allowed.
import assert from 'node:assert/strict'
import { exportLobbyLogs, getLobbyLogs, type QueryOf, type ResponseOf } from '@musterhost/contract'
import { LONG_MS } from '../../http/steps.ts'
import type { Platform, TestGame } from '../../support/platform.ts'
import { until } from '../../support/until.ts'

type StreamName = QueryOf<typeof getLobbyLogs>['stream']
type Answer = ResponseOf<typeof getLobbyLogs>
/** `exit_code`: it ends at once, without ever being ready. */
export type Script = { std_out?: Buffer | string; std_err?: Buffer | string; exit_code?: number }

const SERVER = `
const http = process.getBuiltinModule('node:http')
import { writeSync } from 'node:fs'
const { PLATFORM_API_URL, PLATFORM_TOKEN, PORT_GAME, PLATFORM_LOBBY_CONFIG } = process.env
const { std_out = '', std_err = '', exit_code } = JSON.parse(PLATFORM_LOBBY_CONFIG || '{}')
function write(fd, bytes) {
  for (let at = 0; at < bytes.length; ) {
    try { at += writeSync(fd, bytes, at) } catch (error) { if (error.code !== 'EAGAIN') throw error }
  }
}
write(1, Buffer.from(std_out, 'base64'))
write(2, Buffer.from(std_err, 'base64'))
if (exit_code !== undefined) process.exit(exit_code)
http.createServer(async (request, answer) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const { repeat = 1, text } = JSON.parse(Buffer.concat(chunks))
  for (let count = 0; count < repeat; count++) write(request.url === '/std_err' ? 2 : 1, Buffer.from(text.replace('#', count)))
  answer.end()
}).listen(Number(PORT_GAME), '127.0.0.1', () => {
  const headers = { authorization: 'Bearer ' + PLATFORM_TOKEN }
  http.request(PLATFORM_API_URL + '/matchmaker/lobbies/ready', { method: 'POST', headers }).end()
})
process.stdin.on('data', (bytes) => write(1, Buffer.concat([Buffer.from('read '), bytes])))
process.on('SIGTERM', () => process.exit(0))
`

export function talkingGame(platform: Platform, docker: { standard_input?: boolean } = {}): Promise<TestGame> {
  const actions = { create: { enabled: true, enable_public: true } }
  const game_modes = { default: { idle_grace_ms: LONG_MS, actions } }
  return platform.game({ files: { 'server.mjs': SERVER }, matchmaker: { game_modes }, docker })
}

/** Returns the id of a lobby that writes it. Of one that ends at once the request for a seat is refused. */
export async function talkingLobby(platform: Platform, game: TestGame, script: Script = {}): Promise<string> {
  const { std_out = '', std_err = '', exit_code } = script
  const lobby_config = {
    std_out: Buffer.from(std_out).toString('base64'),
    std_err: Buffer.from(std_err).toString('base64'),
    ...(exit_code === undefined ? {} : { exit_code }),
  }
  const before = await lobbyIds(platform, game)
  const seat = game.create({ lobby_config, publicity: 'public' })
  if (exit_code === undefined) return (await seat).lobby.lobby_id
  await assert.rejects(seat)
  const [lobby_id] = (await lobbyIds(platform, game)).filter((id) => !before.includes(id))
  return lobby_id!
}

async function lobbyIds({ ctx }: Platform, { namespace_id }: TestGame): Promise<string[]> {
  const rows = await ctx.db
    .selectFrom('lobbies')
    .select('lobby_id')
    .where('namespace_id', '=', namespace_id)
    .orderBy('create_ts')
    .execute()
  return rows.map(({ lobby_id }) => lobby_id)
}

/** Has a lobby that runs write `text`, in which # stands for the number of the repetition. */
export async function say(platform: Platform, lobby_id: string, text: string, repeat = 1): Promise<void> {
  const { ports } = await platform.ctx.db
    .selectFrom('lobby_runs')
    .select('ports')
    .where('lobby_id', '=', lobby_id)
    .executeTakeFirstOrThrow()
  const body = JSON.stringify({ text, repeat })
  const { hostname, port } = ports.game!
  const response = await fetch(`http://${hostname}:${port}/std_out`, { method: 'POST', body })
  assert.equal(response.status, 200)
}

export function logOf(
  platform: Platform,
  { game_id }: TestGame,
  lobby_id: string,
  stream: StreamName = 'std_out',
  watch_index?: string,
): Promise<Answer> {
  const query = { stream, ...(watch_index === undefined ? {} : { watch_index }) }
  return platform.client.call(getLobbyLogs, { params: { game_id, lobby_id }, query })
}

export const linesOf = ({ lines }: Answer): string[] => lines.map((line) => Buffer.from(line, 'base64').toString())

/** The last lines of a log whose server has ended. */
export function wholeLog(platform: Platform, game: TestGame, lobby_id: string, stream?: StreamName): Promise<Answer> {
  return until('the log is complete', async () => {
    const answer = await logOf(platform, game, lobby_id, stream)
    return answer.is_complete && answer
  })
}

/** What a presigned address of the main domain answers; it leads to the edge, which need not run in every test. */
export function fetchSigned({ api_url }: Platform, url: string): Promise<Response> {
  const { pathname, search } = new URL(url)
  return fetch(`${api_url}${pathname}${search}`)
}

export async function exportedLog(
  platform: Platform,
  { game_id }: TestGame,
  lobby_id: string,
  stream: StreamName,
): Promise<Response> {
  const { url } = await platform.client.call(exportLobbyLogs, { params: { game_id, lobby_id }, body: { stream } })
  return fetchSigned(platform, url)
}
