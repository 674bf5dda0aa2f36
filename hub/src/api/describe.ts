// An operation of the API as the hub knows it.
import type { GroupRole, Operation } from '@musterhost/contract'

/** `O`: the operation in the contract. It exists as a type only. */
export type Described<O extends Operation = Operation> = {
  id: string
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  path: string
  /** Role that a person needs, at least. Null: the operation acts on no group. */
  role: GroupRole | null
  /** Never set. It carries the types of the request and of the response. */
  of?: O
}

export function describe<O extends Operation>(
  id: string,
  method: Described['method'],
  path: string,
  role: GroupRole | null,
): Described<O> {
  return { id, method, path, role }
}
