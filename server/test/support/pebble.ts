// Debian's Pebble, the ACME server of Let's Encrypt for tests, as the authority of a test: it asks the name server that the
// test names, and refuses some good nonces, as its authors intend.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { get } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { makeAuthority } from './certificates.ts'
import { freePorts } from './free-ports.ts'
import { endWithTest, outputOf } from './programs.ts'
import { until } from './until.ts'

const PATH = '/usr/local/bin:/usr/bin:/bin'

export type Pebble = {
  directory_url: string
  /** PEM file of who certifies Pebble's own address. */
  trusted: string
  /** PEM: the root of what it issues. */
  root: () => Promise<string>
}

/** `host`: under which the platform knows it. `lifetime_s`: of what it issues. */
export async function startPebble(
  t: TestContext,
  options: { host: string; dns_server: string; http_port: number; lifetime_s: number },
): Promise<Pebble> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-pebble-'))
  const [port, management_port] = (await freePorts(2)) as [number, number]
  const authority = await makeAuthority()
  const { cert, key } = await authority.issue([options.host, 'localhost'])
  const files = { 'authority.pem': authority.cert, 'server.crt': cert, 'server.key': key }
  const pebble = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${management_port}`,
    certificate: join(folder, 'server.crt'),
    privateKey: join(folder, 'server.key'),
    httpPort: options.http_port,
    tlsPort: 1,
    certificateValidityPeriod: options.lifetime_s,
  }
  for (const [name, content] of Object.entries({ ...files, 'pebble.json': JSON.stringify({ pebble }) }))
    await writeFile(join(folder, name), content)
  const args = ['-strict', '-config', join(folder, 'pebble.json'), '-dnsserver', options.dns_server]
  const child = spawn('pebble', args, {
    // Without it Pebble sleeps for up to 15 s before each validation. A proof is asked for anew with each order.
    env: { PATH, PEBBLE_VA_NOSLEEP: '1', PEBBLE_AUTHZREUSE: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = outputOf(child)
  endWithTest(t, child, folder)
  const root = () => getText(`https://localhost:${management_port}/roots/0`, authority.cert)
  await until('pebble to serve', async () => {
    if (child.exitCode !== null) throw new Error(`pebble ended with ${child.exitCode}: ${output()}`)
    return root().catch(() => null)
  })
  return { directory_url: `https://${options.host}:${port}/dir`, trusted: join(folder, 'authority.pem'), root }
}

async function getText(url: string, ca: string): Promise<string> {
  const req = get(url, { ca, agent: false, family: 4 })
  const [res] = await once(req, 'response')
  return text(res)
}
