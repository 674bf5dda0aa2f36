// OpenStack Swift of Debian as the S3 service of a test: one device in a temporary folder, four servers on free ports. It is an
// implementation of S3 in another language than the platform's, which verifies signatures and hashes of bodies itself.
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
import { S3Client } from '../../src/objects/s3/client.ts'
import { lacking } from '../run/optional-programs.ts'
import { freePorts } from '../support/free-ports.ts'
import { endWithTest, outputOf } from '../support/programs.ts'
import { until } from '../support/until.ts'
import { BUCKET, type S3TestService } from './service.ts'

const run = promisify(execFile)
const STORES = ['account', 'container', 'object'] as const
const SERVERS = (['proxy', ...STORES] as const).map((name) => `swift-${name}-server` as const)
/** Rings of one device with one copy: what swift-ring-builder makes, in one process. */
const MAKE_RINGS = `
import sys
from swift.common.ring import RingBuilder
folder, pairs = sys.argv[1], sys.argv[2:]
for store, port in zip(pairs[::2], pairs[1::2]):
  builder = RingBuilder(2, 1, 1)
  builder.add_dev(dict(region=1, zone=1, ip='127.0.0.1', port=int(port), device='d1', weight=1, meta='',
    replication_ip='127.0.0.1', replication_port=int(port)))
  builder.rebalance()
  builder.get_ring().save('%s/%s.ring.gz' % (folder, store))
`
/** The name contains a colon, which a signature must encode. */
const USER = 'test:tester'
const SECRET = 'testing'

/** Why it cannot be started; null: it can. */
export function swiftObstacle(): string | null {
  const missing = lacking(...SERVERS)
  if (missing !== null) return missing
  const script = "import os,tempfile; f=tempfile.NamedTemporaryFile(); os.setxattr(f.name,'user.swift',b'x'*2000)"
  return spawnSync('/usr/bin/python3', ['-c', script]).status === 0
    ? null
    : 'needs extended attributes in the temporary folder'
}

export async function startSwift(t: TestContext): Promise<S3TestService> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-swift-'))
  const [proxy_port, ...ports] = (await freePorts(1 + STORES.length)) as [number, ...number[]]
  await mkdir(join(folder, 'devices', 'd1'), { recursive: true })
  await run('/usr/bin/python3', [
    '-c',
    MAKE_RINGS,
    folder,
    ...STORES.flatMap((store, index) => [store, String(ports[index])]),
  ])
  await Promise.all(STORES.map((store, index) => writeStore(folder, store, ports[index]!)))
  await writeFile(join(folder, 'proxy.conf'), proxyConfig(folder, proxy_port))
  const children = ['proxy', ...STORES].map((server) => {
    const child = spawn(`swift-${server}-server`, [join(folder, `${server}.conf`)], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    endWithTest(t, child, folder)
    return { child, output: outputOf(child) }
  })
  const service: S3TestService = {
    endpoint: `http://127.0.0.1:${proxy_port}`,
    region: 'us-east-1',
    access_key_id: USER,
    secret_access_key: SECRET,
  }
  const client = new S3Client({ ...service, bucket: BUCKET, prefix: '' }, { now: Date.now })
  t.after(() => client.close())
  await until('Swift to make a bucket', async () => {
    requireRunning(children)
    return client.send({ method: 'PUT', key: null }).then(
      () => true,
      () => false,
    )
  })
  return service
}

function requireRunning(children: readonly { child: ChildProcess; output: () => string }[]): void {
  for (const { child, output } of children) {
    if (child.exitCode !== null) throw new Error(`${child.spawnfile} ended with ${child.exitCode}: ${output()}`)
  }
}

async function writeStore(folder: string, store: (typeof STORES)[number], port: number): Promise<void> {
  await writeFile(
    join(folder, `${store}.conf`),
    `${defaults(folder, port)}
devices = ${join(folder, 'devices')}
mount_check = false
disable_fallocate = true
[pipeline:main]
pipeline = ${store}-server
[app:${store}-server]
use = egg:swift#${store}
`,
  )
}

/** Logs go to standard error, because a test has no syslog. */
function defaults(folder: string, port: number): string {
  return `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
swift_dir = ${folder}
user = ${process.getuid?.() === 0 ? 'root' : (process.env.USER ?? 'nobody')}
workers = 0
log_level = WARNING
log_address = /dev/null
`
}

function proxyConfig(folder: string, port: number): string {
  return `${defaults(folder, port)}
[pipeline:main]
pipeline = catch_errors cache listing_formats bulk s3api tempauth copy slo dlo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:1
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:bulk]
use = egg:swift#bulk
[filter:s3api]
use = egg:swift#s3api
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = ${SECRET} .admin
[filter:copy]
use = egg:swift#copy
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
`
}
