// Streams of bytes that are requests, or nearly: a grammar in which every part has a right form and several wrong ones,
// and changes to single bytes on top. `HOST` stands for the host of the parser that reads the stream.
import fc from 'fast-check'

export type Stream = {
  bytes: string
  /** The lengths of the first writes; the rest is one write. */
  pieces: number[]
}

const PIECES_MAX = 6
const REQUESTS_MAX = 4
const HIDDEN = 'GET /hidden HTTP/1.1\r\nHost: HOST\r\n\r\n'

/** `right` most of the time, so that a stream of several parts is often taken as far as its odd one. */
function mostly<T>(right: fc.Arbitrary<T>, odd: readonly T[], weight = 12): fc.Arbitrary<T> {
  return fc.oneof({ weight, arbitrary: right }, { weight: 1, arbitrary: fc.constantFrom(...odd) })
}

const bytesOf = (maxLength: number): fc.Arbitrary<string> =>
  fc.uint8Array({ maxLength }).map((all) => Buffer.from(all).toString('latin1'))

const lineEnd = mostly(
  fc.constant('\r\n'),
  ['\n', '\r', '\r\r\n', '\n\r', ' \r\n', '\t\r\n', '\0\r\n', '\r\n\r\n'],
  200,
)

const method = mostly(fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'PATCH', 'OPTIONS'), [
  ...[
    'TRACE',
    'CONNECT',
    'get',
    'PRI',
    'M-SEARCH',
    'PURGE',
    'QUERY',
    'G3T',
    'GETT',
    '',
    ' GET',
    '\tGET',
    'GE T',
    'G\0T',
  ],
])
const target = mostly(
  fc.nat(99).map((number) => `/${number}`),
  [
    ...[
      '*',
      '/',
      '//',
      '//x',
      '/a b',
      '/a\tb',
      '/a#b',
      '/%',
      '/%00',
      '/%0d%0aX: y',
      '/..',
      '/a/../../b',
      '/a;b?c=d&e',
      'a',
      '',
    ],
    ...[
      'http://HOST/a',
      'https://HOST?b',
      'HTTP://host/a',
      'http://other/a',
      'HOST:80',
      '/\xe9',
      '/\x7f',
      '/"<>\\^`{|}',
      '?a',
    ],
  ],
)
const version = mostly(fc.constant('HTTP/1.1'), [
  ...['HTTP/1.0', 'HTTP/1.0', 'HTTP/1.2', 'HTTP/0.9', 'HTTP/2.0', 'HTTP/1.01', 'HTTP/1', 'http/1.1', 'HTTP /1.1', ''],
  ...['HTTP/1.1 ', ' HTTP/1.1', 'HTTP/1.1\t', 'HTTPS/1.1', 'ICY/1.1', 'HTTP/1,1', 'HTTP/+1.1'],
])
const host = mostly(fc.constant('Host: HOST'), [
  ...[
    '',
    'Host: other',
    'Host:',
    'Host: HOST\r\nHost: HOST',
    'Host: HOST\r\nHost: other',
    'Host : HOST',
    'host:HOST\t',
  ],
  ...[
    'Host: HOST, other',
    'Host: HOST:80',
    'Host: a@HOST',
    'Host: HOST/x',
    'Host: \xe9',
    'Host:\t HOST',
    ' Host: HOST',
  ],
])

const LENGTHS = [
  '0',
  '1',
  '5',
  '05',
  '+5',
  '-1',
  '5 ',
  '\t5',
  '5\t',
  '5, 5',
  '5,5',
  '0x5',
  '5.0',
  '5e0',
  '',
  '5;',
  "'5'",
]
const HUGE = [
  '2147483648',
  '4294967297',
  '9007199254740993',
  '18446744073709551616',
  '18446744073709551621',
  '9'.repeat(40),
]
const CODINGS = [
  ...[
    'chunked',
    'Chunked',
    ' chunked',
    'chunked ',
    '\tchunked',
    'chunked\t',
    '\x0bchunked',
    'chunked\x0c',
    '"chunked"',
  ],
  ...[
    'chunked, chunked',
    'gzip, chunked',
    'chunked, gzip',
    'identity',
    'identity, chunked',
    'chunked;q=1',
    'xchunked',
    '',
  ],
  ...[', chunked', 'chunked,', 'chu\0nked', 'chunke', 'CHUNKED, identity'],
]
const FRAMING_NAMES = [
  ...[
    'Content-Length',
    'content-length',
    'Content_Length',
    'Content-Length ',
    ' Content-Length',
    'Content-Length\t',
    'Content-Length\0',
  ],
  ...[
    'Transfer-Encoding',
    'transfer-encoding',
    'Transfer_Encoding',
    'Transfer-Encoding ',
    'Transfer-Encoding\x0b',
    'TE',
  ],
]
const FRAMING_LINES = [
  ...LENGTHS.map((value) => `Content-Length: ${value}`),
  ...HUGE.map((value) => `Content-Length: ${value}`),
  ...CODINGS.map((value) => `Transfer-Encoding: ${value}`),
  ...FRAMING_NAMES.flatMap((name) => [`${name}: 5`, `${name}: chunked`]),
  ...['Content-Length:5', 'Content-Length:\r\n 5', 'Transfer-Encoding:\r\n chunked', 'Transfer-Encoding: chun\r\n ked'],
]
const OTHER_LINES = [
  ...[
    'Connection: close',
    'Connection: keep-alive',
    'Connection: close, keep-alive',
    'Connection: Host, Content-Length',
  ],
  ...[
    'Connection: transfer-encoding',
    'Connection: upgrade',
    'Keep-Alive: timeout=1',
    'Proxy-Connection: close',
    'TE: trailers',
  ],
  ...[
    'Expect: 100-continue',
    'Expect: 200-maybe',
    'Expect:',
    'Upgrade: h2c',
    'Upgrade: websocket',
    'HTTP2-Settings: AAMAAABk',
  ],
  ...[
    'Connection: Upgrade\r\nUpgrade: websocket',
    'Trailer: X-After',
    'X-Forwarded-For: 6.6.6.6',
    'X_Forwarded_For: 6.6.6.6',
  ],
  ...[
    'X: a\r\n b',
    'X: a\r\n\tContent-Length: 9',
    'X: a\rContent-Length: 9',
    'X: a\nContent-Length: 9',
    'X: a\0b',
    'X:',
    ':',
    ': x',
  ],
  ...[
    'X',
    'X y',
    'X-Muster-Edge: forged',
    'x-ray-id: forged',
    'X : y',
    '\xe9: y',
    'X: \xe9',
    'X\t: y',
    'a:b:c',
    `X: ${'x'.repeat(9_000)}`,
  ],
]
const plainLine = fc
  .tuple(
    fc.stringMatching(/^[A-Za-z][A-Za-z0-9-]{0,9}$/),
    fc.stringMatching(/^[\x21-\x7e]?([\x20-\x7e\t]{0,12}[\x21-\x7e])?$/),
  )
  // A name of the grammar's own has its own place.
  .map(([name, value]) => `X-${name}: ${value}`)
const line = fc.oneof(
  { weight: 12, arbitrary: plainLine },
  { weight: 2, arbitrary: fc.constantFrom(...OTHER_LINES) },
  { weight: 1, arbitrary: fc.constantFrom(...FRAMING_LINES) },
)
const lines: fc.Arbitrary<string[]> = fc.oneof(
  { weight: 30, arbitrary: fc.array(line, { maxLength: 4 }) },
  { weight: 1, arbitrary: fc.nat(130).map((count) => Array<string>(count).fill('X: y')) },
)

const body = fc.oneof(
  { weight: 8, arbitrary: bytesOf(40) },
  { weight: 3, arbitrary: fc.constantFrom(HIDDEN, `0\r\n\r\n${HIDDEN}`, '\r\n\r\n', '0\r\n\r\n', 'abcde') },
  { weight: 1, arbitrary: bytesOf(1_000).map((bytes) => bytes.repeat(70)) },
)

/** The line of a chunk, and its bytes. */
const chunk = fc
  .tuple(
    body.filter((bytes) => bytes !== ''),
    mostly(fc.constantFrom('hex', 'HEX', 'zeros', 'extension'), [
      ...[
        'quoted',
        'space',
        'tab',
        'LF',
        'CR',
        'minus',
        'plus',
        'prefix',
        'underscore',
        'short',
        'long',
        'huge',
        'none',
      ],
      ...['extension LF', 'extension NUL', 'data LF', 'data end', 'semicolon', 'long extension'],
    ]),
  )
  .map(([bytes, form]) => chunkOf(bytes, form))

function chunkOf(bytes: string, form: string): string {
  const size = bytes.length.toString(16)
  const sizes: Record<string, string> = {
    ...{
      HEX: size.toUpperCase(),
      zeros: `000${size}`,
      extension: `${size};a=b`,
      quoted: `${size};a="b\r\n"`,
      space: `${size} `,
    },
    ...{
      tab: `\t${size}`,
      minus: `-${size}`,
      plus: `+${size}`,
      prefix: `0x${size}`,
      underscore: `${size}_0`,
      none: '',
    },
    ...{
      short: (bytes.length - 1).toString(16),
      long: (bytes.length + 1).toString(16),
      huge: `1000000000000000${size}`,
    },
    ...{ 'extension LF': `${size};a\nb`, 'extension NUL': `${size};a\0b`, semicolon: `${size};`, CR: `${size}\r` },
    ...{ 'long extension': `${size};${'a'.repeat(1_100)}` },
  }
  const end = form === 'LF' || form === 'data LF' ? '\n' : '\r\n'
  return `${sizes[form] ?? size}${form === 'LF' ? '\n' : '\r\n'}${bytes}${form === 'data end' ? '' : end}`
}

const lastChunk = mostly(fc.constantFrom('0\r\n\r\n', '0\r\nX-After: 1\r\n\r\n', '000\r\n\r\n', '0;a=b\r\n\r\n'), [
  ...[
    '',
    '0',
    '0\r\n',
    '0\n\n',
    '0\r\n\n',
    '0\r\nContent-Length: 5\r\n\r\n',
    '0\r\nX: a\r\n b\r\n\r\n',
    '0\r\nnonsense\r\n\r\n',
    '-0\r\n\r\n',
  ],
  ...['0\r\nHost: other\r\n\r\n', '0\r\nX\0: y\r\n\r\n', '00000000000000000000\r\n\r\n', '0x0\r\n\r\n', '0 \r\n\r\n'],
])

type Framed = { lines: string[]; bytes: string }
const framed: fc.Arbitrary<Framed> = fc.oneof(
  { weight: 8, arbitrary: fc.constant<Framed>({ lines: [], bytes: '' }) },
  { weight: 8, arbitrary: body.map((bytes) => ({ lines: [`Content-Length: ${bytes.length}`], bytes })) },
  {
    weight: 8,
    arbitrary: fc.tuple(fc.array(chunk, { maxLength: 3 }), lastChunk).map(([chunks, last]) => ({
      lines: ['Transfer-Encoding: chunked'],
      bytes: `${chunks.join('')}${last}`,
    })),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.subarray(FRAMING_LINES, { minLength: 1, maxLength: 2 }), fc.oneof(body, chunk, lastChunk))
      .map(([lines, bytes]) => ({ lines, bytes })),
  },
)

const request = fc
  .record({
    before: mostly(fc.constant(''), ['\r\n', '\r\n\r\n', '\n', ' ', '\0']),
    method,
    target,
    version,
    host,
    lines,
    framed,
    lineEnd,
  })
  .map(({ before, method, target, version, host, lines, framed, lineEnd }) => {
    const head = [`${method} ${target} ${version}`, ...(host === '' ? [] : [host]), ...lines, ...framed.lines]
    // One end of a line may be another than the others.
    const odd = head.length % 3
    return `${before}${head.map((text, index) => `${text}${index === odd ? lineEnd : '\r\n'}`).join('')}\r\n${framed.bytes}`
  })

const NASTY = [
  ...[
    '\r',
    '\n',
    '\r\n',
    '\0',
    ' ',
    '\t',
    ':',
    ';',
    '0',
    '-',
    ',',
    '\x0b',
    '\x7f',
    '\x85',
    '\xff',
    '\r\n\r\n',
    '\r\n ',
    '0\r\n\r\n',
    HIDDEN,
  ],
  ...[
    'Content-Length: 5\r\n',
    'Transfer-Encoding: chunked\r\n',
    'Connection: close\r\n',
    'Expect: 100-continue\r\n',
    ' HTTP/1.1\r\n',
  ],
]
type Change = { at: number; removed: number; inserted: string }
const change: fc.Arbitrary<Change> = fc.record({
  at: fc.nat(),
  removed: fc.constantFrom(0, 0, 1, 2, 10),
  inserted: fc.oneof(fc.constantFrom(...NASTY), fc.constant(''), bytesOf(3)),
})
const changes = fc.oneof(
  { weight: 5, arbitrary: fc.constant<Change[]>([]) },
  { weight: 3, arbitrary: fc.array(change, { minLength: 1, maxLength: 3 }) },
)

export const streams: fc.Arbitrary<Stream> = fc
  .record({
    requests: fc.array(request, { minLength: 1, maxLength: REQUESTS_MAX }),
    changes,
    /** An early end. */
    cut: mostly(fc.constant(0), [1, 2, 3, 5, 20, 100]),
    pieces: fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: PIECES_MAX }),
  })
  .map(({ requests, changes, cut, pieces }) => {
    const bytes = changes.reduce((all, { at, removed, inserted }) => {
      const place = at % (all.length + 1)
      return `${all.slice(0, place)}${inserted}${all.slice(place + removed)}`
    }, requests.join(''))
    return { bytes: bytes.slice(0, Math.max(1, bytes.length - cut)), pieces }
  })
