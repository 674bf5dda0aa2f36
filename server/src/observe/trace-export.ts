// Rays for a collector of OpenTelemetry, where the operator has one: the parts that are kept (recorder.ts) are gathered
// and sent as OTLP over HTTP, as JSON. A ray is a trace; each role's part of it is a span, with its phases below it. What a
// collector does not take is dropped: a request never waits for it. The log has when that begins, once a minute how many
// were lost, and when it is over.
import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import { BatchWriter } from '../flow/batch-writer.ts'
import type { RayPart } from './recorder.ts'

const SEND_EVERY_MS = 2_000
/** Spans that wait to be exported; further ones are dropped. */
const GATHERED_MAX = 2_000
/** One request to the collector. */
const SEND_MS_MAX = 5_000
const REPORT_EVERY_MS = 60_000
const SERVER_KIND = 2
const INTERNAL_KIND = 1
const ERROR_STATUS = 2

export type TraceExport = {
  take: (part: RayPart) => void
  /** Sends what there is, and waits for it. */
  flush: () => Promise<void>
  close: () => Promise<void>
}

/** `url` is the collector's, without /v1/traces; `headers` may hold its secret. */
export function createTraceExport(
  { url, headers }: { url: string; headers: Readonly<Record<string, string>> },
  { log, elapsed }: { log: Logger; elapsed: () => number },
): TraceExport {
  const address = `${url.replace(/(?<!\/)\/+$/, '')}/v1/traces`
  let lost_count = 0
  let reported_ms = Number.NEGATIVE_INFINITY
  let is_reported = false
  const writer = new BatchWriter<RayPart>({
    every_ms: SEND_EVERY_MS,
    items_max: GATHERED_MAX,
    async write(parts) {
      await send(parts)
      report(null)
    },
    onDropped(count) {
      lost_count += count
    },
    onFailure(error, count) {
      lost_count += count
      report(error)
    },
  })

  async function send(parts: readonly RayPart[]): Promise<void> {
    const response = await fetch(address, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ resourceSpans: parts.map(resourceSpan) }),
      signal: AbortSignal.timeout(SEND_MS_MAX),
      redirect: 'error',
    })
    await response.body?.cancel()
    if (!response.ok) throw new Error(`The collector responds with ${response.status}.`)
  }

  /** `error`: null after a batch that the collector has taken. Parts may have been dropped before it. */
  function report(error: unknown): void {
    if (lost_count === 0) {
      if (is_reported) log.info('rays are exported again')
      is_reported = false
    } else if (elapsed() - reported_ms >= REPORT_EVERY_MS) {
      log.warn({ err: error, lost_count }, 'rays are lost: the collector does not take them')
      lost_count = 0
      reported_ms = elapsed()
      is_reported = true
    }
  }

  return {
    take: (part) => writer.add(part),
    flush: () => writer.flush(),
    close: () => writer.close(),
  }
}

function resourceSpan(part: RayPart): object {
  const spans = [spanOf(part), ...part.spans.map((_, index) => phaseOf(part, index))]
  return {
    resource: { attributes: attributesOf({ 'service.name': `muster-${part.service}` }) },
    scopeSpans: [{ scope: { name: 'muster' }, spans }],
  }
}

function spanOf(part: RayPart): object {
  const { operation, owner, code, duration_us, marks } = part
  const about = {
    ...(owner === null ? {} : { [`muster.${owner.kind}_id`]: owner.id }),
    ...(code === null ? {} : { 'error.type': code }),
  }
  return {
    ...idsOf(part, 'all'),
    name: operation,
    kind: SERVER_KIND,
    ...timesOf(part, 0, duration_us),
    attributes: attributesOf(about),
    events: marks.map(([name, at, ray_id]) => ({
      name,
      timeUnixNano: nanosOf(part, at),
      attributes: attributesOf(ray_id === undefined ? {} : { 'muster.ray_id': ray_id }),
    })),
    ...(code === null ? {} : { status: { code: ERROR_STATUS, message: code } }),
  }
}

function phaseOf(part: RayPart, index: number): object {
  const [name, begin, end] = part.spans[index]!
  return {
    ...idsOf(part, String(index)),
    parentSpanId: idsOf(part, 'all').spanId,
    name,
    kind: INTERNAL_KIND,
    ...timesOf(part, begin, end),
  }
}

/** The same each time, so that what is sent twice is one. */
function idsOf({ ray_id, service, ts_us }: RayPart, what: string): { traceId: string; spanId: string } {
  const spanId = createHash('sha256').update(`${ray_id} ${service} ${ts_us} ${what}`).digest('hex').slice(0, 16)
  return { traceId: ray_id.replaceAll('-', ''), spanId }
}

function timesOf(part: RayPart, begin: number, end: number): object {
  return { startTimeUnixNano: nanosOf(part, begin), endTimeUnixNano: nanosOf(part, end) }
}

/** As text: no double holds them. */
function nanosOf({ ts_us }: RayPart, offset_us: number): string {
  return String((BigInt(ts_us) + BigInt(offset_us)) * 1_000n)
}

function attributesOf(values: Record<string, string>): object[] {
  return Object.entries(values).map(([key, value]) => ({ key, value: { stringValue: value } }))
}
