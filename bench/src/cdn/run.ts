// Measures files of a site per second, against nginx with one worker process (the edge is one process too). nginx serves
// the same bytes from its own folder on the same machine. Rounds take turns. nginx and wrk are packages of Debian.
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import {
  completeUpload,
  createGame,
  createGameCdnSite,
  createGameVersion,
  createGroup,
  getGameById,
  updateGameNamespaceVersion,
} from '@musterhost/contract'
import { median } from '../load.ts'
import { type BenchPlatform, freePorts, startPlatform } from '../platform.ts'
import { verdict } from '../report.ts'
import { compareManyFiles, manyFiles } from './many-files.ts'

const ROUNDS = 5
const WARM_UP_ROUNDS = 1
const CONNECTIONS = 32
const ROUND_S = 1
type Contender = 'edge' | 'nginx'
const SIZES = [
  { name: '1 KB', file: 'small.bin', bytes: 1_000, goal: 0.4 },
  { name: '100 KB', file: 'large.bin', bytes: 100_000, goal: 0.6 },
] as const
const START_ATTEMPTS_MAX = 100
const START_PAUSE_MS = 50

export async function run(): Promise<void> {
  const files = new Map<string, Buffer>([
    ...SIZES.map(({ file, bytes }) => [file, randomBytes(bytes)] as const),
    ...manyFiles(randomBytes),
  ])
  const platform = await startPlatform(['api', 'edge'])
  try {
    const host = await deploySite(platform, files)
    const nginx = await startNginx(files)
    try {
      for (const size of SIZES) {
        await compare(size, host, { edge: platform.config.edge_http_port, nginx: nginx.port })
      }
      await compareManyFiles(host, { edge: platform.config.edge_https_port, nginx: nginx.tls_port })
    } finally {
      await nginx.stop()
    }
  } finally {
    await platform.stop()
  }
}

async function compare(size: (typeof SIZES)[number], host: string, ports: Record<Contender, number>): Promise<void> {
  const rates: Record<Contender, number[]> = { edge: [], nginx: [] }
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round++) {
    const order = round % 2 === 0 ? (['edge', 'nginx'] as const) : (['nginx', 'edge'] as const)
    for (const who of order) {
      const per_second = await load(`http://127.0.0.1:${ports[who]}/${size.file}`, host)
      if (round >= WARM_UP_ROUNDS) rates[who].push(per_second)
    }
  }
  console.log(`\n  ${size.name}, ${CONNECTIONS} connections, ${ROUNDS} rounds of ${ROUND_S} s: median per second`)
  console.log(`  nginx ${Math.round(median(rates.nginx))}, edge ${Math.round(median(rates.edge))}`)
  const ratio = median(rates.edge.map((rate, round) => rate / rates.nginx[round]!))
  verdict(`${size.name}: edge / nginx`, ratio, size.goal, 'at least')
}

/** Runs wrk: a load generator in JavaScript would be slower than nginx, and hide the difference. */
async function load(url: string, host: string): Promise<number> {
  const args = ['-t1', `-c${CONNECTIONS}`, `-d${ROUND_S}s`, '-H', `Host: ${host}`, url]
  const child = spawn('wrk', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  child.once('error', () => console.error('This bench needs wrk: apt-get install wrk'))
  const output = await text(child.stdout)
  const per_second = Number(/^Requests\/sec:\s+([\d.]+)/m.exec(output)?.[1])
  if (!(per_second > 0) || /Non-2xx|Socket errors/.test(output)) throw new Error(`wrk failed:\n${output}`)
  return per_second
}

/** Returns the host under which the files are served. */
async function deploySite({ api }: BenchPlatform, files: ReadonlyMap<string, Buffer>): Promise<string> {
  const { group_id } = await api.call(createGroup, { body: { display_name: 'Bench' } })
  const body = { display_name: 'Bench', name_id: 'bench', developer_group_id: group_id }
  const { game_id } = await api.call(createGame, { body })
  const { game } = await api.call(getGameById, { params: { game_id } })
  const site = await api.call(createGameCdnSite, {
    params: { game_id },
    body: {
      display_name: 'Bench',
      files: [...files].map(([path, bytes]) => ({ path, content_length: bytes.length })),
    },
  })
  for (const [index, bytes] of [...files.values()].entries()) {
    const { url } = site.presigned_requests[index]!
    const response = await fetch(url, { method: 'PUT', body: new Uint8Array(bytes) })
    if (!response.ok) throw new Error(`a file was refused: ${await response.text()}`)
  }
  await api.call(completeUpload, { params: { upload_id: site.upload_id } })
  const config = { cdn: { site_id: site.site_id } }
  const { version_id } = await api.call(createGameVersion, {
    params: { game_id },
    body: { display_name: 'bench', config },
  })
  const { namespace_id } = game.namespaces.find(({ name_id }) => name_id === 'prod')!
  await api.call(updateGameNamespaceVersion, { params: { game_id, namespace_id }, body: { version_id } })
  return 'bench.cdn.localhost'
}

type Nginx = { port: number; tls_port: number; stop: () => Promise<void> }

async function startNginx(files: ReadonlyMap<string, Buffer>): Promise<Nginx> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-nginx-'))
  await mkdir(join(folder, 'site', 'many'), { recursive: true })
  for (const [path, bytes] of files) await writeFile(join(folder, 'site', path), bytes)
  const [port, tls_port] = (await freePorts(2)) as [number, number]
  const certificate = ['-keyout', join(folder, 'key.pem'), '-out', join(folder, 'certificate.pem')]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256']
  spawnSync('openssl', ['req', '-x509', '-nodes', '-subj', '/CN=bench', ...curve, ...certificate])
  const server = `server { listen 127.0.0.1:${port}; listen 127.0.0.1:${tls_port} ssl http2; root ${folder}/site; }`
  const tls = `ssl_certificate ${folder}/certificate.pem; ssl_certificate_key ${folder}/key.pem;`
  await writeFile(
    join(folder, 'nginx.conf'),
    `daemon off; worker_processes 1; pid ${folder}/pid; error_log stderr error; ${process.getuid?.() === 0 ? 'user root;' : ''}
    events { worker_connections 1024; }
    http {
      access_log off; sendfile on; tcp_nopush on; open_file_cache max=100; keepalive_requests 1000000;
      client_body_temp_path ${folder}/1; proxy_temp_path ${folder}/2; fastcgi_temp_path ${folder}/3;
      uwsgi_temp_path ${folder}/4; scgi_temp_path ${folder}/5;
      ${tls}
      ${server}
    }`,
  )
  const child = spawn('nginx', ['-c', join(folder, 'nginx.conf')], { stdio: ['ignore', 'ignore', 'inherit'] })
  const ended = once(child, 'exit')
  await Promise.race([
    untilItAnswers(port),
    once(child, 'error').then(() => Promise.reject(new Error('This bench needs nginx: apt-get install nginx-light'))),
    ended.then(() => Promise.reject(new Error('nginx ended'))),
  ])
  return {
    port,
    tls_port,
    stop: async () => {
      child.kill()
      await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function untilItAnswers(port: number): Promise<void> {
  for (let attempt = 0; attempt < START_ATTEMPTS_MAX; attempt++) {
    const is_there = await fetch(`http://127.0.0.1:${port}/small.bin`).then(
      (response) => response.ok,
      () => false,
    )
    if (is_there) return
    await new Promise((resolve) => setTimeout(resolve, START_PAUSE_MS))
  }
  throw new Error('nginx does not accept connections')
}
