import assert from 'node:assert/strict'
import { createHash, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { test } from 'node:test'
import { connect } from 'node:tls'
import { WebSocketServer } from 'ws'
import { openBrowser } from '../end-to-end/browser.ts'
import { startBackend, startTestEdge } from './platform.ts'

/** The key hash that Chromium is started to trust: all certificates of this machine have this key. */
async function keyHash(port: number): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const { publicKey } = new X509Certificate(socket.getPeerCertificate().raw)
  socket.destroy()
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64')
}

/** The protocol over which the page was loaded. */
const PROTOCOL = "performance.getEntriesByType('navigation')[0].nextHopProtocol"

const ECHO = (address: string): Promise<string> =>
  new Promise<string>((resolve, reject) => {
    const socket = new WebSocket(address)
    socket.onopen = () => socket.send('hello')
    socket.onmessage = ({ data }) => resolve(String(data))
    socket.onerror = () => reject(new Error('the socket failed'))
  })

test('a browser that trusts this machine plays over https, and any other one refuses to connect', async (t) => {
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  await game.deploy(await game.site({ 'index.html': '<title>puddle</title>' }))
  const backend = await startBackend(t, 'lobby')
  const sockets = new WebSocketServer({ server: backend.server })
  sockets.on('connection', (socket) => socket.on('message', (data) => socket.send(`echo ${String(data)}`)))
  t.after(() => sockets.close())
  const lobby_id = await edge.lobby({ game: backend.port })
  const site = `https://puddle.cdn.localhost:${edge.https_port}/`

  const trusting = await openBrowser(t, [`--ignore-certificate-errors-spki-list=${await keyHash(edge.https_port)}`])
  if (trusting === null) return
  const page = await trusting.newPage()
  await page.goto(site)
  assert.equal(await page.title(), 'puddle')
  assert.equal(await page.evaluate(PROTOCOL), 'h2')
  const url = `wss://${lobby_id}-game.lobby.local.localhost:${edge.https_port}/`
  const heard = await page.evaluate(ECHO, url)
  assert.equal(heard, 'echo hello')

  // The same host first over HTTP/2: its WebSocket needs a connection of its own.
  const lobby_page = await trusting.newPage()
  await lobby_page.goto(url.replace('wss', 'https'))
  assert.equal(await lobby_page.evaluate(PROTOCOL), 'h2')
  assert.equal(await lobby_page.evaluate(ECHO, url), 'echo hello')

  const stranger = await openBrowser(t)
  assert.ok(stranger)
  await assert.rejects((await stranger.newPage()).goto(site), /ERR_CERT_AUTHORITY_INVALID/)
})
