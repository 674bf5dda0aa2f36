// The addresses of a folder. With a slash at its end it is the folder's index.html. Without one it leads to the address with
// it, so that relative links of that page work.

const INDEX = 'index.html'

/**
 * Returns the name of the requested file, without a leading slash. `pathname`: as the request has it, without its query. Names
 * of sites are in Unicode normal form C, and links may be in another form. Throws an URIError when it cannot be decoded.
 */
export function fileOfPathname(pathname: string): string {
  const path = decodeURIComponent(pathname.slice(1)).normalize('NFC')
  return path === '' || path.endsWith('/') ? `${path}${INDEX}` : path
}

/** Returns the file that makes the path a folder; null: the path cannot be one. */
export function indexOfFolder(path: string): string | null {
  // Its address would begin with two slashes, which lead to another host.
  return path.startsWith('/') ? null : `${path}/${INDEX}`
}

/** `index`: as indexOfFolder() returns it. `target`: of the request, whose query is kept. */
export function folderLocation(index: string, target: string): string {
  const query = target.indexOf('?')
  const folder = index.slice(0, -INDEX.length).split('/').map(encodeURIComponent).join('/')
  return `/${folder}${query === -1 ? '' : target.slice(query)}`
}
