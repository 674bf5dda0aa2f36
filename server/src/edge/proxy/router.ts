// Decides where a request goes. By host: the main domain, a site, or a lobby. On the main domain by path: the matchmaker, a
// lobby by the path route, and otherwise the api. Addresses come only from the settings and from lobby_runs; no part of a
// request ever becomes an address.
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { ApiError } from '@musterhost/contract'
import { serviceOf } from '@musterhost/contract/services'
import type { Config } from '../../config/config.ts'
import type { Context } from '../../context.ts'
import { edgeSocketPath } from '../../links/names.ts'
import { LINK_PATH } from '../../links/protocol.ts'
import { HANDSHAKE_TIMEOUT } from '../../process-tls/process-tls.ts'
import { edgeProof } from '../../tokens/edge-proof.ts'
import { EDGE_PROOF_HEADER } from '../../wire/headers.ts'
import type { Exchange } from '../http/exchange.ts'
import { linesOf } from '../http/headers.ts'
import { ROLE_PAUSE_MS, ROLE_WAIT_MS_MAX, ROLE_WAITERS_MAX } from '../limits.ts'
import type { Links } from '../links.ts'
import type { Domains } from '../routes/domains.ts'
import type { Lookups } from '../routes/lookups.ts'
import type { Address, RoutedPort, Routes } from '../routes/routes.ts'
import type { StatusPages, StatusTarget } from '../status/pages.ts'
import type { Certificates } from '../tls/certificates.ts'
import { challengeToken, findChallenge } from '../tls/challenges.ts'
import type { Backend, RoleResources } from './forwarded-request.ts'
import type { Matchmakers } from './matchmakers.ts'
import { PATH_ROUTE, requireNoCredential } from './path-route.ts'
import { isPing } from './ping.ts'
import { createRedirects, hstsOf } from './redirects.ts'

export type RouteTarget =
  | { kind: 'backend'; backend: Backend; address: Address; path: string; lobby: RoutedPort | null }
  | { kind: 'site'; game: string; namespace: string }
  | { kind: 'media'; path: string }
  | StatusTarget
  | { kind: 'ping' }
  | { kind: 'text'; text: string }
  | { kind: 'redirect'; location: string }

/** What the router looks targets up in. */
export type Directory = {
  ctx: Context
  links: Links
  routes: Routes
  domains: Domains
  lookups: Lookups
  status_pages: StatusPages
  matchmakers: Matchmakers
  /** Null: this edge has no TLS. */
  certificates: Certificates | null
}

type Routed = Pick<Exchange, 'host' | 'meaning' | 'path' | 'client_key' | 'is_secure' | 'head' | 'role_lines'>
type FindTarget = (routed: Routed) => RouteTarget | Promise<RouteTarget>

/** Where the main domain serves the images of games, for the pages of the hub: they load nothing from another origin. */
const MEDIA_PREFIX = '/media'
const LOBBY_PATH = /^\/lobbies\/([^/?]*)\/([^/?]*)((?:[/?].*)?)$/
const LOBBIES_PATH = /^\/lobbies(?:[/?]|$)/
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

const PING: RouteTarget = { kind: 'ping' }

/** The last label of a name has a letter; the last one of an address has none. */
const DOMAIN_NAME = /^[^[\]]+\.(?=[0-9-]*[a-z])[a-z0-9-]+$/

/**
 * Returns a function that finds a request's target: at once where no look-up is needed. It throws API_NOT_FOUND,
 * LOBBY_NOT_FOUND, and the refusals of a look-up.
 */
export function createRouter(directory: Directory, roles: Readonly<Record<RoleName, RoleResources>>): FindTarget {
  const { ctx, lookups, certificates, matchmakers, status_pages } = directory
  const { config } = ctx
  const redirectOf = createRedirects(config, certificates)
  const secured: Secured = (routed, target) => {
    const location = redirectOf(routed)
    return location === null ? target : { kind: 'redirect', location }
  }
  const lobbies = createLobbyRouter(directory)
  const onMain = createMainRouter(ctx, { roles, lobbies, secured, matchmakers })
  const onDomain = createDomainRouter(directory, secured)
  const onEdge = createEdgeRouter(lobbies)

  let link = linkTarget(directory.links.path)
  // The first edge process may have another path by now.
  const linkOf = (): RouteTarget => {
    const { path } = directory.links
    if (link.address.path !== path) link = linkTarget(path)
    return link
  }

  const byHost: FindTarget = (routed) => {
    const { meaning } = routed
    if (routed.path === LINK_PATH && routed.head.is_upgrade) return linkOf()
    if (isPing(routed.path, meaning)) return PING
    if (meaning === null || meaning.kind === 'site') {
      const status = status_pages.find(routed.host, meaning, routed.path)
      if (status !== null) return secured(routed, status)
    }
    if (meaning === null) return onDomain(routed)
    if (meaning.kind === 'main') return onMain(routed)
    if (meaning.kind === 'lobby') return lobbies(meaning, routed, routed.path)
    if (meaning.kind === 'edge') return onEdge(routed)
    if (meaning.kind === 'raw_ports')
      throw new ApiError('API_NOT_FOUND', {}, { message: 'This host has raw ports only.' })
    if (meaning.kind === 'media') return secured(routed, { kind: 'media', path: routed.path })
    return secured(routed, meaning)
  }

  if (config.acme === null) return byHost
  return (routed) => {
    const token = challengeToken(routed.path)
    if (token === null) return byHost(routed)
    const challenge = { host: routed.host, token, client_key: routed.client_key }
    return findChallenge(ctx, lookups, challenge).then((text) =>
      text === null ? byHost(routed) : { kind: 'text', text },
    )
  }
}

/** Where the links of joined nodes begin: on every host, because the link itself proves both of its ends. */
function linkTarget(path: string) {
  const backend: Backend = {
    role: null,
    isRequestDropped: null,
    request_added: '',
    response_allowed: null,
    response_added: '',
    learnShard: null,
    again: async () => null,
    unavailable: () => new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 }),
  }
  const address: Address = { hostname: '', port: 0, path }
  return { kind: 'backend', path: LINK_PATH, backend, address, lobby: null } satisfies RouteTarget
}

/** Replaces the target by a redirect to https where the request should use it. */
type Secured = (routed: Routed, target: RouteTarget) => RouteTarget

type LobbyRouter = (lobby: RoutedPort, routed: Routed, path: string) => RouteTarget | Promise<RouteTarget>

function createLobbyRouter(directory: Directory): LobbyRouter {
  const backends = createLobbyBackends(directory)
  return (lobby, { client_key }, path) => {
    const backend = lobby.region === null ? backends.by_path : backends.by_host
    if (backend === backends.by_path) requireNoCredential(path)
    const found = directory.routes.find(lobby, client_key)
    if (!(found instanceof Promise)) return lobbyTarget(found, lobby, backend, path)
    return found.then((address) => lobbyTarget(address, lobby, backend, path))
  }
}

function lobbyTarget(address: Address | null, lobby: RoutedPort, backend: Backend, path: string): RouteTarget {
  if (address === null) throw new ApiError('LOBBY_NOT_FOUND')
  return { kind: 'backend', path, backend, address, lobby }
}

type MainOptions = {
  roles: Readonly<Record<RoleName, RoleResources>>
  lobbies: LobbyRouter
  secured: Secured
  matchmakers: Matchmakers
}

function createMainRouter(ctx: Context, { roles, lobbies, secured, matchmakers }: MainOptions): FindTarget {
  const { config } = ctx
  const proof = linesOf([EDGE_PROOF_HEADER, edgeProof(ctx.keys)])
  const api_address = roleAddresses(config).api
  const api = createRoleBackends(config, { role: roles.api, request_added: proof, matchmakers: null })
  const matchmaker = createRoleBackends(config, { role: roles.matchmaker, request_added: proof, matchmakers })

  const toRole = (routed: Routed, { secure, plain }: RoleBackends, address: Address): RouteTarget => {
    const backend = routed.is_secure ? secure : plain
    return secured(routed, { kind: 'backend', path: routed.path, backend, address, lobby: null })
  }

  return (routed) => {
    const { path } = routed
    if (serviceOf(path) === 'matchmaker') return toRole(routed, matchmaker, matchmakers.addressOf(routed))
    if (path.startsWith(`${MEDIA_PREFIX}/`)) {
      return secured(routed, { kind: 'media', path: path.slice(MEDIA_PREFIX.length) })
    }
    if (!LOBBIES_PATH.test(path)) return toRole(routed, api, api_address)
    return onLobbyPath(lobbies, routed)
  }
}

function onLobbyPath(lobbies: LobbyRouter, routed: Routed): RouteTarget | Promise<RouteTarget> {
  const [, lobby_id = '', port_name = '', rest = ''] = LOBBY_PATH.exec(routed.path) ?? []
  if (!UUID.test(lobby_id)) throw new ApiError('LOBBY_NOT_FOUND')
  return lobbies({ lobby_id, port_name, region: null }, routed, rest.startsWith('/') ? rest : `/${rest}`)
}

/** The host of one edge: it serves lobbies by the path route, and no page of the platform. */
function createEdgeRouter(lobbies: LobbyRouter): FindTarget {
  return (routed) => {
    if (LOBBIES_PATH.test(routed.path)) return onLobbyPath(lobbies, routed)
    throw new ApiError('API_NOT_FOUND', {}, { message: 'This host has lobbies only.' })
  }
}

function createDomainRouter({ domains }: Directory, secured: Secured): FindTarget {
  const notFound = () => new ApiError('API_NOT_FOUND', {}, { message: 'Nothing is served under this host.' })
  return (routed) => {
    const { host, client_key } = routed
    if (!DOMAIN_NAME.test(host)) throw notFound()
    const targetOf = (site: { game: string; namespace: string } | null): RouteTarget => {
      if (site === null) throw notFound()
      return secured(routed, { kind: 'site', ...site })
    }
    const found = domains.find(host, client_key)
    return found instanceof Promise ? found.then(targetOf) : targetOf(found)
  }
}

export type RoleName = 'api' | 'matchmaker'

/** On a joined node they are reached over its link. */
export function roleAddresses(config: Config): Record<RoleName, Address> {
  const { internal_host, api_port, matchmaker_port, link } = config
  if (link !== null) {
    const linked = (name: RoleName): Address => ({ hostname: '', port: 0, path: edgeSocketPath(dirname(link), name) })
    return { api: linked('api'), matchmaker: linked('matchmaker') }
  }
  const address = (port: number): Address => ({ hostname: internal_host, port })
  return { api: address(api_port), matchmaker: address(matchmaker_port) }
}

/** A role as the backend of requests over TLS, and of requests without. */
type RoleBackends = { secure: Backend; plain: Backend }
/** `matchmakers`: null: the role has one process, at one address. */
type RoleOptions = { role: RoleResources; request_added: string; matchmakers: Matchmakers | null }

/** A role that is down is about to be restarted: requests that were not sent yet wait for it, within limits. */
function createRoleBackends(config: Config, { role, request_added, matchmakers }: RoleOptions): RoleBackends {
  let waiters = 0
  const again: Backend['again'] = async (exchange, attempt, error, failed) => {
    if (failed.tls === undefined || error.code !== HANDSHAKE_TIMEOUT) matchmakers?.failed(failed)
    const next = matchmakers?.addressOf(exchange) ?? failed
    const may_wait = error.code === 'ECONNREFUSED' || next !== failed
    if (!may_wait || attempt * ROLE_PAUSE_MS > ROLE_WAIT_MS_MAX || waiters >= ROLE_WAITERS_MAX) return null
    waiters++
    try {
      await delay(ROLE_PAUSE_MS)
      return matchmakers?.addressOf(exchange) ?? failed
    } finally {
      waiters--
    }
  }
  const backend = (is_secure: boolean): Backend => ({
    role,
    isRequestDropped: null,
    request_added,
    response_allowed: null,
    response_added: hstsOf(config, is_secure),
    again,
    learnShard: matchmakers === null ? null : (exchange, shard) => matchmakers.learn(exchange, shard),
    unavailable: () => new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 }),
  })
  return { secure: backend(true), plain: backend(false) }
}

/** When a lobby's port refuses a connection, the lobby may have ended or moved: its route is read again, once. */
function createLobbyBackends({ routes }: Directory): { by_host: Backend; by_path: Backend } {
  const by_host: Backend = {
    role: null,
    isRequestDropped: null,
    request_added: '',
    response_allowed: null,
    response_added: '',
    again: async ({ lobby, client_key }, attempt, error) => {
      if (lobby === null || attempt > 1 || error.code !== 'ECONNREFUSED') return null
      routes.forget(lobby.lobby_id)
      const found = await routes.find(lobby, client_key)
      if (found === null) throw new ApiError('LOBBY_NOT_FOUND')
      return found
    },
    learnShard: null,
    unavailable: () => new ApiError('LOBBY_NOT_REACHABLE'),
  }
  return { by_host, by_path: { ...by_host, ...PATH_ROUTE } }
}
