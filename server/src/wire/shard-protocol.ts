// How a request finds the matchmaker that has the books of its namespace. The edge asks the process that it knows, or any. A
// process that does not have the shard sends the request on, once, to the one that has: with CALLER_HEADER, and with
// STEPS_HEADER where an earlier process had begun it. Where it cannot reach that process, it asks another one to send the
// request on, with RELAY_HEADER. A process that gets such a request and does not have the shard (any
// more) returns MOVED_STATUS with MOVED_HEADER, and the sender searches again. The edge learns the shard of a credential from
// SHARD_HEADER, where it asks for it. All these headers count only with the edge's proof (tokens/edge-proof.ts); the edge drops
// them from clients.

export const MOVED_STATUS = 421

export function encodeHeader(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** The sender is a process of the platform. */
export function decodeHeader<T>(text: string): T {
  return JSON.parse(Buffer.from(text, 'base64url').toString()) as T
}
