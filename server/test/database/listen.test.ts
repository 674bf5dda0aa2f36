import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createListener, type Listener } from '../../src/database/listen.ts'
import { createDatabase } from '../database.ts'
import { openClient, silent, undoAfter, waitFor } from './harness.ts'

const BACKENDS =
  "select pid from pg_stat_activity where application_name = 'muster-listen' and datname = current_database()"

test('a notification of another connection wakes every subscriber of its channel, and nobody else', async (t) => {
  const url = await createDatabase(t)
  const [listener, speaker] = [open(t, url), open(t, url)]
  const one = subscribe(listener, 'lobbies')
  const two = subscribe(listener, 'lobbies')
  const other = subscribe(listener, 'players')
  await waitFor('listening to begin', () => one.includes('') && two.includes('') && other.includes(''))

  await speaker.notify('lobbies', 'first')
  await speaker.notify('lobbies')
  await waitFor('two wake-ups', () => one.length === 3 && two.length === 3)
  assert.deepEqual(one, ['', 'first', ''])
  assert.deepEqual(two, ['', 'first', ''])
  assert.deepEqual(other, [''])
})

test('a listener whose connection was cut comes back, wakes every subscriber once, and hears again', async (t) => {
  const url = await createDatabase(t)
  const listener = open(t, url)
  const one = subscribe(listener, 'lobbies')
  const two = subscribe(listener, 'players')
  await waitFor('listening to begin', () => one.length === 1 && two.length === 1)

  const client = await openClient(t, url)
  const { rowCount } = await client.query(`select pg_terminate_backend(pid) from (${BACKENDS}) as b`)
  assert.equal(rowCount, 1)
  await waitFor('the wake-up after the break', () => one.length === 2 && two.length === 2)
  assert.deepEqual(
    [one, two],
    [
      ['', ''],
      ['', ''],
    ],
  )

  await client.query("select pg_notify('lobbies', 'again')")
  await waitFor('a notification', () => one.includes('again'))
  assert.deepEqual(two, ['', ''])
})

test('what is said while the own connection is cut is sent after the reconnect', async (t) => {
  const url = await createDatabase(t)
  const [listener, speaker] = [open(t, url), open(t, url)]
  const heard = subscribe(listener, 'lobbies')
  const own = subscribe(speaker, 'players')
  await waitFor('listening to begin', () => heard.length === 1 && own.length === 1)
  const client = await openClient(t, url)
  const cut = await client.query(
    `select pg_terminate_backend(pid) from (${BACKENDS} and query = 'listen "players"') as b`,
  )
  assert.equal(cut.rowCount, 1)
  await speaker.notify('lobbies', 'kept')
  await waitFor('the kept notification', () => heard.includes('kept'))
  assert.deepEqual(
    [heard, own],
    [
      ['', 'kept'],
      ['', ''],
    ],
  )
})

test('who unsubscribed is not woken, and may subscribe again', async (t) => {
  const url = await createDatabase(t)
  const listener = open(t, url)
  const kept = subscribe(listener, 'lobbies')
  const wakes: string[] = []
  const stop = listener.on('players', (payload) => wakes.push(payload))
  await waitFor('listening to begin', () => wakes.length === 1 && kept.length === 1)
  stop()
  await listener.notify('players', 'unheard')
  await listener.notify('lobbies', 'after')
  await waitFor('the later notification', () => kept.includes('after'))
  assert.deepEqual(wakes, [''])
  listener.on('players', (payload) => wakes.push(payload))
  await waitFor('listening to begin again', () => wakes.length === 2)
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
  await waitFor('listening to begin', () => heard.length === 1 && own.length === 1)
  void speaker.notify('lobbies', 'farewell')
  await speaker.close()
  await waitFor('the last notification', () => heard.includes('farewell'))
})

test('a channel or a payload that PostgreSQL would not take is refused at once', async (t) => {
  const listener = open(t, await createDatabase(t))
  assert.throws(() => listener.on('Lobbies"', () => undefined), RangeError)
  await assert.rejects(listener.notify('x'.repeat(64)), RangeError)
  await assert.rejects(listener.notify('lobbies', 'x'.repeat(8000)), RangeError)
  await listener.notify('lobbies', 'x'.repeat(7999))
})

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
