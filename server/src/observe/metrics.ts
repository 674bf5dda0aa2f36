// The metrics of this process in the Prometheus text format (operator-port.ts). Events are counted where they happen. States
// are read from the rooms at each scrape (`gauge`, `sum`). Labels have few values: nothing here grows with the number of
// lobbies or players.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { UNUSED_SAMPLE_MS, watchEventLoop } from './event-loop.ts'

/** From a find in a running lobby to one that waited as long as it may for a start. */
const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 50]
const APPEND_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5]
const START_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const BATCH_COMMANDS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1024]

/** Sets one value. `labels`: in the order of the metric's label names. */
export type SetValue = (value: number, ...labels: string[]) => void

/** Called at each scrape. */
type Collector = (set: SetValue) => void | Promise<void>

export type Metrics = ReturnType<typeof createMetrics>

/** All metrics of one process; `roles`: the roles that it runs. */
export function createMetrics({ roles }: { roles: readonly string[] }) {
  const registry = new Registry()
  const { gauge, sum } = scraped(registry)
  gauge('build_info', 'The roles and the Node version of this process; always 1.', ['roles', 'node_version'], (set) =>
    set(1, roles.join(','), process.version),
  )
  return {
    ...counted(registry),
    /** A state that is read at each scrape. */
    gauge,
    /** A count that is kept elsewhere and read at each scrape, where counting must cost nothing. */
    sum,
    /** Adds Node's own metrics. Measuring begins here. */
    watchProcess() {
      collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: UNUSED_SAMPLE_MS })
      watchEventLoop(registry)
    },
    /** In the exposition format, with its content type. */
    async text(): Promise<{ type: string; text: string }> {
      return { type: registry.contentType, text: await registry.metrics() }
    },
  }
}

/** The metrics that are counted where the events happen. */
function counted(registry: Registry) {
  const registers = [registry]
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[]) =>
    new Counter({ name: `muster_${name}`, help, labelNames, registers })
  const histogram = <L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    buckets: readonly number[],
  ) => new Histogram({ name: `muster_${name}`, help, labelNames, buckets: [...buckets], registers })

  return {
    requests: counter('requests_total', 'Requests, by operation and result: ok, or the error code.', [
      'operation',
      'code',
    ]),
    request_seconds: histogram(
      'request_duration_seconds',
      'Seconds of a successful operation, from the checked request to the response.',
      ['operation'],
      REQUEST_SECONDS,
    ),
    append_seconds: histogram(
      'journal_append_duration_seconds',
      'Appends to the journal, by outcome.',
      ['outcome'],
      APPEND_SECONDS,
    ),
    batch_commands: histogram('journal_batch_commands', 'Commands that one append made durable.', [], BATCH_COMMANDS),
    shard_recoveries: counter(
      'shard_recoveries_total',
      'Times that a shard of the journal was read again after a failure.',
      [],
    ),
    forwarded_requests: counter(
      'forwarded_requests_total',
      'Requests that this matchmaker sent on to the one that has their shard.',
      [],
    ),
    run_starts: counter('run_starts_total', 'Starts of lobbies, by result: started, refused or failed.', ['result']),
    run_start_seconds: histogram(
      'run_start_duration_seconds',
      'From the request for a lobby, as the runner sees it, to its process.',
      [],
      START_SECONDS,
    ),
    run_exits: counter('run_exits_total', 'Lobbies whose process has ended, by reason.', ['reason']),
    damage_found: counter('damage_found_total', 'Reads of stored bytes that differ from what was uploaded.', [
      'reason',
    ]),
    bytes_checked: counter('stored_bytes_checked_total', 'Stored bytes that were compared with their hash.', []),
    edge_requests: counter('edge_requests_total', 'Requests at the edge, by what serves them.', ['kind']),
    edge_admission_seconds: histogram(
      'edge_admission_duration_seconds',
      "Time that a player's first connection waited for the book, by outcome: admitted, refused or late.",
      ['outcome'],
      REQUEST_SECONDS,
    ),
  }
}

/** Metrics whose values are read at each scrape. A room that is opened again registers its metric again. */
function scraped(registry: Registry) {
  const options = (name: string, help: string, labelNames: readonly string[]) => {
    registry.removeSingleMetric(`muster_${name}`)
    return { name: `muster_${name}`, help, labelNames, registers: [registry] }
  }
  const labelled = (labelNames: readonly string[], values: readonly string[]) =>
    Object.fromEntries(labelNames.map((label, index) => [label, values[index] ?? '']))

  return {
    gauge(name: string, help: string, labelNames: readonly string[], collect: Collector): void {
      new Gauge({
        ...options(name, help, labelNames),
        async collect() {
          this.reset()
          await collect((value, ...labels) => this.set(labelled(labelNames, labels), value))
        },
      })
    },
    sum(name: string, help: string, labelNames: readonly string[], collect: Collector): void {
      new Counter({
        ...options(name, help, labelNames),
        async collect() {
          this.reset()
          await collect((value, ...labels) => this.inc(labelled(labelNames, labels), value))
        },
      })
    },
  }
}
