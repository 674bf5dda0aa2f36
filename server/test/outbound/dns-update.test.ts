import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { decodeMessage, encodeName, encodeText } from '../../src/outbound/dns-message.ts'
import { updateText } from '../../src/outbound/dns-update.ts'
import { signMessage, verifyResponse } from '../../src/outbound/tsig.ts'
import { parseTsigKey, type TsigAlgorithm, type TsigKey } from '../../src/text/tsig-key.ts'
import { lacking } from '../run/optional-programs.ts'
import { KNOT_ENVIRONMENT, startKnot } from '../support/knot.ts'

const SECRET = Buffer.from(Array.from({ length: 32 }, (_, index) => index)).toString('base64')
const NOW_MS = 1_700_000_000_000
const PROOF = '_acme-challenge.lobby.local.lobbies.test'
/** The signature of this update, and the signed response to it, made by dnspython 2.8.0. */
const KNOWN: Record<Exclude<TsigAlgorithm, 'hmac-sha384'>, { mac: string; response_mac: string }> = {
  'hmac-sha256': {
    mac: 'b411cfe3a77ac6c6fb7b1328124f1792d095bea0ee2970676b3f324cce8c1f04',
    response_mac: 'd72fc5ae05f3c54638c916e1b0f8e3b2d258fcf60733188c0ed1848a47b7b64e',
  },
  'hmac-sha512': {
    mac: '7cdab7758e405f76dba70c1eaf75f1d0164f9e7b80cd7f9d95453dff11e4f08a4588e06c146727f696b47a1febcaae9555e0503c7321c1ab840a7249fbb84535',
    response_mac:
      'b74465607f685a7acd988c60f54bc387d28638b8a480c28478d6777b55b20ca9fe98745d7bcbd5f537e82812c6d4f42a217fd10e46b042c8dd815c8824dab7e5',
  },
}
const UPDATE = Buffer.from(
  '123428000001000000010000076c6f6262696573047465737400000600010f5f61636d652d6368616c6c656e6765056c6f626279056c6f63616cc00c001000010000003c000e0d70726f6f662d76616c75655f31',
  'hex',
)
const RESPONSE_HEAD = '1234a8000001000000000001076c6f626269657304746573740000060001'

test('updates are signed, and responses are verified, as another implementation does it', () => {
  for (const [algorithm, { mac, response_mac }] of Object.entries(KNOWN)) {
    const key: TsigKey = { name: 'muster.key', algorithm: algorithm as TsigAlgorithm, secret: SECRET }
    const request = signMessage(UPDATE, key, NOW_MS)
    assert.equal(request.mac.toString('hex'), mac)
    const mac_bytes = Buffer.from(response_mac, 'hex')
    const response = Buffer.concat([
      Buffer.from(RESPONSE_HEAD, 'hex'),
      encodeName('muster.key'),
      Buffer.from('00fa00ff00000000', 'hex'),
      uint16(encodeName(algorithm).length + 16 + mac_bytes.length),
      encodeName(algorithm),
      Buffer.from('00006553f100012c', 'hex'),
      uint16(mac_bytes.length),
      mac_bytes,
      Buffer.from('123400000000', 'hex'),
    ])
    verifyResponse(response, key, request.mac, NOW_MS)
    assert.throws(() => verifyResponse(response, key, request.mac, NOW_MS + 301_000), /at another time/)
    assert.throws(() => verifyResponse(response, key, Buffer.alloc(request.mac.length), NOW_MS), /is wrong/)
    for (const index of [3, response.length - 20]) {
      const changed = Buffer.from(response)
      changed[index]! ^= 1
      assert.throws(() => verifyResponse(changed, key, request.mac, NOW_MS), /is wrong/, String(index))
    }
    assert.throws(() => verifyResponse(UPDATE, key, request.mac, NOW_MS), /is not signed/)
  }
})

test('a message that is cut off or contradicts itself is refused', () => {
  const { signed } = signMessage(UPDATE, { name: 'k', algorithm: 'hmac-sha256', secret: SECRET }, NOW_MS)
  assert.equal(decodeMessage(signed).additionals.length, 1)
  for (let length = 0; length < signed.length; length++)
    assert.throws(() => decodeMessage(signed.subarray(0, length)), /DNS message/, String(length))
  const circle = Buffer.from('000080000001000000000000c00c00060001', 'hex')
  assert.throws(() => decodeMessage(circle), /broken name/)
  assert.throws(() => encodeName('a..b'), /not a name/)
  assert.throws(() => encodeName('x'.repeat(64)), /not a name/)
  assert.throws(() => encodeName(Array.from({ length: 130 }, () => 'a').join('.')), /too long/)
  assert.throws(() => encodeText('x'.repeat(256)), /too long/)
})

test('the files of tsig-keygen and of keymgr are read, and weak keys refused', () => {
  const key = { name: 'muster.key', algorithm: 'hmac-sha256', secret: SECRET }
  const block = `# of the operator\nkey "Muster.Key." {\n\talgorithm hmac-sha256;\n\tsecret "${SECRET}";\n};\n`
  const knot = `# hmac-sha256:muster.key:${SECRET}\nkey:\n  - id: muster.key\n    algorithm: hmac-sha256\n    secret: ${SECRET}\n`
  for (const text of [block, knot, `hmac-sha256:muster.key:${SECRET}\n`]) assert.deepEqual(parseTsigKey(text), key)
  assert.throws(() => parseTsigKey('secret'), /has no key/)
  assert.throws(() => parseTsigKey(`hmac-md5:k:${SECRET}`), /hmac-md5, which is none of/)
  assert.throws(() => parseTsigKey('hmac-sha256:k:c2hvcnQ='), /less than 16 bytes/)
})

test('a name server that is silent, gone or confused is named in the failure', async (t) => {
  const key: TsigKey = { name: 'k', algorithm: 'hmac-sha256', secret: SECRET }
  const update = (server: string) =>
    updateText({ server, key, now: () => NOW_MS }, 'add', { name: PROOF, value: 'value' })
  await assert.rejects(update('127.0.0.1:1'), /127\.0\.0\.1:1 cannot be reached \(ECONNREFUSED\)/)
  const behaviours: [string, (bytes: Buffer) => Buffer | null, RegExp][] = [
    ['closes', () => null, /closed the connection without a response/],
    ['writes rubbish', () => Buffer.from('0003616263', 'hex'), /no DNS message/],
    ['repeats the request', (bytes) => bytes, /responded to something else/],
    ['knows no zone', (bytes) => responseTo(bytes), /has no zone of/],
  ]
  for (const [what, respond, expected] of behaviours)
    await assert.rejects(update(await startServer(t, respond)), expected, what)
})

test('a real name server accepts the updates: several values of one name, each removed alone', async (t) => {
  const missing = lacking('knotd')
  if (missing !== null) return t.skip(missing)
  const knot = await startKnot(t, { 'lobbies.test': ['@ NS ns', 'ns A 127.0.0.1'] })
  const made = execFileSync('keymgr', ['-t', 'by-keymgr', 'hmac-sha512'], { env: KNOT_ENVIRONMENT, encoding: 'utf8' })
  assert.equal(parseTsigKey(made).name, 'by-keymgr')
  const updater = { server: knot.address, key: knot.key, now: Date.now }
  const record = (value: string) => ({ name: PROOF, value })

  await updateText(updater, 'add', record('first'))
  await updateText(updater, 'add', record('second'))
  await updateText(updater, 'add', record('second'))
  assert.deepEqual((await knot.texts(PROOF)).sort(), ['first', 'second'])
  await updateText(updater, 'remove', record('first'))
  await updateText(updater, 'remove', record('first'))
  assert.deepEqual(await knot.texts(PROOF), ['second'])

  const wrong = { ...knot.key, secret: SECRET }
  const refused = (changed: Partial<typeof updater>, name = PROOF) =>
    updateText({ ...updater, ...changed }, 'add', { name, value: 'third' })
  await assert.rejects(refused({ key: wrong }), /does not accept the key muster \(BADSIG\)/)
  await assert.rejects(refused({ key: { ...knot.key, name: 'other' } }), /does not accept the key other \(BADKEY\)/)
  await assert.rejects(refused({ now: () => Date.now() - 3_600_000 }), /BADTIME\): its clock and this one differ/)
  await assert.rejects(refused({}, '_acme-challenge.elsewhere.test'), /has no zone of|REFUSED/)
  assert.deepEqual(await knot.texts(PROOF), ['second'])
})

function uint16(value: number): Buffer {
  return Buffer.of(value >> 8, value & 0xff)
}

/** To the first message of each connection; null: it is closed. */
async function startServer(t: TestContext, respond: (bytes: Buffer) => Buffer | null): Promise<string> {
  const server = createServer((socket) => {
    socket.once('data', (bytes: Buffer) => {
      const response = respond(bytes)
      if (response !== null) socket.write(response)
      socket.end()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => void server.close())
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Empty, without an error. */
function responseTo(bytes: Buffer): Buffer {
  const response = Buffer.from(bytes)
  response[4] = 0x80
  return response
}
