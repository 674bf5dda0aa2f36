// The members of a body or a parameter as nested lists, which open and close without a script.
import { type Html, html, prose } from './html.ts'

/** JSON Schema, as openapi.json has it. */
export type OpenApiSchema = {
  $ref?: string
  type?: string
  format?: string
  const?: unknown
  enum?: readonly unknown[]
  anyOf?: readonly OpenApiSchema[]
  description?: string
  pattern?: string
  examples?: readonly unknown[]
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  items?: OpenApiSchema
  minItems?: number
  maxItems?: number
  properties?: Record<string, OpenApiSchema>
  required?: readonly string[]
  additionalProperties?: OpenApiSchema | boolean
  propertyNames?: OpenApiSchema
  minProperties?: number
  maxProperties?: number
}

export type Schemas = Readonly<Record<string, OpenApiSchema>>

/** A list that is deeper, or has more members, is closed at first. */
const OPEN_DEPTH_MAX = 2
/** A list with more members begins closed. */
const OPEN_MEMBERS_MAX = 8

const FORMATS: Record<string, string> = { uuid: 'UUID', 'date-time': 'time', email: 'e-mail address' }

/** Resolves a reference. A description beside the reference replaces that of the component. */
export function resolve(schemas: Schemas, schema: OpenApiSchema): OpenApiSchema {
  if (schema.$ref === undefined) return schema
  const { $ref, ...own } = schema
  return { ...schemas[nameOf($ref)], ...own }
}

function nameOf(ref: string): string {
  return ref.slice(ref.lastIndexOf('/') + 1)
}

/** `array of GameSummary`, `map of string`, `integer`. */
function typeText(schemas: Schemas, schema: OpenApiSchema): string {
  if (schema.$ref !== undefined) return nameOf(schema.$ref)
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum !== undefined) return 'one of'
  if (schema.anyOf !== undefined) return 'either'
  if (schema.type === 'array') return `array of ${schema.items ? typeText(schemas, schema.items) : 'anything'}`
  if (schema.type === 'object') {
    const value = schema.additionalProperties
    return typeof value === 'object' ? `map of ${typeText(schemas, value)}` : 'object'
  }
  if (schema.type === undefined) return 'any JSON'
  return FORMATS[schema.format ?? ''] ?? schema.type
}

/** Requests mark the required members, responses the optional ones. */
type Direction = 'sent' | 'received'
type Depth = { direction: Direction; depth: number }

/** The members of an object as a list, or the type of any other schema. */
export function schemaView(schemas: Schemas, schema: OpenApiSchema, direction: Direction): Html {
  const plain = resolve(schemas, schema)
  const nested = inside(schemas, plain, { direction, depth: 0 })
  const about = plain.description === undefined ? null : html`<p>${prose(plain.description)}</p>`
  if (nested !== null && plain.type === 'object' && plain.properties !== undefined) return html`${about}${nested}`
  if (plain.type === 'object' && plain.properties !== undefined) return about ?? html`<p>An empty object.</p>`
  return html`<p><span class="type">${typeText(schemas, schema)}</span></p>${about}${limits(plain)}${nested}`
}

export function memberView(
  schemas: Schemas,
  member: { name: string; schema: OpenApiSchema; is_required: boolean },
  level: Depth = { direction: 'sent', depth: 0 },
): Html {
  const { direction, depth } = level
  const plain = resolve(schemas, member.schema)
  const nested = inside(schemas, plain, { direction, depth: depth + 1 })
  return html`<li>
    <div class="member"><code class="name">${member.name}</code> <span class="type">${typeText(schemas, member.schema)}</span>
    ${presence(member.is_required, direction)}</div>
    ${plain.description === undefined ? null : html`<p>${prose(plain.description)}</p>`}
    ${limits(plain)}
    ${nested === null ? null : fold(nested, depth, countMembers(schemas, plain, 0))}
  </li>`
}

function presence(is_required: boolean, direction: Direction): Html | null {
  if (direction === 'sent') return is_required ? html`<span class="required">required</span>` : null
  return is_required ? null : html`<span class="optional">optional</span>`
}

function fold(nested: Html, depth: number, count: number): Html {
  const is_open = depth < OPEN_DEPTH_MAX && count <= OPEN_MEMBERS_MAX
  const title = `${count} ${count === 1 ? 'member' : 'members'}`
  return is_open
    ? html`<details open><summary>${title}</summary>${nested}</details>`
    : html`<details><summary>${title}</summary>${nested}</details>`
}

/** The members of an object, of array items, of map values or of alternatives. Null: there are none. */
function inside(schemas: Schemas, schema: OpenApiSchema, level: Depth): Html | null {
  if (schema.anyOf !== undefined) {
    const all = schema.anyOf.map((alternative) => inside(schemas, resolve(schemas, alternative), level))
    const lists = all.filter((list) => list !== null)
    return lists.length === 0
      ? null
      : html`${lists.map((list, index) => (index === 0 ? list : html`<p class="or">or</p>${list}`))}`
  }
  if (schema.items !== undefined) return inside(schemas, resolve(schemas, schema.items), level)
  if (typeof schema.additionalProperties === 'object') {
    return inside(schemas, resolve(schemas, schema.additionalProperties), level)
  }
  const members = Object.entries(schema.properties ?? {})
  if (members.length === 0) return null
  const is_required = (name: string) => schema.required?.includes(name) ?? false
  const sorted = members.toSorted(([a], [b]) => Number(is_required(b)) - Number(is_required(a)))
  return html`<ul class="members">${sorted.map(([name, member]) =>
    memberView(schemas, { name, schema: member, is_required: is_required(name) }, level),
  )}</ul>`
}

function countMembers(schemas: Schemas, schema: OpenApiSchema, depth: number): number {
  const below = [schema.items, schema.additionalProperties, ...(schema.anyOf ?? [])].filter(
    (item) => typeof item === 'object',
  )
  const members = Object.keys(schema.properties ?? {}).length
  return members + below.reduce((sum, item) => sum + countMembers(schemas, resolve(schemas, item), depth + 1), 0)
}

function limits(schema: OpenApiSchema): Html | null {
  const facts = [
    schema.enum === undefined
      ? null
      : html`${schema.enum.map((value) => html`<code>${JSON.stringify(value)}</code> `)}`,
    range(schema.minLength, schema.maxLength, 'character'),
    range(schema.minItems, schema.maxItems, 'item'),
    range(schema.minProperties, schema.maxProperties, 'member'),
    range(schema.minimum, schema.maximum, ''),
    schema.pattern === undefined ? null : html`matches <code>${schema.pattern}</code>`,
    schema.propertyNames?.pattern === undefined ? null : html`names match <code>${schema.propertyNames.pattern}</code>`,
    schema.items === undefined ? null : limitsOfItems(schema.items),
  ].filter((fact) => fact !== null)
  return facts.length === 0 ? null : html`<p class="limits">${facts.map((fact) => html`<span>${fact}</span>`)}</p>`
}

function limitsOfItems(items: OpenApiSchema): Html | null {
  const length = range(items.minLength, items.maxLength, 'character')
  if (items.enum !== undefined) return html`${items.enum.map((value) => html`<code>${JSON.stringify(value)}</code> `)}`
  return length === null ? null : html`each ${length}`
}

function range(min: number | undefined, max: number | undefined, unit: string): string | null {
  const units = (count: number) => (unit === '' ? '' : ` ${unit}${count === 1 ? '' : 's'}`)
  const text = (count: number) => count.toLocaleString('en-US')
  if (max === undefined)
    return min === undefined || (min === 0 && unit !== '') ? null : `at least ${text(min)}${units(min)}`
  if (min === undefined || (min === 0 && unit !== '')) return `at most ${text(max)}${units(max)}`
  if (min === max) return `exactly ${text(max)}${units(max)}`
  return `${text(min)} to ${text(max)}${units(max)}`
}
