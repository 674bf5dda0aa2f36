import type { Selectable } from 'kysely'
import type { Schema } from '../../../database/schema.ts'
import type { VerifiedClient } from '../../book/captcha-memory.ts'
import type { ProjectedTable } from './descriptor.ts'

type Selected = Selectable<Schema['captcha_clients']>
type CaptchaClientRow = ReturnType<typeof rowOf>

export const captcha_clients: ProjectedTable<CaptchaClientRow, VerifiedClient, Selected, VerifiedClient> = {
  name: 'captcha_clients',
  key: ['namespace_id', 'client'],
  columns: {
    namespace_id: ['uuid', 'fixed'],
    client: ['text', 'fixed'],
    verify_ts: ['time', 'updated'],
    expire_ts: ['time', 'updated'],
    request_count: ['integer', 'updated'],
  },
  addAffected(_, change, ids) {
    if (change.kind === 'client_verified' || change.kind === 'client_counted') ids.add(change.client)
  },
  addUnended() {},
  valueOf: (book, client_key) => book.verified.get(client_key),
  rowOf,
  loaded: { where: 'expire_ts > $2', since_ms: (now_ms) => now_ms },
  storedOf: (row) => ({
    client_key: row.client,
    verify_ms: row.verify_ts.getTime(),
    expire_ms: row.expire_ts.getTime(),
    request_count: row.request_count,
  }),
}

function rowOf(namespace_id: string, verified: VerifiedClient) {
  return {
    namespace_id,
    client: verified.client_key,
    verify_ts: verified.verify_ms,
    expire_ts: verified.expire_ms,
    request_count: verified.request_count,
  }
}
