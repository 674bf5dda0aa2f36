// A command for a shard whose books are not in this process, or not any more. Nothing of the command was carried out, so the
// request may be sent to the process that has the shard now (http/owner-forwarder.ts).

/** How far a request for a seat had come: the next process continues there. */
export type SeatProgress = {
  /** The lobbies that were tried. */
  attempt: number
  /** Null: no captcha was checked yet. */
  has_solved_captcha: boolean | null
  /** The durable seat whose lobby the request waits for. */
  seat: { lobby_id: string; player_id: string; is_new: boolean } | null
}

export class ShardMoved extends Error {
  readonly shard: number
  progress: SeatProgress | null = null

  constructor(shard: number) {
    super(`the books of shard ${shard} are not in this process`)
    this.name = 'ShardMoved'
    this.shard = shard
  }
}
