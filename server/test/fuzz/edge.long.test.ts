import { test } from 'node:test'
import { examineRequests, examineResponse, fuzzEdge } from './edge/run.ts'

/** Always the same streams: a run that fails fails again. `npm run fuzz edge` takes others. */
const CAMPAIGN = { count: 10_000, seed: 1 }

test('what the edge forwards is read by everybody as the same requests, and refusals are well-formed', (t) =>
  fuzzEdge(t, CAMPAIGN))

// What was found by `npm run fuzz edge`, each as it was printed.

test('a HEAD whose body is malformed is refused without a body', (t) =>
  examineRequests(t, {
    bytes: 'HEAD /0 HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nHost: other\r\n\r\n',
    pieces: [],
  }))

test('a request that each of the others leaves for another reason is taken', (t) =>
  examineRequests(t, {
    bytes:
      'PUT /0 HTTP/1.1\r\nHost: HOST\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET /% HTTP/1.1\r\nHost: HOST\r\n\r\nGET /0 HTTP/1.1\r\nHost: HOST\r\n\r\n',
    pieces: [],
  }))

test('a response with a tab beside its length is refused on a connection of HTTP/1.0 too', (t) =>
  examineResponse(t, {
    method: 'GET',
    version: '1.0',
    route: 'host',
    bytes: 'HTTP/1.1 200 OK\r\nContent-Length:\t2\r\n\r\nok',
    pieces: [20],
    end: 'finish',
  }))
