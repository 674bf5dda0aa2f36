// DATABASE_URL with one server or several, as libpq writes them: `postgres://USER:PASSWORD@HOST1:5432,HOST2:5432/NAME`. The
// driver connects to one server only, so this file makes a URL for each.
import { bareHost } from './bare-host.ts'

const DEFAULT_PORT = 5_432
/** Servers that a URL may name. */
const SERVERS_MAX = 9

const PARTS = /^(?<before>postgres(?:ql)?:\/\/(?:[^/?#]*@)?)(?<hosts>[^/?#@]*)(?<after>.*)$/s
const HOST = /^(?<host>\[[0-9a-fA-F:.]+\]|[^:[\]]+)(?::(?<port>\d{1,5}))?$/

/** TLS modes of libpq, and the driver's own `no-verify`, which encrypts and does not check the certificate. */
const TLS_MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify']
const TLS_FILES = ['sslrootcert', 'sslcert', 'sslkey'] as const

export type ServerUrl = {
  /** A URL that names this server alone. */
  url: string
  host: string
  port: number
  /** `HOST:PORT`, for messages. */
  name: string
}

/** One entry per server. A URL of one server is returned unchanged, also one of a unix socket. */
export function serversOf(database_url: string): ServerUrl[] {
  const { before = '', hosts = '', after = '' } = PARTS.exec(database_url)?.groups ?? {}
  const list = hosts.split(',')
  if (list.length === 1) return [{ ...serverOf(hosts), url: database_url }]
  return list.map((text) => ({ ...serverOf(text), url: `${before}${text}${withoutTarget(after)}` }))
}

/** Null, or what is wrong with it: the end of a sentence that begins with the name of the setting. */
export function databaseUrlMistake(database_url: string): string | null {
  const parts = PARTS.exec(database_url)?.groups
  if (parts === undefined) return 'must begin with postgres://.'
  const list = (parts.hosts ?? '').split(',')
  if (list.length > SERVERS_MAX) return `names ${list.length} servers; at most ${SERVERS_MAX} are allowed.`
  const query = new URLSearchParams(parts.after?.split('?')[1] ?? '')
  if (query.get('host')?.includes(',') || query.get('port')?.includes(',')) {
    return 'names several servers in a parameter; write them before the database: postgres://HOST1:5432,HOST2:5432/NAME.'
  }
  const mode = query.get('sslmode')
  if (mode !== null && !TLS_MODES.includes(mode)) {
    return `has sslmode=${mode}; use verify-full, or disable in a network that you trust.`
  }
  const target = query.get('target_session_attrs')
  if (target !== null && target !== 'read-write' && target !== 'primary') {
    return `has target_session_attrs=${target}; the platform connects only to the server that accepts writes (read-write).`
  }
  if (list.length === 1) return null
  const wrong = list.find((text) => !isHost(text))
  return wrong === undefined ? null : `names ${JSON.stringify(wrong)}, which is not HOST or HOST:PORT.`
}

/** The PEM files that the URL names, with the parameter of each. */
export function tlsFilesOf(database_url: string): { parameter: string; path: string }[] {
  const query = new URLSearchParams(database_url.split('?')[1] ?? '')
  return TLS_FILES.flatMap((parameter) => {
    const path = query.get(parameter)
    return path ? [{ parameter, path }] : []
  })
}

function isHost(text: string): boolean {
  const { port } = HOST.exec(text)?.groups ?? {}
  return HOST.test(text) && Number(port ?? DEFAULT_PORT) <= 65_535 && Number(port ?? DEFAULT_PORT) > 0
}

function serverOf(text: string): Omit<ServerUrl, 'url'> {
  const { host = text, port } = HOST.exec(text)?.groups ?? {}
  const number = Number(port ?? DEFAULT_PORT)
  return { host: bareHost(host), port: number, name: `${host}:${number}` }
}

/** The driver does not know the parameter. The platform always behaves as with `read-write`. */
function withoutTarget(after: string): string {
  return after.replace(/([?&])target_session_attrs=[^&]*&?/, '$1').replace(/[?&]$/, '')
}
