// The addresses of the hub's pages.

export const HOME = '/'
export const SIGN_IN = '/sign-in'
export const ACCOUNT = '/account'
export const PLATFORM = '/platform'

/** `tab`: a page of the game. Empty: its overview. */
export function gameLink(game_id: string, tab = ''): string {
  return `/games/${game_id}${tab === '' ? '' : `/${tab}`}`
}

export function namespaceLink(game_id: string, namespace_id: string, tab = ''): string {
  return `${gameLink(game_id, 'namespaces')}/${namespace_id}${tab === '' ? '' : `/${tab}`}`
}

export function lobbyLink(game_id: string, namespace_id: string, lobby_id: string): string {
  return namespaceLink(game_id, namespace_id, `lobbies/${lobby_id}`)
}

export function rayLink(game_id: string, ray_id: string): string {
  return gameLink(game_id, `rays/${ray_id}`)
}

export function versionLink(game_id: string, version_id: string): string {
  return gameLink(game_id, `versions/${version_id}`)
}

export function groupLink(group_id: string, tab = ''): string {
  return `/groups/${group_id}${tab === '' ? '' : `/${tab}`}`
}

export function platformLink(tab = ''): string {
  return tab === '' ? PLATFORM : `${PLATFORM}/${tab}`
}

/** Where to go after a sign-in. Only a path of the hub: an address elsewhere would make the hub a redirect for strangers. */
export function afterSignIn(to: unknown): string | null {
  return typeof to === 'string' && /^\/(?![/\\])/.test(to) && !to.startsWith(SIGN_IN) ? to : null
}
