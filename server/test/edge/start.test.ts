import assert from 'node:assert'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { StartError } from '../../src/config/start-error.ts'
import { startEdge } from '../../src/edge/start.ts'
import { createDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'
import { rawClient, startBackend, startTestEdge } from './platform.ts'

test('the error for a port in use names its setting', async (t) => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.after(() => other.close())
  const { port } = other.address() as AddressInfo
  const { ctx } = await startTestEdge(t)
  const taken = { ...ctx, config: { ...ctx.config, edge_http_port: port } }
  await assert.rejects(startEdge(taken), (error: Error) => {
    assert.ok(error instanceof StartError)
    assert.match(error.message, new RegExp(`Port ${port} .*MUSTER_EDGE_HTTP_PORT`))
    return true
  })
})

test('in development the edge listens on both loopback addresses, and on no other', async (t) => {
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, { api_port: api.port })
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  const reaches = async (host: string) => {
    const socket = connect({ port: edge.port, host })
    const is_open = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true))
      socket.once('error', () => resolve(false))
    })
    socket.destroy()
    return is_open
  }
  assert.equal(await reaches('127.0.0.1'), true)
  if (addresses.some(({ address }) => address === '::1')) assert.equal(await reaches('::1'), true)
  const outside = addresses.find(({ internal, family }) => !internal && family === 'IPv4')
  if (outside === undefined) t.diagnostic('this machine has no other address')
  else assert.equal(await reaches(outside.address), false)
})

test('HTTP listens on the address that the setting names, and an address that the machine lacks is an error', async (t) => {
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, { api_port: api.port, env: { MUSTER_EDGE_HOST: '127.9.9.9' } })
  const isOpenAt = (host: string) =>
    new Promise<boolean>((resolve) => {
      const socket = connect({ port: edge.port, host })
      t.after(() => socket.destroy())
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    })
  assert.equal(await isOpenAt('127.9.9.9'), true)
  assert.equal(await isOpenAt('127.0.0.1'), false)
  // TEST-NET-1 and the prefix for documentation: no machine has these addresses.
  for (const host of ['192.0.2.99', '2001:db8::99']) {
    const config = { ...edge.ctx.config, edge_hosts: [host] }
    await assert.rejects(startEdge({ ...edge.ctx, config }), (error: Error) => {
      assert.ok(error instanceof StartError)
      assert.match(error.message, new RegExp(`no address ${host}; set MUSTER_EDGE_HOST`))
      return true
    })
  }
})

test('without the address of raw ports, no port is recorded and everything else is served', async (t) => {
  const api = await startBackend(t, 'api')
  const env = {
    MUSTER_DOMAIN_MAIN: 'muster.example',
    MUSTER_DOMAIN_CDN: 'pages.test',
    MUSTER_DOMAIN_JOB: 'jobs.invalid',
  }
  // TEST-NET-1: no machine has this address.
  const edge = await startTestEdge(t, { api_port: api.port, env: { ...env, MUSTER_EDGE_PORTS_HOST: '192.0.2.1' } })
  const client = rawClient(t, edge.port)
  client.write('GET / HTTP/1.1\r\nHost: muster.example\r\nConnection: close\r\n\r\n')
  assert.match(await client.end(), /api$/)
  for (const transport of ['tcp', 'udp'] as const) assert.deepEqual(await edge.openPorts(transport), [])
})

test('after a stop the port is free and all connections have ended', async (t) => {
  const arrived = Promise.withResolvers<void>()
  const api = await startBackend(t, 'api', () => arrived.resolve())
  const edge = await startTestEdge(t, { api_port: api.port })
  const [idle, waiting] = [rawClient(t, edge.port), rawClient(t, edge.port)]
  waiting.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await arrived.promise
  const { ctx } = edge
  const own = await startEdge(ctx)
  await Promise.all([edge.role.stop({ end_lobbies: false }), idle.end(), waiting.end()])
  const again = await startEdge({ ...ctx, config: { ...ctx.config, edge_http_port: edge.port } })
  assert.equal(again.address, `http://127.0.0.1:${edge.port}`)
  await Promise.all([again.stop({ end_lobbies: false }), own.stop({ end_lobbies: false })])
})

test('with few descriptors new connections are refused, and open ones continue', async (t) => {
  if (process.platform !== 'linux') return t.skip('the limit of descriptors is only known on Linux')
  // 300 descriptors leave room for 22 connections, half of them for one address.
  const DESCRIPTORS = 300
  const HELD = 11
  const api = await startBackend(t, 'api')
  const data_dir = await mkdtemp(join(tmpdir(), 'muster-edge-'))
  t.after(() => rm(data_dir, { recursive: true, force: true }))
  const child = spawn(
    'sh',
    ['-c', `ulimit -n ${DESCRIPTORS}; exec "$0" "$1"`, process.execPath, join(import.meta.dirname, 'small-edge.ts')],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: {
        MUSTER_DATA: data_dir,
        DATABASE_URL: await createDatabase(t),
        MUSTER_EDGE_HTTP_PORT: '0',
        MUSTER_EDGE_HTTPS_PORT: '0',
        MUSTER_API_PORT: String(api.port),
        MUSTER_LOG_LEVEL: 'silent',
      },
    },
  )
  t.after(() => void child.kill('SIGKILL'))
  const port = Number(String((await once(child.stdout, 'data'))[0]))

  const held = Array.from({ length: HELD }, () => rawClient(t, port))
  for (const [index, client] of held.entries()) {
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await client.read((bytes) => bytes.endsWith('api')).catch((error: unknown) => assert.fail(`${index}: ${error}`))
  }
  const flood: Socket[] = []
  let refused = 0
  for (let index = 0; index < DESCRIPTORS * 2; index++) {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.on('error', () => {})
    socket.once('close', () => refused++)
    flood.push(socket)
  }
  await until('the flood is refused', () => refused === flood.length)
  for (const client of held) {
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await client.read((bytes) => bytes.split('HTTP/1.1 200').length === 3)
  }
  held[0]!.socket.destroy()
  await until('connections are accepted again', async () => {
    const client = rawClient(t, port)
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    return (await client.end()).endsWith('api')
  })
  child.stdin.end()
  assert.deepEqual(await once(child, 'exit'), [0, null])
})
