// Other parsers of HTTP/1.1: Node's server, nginx and HAProxy. A stream of bytes goes to each, and the requests that it
// reads are recorded. nginx and HAProxy pass them to recorders; all of them listen on unix sockets in a folder of the run,
// with a socket for each lane, so that lanes run at the same time and their requests are never mixed.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { until } from '../../support/until.ts'
import { type ReadRequest, readRequest } from './read.ts'
import { startRecorder } from './recorder.ts'

/** One parser, for one lane. */
export type Peer = {
  name: string
  /** The requests that it reads in the bytes, as a connection that ends with them. */
  read: (bytes: string) => Promise<ReadRequest[]>
}

const HEAD_BYTES_MAX = 64 * 1024
const HEADERS_MAX = 256
/** For a peer that neither reads on nor closes: its connection is cut, and what it has read until then counts. */
const SILENCE_MS_MAX = 5_000

/** A list of peers for each lane. What is not installed is left out, and said. */
export async function startPeers(t: TestContext, lanes: number): Promise<Peer[][]> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-fuzz-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const peers = Array.from({ length: lanes }, (): Peer[] => [])
  for (const [lane, list] of peers.entries()) list.push(await startNode(t, join(folder, `node-${lane}`)))
  for (const proxy of [nginx, haproxy]) {
    if (spawnSync(proxy.name, ['-v']).error !== undefined) {
      t.diagnostic(`${proxy.name} is not installed: the streams are not compared with it`)
      console.error(`fuzz: ${proxy.name} is not installed: the streams are not compared with it`)
      continue
    }
    for (const [lane, peer] of (await startProxy(t, proxy, folder, lanes)).entries()) peers[lane]!.push(peer)
  }
  return peers
}

async function startNode(t: TestContext, path: string): Promise<Peer> {
  let requests: (ReadRequest & { is_whole: boolean })[] = []
  const server = createServer({ maxHeaderSize: HEAD_BYTES_MAX, keepAliveTimeout: 0 }, (req, res) => {
    const { method = '', url = '' } = req
    const request = { method, target: url, body: '', is_whole: false }
    requests.push(request)
    req.setEncoding('latin1')
    req.on('data', (chunk) => {
      request.body += chunk
    })
    req.on('end', () => {
      request.is_whole = true
      res.end('ok')
    })
    req.on('error', () => res.destroy())
  })
  server.listen(path)
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    name: 'Node',
    read: async (bytes) => {
      requests = []
      await exchange(path, bytes)
      return requests.filter(({ is_whole }) => is_whole)
    },
  }
}

type Proxy = { name: string; args: (config: string) => string[]; config: (folder: string, lanes: number) => string }

async function startProxy(t: TestContext, proxy: Proxy, folder: string, lanes: number): Promise<Peer[]> {
  const recorders = []
  for (let lane = 0; lane < lanes; lane++)
    recorders.push(await startRecorder(t, { path: join(folder, `${proxy.name}-to-${lane}`) }, readRequest))
  const config = join(folder, `${proxy.name}.conf`)
  await writeFile(config, proxy.config(folder, lanes))
  const child = spawn(proxy.name, proxy.args(config), { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    said = `${said}${chunk}`.slice(-2_000)
  })
  t.after(() => end(child))
  await until(`${proxy.name} listens: ${said}`, () => canConnect(join(folder, `${proxy.name}-${lanes - 1}`)))
  return recorders.map((recorder, lane) => ({
    name: proxy.name,
    read: async (bytes) => {
      recorder.clear()
      await exchange(join(folder, `${proxy.name}-${lane}`), bytes)
      return recorder.requests
    },
  }))
}

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill()
  await ended
}

function canConnect(path: string): Promise<boolean> {
  const socket = connect(path)
  return new Promise((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
  }).finally(() => socket.destroy()) as Promise<boolean>
}

/** Writes the bytes, finishes, and reads until the connection is closed. */
async function exchange(path: string, bytes: string): Promise<void> {
  const socket = connect({ path, allowHalfOpen: true })
  const closed = new Promise((resolve) => socket.once('close', resolve))
  // A peer that refuses may close before it has read everything.
  socket.on('error', () => {})
  socket.on('end', () => socket.end())
  socket.setTimeout(SILENCE_MS_MAX, () => socket.destroy())
  socket.resume()
  socket.end(Buffer.from(bytes, 'latin1'))
  await closed
}

const nginx: Proxy = {
  name: 'nginx',
  args: (config) => ['-c', config],
  config: (folder, lanes) => `
daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log stderr emerg; ${process.getuid?.() === 0 ? 'user root;' : ''}
events { worker_connections 1000; }
http {
  access_log off; client_max_body_size 0; large_client_header_buffers 4 ${HEAD_BYTES_MAX}; keepalive_requests 1000000;
  client_body_temp_path ${folder}/1; proxy_temp_path ${folder}/2; fastcgi_temp_path ${folder}/3;
  uwsgi_temp_path ${folder}/4; scgi_temp_path ${folder}/5;
  proxy_http_version 1.1; proxy_set_header Connection ""; proxy_ignore_client_abort on;
${times(
  lanes,
  (lane) => `
  upstream lane${lane} { server unix:${folder}/nginx-to-${lane}; keepalive 2; }
  server { listen unix:${folder}/nginx-${lane}; location / { proxy_pass http://lane${lane}; } }
`,
)}}
`,
}

const haproxy: Proxy = {
  name: 'haproxy',
  args: (config) => ['-db', '-q', '-f', config],
  config: (folder, lanes) => `
global
  nbthread 1
  tune.bufsize ${2 * HEAD_BYTES_MAX}
  tune.http.maxhdr ${HEADERS_MAX}
defaults
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s
${times(
  lanes,
  (lane) => `
listen lane${lane}
  bind unix@${folder}/haproxy-${lane}
  server recorder unix@${folder}/haproxy-to-${lane}
`,
)}`,
}

function times(count: number, line: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => line(index)).join('')
}
