// Debian's Knot DNS as the authoritative name server of a test: zones of its own on a free port, and updates signed with a
// TSIG key. It keeps everything in a temporary folder and serves in the foreground.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { createDns } from '../../src/outbound/dns.ts'
import type { TsigKey } from '../../src/text/tsig-key.ts'
import { freePorts } from './free-ports.ts'
import { endWithTest, outputOf } from './programs.ts'
import { until } from './until.ts'

/** Of Debian: a user's PATH may not name /usr/sbin. */
export const KNOT_ENVIRONMENT = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }

export type Knot = {
  /** `address:port`, over UDP and TCP. */
  address: string
  key: TsigKey
  /** With the key, as tsig-keygen writes it. */
  key_file: string
  /** The values of the TXT records of the name. */
  texts: (name: string) => Promise<string[]>
}

/** `zones`: by name, the records beside the SOA as in a zone file. */
export async function startKnot(t: TestContext, zones: Record<string, readonly string[]>): Promise<Knot> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-knot-'))
  const [port] = (await freePorts(1)) as [number]
  const key: TsigKey = { name: 'muster', algorithm: 'hmac-sha256', secret: randomBytes(32).toString('base64') }
  const { name, algorithm, secret } = key
  const key_file = join(folder, 'update.key')
  await writeFile(key_file, `key "${name}" {\n\talgorithm ${algorithm};\n\tsecret "${secret}";\n};\n`)
  for (const [zone, records] of Object.entries(zones)) {
    const soa = `@ SOA ns.${zone}. operator.${zone}. 1 3600 600 86400 1`
    await writeFile(join(folder, `${zone}.zone`), [`$ORIGIN ${zone}.`, '$TTL 1', soa, ...records, ''].join('\n'))
  }
  await writeFile(join(folder, 'knot.conf'), configOf(folder, port, key, Object.keys(zones)))
  const child = spawn('knotd', ['--config', join(folder, 'knot.conf')], {
    env: KNOT_ENVIRONMENT,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = outputOf(child)
  endWithTest(t, child, folder)
  const address = `127.0.0.1:${port}`
  const names = createDns([address])
  const texts = (of_name: string) =>
    names.texts(of_name).catch((error: { reason?: string }) => {
      if (error.reason === 'not_found') return []
      throw error
    })
  await until('knot to serve', async () => {
    if (child.exitCode !== null) throw new Error(`knotd ended with ${child.exitCode}: ${output()}`)
    const served = await Promise.allSettled(Object.keys(zones).map((zone) => names.nameServers(zone)))
    return served.every(({ status }) => status === 'fulfilled')
  })
  return { address, key, key_file, texts }
}

function configOf(
  folder: string,
  port: number,
  { name, algorithm, secret }: TsigKey,
  zones: readonly string[],
): string {
  return [
    'server:',
    `  listen: 127.0.0.1@${port}`,
    `  rundir: ${folder}`,
    // What matters of it to a test is seen from outside.
    ...[
      '  udp-workers: 1',
      '  tcp-workers: 1',
      '  background-workers: 1',
      'log:',
      '  - target: stderr',
      '    any: warning',
    ],
    ...[
      'database:',
      `  storage: ${folder}`,
      '  journal-db-max-size: 16M',
      '  kasp-db-max-size: 16M',
      '  timer-db-max-size: 16M',
    ],
    ...['key:', `  - id: ${name}`, `    algorithm: ${algorithm}`, `    secret: ${secret}`],
    ...['acl:', '  - id: update', `    key: ${name}`, '    action: update', 'zone:'],
    ...zones.flatMap((zone) => [
      `  - domain: ${zone}`,
      `    storage: ${folder}`,
      `    file: ${zone}.zone`,
      '    acl: update',
    ]),
    '',
  ].join('\n')
}
