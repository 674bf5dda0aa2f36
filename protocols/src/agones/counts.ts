// Counters and lists of an Agones game server. Each function returns the changed one, or throws and changes nothing.
import { CallError } from './call-error.ts'

export type Counter = { count: bigint; capacity: bigint }
export type List = { capacity: number; values: readonly string[] }

/** Maximum capacity of a list, from the definition of Agones. */
const LIST_CAPACITY_MAX = 1000
const VALUE_LENGTH_MAX = 2048
const LIST_FIELDS = ['name', 'capacity', 'values']

/** `count`, `capacity`: undefined leaves it. `diff`: added to the count; 0 leaves it. */
export function updateCounter(
  counter: Counter,
  { count, capacity, diff }: { count: bigint | undefined; capacity: bigint | undefined; diff: bigint },
): Counter {
  if (count === undefined && capacity === undefined && diff === 0n)
    throw new CallError('INVALID_ARGUMENT', 'one of count, capacity and countDiff is required')
  const new_capacity = capacity ?? counter.capacity
  if (new_capacity < 0n) throw new CallError('OUT_OF_RANGE', `capacity must be 0 or more; found: ${new_capacity}`)
  const new_count = (count ?? counter.count) + diff
  // A smaller capacity alone takes the count down with it.
  if (count === undefined && diff === 0n) return { count: min(new_count, new_capacity), capacity: new_capacity }
  if (new_count < 0n || new_count > new_capacity)
    throw new CallError('OUT_OF_RANGE', `count must be in [0,${new_capacity}]; found: ${new_count}`)
  return { count: new_count, capacity: new_capacity }
}

/**
 * `mask`: the members to change. An empty one, which the SDK of Node sends, means those that are set. Values beyond the
 * capacity are cut off, and so are repeated ones.
 */
export function updateList(
  list: List,
  update: { capacity: bigint; values: readonly string[] },
  mask: readonly string[],
): List {
  const unknown = mask.find((path) => !LIST_FIELDS.includes(path))
  if (unknown !== undefined)
    throw new CallError('INVALID_ARGUMENT', `update_mask: ${unknown.slice(0, 64)} is no field of a list`)
  if (update.capacity < 0n || update.capacity > LIST_CAPACITY_MAX)
    throw new CallError('OUT_OF_RANGE', `capacity must be in [0,${LIST_CAPACITY_MAX}]; found: ${update.capacity}`)
  const is_set = (path: string, is_present: boolean) => (mask.length === 0 ? is_present : mask.includes(path))
  const capacity = is_set('capacity', update.capacity !== 0n) ? Number(update.capacity) : list.capacity
  const values = is_set('values', update.values.length > 0) ? [...new Set(update.values)] : list.values
  values.forEach(requireLength)
  return { capacity, values: values.slice(0, capacity) }
}

export function addValue(list: List, value: string): List {
  requireLength(value)
  if (list.values.length >= list.capacity)
    throw new CallError('OUT_OF_RANGE', `the list is full: ${list.values.length} values of ${list.capacity}`)
  if (list.values.includes(value)) throw new CallError('ALREADY_EXISTS', 'the value is in the list already')
  return { ...list, values: [...list.values, value] }
}

export function removeValue(list: List, value: string): List {
  if (!list.values.includes(value)) throw new CallError('NOT_FOUND', 'the value is not in the list')
  return { ...list, values: list.values.filter((one) => one !== value) }
}

/** What an allocation changes before the server starts. `amount`, `capacity`: decimal text. */
export type StartChange = { amount?: string; capacity?: string; addValues?: string[]; deleteValues?: string[] }

/** A change that is out of range leaves the counter as it is. */
export function startCounter(counter: Counter, { amount = '0', capacity }: StartChange): Counter {
  try {
    return updateCounter(counter, {
      count: undefined,
      capacity: capacity === undefined ? undefined : BigInt(capacity),
      diff: BigInt(amount),
    })
  } catch {
    return counter
  }
}

/** Values beyond the capacity are cut off, and so are repeated ones. */
export function startList(list: List, { capacity, addValues = [], deleteValues = [] }: StartChange): List {
  try {
    const new_capacity = capacity === undefined ? list.capacity : Number(capacity)
    const values = [...list.values.filter((value) => !deleteValues.includes(value)), ...addValues]
    return updateList(list, { capacity: BigInt(new_capacity), values }, ['capacity', 'values'])
  } catch {
    return list
  }
}

function requireLength(value: string): void {
  if (value.length > VALUE_LENGTH_MAX)
    throw new CallError('INVALID_ARGUMENT', `a value has more than ${VALUE_LENGTH_MAX} characters`)
}

function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
