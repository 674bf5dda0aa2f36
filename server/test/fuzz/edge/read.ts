// Readers of HTTP/1.1 for the laws of the fuzzing. They are written apart from the edge's own and share nothing with it.

export type ReadRequest = { method: string; target: string; body: string }

/** A message at the start of the bytes; `incomplete`: more is to come; a fault says why there is none. */
export type Reading<T> = { message: T; length: number } | 'incomplete' | { fault: string }

const REQUEST_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\S+) HTTP\/1\.[01]$/
const STATUS_LINE = /^HTTP\/1\.[01] ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/
const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*$/

type Headers = [string, string][]
type Framing = number | 'chunked' | null

/** A request as other proxies write it to their backends. */
export function readRequest(bytes: string): Reading<ReadRequest> {
  const head = readHead(bytes)
  if (head === 'incomplete' || 'fault' in head) return head
  const [, method = '', target = ''] = REQUEST_LINE.exec(head.first) ?? []
  if (method === '') return { fault: `no request line: ${JSON.stringify(head.first)}` }
  const framing = framingOf(head.headers)
  if (framing !== null && typeof framing === 'object') return framing
  const body = readBody(bytes, head.length, framing ?? 0)
  if (body === 'incomplete' || 'fault' in body) return body
  return { message: { method, target, body: body.text }, length: body.end }
}

export type ReadResponse = {
  status: number
  headers: Headers
  body: string
  /** The body goes to the end of the connection. */
  is_until_end: boolean
}

/** A final response, after any number of interim ones. `is_ended`: nothing comes after the bytes. */
export function readResponse(bytes: string, method: string, is_ended: boolean): Reading<ReadResponse> {
  for (let at = 0; ; ) {
    const head = readHead(bytes.slice(at))
    if (head === 'incomplete' || 'fault' in head) return head
    const status = Number(STATUS_LINE.exec(head.first)?.[1])
    if (Number.isNaN(status)) return { fault: `no status line: ${JSON.stringify(head.first)}` }
    const { headers } = head
    const framing = framingOf(headers)
    if (framing !== null && typeof framing === 'object') return framing
    if (framing === 'chunked' && head.first.startsWith('HTTP/1.0')) return { fault: 'chunks in HTTP/1.0' }
    at += head.length
    if (status === 101) return { fault: 'a switch of protocols' }
    if (status < 200) continue
    if (method === 'HEAD' || status === 204 || status === 304)
      return { message: { status, headers, body: '', is_until_end: false }, length: at }
    if (framing === null) {
      if (!is_ended) return 'incomplete'
      return { message: { status, headers, body: bytes.slice(at), is_until_end: true }, length: bytes.length }
    }
    const body = readBody(bytes, at, framing)
    if (body === 'incomplete' || 'fault' in body) return body
    return { message: { status, headers, body: body.text, is_until_end: false }, length: body.end }
  }
}

export function headerOf(headers: Headers, name: string): string | undefined {
  return headers.find(([other]) => other.toLowerCase() === name)?.[1]
}

function readHead(
  bytes: string,
): { first: string; headers: Headers; length: number } | 'incomplete' | { fault: string } {
  const end = bytes.indexOf('\r\n\r\n')
  if (end === -1) return 'incomplete'
  const [first = '', ...lines] = bytes.slice(0, end).split('\r\n')
  const headers: Headers = []
  for (const line of lines) {
    const [, name, value] = HEADER.exec(line) ?? []
    if (name === undefined || value === undefined) return { fault: `no header: ${JSON.stringify(line)}` }
    headers.push([name, value])
  }
  return { first, headers, length: end + 4 }
}

/** Null: the head says nothing of a body. */
function framingOf(headers: Headers): Framing | { fault: string } {
  const valuesOf = (name: string) => headers.filter(([other]) => other.toLowerCase() === name).map(([, value]) => value)
  const [lengths, codings] = [valuesOf('content-length'), valuesOf('transfer-encoding')]
  if (lengths.length + codings.length > 1) return { fault: 'two framings' }
  if (codings.length === 1) return codings[0]!.toLowerCase() === 'chunked' ? 'chunked' : { fault: 'another coding' }
  if (lengths.length === 0) return null
  return /^\d{1,15}$/.test(lengths[0]!) ? Number(lengths[0]) : { fault: 'a length that is none' }
}

function readBody(
  bytes: string,
  start: number,
  framing: number | 'chunked',
): { text: string; end: number } | 'incomplete' | { fault: string } {
  if (framing !== 'chunked') {
    const end = start + framing
    return bytes.length < end ? 'incomplete' : { text: bytes.slice(start, end), end }
  }
  let text = ''
  for (let at = start; ; ) {
    const line_end = bytes.indexOf('\r\n', at)
    if (line_end === -1) return 'incomplete'
    const size = Number.parseInt(SIZE_LINE.exec(bytes.slice(at, line_end))?.[1] ?? '', 16)
    if (Number.isNaN(size)) return { fault: `no chunk size: ${JSON.stringify(bytes.slice(at, line_end))}` }
    at = line_end + 2
    if (size === 0) {
      if (bytes.startsWith('\r\n', at)) return { text, end: at + 2 }
      const trailers = readHead(`\r\n${bytes.slice(at)}`)
      if (trailers === 'incomplete' || 'fault' in trailers) return trailers
      if (trailers.headers.some(([name]) => FRAMES.has(name.toLowerCase()))) return { fault: 'a frame in the trailers' }
      return { text, end: at + trailers.length - 2 }
    }
    if (bytes.length < at + size + 2) return 'incomplete'
    text += bytes.slice(at, at + size)
    at += size + 2
    if (bytes.slice(at - 2, at) !== '\r\n') return { fault: 'a chunk without its end' }
  }
}

/** Of the next message, for a reader that believes them after the body. */
const FRAMES: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding', 'host'])

const SIZE_LINE = /^0{0,16}([0-9A-Fa-f]{1,12})(?:;[\t\x20-\x7e\x80-\xff]*)?$/
