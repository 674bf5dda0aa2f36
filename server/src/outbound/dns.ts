// Resolves the names of others through name servers only: hosts files and search domains of this machine do not apply. The
// result is an answer or a DnsFailure with a sentence; further sections of an answer are ignored. Each query has its own
// timeout and number of attempts, and ends when its signal aborts.
import type { CaaRecord } from 'node:dns'
import { Resolver } from 'node:dns/promises'

/** One query to one name server. */
const QUESTION_MS_MAX = 2_000
/** Queries to each name server. */
const TRIES_MAX = 2
/** Addresses of one name. */
const ADDRESSES_MAX = 16
/** TXT records of one name: services leave theirs at the top of a zone, never below `_muster`. */
const TEXTS_MAX = 64
/** CAA records of one name. */
const CAA_RECORDS_MAX = 64
/** Name servers of one zone. */
const NAME_SERVERS_MAX = 16

export type DnsFailureReason = 'not_found' | 'no_answer' | 'refused' | 'too_many'

/** `not_found`: the name, or a record of this type, does not exist. All other failures may be temporary. */
export class DnsFailure extends Error {
  readonly reason: DnsFailureReason
  constructor(reason: DnsFailureReason, message: string) {
    super(message)
    this.name = 'DnsFailure'
    this.reason = reason
  }
}

export type Dns = {
  /** All IPv4 and IPv6 addresses. Throws a DnsFailure. */
  addresses: (name: string, signal?: AbortSignal) => Promise<string[]>
  /** The target of the CNAME record of `name` itself; no chain is followed. Throws a DnsFailure. */
  alias: (name: string, signal?: AbortSignal) => Promise<string>
  /** The values of all TXT records of `name`. Throws a DnsFailure. */
  texts: (name: string, signal?: AbortSignal) => Promise<string[]>
  /** The CAA records of `name`, or of the name that it is an alias of. Throws a DnsFailure. */
  caa: (name: string, signal?: AbortSignal) => Promise<CaaRecord[]>
  /** The name servers of the zone whose top is `name`. Throws a DnsFailure. */
  nameServers: (name: string, signal?: AbortSignal) => Promise<string[]>
}

/** `servers`: `address` or `address:port`; none: the system's. */
export function createDns(servers: readonly string[]): Dns {
  const ask = async <T>(name: string, signal: AbortSignal | undefined, query: (resolver: Resolver) => Promise<T>) => {
    // One for each question: cancelling it must not cancel those of others.
    const resolver = new Resolver({ timeout: QUESTION_MS_MAX, tries: TRIES_MAX, maxTimeout: QUESTION_MS_MAX })
    if (servers.length > 0) resolver.setServers(servers)
    const cancel = () => resolver.cancel()
    signal?.throwIfAborted()
    signal?.addEventListener('abort', cancel, { once: true })
    try {
      return await query(resolver)
    } catch (error) {
      throw toFailure(name, error)
    } finally {
      signal?.removeEventListener('abort', cancel)
    }
  }

  return {
    async addresses(name, signal) {
      // Both kinds must be known before one of them is trusted: one that is silent may be the one that matters.
      const kinds = await Promise.allSettled([
        ask(name, signal, (resolver) => resolver.resolve4(name)),
        ask(name, signal, (resolver) => resolver.resolve6(name)),
      ])
      const found: string[] = []
      let failure: unknown = null
      for (const kind of kinds) {
        if (kind.status === 'fulfilled') found.push(...kind.value)
        else if (!(kind.reason instanceof DnsFailure && kind.reason.reason === 'not_found')) throw kind.reason
        else failure = kind.reason
      }
      if (found.length === 0) throw failure
      if (found.length > ADDRESSES_MAX)
        throw new DnsFailure('too_many', `${name} has more than ${ADDRESSES_MAX} addresses.`)
      return found
    },
    async alias(name, signal) {
      const targets = await ask(name, signal, (resolver) => resolver.resolveCname(name))
      const [target] = targets
      if (target === undefined || targets.length > 1)
        throw new DnsFailure('too_many', `${name} has ${targets.length} CNAME records, where one is possible.`)
      return target.toLowerCase().replace(/\.$/, '')
    },
    async texts(name, signal) {
      const records = await ask(name, signal, (resolver) => resolver.resolveTxt(name))
      if (records.length > TEXTS_MAX)
        throw new DnsFailure('too_many', `${name} has more than ${TEXTS_MAX} TXT records.`)
      return records.map((pieces) => pieces.join(''))
    },
    async caa(name, signal) {
      const records = await ask(name, signal, (resolver) => resolver.resolveCaa(name))
      if (records.length > CAA_RECORDS_MAX)
        throw new DnsFailure('too_many', `${name} has more than ${CAA_RECORDS_MAX} CAA records.`)
      return records
    },
    async nameServers(name, signal) {
      const servers = await ask(name, signal, (resolver) => resolver.resolveNs(name))
      if (servers.length > NAME_SERVERS_MAX)
        throw new DnsFailure('too_many', `${name} has more than ${NAME_SERVERS_MAX} name servers.`)
      return servers
    },
  }
}

function toFailure(name: string, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException
  switch (code) {
    case 'ENOTFOUND':
    case 'ENODATA':
      return new DnsFailure(
        'not_found',
        `The name servers know no such record of ${name} (${code === 'ENODATA' ? 'NODATA' : 'NXDOMAIN'}).`,
      )
    case 'ETIMEOUT':
    case 'ECANCELLED':
    case 'ECONNREFUSED':
      return new DnsFailure('no_answer', `The name servers did not answer for ${name} in time.`)
    case 'ESERVFAIL':
    case 'EREFUSED':
    case 'EFORMERR':
    case 'EBADRESP':
    case 'EBADNAME':
    case 'ENOTIMP':
      return new DnsFailure('refused', `The name servers could not answer for ${name} (${code.slice(1)}).`)
    default:
      return error
  }
}
