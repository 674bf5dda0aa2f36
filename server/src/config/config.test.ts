import assert from 'node:assert'
import { test } from 'node:test'
import { httpsWarning, internalAddress } from './addresses.ts'
import { ConfigError, readConfig } from './read-config.ts'
import { SETTING_NAMES, SETTINGS, type Setting, type SettingName } from './settings.ts'

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

test('raw ports of a node in development are at the address that its seats name', () => {
  assert.strictEqual(readConfig({ MUSTER_EDGE_PUBLIC_HOST: '192.168.1.20' }).edge_ports.host, '192.168.1.20')
  const other = { MUSTER_EDGE_PUBLIC_HOST: '192.168.1.20', MUSTER_EDGE_PORTS_HOST: '192.168.1.21' }
  assert.match(mistakesOf(other).join(), /MUSTER_EDGE_PORTS_HOST/)
  assert.strictEqual(readConfig({ MUSTER_EDGE_PUBLIC_HOST: 'attic.example.com' }).edge_ports.host, '127.0.0.2')
})

test('HTTP listens on loopback in development, on every address in production, or where the setting says', () => {
  assert.deepStrictEqual(readConfig({}).edge_hosts, ['127.0.0.1', '::1'])
  assert.deepStrictEqual(readConfig(PRODUCTION).edge_hosts, [null])
  assert.deepStrictEqual(readConfig({ MUSTER_EDGE_HOST: 'all' }).edge_hosts, [null])
  assert.deepStrictEqual(readConfig({ ...PRODUCTION, MUSTER_EDGE_HOST: '192.0.2.1' }).edge_hosts, ['192.0.2.1'])
  assert.match(mistakesOf({ MUSTER_EDGE_HOST: 'localhost' }).join(), /MUSTER_EDGE_HOST is "localhost"/)
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

test('production that prints https addresses without a certificate or a proxy is warned, with what works', () => {
  const warning = httpsWarning(readConfig({ ...PRODUCTION, MUSTER_EDGE_HTTP_PORT: '8000' })) ?? ''
  assert.match(warning, /nothing here serves https:\/\/muster\.example.*Only http:\/\/muster\.example:8000 works/)
  assert.ok(warning.length <= 400, 'a line of the terminal is cut after 400 characters')
  const sound: Record<string, string>[] = [
    {},
    { ...PRODUCTION, MUSTER_PUBLIC_SCHEME: 'http' },
    { ...PRODUCTION, MUSTER_TLS_CERTIFICATES: '/certificates' },
    { ...PRODUCTION, MUSTER_ACME: 'https://acme.example/' },
    { ...PRODUCTION, MUSTER_TRUSTED_PROXIES: '10.0.0.0/8' },
    { ...PRODUCTION, MUSTER_PROXY_PROTOCOL_FROM: '10.0.0.0/8' },
  ]
  for (const env of sound) assert.strictEqual(httpsWarning(readConfig(env)), null, JSON.stringify(env))
})

test("the machine's size bounds what lobbies use together in production, and not in development", () => {
  const capacityOf = (env: Record<string, string>) => readConfig(env).node_capacity
  assert.deepStrictEqual(capacityOf({}), { cpu_cores: null, memory_mb: null })
  assert.deepStrictEqual(capacityOf({ MUSTER_CAPACITY_CORES: '3' }), { cpu_cores: 3, memory_mb: null })
  const { cpu_cores, memory_mb } = capacityOf(PRODUCTION)
  assert.ok(cpu_cores !== null && cpu_cores > 0 && memory_mb !== null && memory_mb > 0)
})

test('a node has the name that is set, and runs lobbies of the regions that are set', () => {
  assert.match(readConfig({ MUSTER_DATA: '/tmp/data' }).node_id, /:\/tmp\/data$/)
  assert.strictEqual(readConfig({ MUSTER_NODE: 'fra-2' }).node_id, 'fra-2')
  for (const name of ['Fra', 'fra_2', '-fra', 'fra--2', 'f'.repeat(33)]) {
    assert.match(mistakesOf({ MUSTER_NODE: name }).join(), /MUSTER_NODE is .*lower-case letters/)
  }
  assert.deepStrictEqual(readConfig({}).runner_regions, ['local'])
  assert.deepStrictEqual(readConfig({ MUSTER_RUNNER_REGIONS: 'local' }).runner_regions, ['local'])
  assert.match(
    mistakesOf({ MUSTER_RUNNER_REGIONS: 'locel' }).join(),
    /"locel", which is no region\. Did you mean local/,
  )
})

test('each process of a role has ports of its own for metrics, and each matchmaker one for its HTTP', () => {
  const env = { MUSTER_ROLES: 'matchmaker', MUSTER_MATCHMAKER_PROCESSES: '3', MUSTER_EDGE_PROCESSES: '2' }
  const { process_counts, ...first } = readConfig(env)
  assert.deepStrictEqual(process_counts, { api: 1, matchmaker: 3, runner: 1, edge: 2 })
  assert.deepStrictEqual(first.matchmaker_ports, [8_081, 8_083, 8_084])
  assert.strictEqual(first.metrics?.port, 9_481)
  const third = readConfig({ ...env, MUSTER_PROCESS: '2/3' })
  assert.deepStrictEqual(third.process, { number: 2, count: 3 })
  assert.strictEqual(third.metrics?.port, 9_489)
  assert.strictEqual(internalAddress(third), '127.0.0.1:8084')
  assert.deepStrictEqual(readConfig({}).process, { number: 0, count: 1 })
  for (const value of ['1/1', '3/2', '0/0', '0/17', '1', '-1/2', 'a/b']) {
    assert.match(mistakesOf({ MUSTER_PROCESS: value }).join(), /the second of three processes is 1\/3/, value)
  }
  const edgesOf = (env: Record<string, string>, cores: number) =>
    readConfig(env, { cores, memory_mb: 1_024, cpu_mhz: 2_000 }).process_counts.edge
  assert.deepStrictEqual(
    [1, 2, 3, 4, 9, 64].map((cores) => edgesOf(PRODUCTION, cores)),
    [1, 1, 1, 2, 4, 16],
  )
  assert.strictEqual(edgesOf({}, 16), 1, 'a machine of a developer has one')
  assert.strictEqual(edgesOf({ ...PRODUCTION, MUSTER_EDGE_SOCKET: '/run/muster/edge.sock' }, 16), 1)
  assert.strictEqual(edgesOf({ ...PRODUCTION, MUSTER_LINK: '/run/muster/link' }, 16), 1)
  assert.strictEqual(edgesOf({ ...PRODUCTION, MUSTER_EDGE_PROCESSES: '3' }, 16), 3)
  assert.match(mistakesOf({ MUSTER_EDGE_PROCESSES: '0' }).join(), /MUSTER_EDGE_PROCESSES must be 1 at least/)
  const socket = { MUSTER_EDGE_PROCESSES: '2', MUSTER_EDGE_SOCKET: '/run/muster/edge.sock' }
  assert.match(mistakesOf(socket).join(), /MUSTER_EDGE_PROCESSES must be 1 where MUSTER_EDGE_SOCKET is set/)
})

test('games may call services of this machine in development only, and only when a setting says so', () => {
  assert.strictEqual(readConfig({}).fetch_localhost, false)
  assert.strictEqual(readConfig({ MUSTER_FETCH_LOCALHOST: 'on' }).fetch_localhost, true)
  assert.match(mistakesOf({ ...PRODUCTION, MUSTER_FETCH_LOCALHOST: 'on' }).join(), /MUSTER_FETCH_LOCALHOST must be off/)
})

/** Settings without which some others have no effect. */
const COMPANIONS = {
  ...PRODUCTION,
  MUSTER_ACME: 'https://acme.example/',
  MUSTER_ACME_DNS_HOOK: '/bin/true',
  MUSTER_OTLP_URL: 'http://127.0.0.1:4318',
  MUSTER_SMTP_URL: 'smtp://mail.example',
  MUSTER_OBJECTS: 's3://files',
  AWS_ACCESS_KEY_ID: 'id',
  AWS_SECRET_ACCESS_KEY: 'secret',
}

/** Values for settings whose kind allows more than they do. */
const VALUES: Partial<Record<SettingName, string>> = {
  MUSTER_SWARM_ENGINES: 'fra-1=unix:///var/run/docker.sock,fra-2=tcp://10.0.0.2:2376',
  MUSTER_SWARM_REGISTRY: '10.0.0.1:5000',
  DATABASE_URL: 'postgres://127.0.0.1/muster',
  MUSTER_ROLES: 'api',
  MUSTER_NODE: 'fra-2',
  MUSTER_PROCESS: '1/3',
  MUSTER_METRICS_HOST: '::1',
  MUSTER_OTLP_URL: 'http://127.0.0.1:4319',
  MUSTER_OTLP_HEADERS: 'a=b',
  MUSTER_EDGE_PORTS: '26000-26100',
  MUSTER_EDGE_PORTS_HOST: '192.0.2.1',
  MUSTER_HOST_PORT_RANGES: '27000-27999',
  MUSTER_ACME: 'https://other.example/',
  MUSTER_ACME_EMAIL: 'a@b.example',
  MUSTER_ACME_DNS_HOOK: '/bin/false',
  MUSTER_ACME_DNS_FOR: 'cdn',
  MUSTER_FETCH_PRIVATE_NETWORKS: '10.0.0.0/8',
  MUSTER_SMTP_URL: 'smtp://other.example',
  MUSTER_OBJECTS: 's3://files/muster',
  MUSTER_S3_ENDPOINT: 'https://s3.other.example',
  MUSTER_S3_UPLOAD_ENDPOINT: 'https://s3.other.example/',
  MUSTER_BACKUP_TO: '/mnt/backups',
  MUSTER_BACKUP_KEY: `AGE-SECRET-KEY-1${'Q'.repeat(58)}`,
  MUSTER_BACKUP_SCHEDULE: '30 2 * * 1-5',
  MUSTER_BACKUP_KEEP: '30d',
  MUSTER_IP_FEEDS: 'tor=https://a.example/list',
  MUSTER_TRUSTED_PROXIES: '10.0.0.0/8',
  MUSTER_EDGE_SOCKET: '/run/edge.sock',
  MUSTER_DOCKER_SOCKET: '/run/podman/podman.sock',
  MUSTER_REGISTRIES: 'registry.example.com,http://localhost:5000/games',
  MUSTER_DOMAIN_MAIN: 'other.example',
}

/** Settings that only a mistake shows, because they name a file, need another one, or have one value in production. */
const REFUSED: Partial<Record<SettingName, { value: string; mistake: RegExp }>> = {
  MUSTER_ACME_DNS_SERVER: { value: '192.0.2.53', mistake: /MUSTER_ACME_DNS_KEY need each other/ },
  MUSTER_ACME_DNS_KEY: { value: '/no/such/key', mistake: /MUSTER_ACME_DNS_SERVER and MUSTER_ACME_DNS_KEY/ },
  MUSTER_DATABASE_LISTEN_URL: { value: 'postgres://db/muster', mistake: /needs DATABASE_URL/ },
  MUSTER_CONFIG: { value: '/no/such/file.toml', mistake: /file\.toml cannot be read/ },
  MUSTER_EDGE_HOST: { value: 'other.test', mistake: /MUSTER_EDGE_HOST is/ },
  MUSTER_FETCH_LOCALHOST: { value: 'on', mistake: /MUSTER_FETCH_LOCALHOST must be off/ },
  MUSTER_FETCH_AUTHORITIES: { value: '/no/such/file.pem', mistake: /MUSTER_FETCH_AUTHORITIES names/ },
  MUSTER_LOGIN_TURNSTILE_SITE_KEY: { value: 'key', mistake: /set both/ },
  MUSTER_LOGIN_TURNSTILE_SECRET_KEY: { value: 'key', mistake: /set both/ },
  MUSTER_S3_ACCESS_KEY_ID: { value: 'key', mistake: /set both/ },
  MUSTER_S3_SECRET_ACCESS_KEY: { value: 'key', mistake: /set both/ },
  MUSTER_INTERNAL_PLAIN_FROM: { value: 'other.test', mistake: /which is not a CIDR block/ },
  MUSTER_RUNNER_REGIONS: { value: 'elsewhere', mistake: /MUSTER_RUNNER_REGIONS names/ },
  MUSTER_PUBLIC_SCHEME: { value: 'http', mistake: /MUSTER_PUBLIC_SCHEME must be https/ },
  MUSTER_LOBBY_NETWORK: { value: '8.8.8.0/16', mistake: /MUSTER_LOBBY_NETWORK must be a private IPv4 block/ },
  MUSTER_SANDBOX: { value: 'off', mistake: /MUSTER_SANDBOX must be required/ },
}

/** A value that is allowed, and is not the default. */
function otherValue(name: SettingName): string {
  const setting: Setting = SETTINGS[name]
  if (VALUES[name] !== undefined) return VALUES[name]
  if (setting.kind === 'choice') return setting.of.find((value) => value !== setting.default)!
  if ('max' in setting) return String(setting.max === setting.default ? setting.max - 1 : setting.max)
  if (setting.kind === 'url') return 'https://other.example/'
  return setting.kind === 'name_servers' ? '192.0.2.53' : 'other.test'
}

test('a bucket has a name, an address and credentials', () => {
  const login = { MUSTER_S3_ACCESS_KEY_ID: 'id', MUSTER_S3_SECRET_ACCESS_KEY: 'secret' }
  const { objects, s3 } = readConfig({ MUSTER_OBJECTS: 's3://files/a/b/', ...login })
  assert.deepStrictEqual(objects, { bucket: 'files', prefix: 'a/b', upload_endpoint: null })
  assert.strictEqual(s3?.endpoint, 'https://s3.us-east-1.amazonaws.com')
  assert.match(mistakesOf({ MUSTER_OBJECTS: 's3://files' }).join(), /MUSTER_OBJECTS needs MUSTER_S3_ACCESS_KEY_ID/)
  for (const place of ['files', 's3://', 's3://F/x', 's3://files/../x', 's3://files//x', 'https://files/x']) {
    assert.match(mistakesOf({ MUSTER_OBJECTS: place, ...login }).join(), /MUSTER_OBJECTS must be s3:/, place)
  }
  for (const name of ['MUSTER_S3_ENDPOINT', 'MUSTER_S3_UPLOAD_ENDPOINT']) {
    for (const address of ['s3.example', 'ftp://s3.example', 'https://s3.example/path', 'https://a:b@s3.example']) {
      assert.match(mistakesOf({ [name]: address }).join(), new RegExp(`${name} must be an http`), address)
    }
  }
})

test('the engines of a Swarm have names and addresses, and all of them reach this machine', () => {
  const engines = 'fra-1=unix:///run/docker.sock,fra-2=tcp://10.0.0.2:2376'
  const env = {
    MUSTER_DRIVER: 'swarm',
    MUSTER_SWARM_ENGINES: engines,
    MUSTER_SWARM_REGISTRY: '10.0.0.1:5000',
    MUSTER_INTERNAL_HOST: '0.0.0.0',
  }
  assert.deepStrictEqual(readConfig(env).swarm, {
    engines: [
      { node_id: 'fra-1', socket: '/run/docker.sock' },
      { node_id: 'fra-2', host: '10.0.0.2', port: 2_376 },
    ],
    registry: { host: '10.0.0.1', port: 5_000 },
    services: '10.0.0.1',
    tls_folder: null,
  })
  for (const [name, value, mistake] of [
    ['MUSTER_SWARM_ENGINES', '', /names no engine/],
    ['MUSTER_SWARM_ENGINES', 'tcp://10.0.0.2:2376', /not NODE=unix/],
    ['MUSTER_SWARM_ENGINES', 'Fra=unix:///run/docker.sock', /not NODE=unix/],
    ['MUSTER_SWARM_ENGINES', 'one=tcp://10.0.0.2:99999', /not NODE=unix/],
    ['MUSTER_SWARM_ENGINES', `${engines},fra-1=unix:///run/other.sock`, /names the node fra-1 twice/],
    ['MUSTER_SWARM_REGISTRY', 'registry.example:5000', /must be an IPv4 address/],
    ['MUSTER_SWARM_REGISTRY', '0.0.0.0:5000', /must be an IPv4 address/],
    ['MUSTER_INTERNAL_HOST', 'localhost', /lobbies of a Swarm call the platform there/],
    ['MUSTER_LINK', '/run/link.sock', /swarm on a joined node/],
  ] as const) {
    assert.match(mistakesOf({ ...env, [name]: value }).join(), mistake, `${name}=${value}`)
  }
})

test('a wrong place, key, schedule or rule of backups is named', () => {
  for (const [name, value, mistake] of [
    ['MUSTER_BACKUP_TO', 'backups', /absolute path/],
    ['MUSTER_BACKUP_TO', 's3://x', /absolute path, s3/],
    ['MUSTER_BACKUP_TO', 's3://backups/muster', /needs MUSTER_S3_ACCESS_KEY_ID/],
    ['MUSTER_BACKUP_KEY', 'secret', /"muster keys backup" prints/],
    ['MUSTER_BACKUP_SCHEDULE', 'daily', /five fields of cron/],
    ['MUSTER_BACKUP_KEEP', 'all', /"7d 4w 12m"/],
  ] as const) {
    assert.match(mistakesOf({ [name]: value }).join(), mistake, `${name}=${value}`)
  }
  const { backups } = readConfig({ MUSTER_BACKUP_TO: '/mnt/backups/' })
  const keep = { daily: 7, weekly: 4, monthly: 12 }
  assert.deepEqual(backups, { to: '/mnt/backups', schedule: '0 4 * * *', keep })
})

test('every setting of the table is read', () => {
  const plain = readConfig(COMPANIONS)
  for (const name of SETTING_NAMES) {
    const refused = REFUSED[name]
    const env = { ...COMPANIONS, [name]: refused?.value ?? otherValue(name) }
    if (refused === undefined) assert.notDeepStrictEqual(readConfig(env), plain, name)
    else assert.match(mistakesOf(env).join(), refused.mistake)
  }
})

test('a number over the limit of its setting is refused', () => {
  for (const name of SETTING_NAMES) {
    const setting: Setting = SETTINGS[name]
    if (!('max' in setting)) continue
    const mistakes = mistakesOf({ ...COMPANIONS, [name]: String(setting.max + 1) })
    assert.deepStrictEqual(mistakes, [
      `${name} must be a whole number from 0 to ${setting.max}, not "${setting.max + 1}".`,
    ])
  }
})
