// Reads the environment into one frozen Config. No other file reads the environment. Without any setting the platform runs
// on this machine alone.
import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { didYouMean } from '@musterhost/contract/suggestion'
import { getDomain } from 'tldts'
import { readAcme } from './acme.ts'
import { readBackups } from './backups.ts'
import type { Config, LoginTurnstile } from './config.ts'
import { readDatabase } from './database.ts'
import { readEdge } from './edge.ts'
import { readLobbyNetwork } from './lobby-network.ts'
import { readMembers } from './members.ts'
import { LOOPBACK, readBlocks, readOutbound, readTrustedProxies } from './networks.ts'
import { readObjects } from './objects.ts'
import type { ProcessNumber } from './processes.ts'
import { isUrl, SettingsReader } from './read.ts'
import { readProcesses } from './read-processes.ts'
import { type MachineSize, machineCapacity, type Region, readRegions, thisMachine } from './regions.ts'
import { ROLES, type Role } from './roles.ts'
import { FEED_CLASSES, MEMBERS_MAX, SETTING_NAMES, SETTINGS, type Setting, type SettingName } from './settings.ts'
import { readSwarm } from './swarm.ts'

/** Settings of the clients of a platform. The shell of a developer may have them when it starts the platform. */
const CLIENT_SETTINGS: ReadonlySet<string> = new Set([
  'MUSTER_URL',
  'MUSTER_TOKEN',
  'MUSTER_CONFIG_DIR',
  'MUSTER_CHECKOUT',
])
/** Published address lists. */
const FEEDS_MAX = 16
const FEED_INTERVAL_MS_MIN = 3_600_000

/** Name of a node. */
const NODE_NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/
const NODE_NAME_LENGTH_MAX = 32

/** Registries of MUSTER_REGISTRIES. */
const REGISTRIES_MAX = 64
const REGISTRY =
  /^(?:(?<scheme>https?):\/\/)?(?<host>(?=[^/]*[.:]|localhost\b)[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?)(?:\/(?<prefix>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*))?\/?$/
/** The API of this registry has another name. */
const DOCKER_HUB = 'docker.io'
const DOCKER_HUB_API = 'registry-1.docker.io'
/** An image of a container engine: a name with a tag or a digest, or an id. */
const IMAGE_NAME = /^[a-zA-Z0-9][a-zA-Z0-9._:/@-]{0,254}$/

/** The exit code of a program whose configuration has mistakes: starting it again changes nothing. */
export const CONFIG_EXIT_CODE = 2

/** Every mistake of the environment, a line each. */
export class ConfigError extends Error {
  readonly mistakes: readonly string[]
  constructor(mistakes: readonly string[]) {
    const count = mistakes.length === 1 ? 'a mistake' : `${mistakes.length} mistakes`
    super(`The configuration has ${count}:\n${mistakes.map((line) => `  ${line}`).join('\n')}`)
    this.name = 'ConfigError'
    this.mistakes = mistakes
  }
}

/**
 * `machine`: its size, for the settings that depend on it. Throws a ConfigError. A name that begins with MUSTER_ and is not a
 * setting is a mistake too.
 */
export function readConfig(env: Record<string, string | undefined>, machine = thisMachine()): Config {
  const read = new SettingsReader(env)
  checkNames(env, read.mistakes)
  const members = readMembers(read)
  const { domains, quotas } = members
  const mode = domains.main === 'localhost' ? 'development' : 'production'
  checkDomains(domains, mode, read.mistakes)
  const roles = readRoles(read)
  const data_dir = resolve(read.text('MUSTER_DATA'))
  const edge = readEdge(read, mode, members)
  const processes = readProcesses(read, { ...members, mode, cores: machine.cores })
  const acme = readAcme(read, mode, roles.includes('api'))
  const stored = readObjects(read)
  const config: Config = {
    ...members,
    mode,
    node_id: readNode(read) ?? `${hostname()}:${data_dir}`,
    data_dir,
    roles,
    ...processes,
    ...readDatabase(read),
    internal_plain_from: readBlocks(read, 'MUSTER_INTERNAL_PLAIN_FROM'),
    metrics: readMetrics(read, roles, processes.process),
    otlp: readOtlp(read),
    ...edge,
    public_scheme: readPublicScheme(read, mode, edge.certificates_dir !== null || acme !== null),
    acme,
    ...readLobbyRegions(read, mode, machine),
    ...readOutbound(read, mode),
    login_turnstile: readLoginTurnstile(read),
    quotas: { ...quotas, members: read.number('MUSTER_QUOTA_MEMBERS') || MEMBERS_MAX },
    ...stored,
    ...readBackups(read, stored.s3),
    mail: readMail(read, domains.main),
    ip_data: readIpData(read, data_dir),
    ...readTrustedProxies(read),
    sandbox: readSandbox(read, mode),
    lobby_network: readLobbyNetwork(read),
    docker: readDocker(read),
    swarm: readSwarm(read, mode),
    registries: readRegistries(read),
    given_settings: givenSettings(read),
  }
  if (read.mistakes.length > 0) throw new ConfigError(read.mistakes)
  return deepFreeze(config)
}

function checkNames(env: Record<string, string | undefined>, mistakes: string[]): void {
  const known = new Set<string>(SETTING_NAMES)
  for (const name of Object.keys(env)) {
    if (name.startsWith('MUSTER_') && !known.has(name) && !CLIENT_SETTINGS.has(name)) {
      mistakes.push(`${name} is not a setting.${didYouMean(name, SETTING_NAMES)}`)
    }
  }
  if (env.NODE_TLS_REJECT_UNAUTHORIZED === '0') {
    mistakes.push(
      'NODE_TLS_REJECT_UNAUTHORIZED switches off what TLS is for; MUSTER_FETCH_AUTHORITIES adds authorities.',
    )
  }
}

function checkDomains(domains: Config['domains'], mode: Config['mode'], mistakes: string[]): void {
  if (mode === 'development') return
  if (new Set(Object.values(domains).map(registrableDomain)).size < 3) {
    mistakes.push(
      'MUSTER_DOMAIN_MAIN, MUSTER_DOMAIN_CDN and MUSTER_DOMAIN_JOB must be three different registrable domains: ' +
        'what strangers upload must not share cookies with the hub.',
    )
  }
  for (const [name, value] of [
    ['MUSTER_DOMAIN_CDN', domains.cdn],
    ['MUSTER_DOMAIN_JOB', domains.job],
  ] as const) {
    if (/(?:^|\.)localhost$/.test(value)) {
      mistakes.push(`${name} is ${value}, which is the visitor's own machine: production needs a domain of yours.`)
    }
  }
}

/** The domain that a registrar sells. Browsers share cookies below it. Public suffixes of private owners count too. */
function registrableDomain(domain: string): string {
  return getDomain(domain, { allowPrivateDomains: true }) ?? domain
}

function readRoles(read: SettingsReader): Role[] {
  const roles = read
    .text('MUSTER_ROLES')
    .split(',')
    .map((item) => item.trim())
  for (const role of roles) {
    if (!ROLES.some((item) => item === role)) {
      read.mistakes.push(`MUSTER_ROLES names ${JSON.stringify(role)}, which is not a role.`)
    }
  }
  return ROLES.filter((role) => roles.includes(role))
}

/** The value of a setting that is a URL of the given scheme; null when it is not set. */
function readUrl(
  read: SettingsReader,
  name: 'MUSTER_SMTP_URL' | 'MUSTER_OTLP_URL',
  scheme: RegExp,
  mistake: string,
): string | null {
  const value = read.textOrNull(name)
  if (value !== null && !isUrl(value, scheme)) read.mistakes.push(`${name} ${mistake}`)
  return value
}

function readMetrics(read: SettingsReader, roles: readonly Role[], { number }: ProcessNumber): Config['metrics'] {
  const first_port = read.number('MUSTER_METRICS_PORT')
  const host = read.text('MUSTER_METRICS_HOST')
  const token = read.textOrNull('MUSTER_METRICS_TOKEN')
  if (first_port === 0) return null
  if (token === null && !LOOPBACK.has(host)) {
    read.mistakes.push('MUSTER_METRICS_HOST is not loopback: MUSTER_METRICS_TOKEN says who may read the metrics there.')
  }
  const role_index = ROLES.findIndex((role) => roles.includes(role))
  return { host, port: first_port + number * ROLES.length + role_index, token }
}

function readOtlp(read: SettingsReader): Config['otlp'] {
  const url = readUrl(read, 'MUSTER_OTLP_URL', /^https?:\/\//, 'must be an http(s):// address.')
  if (url === null) return null
  const headers: Record<string, string> = {}
  for (const text of read.list('MUSTER_OTLP_HEADERS')) {
    const { name, value } = /^(?<name>[A-Za-z0-9-]+)=(?<value>[\x20-\x7e]+)$/.exec(text)?.groups ?? {}
    if (name !== undefined && value !== undefined) headers[name] = value
    // The value is a secret, so the sentence does not repeat it.
    else read.mistakes.push('MUSTER_OTLP_HEADERS is not name=value, between commas.')
  }
  return { url, headers }
}

function readPublicScheme(read: SettingsReader, mode: Config['mode'], has_certificates: boolean): 'http' | 'https' {
  const scheme = read.choice('MUSTER_PUBLIC_SCHEME', mode === 'production' ? 'https' : 'http')
  if (mode === 'production' && scheme === 'http' && has_certificates) {
    read.mistakes.push(
      'MUSTER_PUBLIC_SCHEME must be https where MUSTER_TLS_CERTIFICATES or MUSTER_ACME is set: ' +
        'over http a browser does not hold a session cookie to its host.',
    )
  }
  return scheme
}

/** Null: the node has no name of its own. */
function readNode(read: SettingsReader): string | null {
  const name = read.textOrNull('MUSTER_NODE')
  if (name !== null && !(NODE_NAME.test(name) && name.length <= NODE_NAME_LENGTH_MAX)) {
    read.mistakes.push(
      `MUSTER_NODE is ${JSON.stringify(name)}: a name has lower-case letters, digits and single hyphens between them, ${NODE_NAME_LENGTH_MAX} characters at most.`,
    )
  }
  return name
}

function readLobbyRegions(
  read: SettingsReader,
  mode: Config['mode'],
  machine: MachineSize,
): Pick<Config, 'regions' | 'tiers' | 'currency' | 'runner_regions' | 'node_capacity'> {
  const file = read.text('MUSTER_CONFIG')
  // A file that is named must exist; the default one need not.
  const path = read.isSet('MUSTER_CONFIG') || existsSync(file) ? resolve(file) : null
  const read_regions = readRegions(path, read.choice('MUSTER_PLACEMENT'), machine, read.mistakes)
  const runner_regions = readRunnerRegions(read, read_regions.regions)
  const served = read_regions.regions.filter(({ name }) => runner_regions.includes(name))
  // A developer tries more lobbies than a laptop has cores, with one player in each.
  const of_machine = mode === 'development' ? { cpu_cores: 0, memory_mb: 0 } : machineCapacity(machine)
  // Where the operator has given the regions a size, the machine's own size limits nothing.
  const otherwise = {
    cpu_cores: served.every(({ is_stated }) => is_stated.cpu_cores) ? 0 : of_machine.cpu_cores,
    memory_mb: served.every(({ is_stated }) => is_stated.memory_mb) ? 0 : of_machine.memory_mb,
  }
  const node_capacity = {
    cpu_cores: read.numberOrNull('MUSTER_CAPACITY_CORES', otherwise.cpu_cores),
    memory_mb: read.numberOrNull('MUSTER_CAPACITY_MEMORY_MB', otherwise.memory_mb),
  }
  return { ...read_regions, runner_regions, node_capacity }
}

function readRunnerRegions(read: SettingsReader, regions: readonly Region[]): readonly string[] {
  const all = regions.map(({ name }) => name)
  const names = read.list('MUSTER_RUNNER_REGIONS')
  for (const name of names) {
    if (!all.includes(name)) {
      read.mistakes.push(
        `MUSTER_RUNNER_REGIONS names ${JSON.stringify(name)}, which is no region.${didYouMean(name, all)}`,
      )
    }
  }
  return names.length === 0 ? all : all.filter((name) => names.includes(name))
}

function readLoginTurnstile(read: SettingsReader): LoginTurnstile | null {
  const site_key = read.textOrNull('MUSTER_LOGIN_TURNSTILE_SITE_KEY')
  const secret_key = read.textOrNull('MUSTER_LOGIN_TURNSTILE_SECRET_KEY')
  if (site_key !== null && secret_key !== null) return { site_key, secret_key }
  if (site_key !== secret_key) {
    read.mistakes.push('MUSTER_LOGIN_TURNSTILE_SITE_KEY and MUSTER_LOGIN_TURNSTILE_SECRET_KEY: set both, or neither.')
  }
  return null
}

function readMail(read: SettingsReader, domain: string): Config['mail'] {
  const smtp_url = readUrl(read, 'MUSTER_SMTP_URL', /^smtps?:\/\//, 'must begin with smtp:// or smtps://.')
  if (smtp_url === null) return null
  return { smtp_url, from: read.textOrNull('MUSTER_MAIL_FROM') ?? `Muster <no-reply@${domain}>` }
}

function readIpData(read: SettingsReader, data_dir: string): Config['ip_data'] {
  return {
    folder: resolve(read.textOrNull('MUSTER_IP_DATA') ?? join(data_dir, 'ip-data')),
    has_seed: read.choice('MUSTER_IP_SEED') === 'on',
    feeds: readFeeds(read),
    feed_interval_ms: Math.max(FEED_INTERVAL_MS_MIN, read.number('MUSTER_IP_FEED_HOURS')),
  }
}

/** The address of a URL is checked later, when it is called. */
function readFeeds(read: SettingsReader): Config['ip_data']['feeds'] {
  const texts = read.list('MUSTER_IP_FEEDS')
  if (texts.length > FEEDS_MAX) read.mistakes.push(`MUSTER_IP_FEEDS has more than ${FEEDS_MAX} lists.`)
  return texts.flatMap((text) => {
    const { name, url } = /^(?<name>[a-z]+)=(?<url>https?:\/\/.+)$/.exec(text)?.groups ?? {}
    const list_class = FEED_CLASSES.find((item) => item === name)
    if (list_class !== undefined && url !== undefined && URL.canParse(url)) return { list_class, url }
    read.mistakes.push(`MUSTER_IP_FEEDS names ${JSON.stringify(text)}, which is not CLASS=URL with a known class.`)
    return []
  })
}

function readSandbox(read: SettingsReader, mode: Config['mode']): Config['sandbox'] {
  const sandbox = read.choice('MUSTER_SANDBOX', mode === 'production' ? 'required' : 'available')
  if (mode === 'production' && sandbox !== 'required') {
    read.mistakes.push('MUSTER_SANDBOX must be required in production.')
  }
  return sandbox
}

function readDocker(read: SettingsReader): Config['docker'] {
  const socket = read.text('MUSTER_DOCKER_SOCKET')
  if (!socket.startsWith('/')) {
    read.mistakes.push('MUSTER_DOCKER_SOCKET must be the absolute path of a Unix socket, like /var/run/docker.sock.')
  }
  const base_image = read.textOrNull('MUSTER_DOCKER_BASE_IMAGE')
  if (base_image !== null && !IMAGE_NAME.test(base_image)) {
    read.mistakes.push(
      `MUSTER_DOCKER_BASE_IMAGE is ${JSON.stringify(base_image)}, which is not an image: NAME, NAME:TAG, NAME@sha256:DIGEST or an id.`,
    )
  }
  return { socket, base_image }
}

function readRegistries(read: SettingsReader): Config['registries'] {
  const texts = read.list('MUSTER_REGISTRIES')
  if (texts.length > REGISTRIES_MAX) {
    read.mistakes.push(`MUSTER_REGISTRIES has more than ${REGISTRIES_MAX} registries.`)
  }
  return texts.flatMap((text) => {
    const { scheme = 'https', host, prefix = '' } = REGISTRY.exec(text)?.groups ?? {}
    if (host !== undefined)
      return { host, prefix, origin: `${scheme}://${host === DOCKER_HUB ? DOCKER_HUB_API : host}` }
    read.mistakes.push(
      `MUSTER_REGISTRIES names ${JSON.stringify(text)}, which is not a registry like registry.example.com or registry.example.com/team.`,
    )
    return []
  })
}

function deepFreeze<T extends object>(value: T): T {
  for (const member of Object.values(value)) {
    if (typeof member === 'object' && member !== null) deepFreeze(member)
  }
  return Object.freeze(value)
}

function givenSettings(read: SettingsReader): Partial<Record<SettingName, string>> {
  const given: Partial<Record<SettingName, string>> = {}
  for (const name of SETTING_NAMES) {
    const setting: Setting = SETTINGS[name]
    if (read.isSet(name)) given[name] = setting.is_secret ? '' : read.given(name)
  }
  return given
}
