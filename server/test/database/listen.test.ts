import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { createConnection, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createListener, type Listener } from '../../src/database/listen.ts'
import { createDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'
import { openClient, silent, undoAfter } from './harness.ts'

const BACKENDS =
  "select pid from pg_stat_activity where application_name = 'muster-listen' and datname = current_database()"

test('a notification of another connection wakes every subscriber of its channel, and nobody else', async (t) => {
  const url = await createDatabase(t)
  const [listener, speaker] = [open(t, url), open(t, url)]
  const one = subscribe(listener, 'lobbies')
  const two = subscribe(listener, 'lobbies')
  const other = subscribe(listener, 'players')
  await until('listening to begin', () => one.includes('') && two.includes('') && other.includes(''))

  await speaker.notify('lobbies', 'first')
  await speaker.notify('lobbies')
  await until('two wake-ups', () => one.length === 3 && two.length === 3)
  assert.deepEqual(one, ['', 'first', ''])
  assert.deepEqual(two, ['', 'first', ''])
  assert.deepEqual(other, [''])
})

test('a listener whose connection was cut comes back, wakes every subscriber once, and hears again', async (t) => {
  const url = await createDatabase(t)
  const listener = open(t, url)
  const one = subscribe(listener, 'lobbies')
  const two = subscribe(listener, 'players')
  await until('listening to begin', () => one.length === 1 && two.length === 1)

  const client = await openClient(t, url)
  const { rowCount } = await client.query(`select pg_terminate_backend(pid) from (${BACKENDS}) as b`)
  assert.equal(rowCount, 1)
  await until('the wake-up after the break', () => one.length === 2 && two.length === 2)
  assert.deepEqual(
    [one, two],
    [
      ['', ''],
      ['', ''],
    ],
  )

  await client.query("select pg_notify('lobbies', 'again')")
  await until('a notification', () => one.includes('again'))
  assert.deepEqual(two, ['', ''])
})

test('a wake-up whose sending was cut off is sent after the reconnect', async (t) => {
  const url = await createDatabase(t)
  const line = await openLine(t, url)
  const [listener, speaker] = [open(t, url), open(t, line.url)]
  const heard = subscribe(listener, 'lobbies')
  const own = subscribe(speaker, 'players')
  await until('listening to begin', () => heard.length === 1 && own.length === 1)

  line.hold()
  const sending = speaker.notify('lobbies', 'under way')
  await until('the wake-up to be on its way', () => line.held > 0)
  line.cut()
  await sending
  await speaker.notify('lobbies', 'later')
  await until('both wake-ups', () => heard.includes('under way') && heard.includes('later'))
  assert.deepEqual(own, ['', ''])
})

test('who unsubscribed is not woken, and may subscribe again', async (t) => {
  const url = await createDatabase(t)
  const listener = open(t, url)
  const kept = subscribe(listener, 'lobbies')
  const wakes: string[] = []
  const stop = listener.on('players', (payload) => wakes.push(payload))
  await until('listening to begin', () => wakes.length === 1 && kept.length === 1)
  stop()
  await listener.notify('players', 'unheard')
  await listener.notify('lobbies', 'after')
  await until('the later notification', () => kept.includes('after'))
  assert.deepEqual(wakes, [''])
  listener.on('players', (payload) => wakes.push(payload))
  await until('listening to begin again', () => wakes.length === 2)
})

test('a listener without a database keeps trying, takes wake-ups, and closes', async (t) => {
  const listener = open(t, 'postgres://muster:x@127.0.0.1:1/muster')
  const wakes = subscribe(listener, 'lobbies')
  await listener.notify('lobbies')
  await listener.close()
  assert.deepEqual(wakes, [])
})

test('close sends what was said before it', async (t) => {
  const url = await createDatabase(t)
  const [listener, speaker] = [open(t, url), open(t, url)]
  const heard = subscribe(listener, 'lobbies')
  const own = subscribe(speaker, 'players')
  await until('listening to begin', () => heard.length === 1 && own.length === 1)
  void speaker.notify('lobbies', 'farewell')
  await speaker.close()
  await until('the last notification', () => heard.includes('farewell'))
})

test('a channel or a payload that PostgreSQL would not take is refused at once', async (t) => {
  const listener = open(t, await createDatabase(t))
  assert.throws(() => listener.on('Lobbies"', () => undefined), RangeError)
  await assert.rejects(listener.notify('x'.repeat(64)), RangeError)
  await assert.rejects(listener.notify('lobbies', 'x'.repeat(8000)), RangeError)
  await listener.notify('lobbies', 'x'.repeat(7999))
})

/** A line to the server's socket that can swallow what the client says, and be cut. */
async function openLine(t: TestContext, url: string) {
  const server_socket = join(new URLSearchParams(url.split('?')[1]).get('host') ?? '', '.s.PGSQL.5432')
  const folder = await mkdtemp(join(tmpdir(), 'muster-line-'))
  undoAfter(t, () => rm(folder, { recursive: true }))
  const pairs = new Set<Socket>()
  const line = {
    url: url.replace(/host=[^&]*/, `host=${encodeURIComponent(folder)}`),
    held: 0,
    hold: (): void => {
      for (const socket of pairs) {
        socket.removeAllListeners('data').on('data', (bytes) => {
          line.held += bytes.length
        })
      }
    },
    cut: (): void => {
      for (const socket of pairs) socket.destroy()
    },
  }
  const server = createServer((socket) => {
    const upstream = createConnection(server_socket)
    socket.on('data', (bytes) => upstream.write(bytes))
    upstream.on('data', (bytes) => socket.write(bytes))
    pairs.add(socket)
    for (const [one, other] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      one.on('error', () => undefined)
      one.on('close', () => other.destroy())
    }
    socket.on('close', () => pairs.delete(socket))
  })
  server.listen(join(folder, '.s.PGSQL.5432'))
  undoAfter(t, () => {
    line.cut()
    server.close()
  })
  return line
}

function open(t: TestContext, url: string): Listener {
  const listener = createListener({ url, log: silent })
  undoAfter(t, () => listener.close())
  return listener
}

function subscribe(listener: Listener, channel: string): string[] {
  const wakes: string[] = []
  listener.on(channel, (payload) => wakes.push(payload))
  return wakes
}
