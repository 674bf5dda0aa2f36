/** The host of a URL as sockets take it: an IPv6 address has no brackets there. */
export function bareHost(host: string): string {
  return host.replace(/^\[|\]$/g, '')
}
