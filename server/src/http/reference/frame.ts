// The frame of every page of the reference: the list of operations, the style and the script. Style and script are inline, and
// the content security policy allows nothing else. A page requests no other file.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Operation } from '@musterhost/contract'
import { OPERATIONS } from '@musterhost/contract/operations'
import { sectionId, sectionsOf } from '@musterhost/contract/sections'
import { type Html, html, verbatim } from './html.ts'

/** The list of all guides, and the search in them: `?q=WORDS`. */
export const GUIDES_PATH = '/docs'

/** In the order of the cascade. */
const style = joined([
  new URL('./frame.css', import.meta.url),
  new URL('./page.css', import.meta.url),
  new URL('./media.css', import.meta.url),
])
/** For the guides, in the same frame. */
export const guide_style = joined([
  new URL('./frame.css', import.meta.url),
  new URL('./media.css', import.meta.url),
  new URL('./guide.css', import.meta.url),
])
const script = readFileSync(new URL('./script.js', import.meta.url), 'utf8')

export const REFERENCE_PATH = '/docs/api'
export const ERRORS_PATH = '/docs/errors'

/** The page of a section, as `sectionId` names it. */
export function sectionPath(id: string): string {
  return `${REFERENCE_PATH}/${id}`
}

export function operationPath(operation: Pick<Operation, 'id'>): string {
  return `${sectionPath(sectionId(operation))}#${operation.id}`
}

export const POLICY = [
  "default-src 'none'",
  `style-src '${hashOf(style)}'`,
  `script-src '${hashOf(script)}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** A data URL, so that the page requests no file. */
const ICON =
  'data:image/svg+xml,%3Csvg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"%3E%3Crect width="16" height="16" rx="4" fill="%230b5cad"/%3E%3Cpath d="M4 12V4.500l4 4 4-4V12" fill="none" stroke="%23fff" stroke-width="2"/%3E%3C/svg%3E'

/** A whole document. `content` is its main part. */
export function framed(page: { title: string; version: string; content: Html }): string {
  const body = html`<header class="bar"><a href="${REFERENCE_PATH}">Muster API</a><label><input class="hidden" id="toggle" type="checkbox">Operations</label></header>
<div class="frame">
<aside class="side" aria-label="Operations">
<div class="brand"><a href="${REFERENCE_PATH}">Muster API</a><span>${page.version}</span></div>
<div class="search" hidden><label class="hidden" for="search">Search operations</label>
<input id="search" type="search" placeholder="Search, or press /" autocomplete="off" spellcheck="false">
<p id="search-result" role="status"></p></div>
<ul id="found" aria-label="Operations found" hidden></ul>
${operationList()}
</aside>
<main id="main" tabindex="-1">${page.content}</main>
</div>
<script>${verbatim(script)}</script>`
  return documentOf({ title: page.title, style, body })
}

/** A document in the style of the reference. It loads no other file. */
export function documentOf(page: { title: string; style: string; body: Html }): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${page.title}</title>
<link rel="icon" href="${ICON}">
<style>${verbatim(page.style)}</style>
</head>
<body>
<a class="skip" href="#main">To the content</a>
${page.body}
</body>
</html>
`.html
}

function operationList(): Html {
  const sections = sectionsOf(OPERATIONS).map(
    (section) => html`<li><a class="section" href="${sectionPath(section.id)}">${section.name}</a>
<ul>${OPERATIONS.filter((operation) => sectionId(operation) === section.id).map(
      ({ id, method, path, summary }) =>
        html`<li><a href="${operationPath({ id })}" data-id="${id}" data-path="${path}" data-text="${`${method} ${summary}`}">${shortName(id)} ${methodBadge(method)}</a></li>`,
    )}</ul></li>`,
  )
  return html`<nav aria-label="All operations"><ul>${sections}
<li><a class="section" href="${ERRORS_PATH}">Error codes</a></li>
<li><a class="section" href="/openapi.json">openapi.json</a></li>
<li><a class="section" href="${GUIDES_PATH}">Guides</a></li></ul></nav>`
}

function shortName(id: string): Html {
  return html`<span>${idView(id.slice(id.lastIndexOf('.') + 1))}</span>`
}

/** An id that may wrap between its words. */
export function idView(id: string): Html {
  return html`${id.split(/(?<=\.)|(?=[A-Z])/).map((word, index) => (index === 0 ? word : html`<wbr>${word}`))}`
}

export function methodBadge(method: string): Html {
  return html`<span class="method ${method.toLowerCase()}">${method}</span>`
}

function joined(files: readonly URL[]): string {
  return files.map((file) => readFileSync(file, 'utf8')).join('\n')
}

/** As a content security policy names an inline style or script. */
export function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`
}
