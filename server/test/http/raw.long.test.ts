// Thousands of byte sequences that are nearly requests, on every listener of the platform. Each connection gets an
// answer without a 5xx status, or is closed. The process stays as it was, with the same number of open descriptors.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { test } from 'node:test'
import { ERRORS, type ErrorBody, type ErrorCode } from '@musterhost/contract'
import fc from 'fast-check'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { ask } from './ask.ts'
import { corpusOf, nearlyRequests } from './bytes.ts'

const REQUESTS = Number(process.env.TEST_RAW_REQUESTS ?? 3_000)
const AT_ONCE = 8
/** A client that has sent everything is answered by then. */
const ANSWER_MS_MAX = 10_000
/** Left over by chance, of connections that the kernel has not closed yet. */
const DESCRIPTORS_SPARE = 20
const seed = process.env.TEST_FUZZ_SEED === undefined ? {} : { seed: Number(process.env.TEST_FUZZ_SEED) }

/** All that comes back to who says this, and nothing more. */
function exchange(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    const late = setTimeout(() => {
      socket.destroy()
      reject(
        new Error(
          `No end of ${JSON.stringify(bytes.slice(0, 2_000))} after ${Buffer.concat(chunks).toString('latin1').slice(0, 500)}`,
        ),
      )
    }, ANSWER_MS_MAX)
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    // Cut off is an answer too.
    socket.on('error', () => undefined)
    socket.on('end', () => socket.end())
    socket.on('close', () => {
      clearTimeout(late)
      resolve(Buffer.concat(chunks).toString('latin1'))
    })
    socket.end(Buffer.from(bytes, 'latin1'))
  })
}

/** The first bytes of a handshake of TLS, and of an alert, as latin1 (RFC 8446, section 5.1). */
const HANDSHAKE = '\x16\x03'
const ALERT = '\x15\x03'
/** Type, version, length, level and description. */
const ALERT_BYTES = 7

/** The answers that a connection carried, as far as they came. */
function requireAnswers(text: string, bytes: string): void {
  const said = JSON.stringify(bytes.slice(0, 2_000))
  // A listener that also speaks TLS refuses a handshake so.
  if (bytes.startsWith(HANDSHAKE) && text.startsWith(ALERT) && text.length === ALERT_BYTES) return
  assert.ok(text === '' || text.startsWith('HTTP/1.1 '), `${said}: ${text.slice(0, 200)}`)
  for (const [, status] of text.matchAll(/(?:^|[^\w"])HTTP\/1\.1 (\d{3}) /g)) {
    assert.ok(Number(status) < 500, `${said}: ${text.slice(0, 1_000)}`)
  }
  // What answers a HEAD has no body, whatever it says of its length.
  const [head = '', body = ''] = text.split('\r\n\r\n', 2)
  if (!/^HTTP\/1\.1 4/.test(head) || !/^content-type: application\/json/im.test(head) || !body.startsWith('{')) return
  const length = Number(/^content-length: (\d+)/im.exec(head)?.[1])
  if (body.length < length) return
  const { code, ray_id } = JSON.parse(body.slice(0, length)) as ErrorBody
  assert.equal(head.split(' ')[1], String(ERRORS[code as ErrorCode].status))
  assert.match(head, new RegExp(`^x-ray-id: ${ray_id}$`, 'im'))
}

test('no bytes break a listener of the platform, or leave anything open', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge' })
  const game = await platform.game()
  const site_host = `${game.name_id}--prod.cdn.localhost`
  const requests = corpusOf(platform, { player_token: game.public_token, site_host, lobby_id: game.game_id })
  const made = nearlyRequests(requests)
  const descriptors = (): number => readdirSync('/proc/self/fd').length
  const has_descriptors = process.platform === 'linux'

  for (const [door, url] of Object.entries({
    api: platform.api_url,
    matchmaker: platform.matchmaker_url,
    edge: platform.edge_url,
  })) {
    await t.test(door, async () => {
      for (const bytes of requests) requireAnswers(await exchange(url, bytes), bytes)
      const before = has_descriptors ? descriptors() : 0
      const batches = fc.array(made, { minLength: AT_ONCE, maxLength: AT_ONCE })
      const property = fc.asyncProperty(batches, async (batch) => {
        const answers = await Promise.all(batch.map((bytes) => exchange(url, bytes)))
        for (const [index, text] of answers.entries()) requireAnswers(text, batch[index]!)
      })
      await fc.assert(property, { numRuns: REQUESTS / AT_ONCE, endOnFailure: true, ...seed })
      const bootstrap = await ask(`${platform.api_url}/cloud/bootstrap`)
      assert.equal(bootstrap.status, 200)
      if (has_descriptors)
        await until('the connections to be closed', () => descriptors() <= before + DESCRIPTORS_SPARE)
    })
  }
})
