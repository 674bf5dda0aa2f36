// What an edge sends to its successor, in this order:
//
// - The successor connects and sends `hello`. The edge sends `welcome`, or `refused` to another version.
// - The edge sends a batch: listeners, raw ports, UDP sessions and connections, each with its handle, then `end`. It has stopped
//   reading the connections, and has written everything that it had read.
// - The successor registers, with everything it received, in the database. It sends `taken`.
// - The edge stops receiving datagrams too, sends the UDP sessions that have begun meanwhile, closes its own listeners and
//   sends `yours`. The successor reads from now on.
// - Connections that could not be handed over by then follow in further batches.
//
// Until `taken`, the edge can continue as if nothing had happened: nothing was read meanwhile, so nothing is lost.
import type { FlowFacts } from '../flows.ts'
import type { IdleFacts } from '../http/connections.ts'
import type { SessionFacts } from '../streams/udp-sessions.ts'

/** Of the messages and of the facts in them. */
export const HAND_OVER_VERSION = 1

export type ListenerName = 'http' | 'https'

/** `host`: as in `edge_hosts`. `port`: that it listens at, or that is wanted; 0: any. */
export type ListenerFacts = { name: ListenerName; host: string | null; port: number }

export type FromEdge =
  | { kind: 'welcome'; retired_name: string }
  | { kind: 'refused'; reason: string }
  | ({ kind: 'listener' } & ListenerFacts)
  | { kind: 'tcp_port'; number: number }
  | { kind: 'udp_port'; number: number; type: 'udp4' | 'udp6' }
  | { kind: 'session'; number: number; facts: SessionFacts }
  /** The client's socket; `upstream` follows with the other one. */
  | { kind: 'flow'; facts: FlowFacts }
  | { kind: 'upstream' }
  | ({ kind: 'idle' } & IdleFacts)
  | { kind: 'end' }
  | { kind: 'yours' }
  /** Instead of `yours`: the edge continues, and the successor must not. */
  | { kind: 'kept' }

export type FromSuccessor = { kind: 'hello'; version: number } | { kind: 'taken' }

/** Both sides are the same program, of one version. A kind is all that must be checked. */
export function isKind<K extends string>(value: unknown, ...kinds: readonly K[]): value is { kind: K } {
  return (
    typeof value === 'object' && value !== null && kinds.some((kind) => kind === (value as { kind?: unknown }).kind)
  )
}
