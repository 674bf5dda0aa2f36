// Every operation that the load sent, with what its caller knows of it. *Acknowledged*: the platform returned success.
// *Refused*: the platform returned an error that promises no effect. *Unknown*: no response, or one that promises
// nothing (5xx). The checks compare this history with the tables.
import { ApiError } from '@musterhost/contract'

/** Operations that a run may record. Bounds its memory. */
const ENTRIES_MAX = 1_000_000
const FINDINGS_MAX = 1_000

export type Outcome<R = unknown> =
  | { status: 'acknowledged'; result: R }
  | { status: 'refused'; code: string }
  | { status: 'unknown'; reason: string }

/** By kind: the request, and what an acknowledgement returns. */
type Kinds = {
  /** find, join or create, known by its Idempotency-Key. `party_size`: 1 without a party. */
  seat: { asked: { namespace_id: string; key: string; party_size: number }; result: SeatResult }
  connect: { asked: { player_id: string; key: string }; result: unknown }
  disconnect: { asked: { player_id: string; key: string }; result: unknown }
  identity: { asked: { namespace_id: string }; result: { identity_id: string } }
  party: { asked: { leader_identity_id: string }; result: { party_id: string } }
  membership: { asked: { identity_id: string; party_id: string | null }; result: unknown }
  /** A put of one value, or a deletion (null), of all these keys at once. */
  kv_write: { asked: { namespace_id: string; keys: readonly string[]; value: string | null }; result: unknown }
  /** The PUT of one file of an upload. */
  object: { asked: { upload_id: string; path: string; sha256: string }; result: unknown }
  upload: { asked: { upload_id: string; files: readonly { path: string; sha256: string }[] }; result: unknown }
  version: { asked: { game_id: string }; result: { version_id: string } }
  deploy: { asked: { namespace_id: string; version_id: string }; result: unknown }
  token: { asked: { game_id: string }; result: { token: string; token_id: string } }
  revocation: { asked: { token: string; token_id: string }; result: unknown }
  domain: { asked: { namespace_id: string; domain: string; is_wanted: boolean }; result: unknown }
}
export type SeatResult = { player_id: string; lobby_id: string; token: string }

export type Kind = keyof Kinds
export type Entry<K extends Kind = Kind> = Kinds[K]['asked'] & {
  begin_ms: number
  end_ms: number
  attempt_count: number
  outcome: Outcome<Kinds[K]['result']>
}
export type Counts = Record<Outcome['status'], number>

export class History {
  readonly #entries = new Map<Kind, Entry[]>()
  readonly #findings: string[] = []
  readonly #counts: Counts = { acknowledged: 0, refused: 0, unknown: 0 }
  #count = 0

  record<K extends Kind>(
    kind: K,
    asked: Kinds[K]['asked'],
    { begin_ms, attempt_count, outcome }: Pick<Entry<K>, 'begin_ms' | 'attempt_count' | 'outcome'>,
  ): void {
    if (this.#count++ === ENTRIES_MAX) throw new Error(`the history is full: ${ENTRIES_MAX} operations`)
    const entries = this.#entries.get(kind) ?? []
    this.#entries.set(kind, entries)
    entries.push({ ...asked, begin_ms, end_ms: performance.now(), attempt_count, outcome } as Entry)
    this.#counts[outcome.status]++
  }

  /** In the order in which the operations ended. */
  of<K extends Kind>(kind: K): readonly Entry<K>[] {
    return (this.#entries.get(kind) ?? []) as unknown as readonly Entry<K>[]
  }

  /** Faults that the load itself found, which no order of the operations explains. */
  contradiction(text: string): void {
    if (this.#findings.length < FINDINGS_MAX) this.#findings.push(text)
  }

  get contradictions(): readonly string[] {
    return this.#findings
  }

  get counts(): Readonly<Counts> {
    return this.#counts
  }

  /** By kind and outcome; of refusals and unknown outcomes also why, the most frequent first. */
  summary(): { kind: Kind; counts: Counts; reasons: string[] }[] {
    return [...this.#entries].map(([kind, entries]) => {
      const counts: Counts = { acknowledged: 0, refused: 0, unknown: 0 }
      const reasons = new Map<string, number>()
      for (const { outcome } of entries) {
        counts[outcome.status]++
        if (outcome.status === 'acknowledged') continue
        const reason = outcome.status === 'refused' ? outcome.code : outcome.reason
        reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
      }
      const sorted = [...reasons].toSorted(([, a], [, b]) => b - a)
      return { kind, counts, reasons: sorted.map(([reason, count]) => `${reason} ${count}`) }
    })
  }
}

/** Entries that were acknowledged, with what they returned. */
export function acknowledged<K extends Kind>(
  entries: readonly Entry<K>[],
): (Entry<K> & { result: Kinds[K]['result'] })[] {
  return entries.flatMap((entry) =>
    entry.outcome.status === 'acknowledged' ? [{ ...entry, result: entry.outcome.result }] : [],
  )
}

export async function outcomeOf<R>(call: Promise<R>): Promise<Outcome<R>> {
  try {
    return { status: 'acknowledged', result: await call }
  } catch (error) {
    if (error instanceof ApiError) {
      const { code, status } = error
      return status < 500 ? { status: 'refused', code } : { status: 'unknown', reason: code }
    }
    if (isTransportError(error)) return { status: 'unknown', reason: 'no response' }
    throw error
  }
}

/** Errors of fetch for a broken connection or a timeout. Any other error is a fault of the load itself. */
function isTransportError(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error.name === 'TimeoutError' || error.name === 'AbortError') return true
  return error instanceof TypeError && /^(fetch failed|terminated)$/.test(error.message)
}
