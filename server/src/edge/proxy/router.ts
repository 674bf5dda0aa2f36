// Where a request goes. By host: the main domain, a site, a lobby. On the main domain by the path: the
// matchmaker, a lobby by the path route, and everything else to the api. Targets come from the settings and from
// lobby_runs only; nothing in a request ever becomes an address.
import { setTimeout as delay } from 'node:timers/promises'
import { ApiError } from '@muster/contract'
import { serviceOf } from '@muster/contract/services'
import type { Config } from '../../config/config.ts'
import type { Context } from '../../context.ts'
import { EDGE_PROOF_HEADER, edgeProof } from '../../tokens/edge-proof.ts'
import type { Domains } from '../domains.ts'
import type { Exchange, RoleUpstream, Upstream } from '../http/exchange.ts'
import { linesOf } from '../http/head.ts'
import { ROLE_PAUSE_MS, ROLE_WAIT_MS_MAX, ROLE_WAITERS_MAX } from '../limits.ts'
import type { Lookups } from '../lookups.ts'
import type { Address, LobbyPort, Routes } from '../routes.ts'
import type { Certificates } from '../tls/certificates.ts'
import { challengeToken, findChallenge } from '../tls/challenges.ts'
import { PATH_ROUTE } from './path-route.ts'
import { createRedirects, hstsOf } from './redirects.ts'

export type Place =
  | { kind: 'upstream'; upstream: Upstream; address: Address; path: string; lobby: LobbyPort | null }
  | { kind: 'site'; game: string; namespace: string }
  | { kind: 'media' }
  | { kind: 'text'; text: string }
  | { kind: 'redirect'; location: string }

/** What it takes to know where a request goes. */
export type Directory = {
  ctx: Context
  routes: Routes
  domains: Domains
  lookups: Lookups
  /** Null: this edge speaks no TLS. */
  certificates: Certificates | null
}

type Wanted = Pick<Exchange, 'host' | 'meaning' | 'path' | 'source' | 'is_secure' | 'head'>

const LOBBY_PATH = /^\/lobbies\/([^/?]*)\/([^/?]*)((?:[/?].*)?)$/
const LOBBIES_PATH = /^\/lobbies(?:[/?]|$)/
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** The last label of a name has a letter; that of an address has none. */
const DOMAIN_NAME = /^[^[\]]+\.(?=[0-9-]*[a-z])[a-z0-9-]+$/

/** Throws API_NOT_FOUND, LOBBY_NOT_FOUND, or what a look-up throws. At once, where nothing has to be looked up. */
export function createRouter(
  directory: Directory,
  roles: Readonly<Record<RoleName, RoleUpstream>>,
): (wanted: Wanted) => Place | Promise<Place> {
  const { ctx, routes, domains, lookups, certificates } = directory
  const { config } = ctx
  const proof = linesOf([EDGE_PROOF_HEADER, edgeProof(ctx.keys)])
  const addresses = roleAddresses(config)
  const api = createRole(roles.api, addresses.api, proof, config)
  const matchmaker = createRole(roles.matchmaker, addresses.matchmaker, proof, config)
  const lobbies = createLobbies(directory)

  const redirectOf = createRedirects(config, certificates)
  const secured = (wanted: Wanted, place: Place): Place => {
    const location = redirectOf(wanted)
    return location === null ? place : { kind: 'redirect', location }
  }

  const toRole = (wanted: Wanted, role: Role): Place => {
    const upstream = wanted.is_secure ? role.secure : role.plain
    return secured(wanted, { kind: 'upstream', path: wanted.path, upstream, address: role.address, lobby: null })
  }

  const toLobby = (lobby: LobbyPort, wanted: Wanted, path: string): Place | Promise<Place> => {
    const upstream = lobby.region === null ? lobbies.by_path : lobbies.by_host
    const found = routes.find(lobby, wanted.source)
    if (!(found instanceof Promise)) return lobbyPlace(found, lobby, upstream, path)
    return found.then((address) => lobbyPlace(address, lobby, upstream, path))
  }

  const onMain = (wanted: Wanted): Place | Promise<Place> => {
    const { path } = wanted
    if (serviceOf(path) === 'matchmaker') return toRole(wanted, matchmaker)
    if (!LOBBIES_PATH.test(path)) return toRole(wanted, api)
    const [, lobby_id = '', port_name = '', rest = ''] = LOBBY_PATH.exec(path) ?? []
    if (!UUID.test(lobby_id)) throw new ApiError('LOBBY_NOT_FOUND')
    return toLobby({ lobby_id, port_name, region: null }, wanted, rest.startsWith('/') ? rest : `/${rest}`)
  }

  const onDomain = (wanted: Wanted): Place | Promise<Place> => {
    const { host, source } = wanted
    const nothing = () => new ApiError('API_NOT_FOUND', {}, { message: 'Nothing is served under this host.' })
    if (!DOMAIN_NAME.test(host)) throw nothing()
    const place = (site: { game: string; namespace: string } | null): Place => {
      if (site === null) throw nothing()
      return secured(wanted, { kind: 'site', ...site })
    }
    const found = domains.find(host, source)
    return found instanceof Promise ? found.then(place) : place(found)
  }

  const toHost = (wanted: Wanted): Place | Promise<Place> => {
    const { meaning } = wanted
    if (meaning === null) return onDomain(wanted)
    if (meaning.kind === 'main') return onMain(wanted)
    if (meaning.kind === 'lobby') return toLobby(meaning, wanted, wanted.path)
    if (meaning.kind === 'raw_ports')
      throw new ApiError('API_NOT_FOUND', {}, { message: 'This host has raw ports only.' })
    return secured(wanted, meaning)
  }

  if (config.acme === null) return toHost
  return (wanted) => {
    const token = challengeToken(wanted.path)
    if (token === null) return toHost(wanted)
    const asked = { host: wanted.host, token, source: wanted.source }
    return findChallenge(ctx, lookups, asked).then((text) => (text === null ? toHost(wanted) : { kind: 'text', text }))
  }
}

function lobbyPlace(address: Address | null, lobby: LobbyPort, upstream: Upstream, path: string): Place {
  if (address === null) throw new ApiError('LOBBY_NOT_FOUND')
  return { kind: 'upstream', path, upstream, address, lobby }
}

export type RoleName = 'api' | 'matchmaker'

export function roleAddresses({ internal_host, api_port, matchmaker_port }: Config): Record<RoleName, Address> {
  const address = (port: number): Address => ({ hostname: internal_host, port })
  return { api: address(api_port), matchmaker: address(matchmaker_port) }
}

/** How it is asked by who came over TLS, and by who did not. */
type Role = { address: Address; secure: Upstream; plain: Upstream }

/** A role that is down is about to be started again: what has not been sent yet waits for it, within limits. */
function createRole(role: RoleUpstream, address: Address, request_added: string, config: Config): Role {
  let waiters = 0
  const upstream = (is_secure: boolean): Upstream => ({
    role,
    isRequestDropped: null,
    request_added,
    response_allowed: null,
    response_added: hstsOf(config, is_secure),
    again: async (_exchange, attempt, error) => {
      if (error.code !== 'ECONNREFUSED' || attempt * ROLE_PAUSE_MS > ROLE_WAIT_MS_MAX || waiters >= ROLE_WAITERS_MAX)
        return null
      waiters++
      try {
        await delay(ROLE_PAUSE_MS)
        return address
      } finally {
        waiters--
      }
    },
    unavailable: () => new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 }),
  })
  return { address, secure: upstream(true), plain: upstream(false) }
}

/** Its process may have ended a moment ago, or another one may be there since: the database knows, and is asked once. */
function createLobbies({ routes }: Directory): { by_host: Upstream; by_path: Upstream } {
  const by_host: Upstream = {
    role: null,
    isRequestDropped: null,
    request_added: '',
    response_allowed: null,
    response_added: '',
    again: async ({ lobby, source }, attempt, error) => {
      if (lobby === null || attempt > 1 || error.code !== 'ECONNREFUSED') return null
      routes.forget(lobby.lobby_id)
      const found = await routes.find(lobby, source)
      if (found === null) throw new ApiError('LOBBY_NOT_FOUND')
      return found
    },
    unavailable: () => new ApiError('LOBBY_NOT_REACHABLE'),
  }
  return { by_host, by_path: { ...by_host, ...PATH_ROUTE } }
}
