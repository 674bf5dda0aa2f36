// A real HTTP server in the role of the platform, for the tests of the SDK: it returns the responses that a test queues, in
// order, and records the requests.
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

export type Asked = { method: string; path: string; headers: IncomingHttpHeaders; body: unknown; connection: number }

/** `hang up` closes the connection without a response; `late` sends no response until the test ends. */
export type Answer =
  | { status: number; body?: unknown; text?: string; headers?: Record<string, string> }
  | 'hang up'
  | 'late'

export type TestPlatform = { url: string; asked: Asked[]; answer(...answers: Answer[]): void }

/** Listens on a free port until the test ends. Without a queued response it returns `{}`. */
export async function startTestPlatform(t: TestContext): Promise<TestPlatform> {
  const asked: Asked[] = []
  const answers: Answer[] = []
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const part of request.setEncoding('utf8')) text += part
    asked.push({
      method: request.method ?? '',
      path: request.url ?? '',
      headers: request.headers,
      body: text === '' ? undefined : JSON.parse(text),
      connection: request.socket.remotePort ?? 0,
    })
    const answer = answers.shift() ?? { status: 200, body: {} }
    if (answer === 'late') return
    if (answer === 'hang up') request.socket.destroy()
    else {
      response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers })
      response.end(answer.text ?? JSON.stringify(answer.body ?? {}))
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, asked, answer: (...more) => answers.push(...more) }
}

export function refusal(
  status: number,
  code: string,
  headers: Record<string, string> = {},
  metadata: Record<string, unknown> = { seats: 0 },
): Answer {
  const body = { code, message: `${code} in words.`, documentation: '', metadata, ray_id: 'ray-1' }
  return { status, body, headers }
}
