// Each test makes one fault for real, and `examine` must name it with a remedy. All else of the settings is sound.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import pino from 'pino'
import { mainUrl } from '../../src/config/addresses.ts'
import { readConfig } from '../../src/config/read-config.ts'
import { examine } from '../../src/doctor/examine.ts'
import type { Check, Finding } from '../../src/doctor/finding.ts'
import { examineSandbox } from '../../src/doctor/machine.ts'
import { examineStore } from '../../src/doctor/services.ts'
import { prepareHost } from '../../src/runner/drivers/process/host.ts'
import { networkOptions } from '../../src/runner/network/options.ts'
import { startNameServer } from '../outbound/name-server.ts'
import { lacking } from '../run/optional-programs.ts'
import { NETWORK_NEEDS } from '../runner/network-world.ts'
import { s3Settings, startSmallS3 } from '../s3/service.ts'
import { freeSettings, temporaryFolder } from '../supervisor/started.ts'
import { makeAuthority } from '../support/certificates.ts'
import { createDatabase } from '../support/database.ts'
import { freePorts } from '../support/free-ports.ts'

const HOUR_MS = 3_600_000

/** Settings of a platform with domains of its own, whose names a name server of the test knows. */
const DOMAINS = { MUSTER_DOMAIN_MAIN: 'main.test', MUSTER_DOMAIN_CDN: 'cdn.example', MUSTER_DOMAIN_JOB: 'job.invalid' }
const RECORDS = ['main.test', '*.cdn.example', '*.lobby.local.job.invalid']

type Settings = Record<string, string>

async function findingsOf(settings: Settings, now_ms = Date.now()): Promise<Finding[]> {
  const { PATH } = process.env
  return (await examine({ PATH, ...settings }, now_ms)).findings
}

/** Production requires a sandbox and networks of lobbies, which this machine may not have. */
const FAULTS_OF_MACHINE: readonly Check[] = lacking(...NETWORK_NEEDS) === null ? [] : ['sandbox']

/** The only failure, which is of this check and has a remedy. */
async function requireFault(settings: Settings, check: Check, message: RegExp, remedy: RegExp): Promise<void> {
  const findings = await findingsOf(settings)
  const failures = findings.filter(({ status, check }) => status === 'failed' && !FAULTS_OF_MACHINE.includes(check))
  assert.deepEqual(
    failures.map((finding) => finding.check),
    [check],
    JSON.stringify(findings, null, 1),
  )
  assert.match(failures[0]!.message, message)
  assert.match(failures[0]!.remedy ?? '', remedy)
}

async function sound(t: TestContext): Promise<Settings> {
  const folder = temporaryFolder(t)
  // Lobbies run as other users, so the default of a temporary folder would be a fault.
  chmodSync(folder, 0o711)
  return { ...(await freeSettings(folder)) }
}

async function soundProduction(t: TestContext): Promise<{ settings: Settings; zones: Map<string, unknown> }> {
  const names = await startNameServer(t)
  for (const name of RECORDS) names.zones.set(name, { A: ['192.0.2.1'] })
  const settings = {
    ...(await sound(t)),
    ...DOMAINS,
    MUSTER_DNS_SERVERS: names.address,
    MUSTER_SANDBOX: 'required',
    MUSTER_CAPACITY_CORES: '1',
  }
  return { settings, zones: names.zones }
}

async function startHttp(t: TestContext, respond: { status?: number; body: object; date?: Date }): Promise<string> {
  const server = createServer((_, response) => {
    if (respond.date !== undefined) response.setHeader('date', respond.date.toUTCString())
    response.writeHead(respond.status ?? 200, { 'content-type': 'application/json' }).end(JSON.stringify(respond.body))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/siteverify`
}

const captchaSettings = (url: string): Settings => ({
  MUSTER_TURNSTILE_URL: url,
  MUSTER_LOGIN_TURNSTILE_SITE_KEY: 'site',
  MUSTER_LOGIN_TURNSTILE_SECRET_KEY: 'secret',
})
const REFUSED_RESPONSE = { success: false, 'error-codes': ['invalid-input-response'] }

test('a sound machine has no failure', async (t) => {
  const findings = await findingsOf(await sound(t))
  assert.deepEqual(
    findings.filter(({ status }) => status === 'failed'),
    [],
  )
})

test('1: a setting that does not exist, with the one that was meant', async () => {
  const findings = await findingsOf({ MUSTER_EDGE_HTP_PORT: '80' })
  assert.equal(findings.length, 1)
  assert.deepEqual([findings[0]!.check, findings[0]!.status], ['settings', 'failed'])
  assert.match(findings[0]!.message, /Did you mean MUSTER_EDGE_HTTP_PORT/)
  assert.match(findings[0]!.remedy!, /^unset MUSTER_EDGE_HTP_PORT\b/)
})

test('2: a port that another program has', async (t) => {
  const settings = await sound(t)
  const other = createTcpServer()
  await once(other.listen(Number(settings.MUSTER_API_PORT), '127.0.0.1'), 'listening')
  t.after(() => other.close())
  const port = RegExp(`Port ${settings.MUSTER_API_PORT} is taken`)
  await requireFault(settings, 'ports', port, /ss -ltnp 'sport = :\d+'; export MUSTER_API_PORT=/)
})

test('3: one port for two roles', async (t) => {
  const settings = await sound(t)
  const both = { ...settings, MUSTER_API_PORT: settings.MUSTER_MATCHMAKER_PORT! }
  await requireFault(both, 'ports', /are both \d+/, /export MUSTER_\w+_PORT=/)
})

test('4: a data folder that is a file', async (t) => {
  const settings = await sound(t)
  const file = join(settings.MUSTER_DATA!, 'file')
  writeFileSync(file, '')
  const findings = await findingsOf({ ...settings, MUSTER_DATA: file })
  const found = findings.find(({ check }) => check === 'data folder')
  assert.equal(found?.status, 'failed')
  assert.match(found.remedy!, /export MUSTER_DATA=/)
})

test('5: a restore that was interrupted', async (t) => {
  const settings = await sound(t)
  mkdirSync(join(settings.MUSTER_DATA!, 'restore-unfinished'))
  await requireFault(settings, 'data folder', /has not finished/, /muster restore/)
})

test('6: a database that does not listen', async (t) => {
  const [port] = await freePorts(1)
  const settings = { ...(await sound(t)), DATABASE_URL: `postgres://muster@127.0.0.1:${port}/muster` }
  await requireFault(settings, 'database', /does not respond/, /psql "\$DATABASE_URL"/)
})

test('7: a database that does not exist on a server that does', async (t) => {
  const url = (await createDatabase(t)).replace(/(?<=\/)test_\w+/, 'no_such_database')
  await requireFault({ ...(await sound(t)), DATABASE_URL: url }, 'database', /no_such_database/, /psql/)
})

test('8: less free disk space than uploads leave', async (t) => {
  const settings = { ...(await sound(t)), MUSTER_UPLOAD_DISK_FREE_MB_MIN: '100000000' }
  await requireFault(settings, 'disk', /Uploads are refused below/, /^du /)
})

test('9: a mail server that does not listen', async (t) => {
  const [port] = await freePorts(1)
  const settings = { ...(await sound(t)), MUSTER_SMTP_URL: `smtp://127.0.0.1:${port}` }
  await requireFault(settings, 'mail', /cannot be used/, /^nc -vz 127\.0\.0\.1 \d+$/)
})

test('10: a captcha provider that refuses the secret key, and one that fails', async (t) => {
  const wrong = await startHttp(t, { body: { success: false, 'error-codes': ['invalid-input-secret'] } })
  const settings = await sound(t)
  await requireFault({ ...settings, ...captchaSettings(wrong) }, 'captcha provider', /secret key/, /SECRET_KEY=/)
  const broken = await startHttp(t, { status: 500, body: {} })
  await requireFault({ ...settings, ...captchaSettings(broken) }, 'captcha provider', /status 500/, /^curl /)
})

test('11: a clock that is an hour behind another machine, and behind the last start', async (t) => {
  const settings = await sound(t)
  const url = await startHttp(t, { body: REFUSED_RESPONSE, date: new Date(Date.now() + HOUR_MS) })
  await requireFault({ ...settings, ...captchaSettings(url) }, 'clock', /3\d{3} s behind/, /timedatectl/)
  const holder = { pid: 1, start_ts: new Date(Date.now() + HOUR_MS).toISOString(), roles: [] }
  writeFileSync(join(settings.MUSTER_DATA!, 'lock-holder.json'), JSON.stringify(holder))
  await requireFault(settings, 'clock', /has not reached/, /timedatectl/)
})

test('12: a DNS record that is missing', async (t) => {
  const { settings, zones } = await soundProduction(t)
  zones.delete('*.cdn.example')
  await requireFault(settings, 'DNS', /no such record of muster-doctor\.cdn\.example/, /\*\.cdn\.example\. 300 IN A /)
})

test('13: a certificate that has expired, and one whose key is of another', async (t) => {
  const { settings } = await soundProduction(t)
  const folder = temporaryFolder(t)
  const authority = await makeAuthority()
  const names = ['main.test', '*.cdn.example', '*.lobby.local.job.invalid']
  const write = (name: string, { cert, key }: { cert: string; key: string }): void => {
    writeFileSync(join(folder, `${name}.crt`), cert)
    writeFileSync(join(folder, `${name}.key`), key, { mode: 0o600 })
  }
  const good = await authority.issue(names, { until_ms: 1000 * HOUR_MS })
  const with_files = { ...settings, MUSTER_TLS_CERTIFICATES: folder }
  write('good', good)
  write('old', await authority.issue(names, { from_ms: -2 * HOUR_MS, until_ms: -HOUR_MS }))
  await requireFault(with_files, 'certificates', /old\.crt expired at/, /certbot renew/)
  const { key } = await authority.issue(names)
  write('old', { cert: good.cert, key })
  await requireFault(with_files, 'certificates', /key does not belong/, /^openssl x509 /)
  write('old', good)
  write('good', good)
  const other_domain = { ...with_files, MUSTER_DOMAIN_MAIN: 'other.test' }
  const failures = (await findingsOf(other_domain)).filter(
    ({ check, status }) => check === 'certificates' && status === 'failed',
  )
  assert.match(failures[0]!.message, /No valid certificate covers other\.test/)
})

test('14: a block of addresses that is in use, but not by the platform that runs here', async (t) => {
  const missing = lacking(...NETWORK_NEEDS)
  if (missing !== null) return t.skip(missing)
  const config = readConfig({ ...(await sound(t)), MUSTER_LOBBY_NETWORK: '10.213.64.0/21' })
  const { data_dir, sandbox } = config
  const host = await prepareHost({ data_dir, sandbox, log: pino({ level: 'silent' }), network: networkOptions(config) })
  t.after(async () => {
    host.cgroups?.close()
    await host.networks?.remove()
  })
  const ofNetwork = async (is_running: boolean): Promise<(string | null)[]> =>
    (await examineSandbox(config, is_running))
      .filter(({ message }) => message.includes('MUSTER_LOBBY_NETWORK'))
      .map(({ remedy }) => remedy)
  const [remedy, ...others] = await ofNetwork(false)
  assert.deepEqual(others, [])
  assert.match(remedy ?? '', /^export MUSTER_LOBBY_NETWORK=/)
  assert.deepEqual(await ofNetwork(true), [])
})

test('a bucket that refuses uploads from the hub is named, with the rule and the other way', async (t) => {
  const bucket = await startSmallS3(t)
  const settings = { ...(await sound(t)), ...s3Settings(bucket, 'doctor') }
  const storeFindings = async (more: Settings): Promise<Finding[]> =>
    examineStore(readConfig({ ...settings, ...more }), Date.now())
  assert.deepEqual(
    (await storeFindings({})).map(({ status }) => status),
    ['ok'],
    'uploads go through the api',
  )

  const direct = { MUSTER_S3_UPLOAD_ENDPOINT: bucket.endpoint }
  const [works, refused] = await storeFindings(direct)
  assert.deepEqual([works?.status, refused?.status], ['ok', 'warning'])
  const origin = new URL(mainUrl(readConfig(settings))).origin
  assert.ok(
    refused!.message.includes(`do not allow PUT with content-type from ${origin} (status 403)`),
    refused!.message,
  )
  assert.match(refused!.remedy!, /^aws s3api put-bucket-cors --bucket muster-test .*unset MUSTER_S3_UPLOAD_ENDPOINT/)
  bucket.allowOrigin(origin)
  assert.deepEqual(
    (await storeFindings(direct)).map(({ status }) => status),
    ['ok'],
  )

  const [closed] = await freePorts(1)
  const [, unreachable] = await storeFindings({ MUSTER_S3_UPLOAD_ENDPOINT: `http://127.0.0.1:${closed}` })
  assert.match(
    `${unreachable?.status} ${unreachable?.message}`,
    /^warning MUSTER_S3_UPLOAD_ENDPOINT.* cannot be reached .*ECONNREFUSED/,
  )
})
