// A command for a shard whose books are not in this process, or not any more. Nothing of the command was carried out, so the
// request may be sent to the process that has the shard now (peers/owner-forwarder.ts).
export class ShardMoved extends Error {
  readonly shard: number

  constructor(shard: number) {
    super(`the books of shard ${shard} are not in this process`)
    this.name = 'ShardMoved'
    this.shard = shard
  }
}

/** Whether another process may continue the request that failed with this error. */
export function continuesElsewhere(error: unknown): boolean {
  return error instanceof ShardMoved
}
