// The lobby server of the load: a real process that relays its players' calls to the matchmaker. It calls with its own token,
// as a game's server does, and returns the response unchanged.

/**
 * MATCHMAKERS: addresses of several matchmakers, comma-separated, where PLATFORM_API_URL is not the only one. The server
 * asks all of them, and takes the first response that is not 5xx.
 */
export const GAME_SERVER = `
const http = process.getBuiltinModule('node:http')
import net from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
const { PLATFORM_API_URL, PLATFORM_TOKEN, PORT_GAME, PORT_RAW, MATCHMAKERS = '' } = process.env
const addresses = MATCHMAKERS === '' ? [PLATFORM_API_URL] : MATCHMAKERS.split(',')
const READY_ATTEMPTS_MAX = 600
const READY_EVERY_MS = 100

const ask = (address, path, body, key) => new Promise((resolve) => {
  const headers = { authorization: 'Bearer ' + PLATFORM_TOKEN }
  if (body !== '') headers['content-type'] = 'application/json'
  if (key !== undefined) headers['idempotency-key'] = key
  const request = http.request(address + path, { method: 'POST', headers, timeout: 15_000 }, (answer) => {
    let text = ''
    answer.setEncoding('utf8')
    answer.on('data', (chunk) => { text += chunk })
    answer.on('error', () => resolve({ status: 502, text: '{}' }))
    answer.on('end', () => resolve({ status: answer.statusCode, text }))
  })
  request.on('timeout', () => request.destroy(new Error('timeout')))
  request.on('error', () => resolve({ status: 502, text: '{}' }))
  request.end(body)
})
// Asks all matchmakers at once: a suspended one must not delay the call to the other.
const askAny = (path, body, key) => new Promise((resolve) => {
  let left = addresses.length
  for (const address of addresses) {
    ask(address, path, body, key).then((answer) => {
      left--
      if (answer.status < 500 || left === 0) resolve(answer)
    })
  }
})

http.createServer((request, response) => {
  let body = ''
  request.setEncoding('utf8')
  request.on('data', (chunk) => { body += chunk })
  request.on('end', async () => {
    const answer = await askAny(request.url, body, request.headers['idempotency-key'])
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.text)
  })
}).listen(Number(PORT_GAME), '127.0.0.1', async () => {
  if (PORT_RAW !== undefined) net.createServer((socket) => socket.destroy()).listen(Number(PORT_RAW), '127.0.0.1')
  for (let attempt = 0; attempt < READY_ATTEMPTS_MAX; attempt++) {
    if ((await askAny('/matchmaker/lobbies/ready', '')).status < 500) return
    await wait(READY_EVERY_MS)
  }
})
process.on('SIGTERM', () => process.exit(0))
`
