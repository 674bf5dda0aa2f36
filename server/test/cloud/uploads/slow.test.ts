import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import net from 'node:net'
import { join } from 'node:path'
import test from 'node:test'
import { completeUpload, createGameCdnSite, getGames } from '@musterhost/contract'
import { startPlatform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'
import { apiAddress, arrives, newGame, type Presigned, putFile, refused } from '../steps.ts'

const SENDERS = 50
const TRICKLE_MS = 100
/** How long another call may take: p99. One that waited for the slow ones would take until they are cut off, 5 s. */
const CALL_MS_MAX = 3_000
const CALLS = 100
/** Two measurements of a sender's pace, and what a busy machine adds. Uncut, a sender takes more than two hours. */
const CUT_MS_MAX = 60_000

test('slow uploads', async (t) => {
  const platform = await startPlatform(t, {
    roles: 'api',
    env: { MUSTER_UPLOAD_RATE_MIN: '1000', MUSTER_UPLOAD_CONCURRENCY_MAX: String(SENDERS) },
  })
  const { client } = platform
  const { game_id } = await newGame(platform)
  const other = await newGame(platform)

  async function prepare(game: string, count: number, content_length: number) {
    const files = Array.from({ length: count }, (_, index) => ({ path: String(index), content_length }))
    const body = { display_name: 'Site', files }
    return client.call(createGameCdnSite, { params: { game_id: game }, body })
  }

  /** Sends ten bytes a second until the platform has had enough. */
  async function trickle(presigned: Presigned): Promise<{ closed: Promise<unknown> }> {
    const { pathname, search, port } = new URL(apiAddress(platform, presigned))
    const socket = net.connect(Number(port), '127.0.0.1')
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    // once() would reject at the reset that comes before it.
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(
      `PUT ${pathname}${search} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${presigned.content_length}\r\n\r\n`,
    )
    const timer = setInterval(() => socket.write('x'), TRICKLE_MS)
    timer.unref()
    void closed.then(() => clearInterval(timer))
    socket.resume()
    return { closed }
  }

  await t.test(
    'a sender that trickles is cut off, has taken no turn but its group’s, and slows nobody else',
    async () => {
      const slow = await prepare(game_id, SENDERS + 1, 100_000)
      const begun = performance.now()
      const senders = await Promise.all(slow.presigned_requests.slice(0, SENDERS).map(trickle))
      const incoming = join(platform.data_dir, 'objects', 'incoming')
      const countIncoming = async (): Promise<number> => {
        const own = await readdir(incoming)
        return (await Promise.all(own.map((name) => readdir(join(incoming, name))))).flat().length
      }
      await until('all senders are being read', async () => (await countIncoming()) >= SENDERS)

      const response = await putFile(platform, slow.presigned_requests[SENDERS]!, Buffer.alloc(100_000))
      assert.equal(response.status, 429)
      assert.equal(response.headers.get('retry-after'), '1')
      const { code, metadata } = (await response.json()) as { code: string; metadata: object }
      assert.deepEqual([code, metadata], ['API_RATE_LIMIT', { limit: SENDERS, used: SENDERS }])
      const quick = await prepare(other.game_id, 1, 100_000)
      await arrives(platform, quick.presigned_requests[0]!, Buffer.alloc(100_000))

      const latencies: number[] = []
      for (let call = 0; call < CALLS; call++) {
        const started = performance.now()
        await client.call(getGames, {})
        latencies.push(performance.now() - started)
      }
      assert.ok(latencies.sort((a, b) => a - b)[Math.ceil(CALLS * 0.99) - 1]! < CALL_MS_MAX, String(latencies.at(-1)))

      await Promise.all(senders.map((sender) => sender.closed))
      const elapsed_ms = performance.now() - begun
      assert.ok(elapsed_ms < CUT_MS_MAX, `${elapsed_ms} ms`)
      await until('nothing of them is left', async () => (await countIncoming()) === 0)
      await arrives(platform, slow.presigned_requests[SENDERS]!, Buffer.alloc(100_000))
      const { upload_id } = slow
      const error = await refused('UPLOAD_INCOMPLETE', client.call(completeUpload, { params: { upload_id } }))
      assert.equal(error.metadata.missing_count, SENDERS)
    },
  )
})
