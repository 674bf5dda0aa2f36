// Requests as bytes, and what is nearly one: for the test that sends them by the thousand.
import fc from 'fast-check'
import type { Platform } from '../support/platform.ts'

/** Requests as they should be; what is sent is made of them. */
export function corpusOf(
  { token, edge_url }: Platform,
  game: { player_token: string; site_host: string; lobby_id: string },
): string[] {
  const lines = (...all: string[]): string => `${all.join('\r\n')}\r\n\r\n`
  const host = 'Host: localhost'
  const withBody = (body: string, ...head: string[]): string => `${lines(...head)}${body}`
  const json = (path: string, bearer: string, body: string): string => {
    const authorization = `Authorization: Bearer ${bearer}`
    const length = `Content-Length: ${body.length}`
    return withBody(body, `POST ${path} HTTP/1.1`, host, authorization, 'Content-Type: application/json', length)
  }
  const key = '0'.repeat(32)
  const presigned = `/objects/${key}?content_length=5&expires=9999999999999&signature=${key}${key}`
  return [
    lines('GET / HTTP/1.1', host),
    lines('GET /cloud/bootstrap HTTP/1.1', host, 'Accept: application/json', 'Connection: keep-alive'),
    lines('GET /cloud/games HTTP/1.1', host, `Authorization: Bearer ${token}`),
    lines('HEAD /docs/api HTTP/1.1', host, 'If-None-Match: "x"', 'Accept-Encoding: br;q=1, gzip;q=0'),
    lines(
      'OPTIONS /matchmaker/lobbies/find HTTP/1.1',
      host,
      `Origin: ${edge_url}`,
      'Access-Control-Request-Method: POST',
    ),
    json('/cloud/groups/validate', token, '{"display_name":"a"}'),
    json('/matchmaker/lobbies/find', game.player_token, '{"game_modes":["nothing"],"tags":{"a":"b"}}'),
    withBody(
      '14\r\n{"display_name":"a"}\r\n0\r\nX: y\r\n\r\n',
      'POST /cloud/groups/validate HTTP/1.1',
      host,
      `Authorization: Bearer ${token}`,
      'Content-Type: application/json',
      'Transfer-Encoding: chunked',
    ),
    withBody('hello', `PUT ${presigned} HTTP/1.1`, host, 'Content-Length: 5', 'Expect: 100-continue'),
    lines('GET /index.html HTTP/1.1', `Host: ${game.site_host}`, 'Range: bytes=0-1', 'Cookie: a=b; c=d'),
    lines(
      `GET /lobbies/${game.lobby_id}/game/?a=%20 HTTP/1.1`,
      host,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      'Sec-WebSocket-Version: 13',
    ),
    lines(
      'GET http://localhost/cloud/bootstrap HTTP/1.1',
      host,
      'X-Forwarded-For: 6.6.6.6',
      'X-Forwarded-Proto: https',
    ),
  ]
}

/** What has been some parser's downfall. */
const PIECES = [
  '\r\n',
  '\n',
  '\r',
  '\0',
  ' ',
  '\t',
  ':',
  ',',
  ';',
  '%',
  '%00',
  '%ff',
  '%2e%2e/',
  '..',
  '//',
  '\\',
  '?',
  '#',
  '[',
  ']',
  '\r\n\r\n',
  '0\r\n\r\n',
  'ffffffffffffffff\r\n',
  '-1',
  '+1',
  '1e9',
  '18446744073709551616',
  '\xff',
  '\x80\x81',
  '\u{7f}',
  'Content-Length: 0\r\n',
  'Content-Length: 999999999999\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Transfer-Encoding: gzip\r\n',
  'Host: x\r\n',
  'Host:\r\n',
  'Connection: close\r\n',
  'Connection: upgrade\r\n',
  'Upgrade: h2c\r\n',
  'Expect: 100-continue\r\n',
  'HTTP/1.1',
  'HTTP/0.9',
  'HTTP/2.0',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'CONNECT a:1 HTTP/1.1\r\n\r\n',
  '\x16\x03\x01\x02\x00\x01\x00',
  'PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n',
  '{"a":',
  '[[[[[[',
  'x'.repeat(20_000),
  'X: y\r\n'.repeat(200),
  '/'.repeat(5_000),
]

type Change = (bytes: string, other: string) => string

const change: fc.Arbitrary<Change> = fc.oneof(
  fc.tuple(fc.nat(), fc.nat(7)).map(
    ([at, bit]): Change =>
      (bytes) => {
        const place = at % bytes.length
        return (
          bytes.slice(0, place) + String.fromCharCode(bytes.charCodeAt(place) ^ (1 << bit)) + bytes.slice(place + 1)
        )
      },
  ),
  fc.tuple(fc.nat(), fc.constantFrom(...PIECES)).map(
    ([at, piece]): Change =>
      (bytes) => {
        const place = at % (bytes.length + 1)
        return bytes.slice(0, place) + piece + bytes.slice(place)
      },
  ),
  fc.tuple(fc.nat(), fc.nat(40)).map(
    ([at, length]): Change =>
      (bytes) => {
        const place = at % bytes.length
        return bytes.slice(0, place) + bytes.slice(place + length)
      },
  ),
  fc.tuple(fc.nat(), fc.nat(60)).map(
    ([at, length]): Change =>
      (bytes) => {
        const place = at % bytes.length
        return bytes.slice(0, place + length) + bytes.slice(place)
      },
  ),
  fc.nat().map(
    (at): Change =>
      (bytes) =>
        bytes.slice(0, at % bytes.length),
  ),
  fc.nat().map(
    (at): Change =>
      (bytes, other) =>
        bytes.slice(0, at % bytes.length) + other,
  ),
  fc.constant<Change>((bytes, other) => bytes + other),
  // At the beginning of a line, where headers are.
  fc.tuple(fc.nat(9), fc.constantFrom(...PIECES)).map(
    ([line, piece]): Change =>
      (bytes) =>
        bytes.split('\r\n').toSpliced(line, 0, piece.trimEnd()).join('\r\n'),
  ),
)

/** Requests with some bytes changed, moved, repeated, cut off or put into each other. */
export function nearlyRequests(requests: readonly string[]): fc.Arbitrary<string> {
  const one = fc.constantFrom(...requests)
  return fc
    .tuple(one, one, fc.array(change, { minLength: 1, maxLength: 4 }))
    .map(([bytes, other, changes]) => changes.reduce((sum, next) => next(sum === '' ? other : sum, other), bytes))
}
