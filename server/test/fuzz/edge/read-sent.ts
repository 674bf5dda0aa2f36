// What was sent, by a reader that knows no more than how requests are framed. It is more lenient than the edge wherever
// that harms nobody.
import type { ReadRequest } from './read.ts'

/** `at`: where it begins. */
export type SentRequest = ReadRequest & { at: number }

/** The requests in the bytes, up to what is no request. `heads`: of these and of what comes next, which begin as a HEAD. */
export function readSent(bytes: string): { requests: SentRequest[]; heads: boolean[] } {
  const requests: SentRequest[] = []
  const heads: boolean[] = []
  const found = { requests, heads }
  for (let at = 0; ; ) {
    while (bytes.startsWith('\r\n', at)) at += 2
    heads.push(bytes.startsWith('HEAD ', at))
    const head_end = bytes.indexOf('\r\n\r\n', at)
    if (head_end === -1) return found
    const head = bytes.slice(at, head_end)
    const [, method = '', target = ''] = /^([A-Z-]+) (\S+) HTTP\/1\.[01]\r?$/m.exec(head) ?? []
    const lengths = [...head.matchAll(/^content-length:[ \t]*(.*?)[ \t]*\r?$/gim)]
    const codings = [...head.matchAll(/^transfer-encoding:[ \t]*(.*?)[ \t]*\r?$/gim)]
    if (method === '' || lengths.length + codings.length > 1) return found
    const start = head_end + 4
    let [body, end]: [string, number] = ['', start]
    if (codings.length === 1) {
      const chunks = readChunks(bytes, start)
      if (chunks === null) return found
      ;[body, end] = chunks
    } else if (lengths.length === 1) {
      end += Number(lengths[0]![1])
      if (!/^\d+$/.test(lengths[0]![1]!) || bytes.length < end) return found
      body = bytes.slice(start, end)
    }
    requests.push({ method, target, body, at })
    at = end
  }
}

function readChunks(bytes: string, start: number): [string, number] | null {
  let body = ''
  for (let at = start; ; ) {
    const line_end = bytes.indexOf('\r\n', at)
    const size = Number.parseInt(/^([0-9a-f]+)(?:;.*)?$/i.exec(bytes.slice(at, line_end))?.[1] ?? 'none', 16)
    if (line_end === -1 || Number.isNaN(size)) return null
    at = line_end + 2
    if (size === 0) {
      if (bytes.startsWith('\r\n', at)) return [body, at + 2]
      const end = bytes.indexOf('\r\n\r\n', at)
      return end === -1 ? null : [body, end + 4]
    }
    body += bytes.slice(at, at + size)
    at += size + 2
    if (bytes.slice(at - 2, at) !== '\r\n') return null
  }
}
