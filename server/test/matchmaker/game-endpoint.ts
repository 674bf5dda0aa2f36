// A game's own endpoint, as developers run one: it says yes until a test changes that, and remembers the requests.
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

/** The members that the tests check. */
export type Payload = {
  verification_data: unknown
  game: Record<string, unknown> & { lobby: Record<string, unknown> | null }
  clients: Record<string, unknown>
  join_kind: string
  kind: string
}

/** `raw_headers`: names and values in turn, as they came. */
export type Asked = { headers: IncomingHttpHeaders; raw_headers: string[]; text: string; payload: Payload }

export type GameEndpoint = {
  url: string
  port: number
  asked: Asked[]
  /** Replaces its answer; null: a yes again. */
  answer: (how: ((res: ServerResponse) => void) | null) => void
  /** From now on it thinks, until it says a status to all that wait. */
  think: () => {
    waiting: () => number
    say: (status: number) => void
    /** Resolves when the platform gives one of them up. */
    ended: () => Promise<void>
    /** Ends so many of those that wait without an answer. */
    drop: (count: number) => void
  }
}

export async function startGameEndpoint(t: TestContext): Promise<GameEndpoint> {
  const asked: Asked[] = []
  let behaviour: ((res: ServerResponse) => void) | null = null
  const server = createServer(async (req, res) => {
    let text = ''
    for await (const chunk of req.setEncoding('utf8')) text += chunk
    asked.push({ headers: req.headers, raw_headers: req.rawHeaders, text, payload: JSON.parse(text) as Payload })
    if (behaviour === null) res.writeHead(204).end()
    else behaviour(res)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/gate`,
    port,
    asked,
    answer(how) {
      behaviour = how
    },
    think() {
      const waiting = new Set<ServerResponse>()
      behaviour = (res) => {
        waiting.add(res)
        res.once('close', () => waiting.delete(res))
      }
      return {
        waiting: () => waiting.size,
        ended: async () => void (await once([...waiting][0]!, 'close')),
        drop(count) {
          for (const res of [...waiting].slice(0, count)) res.destroy()
        },
        say(status) {
          behaviour = null
          for (const res of waiting) res.writeHead(status).end()
        },
      }
    },
  }
}
