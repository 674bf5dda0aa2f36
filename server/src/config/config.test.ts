import assert from 'node:assert'
import { test } from 'node:test'
import { ConfigError, readConfig } from './config.ts'

const PRODUCTION = {
  MUSTER_DOMAIN_MAIN: 'muster.example',
  MUSTER_DOMAIN_CDN: 'pages.test',
  MUSTER_DOMAIN_JOB: 'lobbies.invalid',
}

function mistakesOf(env: Record<string, string>): readonly string[] {
  try {
    readConfig(env)
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return error.mistakes
  }
}

test('the two keys of the login captcha are set together', () => {
  const keys = { MUSTER_LOGIN_TURNSTILE_SITE_KEY: 'site', MUSTER_LOGIN_TURNSTILE_SECRET_KEY: 'secret' }
  assert.deepStrictEqual(readConfig(keys).login_turnstile, { site_key: 'site', secret_key: 'secret' })
  assert.strictEqual(readConfig({}).login_turnstile, null)
  for (const [name, value] of Object.entries(keys)) assert.match(mistakesOf({ [name]: value }).join(), /set both/)
})

test('raw ports have a loopback address of their own in development, and every address in production', () => {
  assert.strictEqual(readConfig({}).edge_ports.host, '127.0.0.2')
  assert.strictEqual(readConfig({ MUSTER_EDGE_PORTS_HOST: '127.7.7.7' }).edge_ports.host, '127.7.7.7')
  assert.strictEqual(readConfig(PRODUCTION).edge_ports.host, null)
  assert.strictEqual(readConfig({ ...PRODUCTION, MUSTER_EDGE_PORTS_HOST: '192.0.2.1' }).edge_ports.host, '192.0.2.1')
})

test('settings under which raw ports would share a host with the hub are refused', () => {
  const refused: [env: Record<string, string>, name: string][] = [
    ...['127.0.0.1', '::1', '0.0.0.0', '::', '192.0.2.1', '::ffff:127.0.0.1', 'localhost', '127.1'].map(
      (host): [Record<string, string>, string] => [{ MUSTER_EDGE_PORTS_HOST: host }, 'MUSTER_EDGE_PORTS_HOST'],
    ),
    [{ ...PRODUCTION, MUSTER_EDGE_PORTS_HOST: 'lobbies.invalid' }, 'MUSTER_EDGE_PORTS_HOST'],
    [{ ...PRODUCTION, MUSTER_DOMAIN_JOB: 'muster.example' }, 'MUSTER_DOMAIN_JOB'],
    [{ ...PRODUCTION, MUSTER_DOMAIN_JOB: 'jobs.muster.example' }, 'MUSTER_DOMAIN_JOB'],
    [{ ...PRODUCTION, MUSTER_DOMAIN_MAIN: 'muster.lobbies.invalid' }, 'MUSTER_DOMAIN_MAIN'],
    [{ ...PRODUCTION, MUSTER_DOMAIN_JOB: 'jobs.pages.test' }, 'MUSTER_DOMAIN_JOB'],
    [{ MUSTER_DOMAIN_MAIN: 'muster.example' }, 'MUSTER_DOMAIN_JOB'],
    // A browser reads these as addresses.
    ...['192.0.2.1', '127.1', '2130706433', '0x7f000001', 'muster.0x1'].map(
      (main): [Record<string, string>, string] => [{ ...PRODUCTION, MUSTER_DOMAIN_MAIN: main }, 'MUSTER_DOMAIN_MAIN'],
    ),
  ]
  for (const [env, name] of refused) {
    const mistakes = mistakesOf(env)
    assert.ok(
      mistakes.some((mistake) => mistake.includes(name)),
      `${JSON.stringify(env)}: ${JSON.stringify(mistakes)}`,
    )
  }
})

test('where the edge speaks https in production, people come over https', () => {
  const http = { ...PRODUCTION, MUSTER_PUBLIC_SCHEME: 'http' }
  assert.deepStrictEqual(mistakesOf(http), [])
  for (const [name, value] of [
    ['MUSTER_TLS_CERTIFICATES', '/certificates'],
    ['MUSTER_ACME', 'https://acme.example/'],
  ] as const) {
    assert.match(mistakesOf({ ...http, [name]: value }).join(), /MUSTER_PUBLIC_SCHEME must be https/)
    assert.deepStrictEqual(mistakesOf({ ...PRODUCTION, [name]: value }), [])
  }
})

test("the machine's size bounds what lobbies use together in production, and not in development", () => {
  const capacityOf = (env: Record<string, string>) => readConfig(env).regions[0]!.capacity
  assert.deepStrictEqual(capacityOf({}), { cpu_cores: null, memory_mb: null })
  assert.deepStrictEqual(capacityOf({ MUSTER_CAPACITY_CORES: '3' }), { cpu_cores: 3, memory_mb: null })
  const { cpu_cores, memory_mb } = capacityOf(PRODUCTION)
  assert.ok(cpu_cores !== null && cpu_cores > 0 && memory_mb !== null && memory_mb > 0)
})

test('games may call services of this machine in development only, and only when a setting says so', () => {
  assert.strictEqual(readConfig({}).fetch_localhost, false)
  assert.strictEqual(readConfig({ MUSTER_FETCH_LOCALHOST: 'on' }).fetch_localhost, true)
  assert.match(mistakesOf({ ...PRODUCTION, MUSTER_FETCH_LOCALHOST: 'on' }).join(), /MUSTER_FETCH_LOCALHOST must be off/)
})
