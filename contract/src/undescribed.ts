// Finds what the API reference leaves unexplained: operations without a summary, and members without a description.
import type { OpenapiDocument, OpenapiOperation } from './openapi.ts'

type Schema = {
  $ref?: string
  description?: string
  anyOf?: readonly Schema[]
  items?: Schema
  properties?: Readonly<Record<string, Schema>>
  additionalProperties?: Schema | boolean
}

/**
 * One line for each operation without a summary and for each parameter, body, response, component and member without a
 * description, such as `POST /parties/join: request.code`. A reference is described by its component.
 */
export function listUndescribed(document: OpenapiDocument): string[] {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) =>
      undescribedOfOperation(operation).map((what) => `${method.toUpperCase()} ${path}: ${what}`),
    ),
  )
  const components = Object.entries(document.components.schemas).flatMap(([name, schema]) => [
    ...(isText(schema.description) ? [] : [`component ${name}`]),
    ...undescribedMembers(schema, `component ${name}`),
  ])
  return [...operations, ...components]
}

function undescribedOfOperation(operation: OpenapiOperation): string[] {
  const found = isText(operation.summary) ? [] : ['summary']
  for (const { name, in: place, description, schema } of operation.parameters ?? []) {
    const label = `${place} ${name}`
    if (!isText(description)) found.push(label)
    found.push(...undescribedMembers(schema, label))
  }
  const request = operation.requestBody?.content['application/json'].schema
  if (request !== undefined) found.push(...undescribedBody(request, 'request'))
  for (const [status, response] of Object.entries(operation.responses)) {
    if (!isText(response.description)) found.push(`response ${status}`)
    found.push(...undescribedBody(response.content['application/json'].schema, `response ${status}`))
    for (const [name, header] of Object.entries((response.headers ?? {}) as Record<string, Schema>)) {
      if (!isText(header.description)) found.push(`response ${status} header ${name}`)
    }
  }
  return found
}

/** The members of an object explain it; every other body needs a description. */
function undescribedBody(schema: Schema, label: string): string[] {
  const is_explained = schema.properties !== undefined || isDescribed(schema)
  return [...(is_explained ? [] : [label]), ...undescribedMembers(schema, label)]
}

/** The members of an object, of the items of a list, of the values of a map and of alternatives, at any depth. */
function undescribedMembers(schema: Schema, label: string): string[] {
  const members = Object.entries(schema.properties ?? {}).flatMap(([name, member]) => {
    const member_label = `${label}.${name}`
    return [...(isDescribed(member) ? [] : [member_label]), ...undescribedMembers(member, member_label)]
  })
  const values = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined
  return [
    ...members,
    ...(schema.items === undefined ? [] : undescribedMembers(schema.items, `${label}[]`)),
    ...(values === undefined ? [] : undescribedMembers(values, `${label}.*`)),
    ...(schema.anyOf ?? []).flatMap((alternative) => undescribedMembers(alternative, label)),
  ]
}

function isDescribed({ description, $ref }: Schema): boolean {
  return isText(description) || $ref !== undefined
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== ''
}
