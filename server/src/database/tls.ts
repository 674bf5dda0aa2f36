// TLS to PostgreSQL. Every sslmode but `disable` means here what `verify-full` means in libpq: encrypted, with a certificate of
// a trusted authority for the host of the URL. libpq's `require` accepts any certificate, and `prefer` falls back to plain. The
// driver is about to change to that, so this file says what it does.
import pg from 'pg'
import { StartError } from '../config/start-error.ts'
import { certificateFault } from '../outbound/certificate-fault.ts'

/** The setting that an error names. */
export type UrlSetting = 'DATABASE_URL' | 'MUSTER_DATABASE_LISTEN_URL'

/** Where to connect, and how the server proves itself. Files of the URL have been read. */
export type DatabaseTarget = Pick<pg.ClientConfig, 'connectionString' | 'ssl' | 'sslnegotiation'>

const STRICT = /([?&]sslmode=)(?:allow|prefer|require|verify-ca)(?=&|$)/
const TLS_PARAMETERS = /([?&])(?:ssl|sslmode|sslrootcert|sslcert|sslkey|sslnegotiation)=[^&]*&?/
/** Asks the driver for the modes of libpq. */
const AS_LIBPQ = /[?&]uselibpqcompat=true(?=&|$)/

/**
 * The driver reads the files of a URL whenever it connects, and throws where nothing can catch it. So they are read once. The
 * URL must name one server.
 */
export function readTarget(url: string): DatabaseTarget {
  const strict = AS_LIBPQ.test(url) ? url : url.replace(STRICT, '$1verify-full')
  const { ssl } = new pg.Client({ connectionString: strict })
  if (!ssl) return { connectionString: url }
  const is_direct = /[?&]sslnegotiation=direct(?=&|$)/.test(url)
  return { connectionString: withoutTls(url), ssl, ...(is_direct && { sslnegotiation: 'direct' }) }
}

function withoutTls(url: string): string {
  let rest = url
  while (TLS_PARAMETERS.test(rest)) rest = rest.replace(TLS_PARAMETERS, '$1')
  return rest.replace(/[?&]$/, '')
}

/** SQLSTATE: the client could not make a connection. */
const NO_CONNECTION = '08001'
/** The driver's message for a server that refuses TLS. */
export const NO_TLS = 'The server does not support SSL connections'

/** For a refusal of TLS an error whose message names the remedy. Any other error is returned as it is. */
export function explainTls(error: unknown, server: { host: string; port: number }, setting: UrlSetting): unknown {
  const message = sentenceOf(error, server, setting)
  return message === null ? error : Object.assign(new StartError(message, { cause: error }), { code: NO_CONNECTION })
}

function sentenceOf(error: unknown, { host, port }: { host: string; port: number }, setting: UrlSetting) {
  const name = `PostgreSQL at ${host}:${port}`
  const fault = certificateFault(error, host)
  if (fault?.kind === 'no_tls' || (error instanceof Error && error.message === NO_TLS)) {
    return (
      `${name} does not offer TLS, and ${setting} requires it. Set ssl = on in its postgresql.conf. ` +
      `sslmode=disable in ${setting} is for a network that you trust.`
    )
  }
  if (fault === null) return null
  const remedy = {
    other_name: `Write a name of the certificate into ${setting}, or make a certificate for ${host}.`,
    outdated: `Renew it, or correct the clock; ${setting} requires a valid one.`,
    untrusted: `Name the PEM file of its authority with sslrootcert=FILE in ${setting}.`,
  }[fault.kind]
  return `The certificate of ${name} ${fault.what}. ${remedy}`
}

/** Whether the server need not prove who it is, although the connection is encrypted. */
export function isUnproven(url: string): boolean {
  if (/[?&]ssl(?:mode)?=no-verify(?=&|$)/.test(url)) return true
  return AS_LIBPQ.test(url) && /[?&]sslmode=(?!disable|verify-full)/.test(url)
}
