// How a request finds the matchmaker that has the books of its namespace. The edge asks the process that it knows, or any. A
// process that does not have the shard sends the request on, once, to the one that has: with CALLER_HEADER, and with
// PROGRESS_HEADER where an earlier process had begun it. Where it cannot reach that process, it asks another one to send the
// request on, with RELAY_HEADER. A process that gets such a request and does not have the shard (any
// more) returns MOVED_STATUS with MOVED_HEADER, and the sender looks again. The edge learns the shard of a credential from
// SHARD_HEADER, where it asks for it. All these headers count only with the edge's proof (tokens/edge-proof.ts); the edge drops
// them from clients.

/** Who calls, as the first process found it: base64url of JSON. */
export const CALLER_HEADER = 'x-muster-caller'
/** How far a request for a seat had come: base64url of JSON. */
export const PROGRESS_HEADER = 'x-muster-progress'
/** The receiver may send the request on, once more: the sender cannot reach the process that has the shard. */
export const RELAY_HEADER = 'x-muster-relay'
/** In the response of a process that does not have the shard: the progress, or `none`. */
export const MOVED_HEADER = 'x-muster-moved'
export const MOVED_STATUS = 421
/** From the edge: the response is to have SHARD_HEADER. */
export const ASK_SHARD_HEADER = 'x-muster-ask-shard'
/** The number of the shard of the caller's namespace. */
export const SHARD_HEADER = 'x-muster-shard'

export function encodeHeader(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** The sender is a process of the platform. */
export function decodeHeader<T>(text: string): T {
  return JSON.parse(Buffer.from(text, 'base64url').toString()) as T
}
