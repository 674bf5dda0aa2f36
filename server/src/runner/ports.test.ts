import assert from 'node:assert'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { createPorts, PORT_COUNT, PORT_FIRST } from './ports.ts'

test('ports taken at the same time are distinct and in the range', async () => {
  const ports = createPorts(123)
  const taken = (await Promise.all(Array.from({ length: 50 }, () => ports.take(3)))).flat()
  assert.strictEqual(new Set(taken).size, 150)
  assert.ok(taken.every((port) => port !== null && port >= PORT_FIRST && port < PORT_FIRST + PORT_COUNT))
})

test('a port that another program listens on is not assigned', async (t) => {
  const start = 4_000
  const free = (await createPorts(start).take(1))?.[0]
  assert.ok(free !== undefined)
  const other = createServer().listen(free, '127.0.0.1')
  await once(other, 'listening')
  t.after(() => other.close())
  const [port] = (await createPorts(free - PORT_FIRST).take(1)) ?? []
  assert.ok(port !== undefined && port !== free)
})

test('a reserved port is not assigned before it is released', async () => {
  const ports = createPorts(0)
  for (let port = PORT_FIRST; port < PORT_FIRST + PORT_COUNT; port++) ports.reserve(port)
  assert.strictEqual(await ports.take(1), null)
  ports.release(PORT_FIRST + 5_003)
  assert.strictEqual(await ports.take(2), null)
  assert.deepStrictEqual(await ports.take(1), [PORT_FIRST + 5_003])
  assert.strictEqual(await ports.take(1), null)
  assert.deepStrictEqual(await ports.take(0), [])
})

test('a released port is assigned again only after all others', async () => {
  const ports = createPorts(PORT_COUNT - 1)
  const [first] = (await ports.take(1)) ?? []
  assert.ok(first !== undefined)
  ports.release(first)
  const next = await ports.take(20)
  assert.ok(next !== null && !next.includes(first))
})
