// One operation on a page: its description, and beside it an example call and response.
import { type CallerKind, ERRORS, type ErrorCode, type Operation } from '@musterhost/contract'
import { errorsOf, type OpenapiOperation } from '@musterhost/contract/openapi'
import { curlOf, responseExample } from './example.ts'
import { ERRORS_PATH, idView, methodBadge } from './frame.ts'
import { type Html, html, prose } from './html.ts'
import { memberView, type OpenApiSchema, type Schemas, schemaView } from './schema.ts'

const CALLERS: Record<CallerKind, string> = {
  anyone: 'Anyone, without a credential',
  admin: 'Administrator',
  user: 'User',
  cloud: 'Cloud token of the game',
  namespace: 'Public token, page of the namespace, or identity token',
  identity: 'Identity token',
  development: 'Development token',
  lobby: 'Lobby token',
}

const RATES = {
  none: null,
  seats: 'Rate limit: requests for seats.',
  matchmaker: 'Rate limit: matchmaker calls.',
  cloud: null,
  kv: 'Rate limit: reads and writes of entries.',
} as const

export type OperationParts = {
  operation: Operation
  /** The operation in openapi.json. */
  described: OpenapiOperation
  schemas: Schemas
  main_url: string
}

export function operationView({ operation, described, schemas, main_url }: OperationParts): Html {
  const { id, method, summary, errors } = operation
  const parameters = described.parameters ?? []
  const body = described.requestBody?.content['application/json'].schema ?? null
  const response = described.responses[200].content['application/json'].schema
  const query = parameters.filter((parameter) => parameter.in === 'query' && parameter.required)
  const general = errorsOf(operation).filter((code) => !errors.includes(code))
  return html`<article id="${id}" aria-labelledby="title-${id}">
<header>
<h2 id="title-${id}"><a href="#${id}">${idView(id)}</a></h2>
<div class="address">${methodBadge(method)} <span class="path">${pathView(operation.path)}</span></div>
<p>${prose(summary)}</p>
<ul class="chips" aria-label="Who may call">${callers(operation).map((who) => html`<li>${who}</li>`)}</ul>
${notes(operation).map((note) => html`<p class="note">${note}</p>`)}
</header>
<div class="description">
${parameters.length === 0 ? null : html`<h3>Parameters</h3>${parametersView(schemas, parameters)}`}
${body === null ? null : html`<h3>Body</h3>${schemaView(schemas, body, 'sent')}`}
<h3>Response</h3>${schemaView(schemas, response, 'received')}
<h3>Errors</h3>${errorsView(errors)}
<details><summary>${general.length} general errors</summary>${errorsView(general)}</details>
</div>
<div class="examples"><div>
${figure(`Call ${id}`, 'Call', shell(curlOf(main_url, schemas, { operation, query, body })))}
${figure(`Response of ${id}`, 'Response 200', json(responseExample(schemas, response)))}
</div></div>
</article>`
}

function callers({ auth, role }: Operation): string[] {
  return auth.map((kind) => {
    if (kind !== 'user' || role === null) return CALLERS[kind]
    return role === 'owner'
      ? 'Owner of the group'
      : role === 'viewer'
        ? 'Member of the group'
        : 'Developer or owner in the group'
  })
}

function notes({ aliases, idempotent, confirm, rate_limit }: Operation): Html[] {
  const rate = RATES[rate_limit]
  return [
    ...(aliases.length === 0 ? [] : [html`Also at ${aliases.map((path) => html`<code>${path}</code> `)}`]),
    ...(idempotent ? [html`Accepts an <code>Idempotency-Key</code> header, so that a retry is safe.`] : []),
    ...(confirm ? [html`A person with a passkey confirms with it first, within five minutes before the call.`] : []),
    ...(rate === null ? [] : [html`${rate}`]),
  ]
}

function pathView(path: string): Html {
  return html`${path.split(/(\{\w+\})/).map((part) => (part.startsWith('{') ? html`<var>${part}</var>` : part))}`
}

type Parameter = NonNullable<OpenapiOperation['parameters']>[number]

function parametersView(schemas: Schemas, parameters: readonly Parameter[]): Html {
  return html`<ul class="members">${parameters.map(({ name, required, schema, description, in: place }) => {
    const shown: OpenApiSchema = description === undefined ? schema : { ...schema, description }
    return memberView(schemas, { name: place === 'header' ? `${name}:` : name, schema: shown, is_required: required })
  })}</ul>`
}

function errorsView(codes: readonly ErrorCode[]): Html | null {
  if (codes.length === 0) return null
  return html`<ul class="errors">${codes.map(
    (
      code,
    ) => html`<li><span class="status">${ERRORS[code].status}</span><div><a href="${ERRORS_PATH}/${code}">${code}</a>
<span class="message">${ERRORS[code].message}</span></div></li>`,
  )}</ul>`
}

/** A block of code. It has a name, because it can be focused and scrolled by keyboard. */
export function figure(name: string, title: string, content: Html): Html {
  return html`<figure><figcaption>${title}<button type="button" data-copy hidden aria-label="Copy: ${name}">Copy</button></figcaption><pre tabindex="0" role="region" aria-label="${name}">${content}</pre></figure>`
}

/** A shell command with highlighted variables. Its URL may wrap at slashes. */
export function shell(text: string): Html {
  const breakable = (part: string) =>
    part.split(/(?<=[\w"]\/)/).map((piece, index) => html`${index === 0 ? null : html`<wbr>`}${piece}`)
  const parts = text.split(/(?<!\\)(\$[A-Z_]+)/)
  return html`<span class="call">${parts.map((part, index) => (index % 2 === 1 ? html`<span class="v">${part}</span>` : breakable(part)))}</span>`
}

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null|-?\d[\d.]*)\b/g

/** JSON with highlighted syntax. */
export function json(value: unknown): Html {
  const text = JSON.stringify(value, null, 2)
  const parts: (Html | string)[] = []
  let end = 0
  for (const match of text.matchAll(TOKEN)) {
    const [whole, string, colon] = match
    parts.push(text.slice(end, match.index))
    if (string === undefined) parts.push(html`<span class="v">${whole}</span>`)
    else if (colon === undefined) parts.push(html`<span class="s">${string}</span>`)
    else parts.push(html`<span class="k">${string}</span>${colon}`)
    end = match.index + whole.length
  }
  parts.push(text.slice(end))
  return html`${parts}`
}
