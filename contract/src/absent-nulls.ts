// Clients of typed languages send null for a member that they leave out. For an optional member that cannot be null, and for
// a member that the operation does not have, this means absent. For a required one, and for an entry of a map or list, it
// stays a mistake.

/** What a validator says of one mistake; ajv's error object has these. */
type Fault = {
  instancePath: string
  schemaPath: string
  keyword: string
  params: object
  data?: unknown
  parentSchema?: object
}

type Removed = { parent: Record<string, unknown>; name: string; path: string }

/**
 * Removes such nulls from `value` and returns what is still wrong then; null: nothing. `faults`: what is wrong with
 * `value` as it came. `find` checks it again. At most three checks are made, and none where no null is at fault.
 */
export function removeAbsentNulls<F extends Fault>(value: unknown, faults: F[], find: () => F[] | null): F[] | null {
  const removed = new Map<string, Removed>()
  for (const fault of faults) {
    const found =
      unknownNull(fault) ?? (fault.data === null && isDeclared(fault) ? parentOf(value, fault.instancePath) : null)
    if (found === null || removed.has(found.path)) continue
    removed.set(found.path, found)
    delete found.parent[found.name]
  }
  if (removed.size === 0) return faults
  const left = find()
  const required = (left ?? []).filter(({ keyword }) => keyword === 'required')
  const put_back = required.flatMap(({ instancePath, params }) => {
    const { missingProperty } = params as { missingProperty?: string }
    return removed.get(`${instancePath}/${escapePointer(missingProperty ?? '')}`) ?? []
  })
  if (put_back.length === 0) return left
  for (const { parent, name } of put_back) parent[name] = null
  return find()
}

/** A null under a name that the object does not have. A map has no such names: its entry is a mistake. */
function unknownNull({ keyword, params, data, instancePath, parentSchema = {} }: Fault): Removed | null {
  const { additionalProperty: name } = params as { additionalProperty?: string }
  if (keyword !== 'additionalProperties' || name === undefined || 'patternProperties' in parentSchema) return null
  const parent = data as Record<string, unknown>
  return parent[name] === null ? { parent, name, path: `${instancePath}/${escapePointer(name)}` } : null
}

/** Whether the schema names the member: entries of maps (patternProperties) and of lists (items) are not named. */
function isDeclared({ instancePath, schemaPath }: Fault): boolean {
  const name = instancePath.slice(instancePath.lastIndexOf('/') + 1)
  const keywords = schemaPath.split('/')
  const at = keywords.lastIndexOf('properties')
  return at !== -1 && decodeURIComponent(keywords[at + 1] ?? '') === name && !keywords.slice(at + 2).includes('items')
}

function parentOf(root: unknown, pointer: string): Removed | null {
  const names = pointer.split('/').slice(1).map(unescapePointer)
  const name = names.pop()
  let parent = root
  for (const step of names) parent = (parent as Record<string, unknown> | null)?.[step]
  if (name === undefined || typeof parent !== 'object' || parent === null || Array.isArray(parent)) return null
  return { parent: parent as Record<string, unknown>, name, path: pointer }
}

/** RFC 6901: ~1 is a slash, ~0 a tilde. */
export function unescapePointer(segment: string): string {
  return segment.replaceAll('~1', '/').replaceAll('~0', '~')
}

function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}
