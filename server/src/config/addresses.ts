// What follows from the settings: hosts, URLs, the names of certificates, and whether HTTPS and login by e-mail work.
import { hostname } from 'node:os'
import type { Config } from './config.ts'

/** Whether the edge itself speaks TLS: in development by an authority of its own, else by configured or ordered certificates. */
export function hasHttps(config: Config): boolean {
  return config.mode === 'development' || config.certificates_dir !== null || config.acme !== null
}

/**
 * Where the addresses of the platform begin with https and nothing serves it: the problem with its remedies, in one line. Null: the
 * edge has certificates, or a proxy in front is named.
 */
export function httpsWarning(config: Config): string | null {
  const { mode, public_scheme, trusted_proxies, proxy_protocol_from, edge_socket, domains } = config
  if (mode !== 'production' || public_scheme !== 'https' || hasHttps(config)) return null
  if (trusted_proxies.length > 0 || proxy_protocol_from.length > 0 || edge_socket !== null) return null
  return (
    `No certificate is set, so nothing here serves ${publicUrl(config, domains.main)}. Only ` +
    `${publicUrl(config, domains.main, 'http')} works. Set MUSTER_ACME or MUSTER_TLS_CERTIFICATES. Or name the proxy that serves ` +
    'HTTPS in MUSTER_TRUSTED_PROXIES. Or set MUSTER_PUBLIC_SCHEME=http.'
  )
}

/** Hosts that certificates may be ordered for: `own` are the platform's own, `cdn` is the parent domain of the sites. */
export function certifiedHosts(config: Pick<Config, 'domains' | 'regions' | 'acme'>): {
  own: readonly string[]
  cdn: string
} {
  const { domains, regions } = config
  const raw_hosts = regions.map(({ name }) => rawPortsHost(domains, name))
  return { own: [domains.main, mediaHost(domains), ...raw_hosts, ...wildcardNames(config)], cdn: domains.cdn }
}

/** The names that wildcard certificates are ordered for; `*.` stands for one label. */
export function wildcardNames({ domains, regions, acme }: Pick<Config, 'domains' | 'regions' | 'acme'>): string[] {
  const of_domains = acme?.dns?.domains ?? []
  return [
    ...(of_domains.includes('job') ? regions.map(({ name }) => lobbyWildcard(domains, name)) : []),
    ...(of_domains.includes('cdn') ? [`*.${domains.cdn}`] : []),
  ]
}

/** The certificate name that covers all lobby hosts of a region. */
export function lobbyWildcard({ job }: Config['domains'], region: string): string {
  return `*.lobby.${region.toLowerCase()}.${job}`
}

/** The wildcard that would cover the host. */
export function wildcardOf(host: string): string {
  return `*${host.slice(host.indexOf('.'))}`
}

/** Whether a user can log in with a code: by mail, or from the log in development. */
export function hasEmailLogin({ mail, mode, email_login }: Config): boolean {
  return email_login === 'on' && (mail !== null || mode === 'development')
}

/** URL of the hub, the API and the matchmaker, and of lobbies by the path route. */
export function mainUrl(config: Config): string {
  return publicUrl(config, config.domains.main)
}

const STANDARD_PORT = { http: 80, https: 443 } as const

/** URL of a host of the platform, with the advertised port unless it is the default one of the scheme. */
export function publicUrl(
  config: Pick<Config, 'public_scheme' | 'advertised_http_port' | 'advertised_https_port'>,
  host: string,
  scheme: 'http' | 'https' = config.public_scheme,
): string {
  const port = scheme === 'https' ? config.advertised_https_port : config.advertised_http_port
  return `${scheme}://${host}${port === STANDARD_PORT[scheme] ? '' : `:${port}`}`
}

/**
 * The host under which TLS clients reach the raw ports of a region. It has the parent domain of the lobby hosts, so their
 * DNS record and wildcard certificate cover it. Unlike a lobby host, it lives long enough for a certificate of its own.
 */
export function rawPortsHost({ job }: Config['domains'], region: string): string {
  return `ports.lobby.${region.toLowerCase()}.${job}`
}

/**
 * The host of the pictures of all games. It is under the CDN domain, so uploaded files do not share a domain with the hub.
 * Its label is longer than a name id may be, so it is no game's.
 */
export function mediaHost(domains: Config['domains']): string {
  return `muster-game-media.${domains.cdn}`
}

/** Where other processes reach the HTTP of this matchmaker. A host of all addresses is known by the machine's name. */
export function internalAddress({
  internal_host,
  matchmaker_ports,
  process,
}: Pick<Config, 'internal_host' | 'matchmaker_ports' | 'process'>): string {
  const is_all = ['0.0.0.0', '::', '[::]'].includes(internal_host)
  return `${is_all ? hostname() : internal_host}:${matchmaker_ports[process.number]}`
}
