// The requests of a role that other processes of the platform send, or continue. An edge sends its requests over a trunk
// (trunks.ts). Where the books of a namespace are in another matchmaker, the request is sent there (owner-forwarder.ts).
import { ApiError, type Operation } from '@musterhost/contract'
import type { PeerPort, RunningCall } from '../http/peer-port.ts'
import { ShardMoved } from '../matchmaker/shards/shard-moved.ts'
import type { Caller } from '../tokens/caller.ts'
import { ASK_SHARD_HEADER, SHARD_HEADER } from '../wire/headers.ts'
import type { OwnerForwarder } from './owner-forwarder.ts'
import type { RoleTrunks } from './trunks.ts'

/** How often a request runs in this process whose shard leaves and comes back. */
const RUNS_MAX = 8

/** `forwarder`: null where the role has no books. */
export function createPeers(trunks: RoleTrunks, forwarder: OwnerForwarder | null): PeerPort {
  return {
    ...(forwarder === null ? ALONE : betweenOwners(forwarder)),
    isUpgrade: (request) => trunks.isTrunk(request),
    accept: (request, socket, head, handle) => trunks.accept(request, socket, head, handle),
  }
}

type OwnersPart = Pick<PeerPort, 'callerOf' | 'isCountedElsewhere' | 'onAdmitted' | 'run'>

const ALONE: OwnersPart = {
  callerOf: () => null,
  isCountedElsewhere: () => false,
  onAdmitted: () => {},
  run: (_operation, _running, run) => run(),
}

function betweenOwners(forwarder: OwnerForwarder): OwnersPart {
  return {
    callerOf: (request) => forwarder.receivedOf(request)?.caller ?? null,
    // A request is counted once: where the books are, or else by the process that asks there.
    isCountedElsewhere: (request, caller) =>
      forwarder.isReceived(request) ? forwarder.shardOf(caller) === null : forwarder.shardElsewhere(caller) !== null,
    // An edge that does not know the shard asks for it, and sends the next request to its process.
    onAdmitted: (request, reply, caller) => {
      const shard = request.headers[ASK_SHARD_HEADER] === undefined ? null : forwarder.shardOf(caller)
      if (shard !== null) reply.header(SHARD_HEADER, shard)
    },
    run: (operation, running, run) => runAtOwner(forwarder, operation, running, run),
  }
}

/** Runs the operation here or, where its shard is elsewhere, in the process that has it: then `reply` is returned. */
async function runAtOwner(
  forwarder: OwnerForwarder,
  { repeatable }: Operation,
  { request, reply, call }: RunningCall,
  run: () => unknown,
): Promise<unknown> {
  const received = forwarder.receivedOf(request)
  if (received !== null) Object.assign(call.steps, received.steps)
  for (let runs = 1; ; runs++) {
    try {
      requireHere(forwarder, call.caller)
      return await run()
    } catch (error) {
      if (!(error instanceof ShardMoved)) throw error
      if (received !== null && !received.is_relay) return forwarder.replyMoved(reply, call.steps)
      const begun = { shard: error.shard, steps: call.steps }
      const forwarded = await forwarder.forward(request, reply, begun, { gone: call.hangUpSignal(), repeatable })
      if (forwarded !== null) return forwarded
      if (runs === RUNS_MAX) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
    }
  }
}

/** Throws ShardMoved where another process has the books of the caller's namespace. */
function requireHere(forwarder: OwnerForwarder, caller: Caller): void {
  const shard = forwarder.shardElsewhere(caller)
  if (shard !== null) throw new ShardMoved(shard)
}
