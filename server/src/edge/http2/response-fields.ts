// The head of a response, which http/response.ts and proxy/forward.ts write as text, as the fields of HTTP/2.

export type ResponseFields = {
  status: number
  /** Names and values in turns, with the status. */
  fields: string[]
  /** Null: the body ends with the stream. */
  content_length: number | null
}

const LINE_END = '\r\n'
/** Lines about one connection of HTTP/1.1. */
const CONNECTION_LINES: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'transfer-encoding', 'upgrade', 'proxy-connection', 'http2-settings', 'te'],
])
/** "HTTP/1.1 " before the status. */
const STATUS_AT = 9
const STATUS_LENGTH = 3

/** `text`: begins with a head, whose empty line begins at `end`. */
export function readResponseFields(text: string, end: number): ResponseFields {
  const status = Number(text.slice(STATUS_AT, STATUS_AT + STATUS_LENGTH))
  const fields = [':status', String(status)]
  let content_length: number | null = null
  let at = text.indexOf(LINE_END) + LINE_END.length
  while (at < end) {
    const colon = text.indexOf(':', at)
    const stop = text.indexOf(LINE_END, colon)
    const name = text.slice(at, colon).toLowerCase()
    at = stop + LINE_END.length
    if (CONNECTION_LINES.has(name)) continue
    const value = text.slice(colon + 1, stop).trim()
    if (name === 'content-length') content_length = Number(value)
    fields.push(name, value)
  }
  return { status, fields, content_length }
}
