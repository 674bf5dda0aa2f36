// The example Freeciv: the unchanged server of Debian's package, deployed by its muster.yaml alone.
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { inflateSync } from 'node:zlib'
import { lacking } from '../../server/test/run/optional-programs.ts'
import { startPlatform } from '../../server/test/support/platform.ts'
import { until } from '../../server/test/support/until.ts'
import { deployExample } from './example-steps.ts'

const CAPABILITY = '+Freeciv-3.0-network year32 plrculture32 pingfix researchclr cityculture32'
const SERVER_JOIN_REQ = 4
/** In place of a length: a compressed packet whose length is in the next four bytes. */
const COMPRESSED = 0xffff
const COMPRESSED_HEAD_BYTES = 6

test('Freeciv plays with nothing but its version config, and no stranger reaches it', async (t) => {
  const missing = lacking('freeciv-server')
  if (missing !== null) return t.skip(missing)
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge', has_sandboxes: true })
  const example = await deployExample(t, platform, 'freeciv')
  const { lobby, ports } = await example.takeSeat()
  const { url } = ports.game!

  assert.equal((await joinFrom(t, url, '127.0.0.9')).length, 0, 'a stranger gets no byte')
  const joined = await joinFrom(t, url, '127.0.0.1')
  assert.match(inflateSync(joined.subarray(COMPRESSED_HEAD_BYTES)).toString('latin1'), /Welcome to the Freeciv version/)
  await until('the player to be connected', async () => (await example.connected(lobby.lobby_id)) === 1)
})

/** Asks to join, as the client of Freeciv does. Returns the first packet of the server; empty: the connection was ended. */
async function joinFrom(t: TestContext, url: string, address: string): Promise<Buffer> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), localAddress: address })
  t.after(() => socket.destroy())
  const text = ['Ada', CAPABILITY, 'probe'].map((part) => `${part}\0`).join('')
  const version = Buffer.from([3, 0, 6].flatMap((number) => [0, 0, 0, number]))
  const body = Buffer.concat([Buffer.of(SERVER_JOIN_REQ), Buffer.from(text), version])
  const head = Buffer.alloc(2)
  head.writeUInt16BE(body.length + head.length)
  socket.write(Buffer.concat([head, body]))
  return new Promise((resolve, reject) => {
    let bytes = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.on('close', () => resolve(bytes))
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk])
      if (bytes.length < COMPRESSED_HEAD_BYTES) return
      if (bytes.readUInt16BE(0) !== COMPRESSED) reject(new Error(`unexpected packet: ${bytes.toString('latin1')}`))
      const length = bytes.readUInt32BE(2)
      if (bytes.length >= length) resolve(bytes.subarray(0, length))
    })
  })
}
