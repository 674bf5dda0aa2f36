// The pages of the reference, made from the contract once: an index of all operations, a page for each section of them, all
// error codes, and a page for each code, to which the `documentation` of an error body leads.
import { ApiError, ERROR_CODES, ERRORS, type ErrorCode, errorBody, type Operation } from '@muster/contract'
import { ERROR_HELP } from '@muster/contract/error-help'
import { errorsOf, openapiDocument, operationOf } from '@muster/contract/openapi'
import { OPERATIONS } from '@muster/contract/operations'
import { type Section, sectionId, sectionsOf } from '@muster/contract/sections'
import { ERRORS_PATH, framed, idView, methodBadge, operationPath, REFERENCE_PATH, sectionPath } from './frame.ts'
import { type Html, html, prose } from './html.ts'
import { figure, json, operationView, shell } from './operation.ts'
import type { Schemas } from './schema.ts'

export type Reference = {
  /** Every operation in a line. Addresses of the time when all operations were on this page still lead to them. */
  index: () => string
  /** The operations of a section of `sectionsOf(OPERATIONS)`. */
  section: (id: string) => string
  errors: () => string
  error: (code: ErrorCode) => string
}

/** `main_url` is where this platform is called, which the examples do. */
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
<p class="lead">${OPERATIONS.length} operations: managing games, and giving players a seat in them. The same contract as a file for programs is
<a href="/openapi.json">openapi.json</a>.</p>
<div class="facts">
<div><h2>Address</h2><p>All of it is at <code>${main_url}</code>. Bodies are JSON, in UTF-8, with
<code>Content-Type: application/json</code>; members that an operation does not know are refused.</p></div>
<div><h2>Credential</h2><p><code>Authorization: Bearer</code> and a token. Which kind an operation takes stands below its address.
In the examples it is in <code>$MUSTER_TOKEN</code>; on the machine of the platform
<code>MUSTER_TOKEN=$(cat .muster/admin-token)</code> makes you an administrator.</p></div>
<div><h2>Values</h2><p>Ids are lower-case UUIDs, times RFC 3339 in UTC. Lengths in bytes are unsigned 64 bit numbers, and stay below
2<sup>53</sup>: every JSON reader has them exactly.</p></div>
<div><h2>Errors</h2><p>A refusal has <code>code</code>, <code>message</code>, <code>documentation</code>, <code>metadata</code> and
<code>ray_id</code>. Programs compare codes: <a href="${ERRORS_PATH}">all of them</a>. What is unknown and what is somebody else's are both 404.</p></div>
<div><h2>Limits</h2><p>Too many calls are answered 429 with <code>Retry-After</code>, in seconds. After a 503 with one, the same call may be
sent again.</p></div>
<div><h2>Uploads</h2><p>Prepare what is uploaded, <code>PUT</code> each file to the address that is answered, with exactly its length, and
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
<p class="lead">Every refusal carries one of these ${ERROR_CODES.length} in <code>code</code>, and the address of its page in <code>documentation</code>.</p>
${tables}</div>`
}

/** `MATCHMAKER_LOBBY_FULL` is one of `Matchmaker`; what begins like no other is general. */
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
<h2>As it is answered</h2>
${figure('The body of the answer', 'Body', json(body))}
${
  own.length > 0
    ? html`<h2>Operations that answer it</h2><ul class="plain-list">${own.map(
        ({ id, method }) => html`<li>${methodBadge(method)} <a href="${operationPath({ id })}">${idView(id)}</a></li>`,
      )}</ul>`
    : html`<p>${is_general ? 'Operations of all kinds may answer it.' : 'It is answered where no operation is called: by addresses of files, sites and lobbies.'}</p>`
}</div>`
}

function helpView(code: ErrorCode, main_url: string): Html {
  const { cause, remedy, command } = ERROR_HELP[code]
  const names = [...new Set(command.match(/\$[A-Z_]+/g))].map((name) => name.slice(1))
  const told = Object.entries(VARIABLES).filter(([name]) => names.includes(name))
  const url = names.includes('MUSTER_URL') ? html`<code>$MUSTER_URL</code> is <code>${main_url}</code>. ` : null
  const is_more = names.some((name) => name !== 'MUSTER_URL' && VARIABLES[name] === undefined)
  const more = is_more ? 'Set the other variables to your own ids and values.' : null
  return html`<h2>Cause</h2><p>${prose(cause)}</p>
<h2>Remedy</h2><p>${prose(remedy)}</p>
${figure(`Command for ${code}`, 'Command', shell(command))}
${names.length === 0 ? null : html`<p>${url}${told.map(([name, meaning]) => html`<code>$${name}</code> is ${meaning}. `)}${more}</p>`}`
}

/** Variables of the commands whose values the reader may not guess from their names. */
const VARIABLES: Readonly<Record<string, string>> = {
  MUSTER_TOKEN: 'the token of a person or an administrator, or a cloud token',
  PUBLIC_TOKEN: 'a public token of the namespace',
  IDENTITY_TOKEN: 'the identity token of a player',
  PLATFORM_TOKEN: 'the token that the server of the lobby was started with',
  RAY_ID: 'the ray id of the request that you want to understand',
}

/** What a caller does about it. */
const STATUSES: Record<number, string> = {
  400: 'the request is to be changed before it is sent again.',
  401: 'another credential is needed.',
  403: 'the credential is valid, but has not the right.',
  404: 'it is not there, or not yours to see.',
  406: 'the request accepts none of the forms that there are.',
  408: 'the request came too slowly.',
  409: 'the state of things does not allow it now.',
  413: 'it is too large.',
  416: 'there is no such part.',
  429: 'wait for as many seconds as Retry-After says.',
  431: 'the header is too large.',
  500: 'it is not your fault. The ray id finds it in the log.',
  502: 'what is behind the platform does not answer.',
  503: 'try again, after as many seconds as Retry-After says.',
}
