// What a hostile backend sends instead of a response, and to which request.
import fc from 'fast-check'

export type Hostile = {
  method: 'GET' | 'HEAD' | 'POST'
  version: '1.0' | '1.1'
  /** By the lobby's own host, or by the path route of the main domain. */
  route: 'host' | 'path'
  bytes: string
  /** The lengths of the first writes; the rest is one write. */
  pieces: number[]
  /** What the backend does with its connection then. */
  end: 'keep' | 'finish' | 'reset'
}

const PIECES_MAX = 5
const STOLEN = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen'

function mostly<T>(right: fc.Arbitrary<T>, odd: readonly NoInfer<T>[], weight = 12): fc.Arbitrary<T> {
  return fc.oneof({ weight, arbitrary: right }, { weight: 1, arbitrary: fc.constantFrom(...odd) })
}

const bytesOf = (maxLength: number): fc.Arbitrary<string> =>
  fc.uint8Array({ maxLength }).map((all) => Buffer.from(all).toString('latin1'))

const statusLine = mostly<string>(
  fc.constantFrom('HTTP/1.1 200 OK', 'HTTP/1.1 404 Not Found', 'HTTP/1.1 204 No Content', 'HTTP/1.1 304 Not Modified'),
  [
    ...[
      'HTTP/1.0 200 OK',
      'HTTP/1.1 200',
      'HTTP/1.1 200 ',
      'HTTP/1.1 200 \xe9',
      'HTTP/1.1 999 X',
      'HTTP/1.1 205 Reset',
      'HTTP/1.1 206 Part',
    ],
    ...[
      'HTTP/1.1 000 X',
      'HTTP/1.1 099 X',
      'HTTP/1.1 2000 X',
      'HTTP/1.1 20 X',
      'HTTP/1.1  200 OK',
      'HTTP/1.1 200OK',
      'HTTP/1.1 2x0 OK',
    ],
    ...[
      'HTTP/1.2 200 OK',
      'HTTP/2.0 200 OK',
      'http/1.1 200 OK',
      'HTTP 200 OK',
      'HTTP/1.1 200 O\0K',
      'HTTP/1.1 200 O\rK',
      ' HTTP/1.1 200 OK',
    ],
    ...[
      'HTTP/1.1 101 Switching Protocols',
      'HTTP/1.1 100 Continue',
      'SSH-2.0-OpenSSH',
      '',
      '\0',
      'HTTP/1.1 +200 OK',
      'ICY 200 OK',
    ],
  ],
)
const LINES = [
  ...[
    'Set-Cookie: a=b',
    'Refresh: 0; url=/',
    'Alt-Svc: clear',
    'x-ray-id: forged',
    'x-muster-kept: forged',
    'Connection: close',
    'Date: x',
  ],
  ...[
    'Connection: keep-alive',
    'Connection: close, keep-alive',
    'Keep-Alive: timeout=9',
    'Trailer: X',
    'Upgrade: websocket',
    'X: \xe9',
    'X:',
  ],
  ...[
    'X : y',
    'X: a\r\n b',
    'X: a\rb',
    'X: a\nb',
    'X: a\0b',
    ': x',
    'X',
    '\xe9: x',
    `X: ${'x'.repeat(20_000)}`,
    'Content_Length: 3',
  ],
  ...[
    'Connection: content-length',
    'Connection: transfer-encoding',
    'Content-Type: text/html',
    'ETag: "a"',
    'TE: trailers',
  ],
]
const FRAMINGS = [
  ...[
    '0',
    '2',
    '02',
    '+2',
    '-1',
    '\t2',
    '2\t',
    '2 ',
    '2, 2',
    '0x2',
    '',
    '2.0',
    '18446744073709551618',
    '9'.repeat(40),
  ].map((value) => `Content-Length: ${value}`),
  ...[
    'chunked',
    'Chunked',
    'gzip, chunked',
    'chunked, chunked',
    'identity',
    '\tchunked',
    'chunked\x0b',
    'xchunked',
    '',
  ].map((value) => `Transfer-Encoding: ${value}`),
  ...[
    'Content-Length : 2',
    'Transfer-Encoding : chunked',
    ' Content-Length: 2',
    'Content-Length:\r\n 2',
    'Content-Length\0: 2',
  ],
]
const lines = fc.array(
  fc.oneof({ weight: 4, arbitrary: fc.constant('X-Plain: yes') }, { weight: 2, arbitrary: fc.constantFrom(...LINES) }),
  { maxLength: 4 },
)
const body = fc.oneof(
  { weight: 6, arbitrary: bytesOf(40) },
  { weight: 2, arbitrary: fc.constantFrom(STOLEN, '0\r\n\r\n', '\r\n\r\n', '') },
  { weight: 1, arbitrary: bytesOf(1_000).map((bytes) => bytes.repeat(70)) },
)
const chunk = fc
  .tuple(
    body.filter((bytes) => bytes !== ''),
    mostly<string>(fc.constantFrom('', ';a=b', ';a="b"'), [
      ';a\nb',
      ';a\0b',
      ' ',
      '\t',
      'x',
      '_0',
      `;${'a'.repeat(1_100)}`,
    ]),
    mostly<string>(fc.constant('\r\n'), ['\n', '\r', '', 'x\r\n'], 30),
  )
  .map(([bytes, extension, end]) => `${bytes.length.toString(16)}${extension}\r\n${bytes}${end}`)
const lastChunk = mostly<string>(fc.constantFrom('0\r\n\r\n', '0\r\nX-After: 1\r\n\r\n', '00\r\n\r\n'), [
  ...[
    '',
    '0',
    '0\r\n',
    '0\n\n',
    '0\r\nContent-Length: 3\r\n\r\n',
    '0\r\nX: a\r\n b\r\n\r\n',
    '-0\r\n\r\n',
    'zz\r\n\r\n',
  ],
])

type Framed = { lines: string[]; bytes: string }
const framed: fc.Arbitrary<Framed> = fc.oneof(
  { weight: 6, arbitrary: body.map((bytes) => ({ lines: [`Content-Length: ${bytes.length}`], bytes })) },
  {
    weight: 6,
    arbitrary: fc
      .tuple(fc.array(chunk, { maxLength: 3 }), lastChunk)
      .map(([chunks, last]) => ({ lines: ['Transfer-Encoding: chunked'], bytes: `${chunks.join('')}${last}` })),
  },
  { weight: 2, arbitrary: body.map((bytes) => ({ lines: [], bytes })) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.subarray(FRAMINGS, { minLength: 1, maxLength: 2 }), fc.oneof(body, lastChunk))
      .map(([lines, bytes]) => ({ lines, bytes })),
  },
)
const interim = mostly<string>(fc.constant(''), [
  ...[
    'HTTP/1.1 100 Continue\r\n\r\n',
    'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n',
    'HTTP/1.1 102 X\r\nContent-Length: 3\r\n\r\n',
  ],
  'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(17),
])
const response = fc
  .record({ interim, statusLine, lines, framed, after: mostly<string>(fc.constant(''), [STOLEN, '\r\n', 'x']) })
  .map(
    ({ interim, statusLine, lines, framed, after }) =>
      `${interim}${[statusLine, ...lines, ...framed.lines].join('\r\n')}\r\n\r\n${framed.bytes}${after}`,
  )

type Change = { at: number; removed: number; inserted: string }
const change: fc.Arbitrary<Change> = fc.record({
  at: fc.nat(),
  removed: fc.constantFrom(0, 0, 1, 2, 10),
  inserted: fc.oneof(
    fc.constantFrom('\r', '\n', '\r\n', '\0', ' ', ':', '0', '\r\n\r\n', STOLEN, 'Content-Length: 3\r\n'),
    bytesOf(3),
  ),
})

export const hostileResponses: fc.Arbitrary<Hostile> = fc
  .record({
    method: mostly<Hostile['method']>(fc.constant('GET'), ['HEAD', 'POST'], 4),
    version: mostly<Hostile['version']>(fc.constant('1.1'), ['1.0'], 4),
    route: fc.constantFrom<Hostile['route'][]>('host', 'path'),
    response,
    changes: fc.oneof(
      { weight: 5, arbitrary: fc.constant<Change[]>([]) },
      { weight: 3, arbitrary: fc.array(change, { minLength: 1, maxLength: 3 }) },
    ),
    cut: mostly<number>(fc.constant(0), [1, 2, 5, 20]),
    pieces: fc.array(fc.integer({ min: 1, max: 300 }), { maxLength: PIECES_MAX }),
    end: fc.constantFrom<Hostile['end'][]>('keep', 'finish', 'reset'),
  })
  .map(({ response, changes, cut, ...rest }) => {
    const bytes = changes.reduce((all, { at, removed, inserted }) => {
      const place = at % (all.length + 1)
      return `${all.slice(0, place)}${inserted}${all.slice(place + removed)}`
    }, response)
    return { ...rest, bytes: bytes.slice(0, Math.max(1, bytes.length - cut)) }
  })
