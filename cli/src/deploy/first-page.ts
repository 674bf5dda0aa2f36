// Whether the address of a site shows a page. Exports of engines often lie one folder deeper than the one that is uploaded.
import { posix } from 'node:path'

const PAGE = 'index.html'
/** Compressed forms of the page, which the platform decompresses. */
const FORMS: readonly string[] = [PAGE, `${PAGE}.br`, `${PAGE}.gz`]
/** Names that other servers show for a folder. */
const OTHER_PAGE = /^(?:index\.html?|default\.html?)$/i

/** Returns what is wrong and the remedy; null: the site has a first page. `folder`: of the site, as muster.yaml names it. */
export function firstPageHint(paths: readonly string[], folder: string): string | null {
  if (paths.some((path) => FORMS.includes(path))) return null
  const lack = `The site has no ${PAGE}, so its address shows "Not found".`
  const misnamed = paths.find((path) => OTHER_PAGE.test(path))
  if (misnamed !== undefined) return `${lack} It has ${misnamed}: rename it to ${PAGE}.`
  const [deeper] = paths.filter((path) => path.endsWith(`/${PAGE}`)).toSorted((a, b) => depthOf(a) - depthOf(b))
  if (deeper === undefined) return lack
  const inner = deeper.slice(0, -PAGE.length - 1)
  return `${lack} It has ${deeper}. If that is the page, write this in muster.yaml: site: { folder: ${posix.join(folder.replaceAll('\\', '/'), inner)} }`
}

function depthOf(path: string): number {
  return path.split('/').length
}
