// One operation on the page: what is told about it, and beside that a call and its answer.
import { type CallerKind, ERRORS, type ErrorCode, type Operation } from '@muster/contract'
import { errorsOf, type OpenapiOperation } from '@muster/contract/openapi'
import { answerExample, curlOf } from './example.ts'
import { ERRORS_PATH, idView, methodBadge } from './frame.ts'
import { type Html, html, prose } from './html.ts'
import { memberView, type Schema, type Schemas, schemaView } from './schema.ts'

const CALLERS: Record<CallerKind, string> = {
  anyone: 'Anyone, without a credential',
  admin: 'Administrator',
  user: 'Person',
  cloud: 'Cloud token of the game',
  namespace: 'Public token, an Origin that stands for it, or identity token',
  identity: 'Identity token',
  development: 'Development token',
  lobby: 'Lobby token',
}

const RATES = {
  none: null,
  seats: 'Counts as a request for a seat.',
  matchmaker: 'Counts as a matchmaker call.',
  cloud: null,
  kv: 'Counts as a read or write of entries.',
} as const

export type OperationParts = {
  operation: Operation
  /** What openapi.json says of it. */
  described: OpenapiOperation
  schemas: Schemas
  main_url: string
}

export function operationView({ operation, described, schemas, main_url }: OperationParts): Html {
  const { id, method, summary, errors } = operation
  const parameters = described.parameters ?? []
  const body = described.requestBody?.content['application/json'].schema ?? null
  const answer = described.responses[200].content['application/json'].schema
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
<div class="told">
${parameters.length === 0 ? null : html`<h3>Parameters</h3>${parametersView(schemas, parameters)}`}
${body === null ? null : html`<h3>Body</h3>${schemaView(schemas, body, 'sent')}`}
<h3>Answer</h3>${schemaView(schemas, answer, 'answered')}
<h3>Errors</h3>${errorsView(errors)}
<details><summary>${errors.length === 0 ? '' : 'and '}${general.length} that any such operation may answer</summary>${errorsView(general)}</details>
</div>
<div class="shown"><div>
${figure(`Call ${id}`, 'Call', shell(curlOf(main_url, schemas, { operation, query, body })))}
${figure(`Answer of ${id}`, 'Answer 200', json(answerExample(schemas, answer)))}
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

function notes({ aliases, idempotent, rate_limit }: Operation): Html[] {
  const rate = RATES[rate_limit]
  return [
    ...(aliases.length === 0 ? [] : [html`Also at ${aliases.map((path) => html`<code>${path}</code> `)}`]),
    ...(idempotent
      ? [html`Takes an <code>Idempotency-Key</code>: repeated with the same key, it is answered as before.`]
      : []),
    ...(rate === null ? [] : [html`${rate}`]),
  ]
}

function pathView(path: string): Html {
  return html`${path.split(/(\{\w+\})/).map((part) => (part.startsWith('{') ? html`<var>${part}</var>` : part))}`
}

type Parameter = NonNullable<OpenapiOperation['parameters']>[number]

function parametersView(schemas: Schemas, parameters: readonly Parameter[]): Html {
  return html`<ul class="members">${parameters.map(({ name, required, schema, description, in: place }) => {
    const shown: Schema = description === undefined ? schema : { ...schema, description }
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

/** A block of code. It can be scrolled by the keyboard, so it has a name. */
export function figure(name: string, title: string, content: Html): Html {
  return html`<figure><figcaption>${title}<button type="button" data-copy hidden aria-label="Copy: ${name}">Copy</button></figcaption><pre tabindex="0" role="region" aria-label="${name}">${content}</pre></figure>`
}

/** A call, in which what is to be filled in stands out. Its address may be broken at slashes. */
export function shell(text: string): Html {
  const breakable = (part: string) =>
    part.split(/(?<=[\w"]\/)/).map((piece, index) => html`${index === 0 ? null : html`<wbr>`}${piece}`)
  const parts = text.split(/(?<!\\)(\$[A-Z_]+)/)
  return html`<span class="call">${parts.map((part, index) => (index % 2 === 1 ? html`<span class="v">${part}</span>` : breakable(part)))}</span>`
}

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null|-?\d[\d.]*)\b/g

/** JSON with its parts told apart. */
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
