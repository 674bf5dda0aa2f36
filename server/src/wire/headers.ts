// All headers that processes of the platform send each other. They count only together with EDGE_PROOF_HEADER, which a process
// without the platform's keys cannot make (tokens/edge-proof.ts). The edge drops them from the requests of clients.

/** The proof that a process of the platform sends the request. */
export const EDGE_PROOF_HEADER = 'x-muster-edge'
/** The id of a request's ray: in every response, and with the proof in what the edge forwards. */
export const RAY_HEADER = 'x-ray-id'
/** In responses to the edge, which removes it: the ray is kept, and is this owner's. */
export const RAY_KEPT_HEADER = 'x-muster-kept'

/** Opens a trunk (trunk-opening.ts): the versions that the edge speaks, and the one that the role chose. */
export const TRUNK_HEADER = 'x-muster-trunk'

/** Shards (shard-protocol.ts): who calls, as the first process found it: base64url of JSON. */
export const CALLER_HEADER = 'x-muster-caller'
/** The steps of the request that were done: base64url of JSON. */
export const STEPS_HEADER = 'x-muster-progress'
/** The receiver may send the request on, once more: the sender cannot reach the process that has the shard. */
export const RELAY_HEADER = 'x-muster-relay'
/** In the response of a process that does not have the shard: the steps of the request, or `none`. */
export const MOVED_HEADER = 'x-muster-moved'
/** From the edge: the response is to have SHARD_HEADER. */
export const ASK_SHARD_HEADER = 'x-muster-ask-shard'
/** The number of the shard of the caller's namespace. */
export const SHARD_HEADER = 'x-muster-shard'
