// For how long each node has been silent, by the reader's own monotonic clock. A node reports about once a second, with a number
// that grows. A step of any wall clock changes nothing. Only time between two successful reads counts: while PostgreSQL is
// away no node is silent. After a longer gap between two reads this process was itself cut off or stopped, and every node gets
// the full grace again, as it does when a matchmaker starts.

/** A node that has been silent for this long is away: it gets no new lobby while another node is open. */
export const AWAY_MS = 4_000
/** Reads that are farther apart do not show how long a node was silent. */
const GAP_MS_MAX = 5_000

/** A node's row, as it was read. `is_fresh`: recent by the clock of the database; only the first read uses it. */
export type NodeReport = { node_id: string; report_seq: number; is_fresh: boolean }
type Silence = { report_seq: number | null; silent_ms: number; is_away: boolean }

export class NodeSilence {
  readonly #grace_ms: number
  readonly #nodes = new Map<string, Silence>()
  #read_ms: number | null = null

  constructor(grace_ms: number) {
    this.#grace_ms = grace_ms
  }

  /** Takes in a successful read. `in_use`: nodes that have lobbies, which may have no row. */
  read(reports: readonly NodeReport[], in_use: readonly string[], now_ms: number): void {
    const since_ms = this.#read_ms === null ? 0 : now_ms - this.#read_ms
    this.#read_ms = now_ms
    for (const silence of this.#nodes.values()) {
      silence.silent_ms = since_ms > GAP_MS_MAX ? 0 : silence.silent_ms + since_ms
    }
    for (const { node_id, report_seq, is_fresh } of reports) {
      const before = this.#nodes.get(node_id)
      if (before === undefined) this.#nodes.set(node_id, { report_seq, silent_ms: 0, is_away: !is_fresh })
      else if (before.report_seq !== report_seq) Object.assign(before, { report_seq, silent_ms: 0, is_away: false })
    }
    for (const node_id of in_use) {
      if (!this.#nodes.has(node_id)) this.#nodes.set(node_id, { report_seq: null, silent_ms: 0, is_away: true })
    }
    const used = new Set(in_use)
    const reported = new Set(reports.map(({ node_id }) => node_id))
    for (const [node_id, silence] of this.#nodes) {
      silence.is_away ||= silence.silent_ms >= Math.min(AWAY_MS, this.#grace_ms)
      if (!reported.has(node_id) && !used.has(node_id) && this.isLost(node_id)) this.#nodes.delete(node_id)
    }
  }

  isAway(node_id: string): boolean {
    return this.#nodes.get(node_id)?.is_away ?? true
  }

  /** The grace is over: its lobbies end. */
  isLost(node_id: string): boolean {
    const silence = this.#nodes.get(node_id)
    return silence?.is_away === true && silence.silent_ms >= this.#grace_ms
  }
}
