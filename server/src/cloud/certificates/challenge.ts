/** How the authority is shown that a host is ours. `key_authorization` is in the form that the type has (RFC 8555, 8). */
export type Challenge = {
  type: 'http-01' | 'dns-01'
  publish: (token: string, key_authorization: string) => Promise<void>
  /** Also after a failed `publish`. */
  remove: (token: string) => Promise<void>
}
