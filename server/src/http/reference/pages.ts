// The pages of the reference, rendered once from the contract: an index, a page for each section, a list of error codes, and a
// page for each code. The `documentation` of an error body is the URL of the page of its code.
import { ApiError, ERROR_CODES, ERRORS, type ErrorCode, errorBody, type Operation } from '@musterhost/contract'
import { ERROR_HELP } from '@musterhost/contract/error-help'
import { errorsOf, openapiDocument, operationOf } from '@musterhost/contract/openapi'
import { OPERATIONS } from '@musterhost/contract/operations'
import { type Section, sectionId, sectionsOf } from '@musterhost/contract/sections'
import { ERRORS_PATH, framed, idView, methodBadge, operationPath, REFERENCE_PATH, sectionPath } from './frame.ts'
import { type Html, html, prose } from './html.ts'
import { figure, json, operationView, shell } from './operation.ts'
import type { Schemas } from './schema.ts'

export type Reference = {
  /** All operations, a line each. Their ids are anchors, so that old links to this page still work. */
  index: () => string
  /** `id`: a section of `sectionsOf(OPERATIONS)`. */
  section: (id: string) => string
  errors: () => string
  error: (code: ErrorCode) => string
}

/** `main_url`: the address of the platform in the examples. */
export function createReference(site: { main_url: string; version: string }): Reference {
  const { main_url, version } = site
  const sections = sectionsOf(OPERATIONS)
  return {
    index: () => framed({ title: 'Muster API', version, content: indexPage(main_url, sections) }),
    section(id) {
      const section = sections.find((one) => one.id === id)
      if (section === undefined) throw new Error(`There is no section ${id}.`)
      return framed({ title: `${section.name} · Muster API`, version, content: sectionPage(site, section, sections) })
    },
    errors: () => framed({ title: 'Error codes of Muster', version, content: errorsPage() }),
    error: (code) => framed({ title: `${code} · Muster`, version, content: errorPage(code, main_url) }),
  }
}

function indexPage(main_url: string, sections: readonly Section[]): Html {
  return html`<h1>Muster API</h1>
<p class="lead">${OPERATIONS.length} operations to manage games and to give players seats in lobbies. For programs, the same contract is in
<a href="/openapi.json">openapi.json</a>.</p>
<div class="facts">
<div><h2>Address</h2><p>All operations are at <code>${main_url}</code>. Bodies are JSON in UTF-8, with
<code>Content-Type: application/json</code>. Unknown members are refused.</p></div>
<div><h2>Credential</h2><p>Send <code>Authorization: Bearer</code> and a token. Each operation lists the kinds of token that it accepts.
The examples read it from <code>$MUSTER_TOKEN</code>. On the machine of the platform,
<code>MUSTER_TOKEN=$(cat .muster/admin-token)</code> is an administrator's token.</p></div>
<div><h2>Values</h2><p>Ids are lower-case UUIDs. Times are RFC 3339 in UTC. Lengths in bytes stay below
2<sup>53</sup>, so every JSON parser reads them exactly.</p></div>
<div><h2>Errors</h2><p>An error body has <code>code</code>, <code>message</code>, <code>documentation</code>, <code>metadata</code> and
<code>ray_id</code>. Compare the <a href="${ERRORS_PATH}">error codes</a> in programs. Records of other groups return 404, like unknown ones.</p></div>
<div><h2>Limits</h2><p>Too many calls return status 429 with <code>Retry-After</code>, in seconds. After a 503 with <code>Retry-After</code>,
repeat the call.</p></div>
<div><h2>Uploads</h2><p>Prepare the upload, send each file by <code>PUT</code> to the returned URL with its exact length, and
complete the upload.</p></div>
</div>
${sections.map(
  (section) => html`<section class="group" id="section-${section.id}" aria-labelledby="heading-${section.id}">
<h2 id="heading-${section.id}"><a href="${sectionPath(section.id)}">${section.name}</a></h2><p>${section.description}</p>
<ul class="operations">${operationsOf(section).map(
    ({ id, method, summary }) =>
      html`<li id="${id}">${methodBadge(method)} <a href="${operationPath({ id })}">${idView(id)}</a><span>${prose(summary)}</span></li>`,
  )}</ul></section>`,
)}`
}

function operationsOf(section: Section): readonly Operation[] {
  return OPERATIONS.filter((operation) => sectionId(operation) === section.id)
}

function sectionPage(
  { main_url, version }: { main_url: string; version: string },
  section: Section,
  sections: readonly Section[],
): Html {
  const document = openapiDocument(version)
  const schemas = document.components.schemas as Schemas
  const at = sections.indexOf(section)
  return html`<p class="crumbs"><a href="${REFERENCE_PATH}">Muster API</a></p>
<h1>${section.name}</h1>
<p class="lead">${section.description}</p>
${operationsOf(section).map((operation) =>
  operationView({ operation, described: operationOf(document, operation), schemas, main_url }),
)}
<nav class="neighbours" aria-label="Sections before and after">${neighbour('Before', sections[at - 1])}${neighbour('Next', sections[at + 1])}</nav>`
}

function neighbour(label: string, section: Section | undefined): Html | null {
  if (section === undefined) return null
  return html`<a href="${sectionPath(section.id)}"><span>${label}</span>${section.name}</a>`
}

function errorsPage(): Html {
  const families = [...Map.groupBy(ERROR_CODES, familyOf)]
  const tables = families.map(
    ([
      family,
      codes,
    ]) => html`<table><caption>${family}</caption><thead><tr><th scope="col">Code</th><th scope="col">Status</th><th scope="col">Message</th></tr></thead>
<tbody>${codes.map(
      (code) =>
        html`<tr id="${code}"><td><a href="${ERRORS_PATH}/${code}">${code}</a></td><td>${ERRORS[code].status}</td><td>${ERRORS[code].message}</td></tr>`,
    )}</tbody></table>`,
  )
  return html`<div class="plain"><p class="crumbs"><a href="${REFERENCE_PATH}">Muster API</a></p>
<h1>Error codes</h1>
<p class="lead">Every error body has one of these ${ERROR_CODES.length} codes in <code>code</code>, and the URL of its page in <code>documentation</code>.</p>
${tables}</div>`
}

/** `MATCHMAKER_LOBBY_FULL` belongs to `Matchmaker`. A code whose first word is unique belongs to `General`. */
function familyOf(code: ErrorCode): string {
  const [first = ''] = code.split('_', 1)
  if (ERROR_CODES.filter((other) => other.startsWith(`${first}_`)).length === 1) return 'General'
  return first.length <= 3 ? first : `${first[0]}${first.slice(1).toLowerCase()}`
}

function errorPage(code: ErrorCode, main_url: string): Html {
  const { status, message } = ERRORS[code]
  const own = OPERATIONS.filter(({ errors }) => errors.includes(code))
  const is_general = own.length === 0 && OPERATIONS.some((operation) => errorsOf(operation).includes(code))
  const body = errorBody(new ApiError(code), { ray_id: '0199c6a2-7d3e-7b41-9c55-2f8e6a1d4b07', main_url })
  return html`<div class="plain"><p class="crumbs"><a href="${REFERENCE_PATH}">Muster API</a> / <a href="${ERRORS_PATH}">Error codes</a></p>
<h1 class="code-title">${code}</h1>
<p class="lead">${message}</p>
<p>HTTP status <code>${status}</code>: ${STATUSES[status] ?? 'the request is refused.'}</p>
${helpView(code, main_url)}
<h2>Response</h2>
${figure('The body of the response', 'Body', json(body))}
${
  own.length > 0
    ? html`<h2>Operations that return it</h2><ul class="plain-list">${own.map(
        ({ id, method }) => html`<li>${methodBadge(method)} <a href="${operationPath({ id })}">${idView(id)}</a></li>`,
      )}</ul>`
    : html`<p>${is_general ? 'Every operation can return it.' : 'No operation returns it. Requests for files, sites and lobbies do.'}</p>`
}</div>`
}

function helpView(code: ErrorCode, main_url: string): Html {
  const { cause, remedy, command } = ERROR_HELP[code]
  const names = [...new Set(command.match(/\$[A-Z_]+/g))].map((name) => name.slice(1))
  const known = Object.entries(VARIABLES).filter(([name]) => names.includes(name))
  const url = names.includes('MUSTER_URL') ? html`<code>$MUSTER_URL</code> is <code>${main_url}</code>. ` : null
  const is_more = names.some((name) => name !== 'MUSTER_URL' && VARIABLES[name] === undefined)
  const more = is_more ? 'Set the other variables to your own ids and values.' : null
  return html`<h2>Cause</h2><p>${prose(cause)}</p>
<h2>Remedy</h2><p>${prose(remedy)}</p>
${figure(`Command for ${code}`, 'Command', shell(command))}
${names.length === 0 ? null : html`<p>${url}${known.map(([name, meaning]) => html`<code>$${name}</code> is ${meaning}. `)}${more}</p>`}`
}

/** Variables of the commands whose names do not explain them. */
const VARIABLES: Readonly<Record<string, string>> = {
  MUSTER_TOKEN: 'the token of a person or an administrator, or a cloud token',
  PUBLIC_TOKEN: 'a public token of the namespace',
  IDENTITY_TOKEN: 'the identity token of a player',
  PLATFORM_TOKEN: 'the token that the server of the lobby was started with',
  RAY_ID: 'the ray id of the request that you want to understand',
}

/** What each status means for the caller. */
const STATUSES: Record<number, string> = {
  400: 'change the request before you send it again.',
  401: 'send another credential.',
  403: 'the credential is valid, but does not allow this.',
  404: 'it does not exist, or the caller may not see it.',
  406: 'the request accepts none of the available encodings.',
  408: 'the request arrived too slowly.',
  409: 'the current state does not allow it.',
  413: 'the request is too large.',
  416: 'the file has no such range.',
  429: 'wait for the seconds in Retry-After.',
  431: 'the headers are too large.',
  500: 'the platform failed. The ray id finds the request in its log.',
  502: 'the server behind the platform did not respond.',
  503: 'try again, after the seconds in Retry-After.',
}
