// Guests that never came back and never played: they are forgotten early, and first where a namespace is full.
import type { OldRows } from './remove-old.ts'

export const UNUSED_GUESTS: OldRows = { table: 'identities', ended: 'create_ts', only: 'seen_ts = create_ts' }
