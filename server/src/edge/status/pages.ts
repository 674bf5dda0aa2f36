// The status pages that this edge serves: the images of all enabled ones are in memory, read again when one changes (channel
// `status_pages`). While the database is away, the last images are served, and say since when they are not fresh. A page is
// rendered and compressed once for each change of it. Without a page, nothing runs and nothing is kept.
import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { ApiError, STATUS_PAGES_MAX } from '@musterhost/contract'
import { headerOf } from '@musterhost/contract/edge'
import { acceptedEncodings } from '@musterhost/contract/site'
import type { Context } from '../../context.ts'
import { createPoller } from '../../database/poller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import type { StatusView } from '../../wire/status-view.ts'
import { METHOD_NOT_ALLOWED_HEADERS } from '../cdn/preflight.ts'
import { isKnown } from '../cdn/representation.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Refuse } from '../http/refuse.ts'
import { sendResponse } from '../http/response.ts'
import type { HostMeaning } from '../routes/hosts.ts'
import { renderAtom, renderJson } from './feeds.ts'
import { HTML_POLICY, renderHtml, type Staleness } from './html.ts'

/** A reader has the images read again when the last read is older. */
const READ_AGE_MS_MAX = 5_000
/** A read without a response for so long has failed. */
const READ_MS_MAX = 5_000
const RETRY_MS = 2_000
/** Failed reads in a row after which the page says that the database is away. */
const FAILURES_MIN = 2
/** The api role writes each image once a minute. One that is older is not fresh. */
const VIEW_AGE_MS_MAX = 180_000
/** Domains of a namespace that lead to its page. */
const DOMAINS_MAX = 20

type Form = 'html' | 'json' | 'atom'
/** Headers and body of a response; `known`: the headers of one without a body, to a client that has it. */
type StatusResponse = { tag: string; headers: readonly string[]; known: readonly string[]; body: Buffer }
type Rendered = { plain: StatusResponse; gzip: StatusResponse }
type Row = {
  game_id: string
  view_seq: number
  game: string
  namespace: string
  domain: string | null
  domains: string[]
  /** Null: this edge has the image. */
  view: StatusView | null
}
export type ServedStatusPage = Omit<Row, 'view'> & { view: StatusView; rendered: Map<string, Rendered> }
export type StatusTarget = { kind: 'status'; page: ServedStatusPage; form: Form }

export type StatusPages = {
  /** Null: the request is for no page. `meaning`: null for the host of a custom domain. */
  find: (host: string, meaning: HostMeaning | null, path: string) => StatusTarget | null
  /** Responds to the exchange. */
  serve: (exchange: Exchange, target: StatusTarget) => void
  close: () => Promise<void>
}

const FORMS: Readonly<Record<string, Form>> = { '/status': 'html', '/status.json': 'json', '/status.atom': 'atom' }
const COMMON = [
  ...['cache-control', 'public, max-age=10', 'vary', 'Accept-Encoding'],
  ...['x-content-type-options', 'nosniff', 'referrer-policy', 'no-referrer'],
]
const HEADERS: Readonly<Record<Form, readonly string[]>> = {
  html: ['content-type', 'text/html; charset=utf-8', 'content-security-policy', HTML_POLICY, ...COMMON],
  json: ['content-type', 'application/json; charset=utf-8', 'access-control-allow-origin', '*', ...COMMON],
  atom: ['content-type', 'application/atom+xml; charset=utf-8', 'access-control-allow-origin', '*', ...COMMON],
}

export function openStatusPages(ctx: Context, refuse: Refuse): StatusPages {
  /** By `game--namespace`, and by custom domain. */
  let by_host = new Map<string, ServedStatusPage>()
  let pages = new Map<string, ServedStatusPage>()
  let read_at_ms = Number.NEGATIVE_INFINITY
  let read_ts = ''
  let failure_count = 0
  let under_way: Promise<Row[]> | null = null

  /** A read that hangs is not followed by another one. */
  async function readRows(): Promise<Row[]> {
    if (under_way !== null) throw new Error('The database has not responded to the last read.')
    const reading = readPages(ctx, pages).finally(() => {
      under_way = null
    })
    under_way = reading
    reading.catch(() => {})
    const rows = await Promise.race([reading, delay(READ_MS_MAX, null, { ref: false })])
    if (rows === null) throw new Error('The database does not respond.')
    return rows
  }

  const poller = createPoller(ctx, {
    async run() {
      const since_ms = ctx.elapsed()
      const now_ms = ctx.now()
      let rows: Row[]
      try {
        rows = await readRows()
      } catch (error) {
        failure_count++
        if (pages.size > 0) throw error
        // Without a page there is nothing to serve. The channel wakes this edge when the database is back.
        ctx.log.warn({ err: error }, 'the status pages cannot be read')
        return
      }
      failure_count = 0
      read_at_ms = since_ms
      read_ts = new Date(now_ms).toISOString()
      pages = pagesOf(rows, pages)
      by_host = hostsOf(pages)
    },
    failure: 'the status pages cannot be read; trying again',
    retry_ms: RETRY_MS,
  })
  const unsubscribe = ctx.listener.on(CHANNELS.status_pages, poller.wake)

  function stalenessOf({ view }: ServedStatusPage): Staleness | null {
    if (failure_count >= FAILURES_MIN) return { kind: 'away', since_ts: read_ts }
    const is_late = ctx.now() - Date.parse(view.view_ts) > VIEW_AGE_MS_MAX
    return is_late ? { kind: 'late', since_ts: view.view_ts } : null
  }

  return {
    find(host, meaning, path) {
      if (by_host.size === 0) return null
      const query = path.indexOf('?')
      const pathname = query === -1 ? path : path.slice(0, query)
      if (meaning !== null && meaning.kind !== 'site') return null
      const page = by_host.get(meaning === null ? host : `${meaning.game}--${meaning.namespace}`)
      if (page === undefined) return null
      const is_own = meaning === null && page.domain === host
      const form = is_own && pathname === '/' ? 'html' : Object.hasOwn(FORMS, pathname) ? FORMS[pathname]! : null
      // A domain of the page has nothing else.
      if (form === null && is_own)
        throw new ApiError('API_NOT_FOUND', {}, { message: 'This host has a status page only.' })
      return form === null ? null : { kind: 'status', page, form }
    },
    serve(exchange, { page, form }) {
      if (exchange.method !== 'GET' && exchange.method !== 'HEAD') {
        refuse.request(exchange, new ApiError('API_METHOD_NOT_ALLOWED'), METHOD_NOT_ALLOWED_HEADERS)
        return
      }
      if (ctx.elapsed() - read_at_ms > READ_AGE_MS_MAX) poller.wake()
      const { plain, gzip } = renderedOf(page, form, stalenessOf(page))
      const response = acceptedEncodings(headerOf(exchange.head, 'accept-encoding')).gzip ? gzip : plain
      if (isKnown(headerOf(exchange.head, 'if-none-match'), response.tag)) {
        sendResponse(exchange, 304, response.known, null)
      } else sendResponse(exchange, 200, response.headers, response.body)
    },
    async close() {
      unsubscribe()
      await poller.close()
    },
  }
}

/** At most the three forms of a page are kept, for its present state only. */
function renderedOf({ view, rendered }: ServedStatusPage, form: Form, stale: Staleness | null): Rendered {
  const key = `${form} ${stale === null ? '' : `${stale.kind} ${stale.since_ts}`}`
  const known = rendered.get(key)
  if (known !== undefined) return known
  for (const other of rendered.keys()) if (other.startsWith(`${form} `)) rendered.delete(other)
  const text = form === 'html' ? renderHtml(view, stale) : form === 'json' ? renderJson(view, stale) : renderAtom(view)
  const plain = Buffer.from(text)
  const etag = createHash('sha256').update(plain).digest('hex').slice(0, ETAG_LENGTH)
  const made = {
    plain: responseOf(form, `"${etag}"`, [], plain),
    gzip: responseOf(form, `"${etag}-gzip"`, ['content-encoding', 'gzip'], gzipSync(plain)),
  }
  rendered.set(key, made)
  return made
}

function responseOf(form: Form, tag: string, more: readonly string[], body: Buffer): StatusResponse {
  const known = [...HEADERS[form], 'etag', tag]
  return { tag, known, headers: [...known, ...more, 'content-length', String(body.length)], body }
}

/** Hex digits of the hash that are the entity tag: 128 bits. */
const ETAG_LENGTH = 32

function pagesOf(rows: readonly Row[], former: ReadonlyMap<string, ServedStatusPage>): Map<string, ServedStatusPage> {
  return new Map(
    rows.flatMap((row): [string, ServedStatusPage][] => {
      const known = former.get(row.game_id)
      const view = row.view ?? known?.view
      if (view === undefined) return []
      const rendered = row.view === null && known !== undefined ? known.rendered : new Map<string, Rendered>()
      return [[row.game_id, { ...row, view, rendered }]]
    }),
  )
}

function hostsOf(pages: ReadonlyMap<string, ServedStatusPage>): Map<string, ServedStatusPage> {
  return new Map(
    [...pages.values()].flatMap((page) =>
      [`${page.game}--${page.namespace}`, ...page.domains].map((host): [string, ServedStatusPage] => [host, page]),
    ),
  )
}

/** All enabled pages, with the images that this edge does not have. */
async function readPages({ pool }: Context, known: ReadonlyMap<string, ServedStatusPage>): Promise<Row[]> {
  const { rows } = await pool.query<Row>({
    name: 'status-pages',
    text: `select status_pages.game_id, view_seq, games.name_id as game, namespaces.name_id as namespace, status_pages.domain,
        array(select domains.domain from domains
          where domains.namespace_id = status_pages.namespace_id and verification_status = 'active'
          order by domains.domain limit ${DOMAINS_MAX}) as domains,
        case when exists (select from unnest($1::uuid[], $2::integer[]) as had (game_id, view_seq)
          where had.game_id = status_pages.game_id and had.view_seq = status_pages.view_seq) then null else view end as view
      from status_pages join games on games.game_id = status_pages.game_id
        join namespaces on namespaces.namespace_id = status_pages.namespace_id
      where status_pages.is_enabled order by status_pages.game_id limit ${STATUS_PAGES_MAX}`,
    values: [[...known.keys()], [...known.values()].map(({ view_seq }) => view_seq)],
  })
  return rows
}
