// Why the platform or one of its roles cannot start: one sentence for the operator. Any other error of a start is a bug and
// is logged whole.
import { serversOf } from '../text/database-url.ts'
import type { Config } from './config.ts'

/** The message is a whole sentence that names the remedy. It is shown without a stack. */
export class StartError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StartError'
  }
}

/** The sentence for an error of a start, with the setting of a port that is taken or the address of the database. */
export function startSentence(error: unknown, config: Config): string {
  if (!(error instanceof Error)) return `It cannot start: ${String(error)}.`
  const { code, port, syscall, address } = error as NodeJS.ErrnoException & { port?: number; address?: string }
  if (code === 'EADDRNOTAVAIL' && syscall === 'listen') {
    const setting = address === config.internal_host ? 'MUSTER_INTERNAL_HOST' : 'MUSTER_EDGE_HOST'
    return `This machine has no address ${address}; set ${setting} to one of its own.`
  }
  if (port !== undefined && syscall === 'listen') {
    const setting = settingOfPort(config, port)
    if (code === 'EADDRINUSE') return `Port ${port} is taken by another program; set ${setting} to a free one.`
    if (code === 'EACCES') {
      return `Port ${port} needs a privilege that this user lacks; set ${setting} to one above 1023.`
    }
  }
  if (code === 'ECONNREFUSED' || (code === 'ENOENT' && syscall === 'connect')) {
    return `PostgreSQL does not respond at ${databaseAddress(config)}; is it running, and is DATABASE_URL right?`
  }
  if (code === '57P03') return `PostgreSQL is not ready: ${error.message}.`
  if (code === '28P01' || code === '28000' || code === '3D000') {
    return `PostgreSQL at ${databaseAddress(config)} refuses DATABASE_URL: ${error.message}.`
  }
  return error.message
}

function settingOfPort(config: Config, port: number): string {
  if (port === config.api_port) return 'MUSTER_API_PORT'
  if (port === config.matchmaker_port) return 'MUSTER_MATCHMAKER_PORT'
  const further_port = config.lobby_api_port + config.process_counts.matchmaker - 1
  if (port >= config.lobby_api_port && port <= further_port) return 'MUSTER_LOBBY_API_PORT'
  if (port === config.edge_https_port) return 'MUSTER_EDGE_HTTPS_PORT'
  return 'MUSTER_EDGE_HTTP_PORT'
}

/** Host and database of the address, without its password. Of several servers, the first. */
function databaseAddress(config: Config): string {
  if (config.database_url === null) return 'the data folder'
  const { url } = serversOf(config.database_url)[0]!
  if (!URL.canParse(url)) return 'DATABASE_URL'
  const { host, pathname, searchParams } = new URL(url)
  return `${searchParams.get('host') ?? host}${pathname}`
}
