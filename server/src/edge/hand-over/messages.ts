// What an edge sends to its successor, in this order:
//
// - The successor connects and sends `hello` with the version that it would speak. The edge sends `welcome`, or `refused` where
//   it does not speak that version. Then the successor connects again with the version before, if it speaks that.
// - The edge sends a batch: listeners, raw ports, UDP sessions and connections, each with its handle, then `end`. It continues
//   to carry all of them. The successor reads nothing yet.
// - The successor registers, with everything it received, in the database. It sends `taken`, with what it had no place for.
// - The edge sends what has changed of the UDP sessions, and `prepare`. The successor has read all of that when it sends
//   `prepared`. Only now the pause begins, in which neither edge reads.
// - The edge stops reading, writes what it has read, and sends what differs: connections that stay with it or have ended
//   (`without`), sessions that have begun, changed or ended, and datagrams that it has read but not forwarded. Then `yours`.
//   The successor reads from now on. The edge closes its own descriptors, and sends `closed`.
// - Connections that could not be handed over by then follow in further batches.
//
// Until `yours`, the edge can continue as if nothing had happened.
import type { IdleFacts } from '../http/connections.ts'
import type { FlowFacts } from '../presence/flows.ts'
import type { DatagramFacts, SessionFacts } from '../streams/udp-sessions.ts'

export type ListenerName = 'http' | 'https'

/** `host`: as in `edge_hosts`. `port`: that it listens at, or that is wanted; 0: any. */
export type ListenerFacts = { name: ListenerName; host: string | null; port: number }

/** When the edge stopped reading, by `monotonicMs`. Null: it had nothing to read. */
export type PauseBegin = { connections_ms: number | null; datagrams_ms: number | null }

export type FromEdge =
  | { kind: 'welcome'; retired_name: string }
  | { kind: 'refused'; reason: string }
  | ({ kind: 'listener' } & ListenerFacts)
  | { kind: 'tcp_port'; number: number }
  /**
   * `local`: the address of a socket beside the first one of the port; absent in version 2. `buffer_bytes`: of its receive
   * buffer, which is larger during the hand-over.
   */
  | { kind: 'udp_port'; number: number; local?: string | null; type: 'udp4' | 'udp6'; buffer_bytes: number }
  /** Without a handle where the lobby is on a joined node. */
  | { kind: 'session'; number: number; facts: SessionFacts }
  /** Sessions that were sent before, as they are now. */
  | { kind: 'sessions_changed'; number: number; sessions: SessionFacts[] }
  | { kind: 'sessions_ended'; number: number; keys: string[] }
  | { kind: 'datagrams'; number: number; datagrams: DatagramFacts[] }
  /** The client's socket; `upstream` follows with the other one. `id`: of the connection, in this hand-over. */
  | { kind: 'flow'; id: number; facts: FlowFacts }
  | { kind: 'upstream' }
  | ({ kind: 'idle'; id: number } & IdleFacts)
  | { kind: 'end' }
  /** Connections that were sent before, and that the successor must forget. */
  | { kind: 'without'; ids: number[] }
  | { kind: 'prepare' }
  | ({ kind: 'yours' } & PauseBegin)
  | { kind: 'closed' }
  /** Instead of `yours`: the edge continues, and the successor must not. */
  | { kind: 'kept' }

/** `refused`: ids of connections that stay with the edge. */
export type FromSuccessor =
  | { kind: 'hello'; version: number }
  | { kind: 'taken'; refused: number[] }
  | { kind: 'prepared'; refused: number[] }

/** Both sides are this program, and speak the version of `hello`. A kind is all that must be checked. */
export function isKind<K extends string>(value: unknown, ...kinds: readonly K[]): value is { kind: K } {
  return (
    typeof value === 'object' && value !== null && kinds.some((kind) => kind === (value as { kind?: unknown }).kind)
  )
}

/** The clock that all processes of a machine share. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000
}
