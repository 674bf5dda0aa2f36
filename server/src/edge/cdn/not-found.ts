// What a site serves at a path that is no file: a redirect to the folder of this name, its own 404.html, its index.html where
// the version says so, or a page of the platform. No page depends on the path, so no part of a request appears in it.
import type { NotFound } from '@musterhost/contract'
import { indexOfFolder, type Substitute, substituteOf } from '@musterhost/contract/site'
import type { SiteEntry } from './sites.ts'

/**
 * Status 301: the path is a folder without its slash, and `path` the folder's page. `version_id`: the version of a file of the
 * previous site; absent: the deployed one.
 */
export type FoundPage = { path: string; status: Substitute['status'] | 301; entry: SiteEntry; version_id?: string }

/** Returns null when no folder of this name has a page. */
export function findFolder(manifest: ReadonlyMap<string, SiteEntry>, path: string): FoundPage | null {
  const index = indexOfFolder(path)
  const entry = index === null ? undefined : manifest.get(index)
  return index === null || entry === undefined ? null : { path: index, status: 301, entry }
}

/** Returns null when the site has no file for unknown paths. `not_found`: from the version config. */
export function findSubstitute(
  manifest: ReadonlyMap<string, SiteEntry>,
  path: string,
  not_found: NotFound | null,
): FoundPage | null {
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
