// Starts HAProxy and nginx in front of the same backend, with one thread or worker each, because the edge is one process.
// They are the packages haproxy, nginx and libnginx-mod-stream of Debian.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from '../platform.ts'

export type Ports = { http: number; https: number; tcp: number; udp: number }
export type Peers = { haproxy: Omit<Ports, 'udp'>; nginx: Ports; stop: () => Promise<void> }

const START_ATTEMPTS_MAX = 100
const START_PAUSE_MS = 50
const STREAM_MODULE = '/usr/lib/nginx/modules/ngx_stream_module.so'

export async function startPeers(backend: { tcp: number; udp: number }): Promise<Peers> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-peers-'))
  const ports = (await freePorts(7)) as [number, number, number, number, number, number, number]
  const haproxy = { http: ports[0], https: ports[1], tcp: ports[2] }
  const nginx = { http: ports[3], https: ports[4], tcp: ports[5], udp: ports[6] }
  await makeCertificate(folder)
  await writeFile(join(folder, 'haproxy.cfg'), haproxyConfig(folder, haproxy, backend.tcp))
  await writeFile(join(folder, 'nginx.conf'), nginxConfig(folder, nginx, backend))
  const children = [
    start('haproxy', ['-db', '-q', '-f', join(folder, 'haproxy.cfg')], 'haproxy'),
    start('nginx', ['-c', join(folder, 'nginx.conf')], 'nginx libnginx-mod-stream'),
  ]
  const stop = async (): Promise<void> => {
    await Promise.all(children.map(end))
    await rm(folder, { recursive: true, force: true })
  }
  try {
    for (const port of [haproxy.tcp, nginx.tcp]) await untilItListens(port)
  } catch (error) {
    await stop()
    throw error
  }
  return { haproxy, nginx, stop }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill()
  await ended
}

/** A certificate with the kind of key that the edge's own authority creates. */
async function makeCertificate(folder: string): Promise<void> {
  const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1']
  const files = ['-subj', '/CN=localhost', '-keyout', join(folder, 'key.pem'), '-out', join(folder, 'cert.pem')]
  execFileSync('openssl', [...args, ...files], { stdio: 'ignore' })
  const parts = await Promise.all(['cert.pem', 'key.pem'].map((name) => readFile(join(folder, name), 'utf8')))
  await writeFile(join(folder, 'both.pem'), parts.join(''))
}

function haproxyConfig(folder: string, ports: Omit<Ports, 'udp'>, backend: number): string {
  return `
global
  nbthread 1
  maxconn 4000
  ssl-default-bind-options ssl-min-ver TLSv1.2
defaults
  timeout connect 5s
  timeout client 1h
  timeout server 1h
frontend http
  mode http
  option forwardfor
  bind 127.0.0.1:${ports.http}
  bind 127.0.0.1:${ports.https} ssl crt ${folder}/both.pem
  default_backend lobby
backend lobby
  mode http
  http-reuse always
  server one 127.0.0.1:${backend}
listen tcp
  mode tcp
  bind 127.0.0.1:${ports.tcp}
  server one 127.0.0.1:${backend}
`
}

function nginxConfig(folder: string, ports: Ports, backend: { tcp: number; udp: number }): string {
  return `
load_module ${STREAM_MODULE};
daemon off; worker_processes 1; pid ${folder}/pid; error_log stderr error; ${process.getuid?.() === 0 ? 'user root;' : ''}
events { worker_connections 4000; }
http {
  access_log off; keepalive_requests 1000000;
  client_body_temp_path ${folder}/1; proxy_temp_path ${folder}/2; fastcgi_temp_path ${folder}/3;
  uwsgi_temp_path ${folder}/4; scgi_temp_path ${folder}/5;
  upstream lobby { server 127.0.0.1:${backend.tcp}; keepalive 64; keepalive_requests 1000000; }
  server {
    listen 127.0.0.1:${ports.http};
    listen 127.0.0.1:${ports.https} ssl;
    ssl_certificate ${folder}/cert.pem; ssl_certificate_key ${folder}/key.pem;
    location / {
      proxy_pass http://lobby; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $remote_addr;
    }
  }
}
stream {
  server { listen 127.0.0.1:${ports.tcp}; proxy_pass 127.0.0.1:${backend.tcp}; tcp_nodelay on; }
  server { listen 127.0.0.1:${ports.udp} udp; proxy_pass 127.0.0.1:${backend.udp}; proxy_timeout 60s; }
}
`
}

function start(command: string, args: string[], packages: string): ChildProcess {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  child.once('error', () => console.error(`This bench needs ${command}: apt-get install ${packages}`))
  return child
}

async function untilItListens(port: number): Promise<void> {
  for (let attempt = 0; attempt < START_ATTEMPTS_MAX; attempt++) {
    const socket = connect({ port, host: '127.0.0.1' })
    const is_there = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    })
    socket.destroy()
    if (is_there) return
    await new Promise((resolve) => setTimeout(resolve, START_PAUSE_MS))
  }
  throw new Error('HAProxy or nginx does not listen. Debian: apt-get install haproxy nginx libnginx-mod-stream')
}
