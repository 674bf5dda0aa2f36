// The context of a request that a test makes without HTTP.
import { randomUUID } from 'node:crypto'
import type { ChangeContext } from '../../src/audit/changes.ts'
import type { Context } from '../../src/context.ts'

export function audited(ctx: Context): ChangeContext {
  const caller = { kind: 'anyone' } as const
  const request = { operation: 'test', caller, authorization: undefined, client_ip: '127.0.0.1', ray_id: randomUUID() }
  return { ...ctx, audit: request }
}
