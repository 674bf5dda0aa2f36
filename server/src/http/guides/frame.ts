// The frame of every guide: the list of guides with the search, in the style of the API reference. A page has no script.
import { documentOf, ERRORS_PATH, GUIDES_PATH, guide_style, hashOf, REFERENCE_PATH } from '../reference/frame.ts'
import { type Html, html, verbatim } from '../reference/html.ts'
import type { RenderedGuide } from './render.ts'
import { QUESTION_LENGTH_MAX, type SearchHit } from './search.ts'

export const GUIDES_POLICY = [
  "default-src 'none'",
  `style-src '${hashOf(guide_style)}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

const COMMANDS = 'commands/'

export type GuideFrame = { version: string; titles: readonly { name: string; title: string }[] }

export function framedGuide(frame: GuideFrame, { name, guide }: { name: string; guide: RenderedGuide }): string {
  return framed(frame, { title: guide.title, name, question: '', content: verbatim(guide.html) })
}

export function framedSearch(
  frame: GuideFrame,
  { question, found }: { question: string; found: readonly SearchHit[] },
): string {
  const count = found.length === 1 ? '1 section has' : `${found.length} sections have`
  const content = html`<h1>Search in the documentation</h1>
<p class="lead">${count} all words of “${question.slice(0, QUESTION_LENGTH_MAX)}”.</p>
<ul class="found">${found.map(
    ({ name, anchor, title, guide_title, excerpt }) =>
      html`<li><a href="${addressOf(name)}${anchor === '' ? '' : `#${anchor}`}">${title}</a> <span>${guide_title}</span><p>${excerpt}</p></li>`,
  )}</ul>`
  return framed(frame, { title: 'Search', name: null, question, content })
}

function addressOf(name: string): string {
  return name === '' ? GUIDES_PATH : `${GUIDES_PATH}/${name}`
}

type Page = { title: string; name: string | null; question: string; content: Html }

function framed({ version, titles }: GuideFrame, { title, name, question, content }: Page): string {
  const links = (are_commands: boolean): Html[] =>
    titles
      .filter((one) => one.name !== '' && one.name.startsWith(COMMANDS) === are_commands)
      .map(
        (one) =>
          html`<li><a href="${addressOf(one.name)}"${one.name === name ? html` aria-current="page"` : ''}>${one.title}</a></li>`,
      )
  const body = html`<header class="bar"><a href="${GUIDES_PATH}">Muster documentation</a><label><input class="hidden" id="toggle" type="checkbox">Pages</label></header>
<div class="frame">
<aside class="side" aria-label="Pages">
<div class="brand"><a href="${GUIDES_PATH}">Muster</a><span>${version}</span></div>
<form class="search" action="${GUIDES_PATH}" role="search"><label class="hidden" for="search">Search the documentation</label>
<input id="search" name="q" type="search" placeholder="Search, and press Enter" maxlength="${QUESTION_LENGTH_MAX}" value="${question}"></form>
<nav aria-label="All pages"><ul>
<li><a class="section" href="${REFERENCE_PATH}">API reference</a></li>
<li><a class="section" href="${ERRORS_PATH}">Error codes</a></li>
<li><a class="section" href="${GUIDES_PATH}">Guides</a><ul>${links(false)}</ul></li>
<li><span class="section">Commands</span><ul>${links(true)}</ul></li></ul></nav>
</aside>
<main id="main" class="guide" tabindex="-1">${content}</main>
</div>`
  return documentOf({ title: `${title} · Muster`, style: guide_style, body })
}
