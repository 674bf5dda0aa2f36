// What a site serves at an unknown path: its own 404.html, its index.html where the version says so, or a page of the
// platform. None of them depends on the path, so no part of a request appears in the response.
import type { NotFound } from '@musterhost/contract'
import { type Substitute, substituteOf } from '@musterhost/contract/site'
import type { SiteEntry } from './sites.ts'

export type Found = Substitute & { entry: SiteEntry }

/** Returns null when the site has no file for unknown paths. `not_found`: from the version config. */
export function findSubstitute(
  manifest: ReadonlyMap<string, SiteEntry>,
  path: string,
  not_found: NotFound | null,
): Found | null {
  const substitute = substituteOf(path, not_found)
  const entry = manifest.get(substitute.path)
  return entry === undefined ? null : { ...substitute, entry }
}

export const NOT_FOUND_PAGE = Buffer.from(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Not found</title>
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 32rem; margin: 20vh auto; padding: 0 1rem }
</style>
<h1>Not found</h1>
<p>This site has no such page. <a href="/">Go to its first page</a>.</p>
`)

export const NOT_FOUND_HEADERS = [
  ...['content-type', 'text/html; charset=utf-8', 'cache-control', 'no-store'],
  ...['content-security-policy', "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"],
]
