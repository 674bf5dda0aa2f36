// Bad input over bare HTTP, on every operation of the contract: each is refused with its code and its path, in the five
// members that every refusal has, and changes nothing.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { ERROR_CODES, type ErrorCode, type ErrorDetail, type Operation } from '@musterhost/contract'
import { OPERATIONS } from '@musterhost/contract/operations'
import { type Answer, ask, bearer, JSON_TYPE, requireRefusal } from './ask.ts'
import { changesNothing, detailsOf, promise, promises, refusedAs, send, startWorld, world } from './bad-input.ts'
import { addressOf, askFor, callOf, hasBody, rightTokenOf } from './calls.ts'

const WITH_BODY = OPERATIONS.filter(hasBody)
const SMALL_BODY_BYTES = 64 * 1024
const API_BODY_BYTES = 4 * 1024 * 1024

const isForAnyone = ({ auth }: Operation): boolean => auth.includes('anyone')
const isAnyJson = ({ body }: Operation): boolean => !('type' in body)
const isMatchmaker = ({ service }: Operation): boolean => service === 'matchmaker'
const isId = (schema: object): boolean => 'format' in schema && schema.format === 'uuid'
const membersOf = ({ body }: Operation): Record<string, { type?: string }> =>
  'properties' in body ? (body.properties as Record<string, { type?: string }>) : {}
const requiredOf = ({ body }: Operation): readonly string[] =>
  'required' in body ? (body.required as readonly string[]) : []

promise('a body that is not JSON in UTF-8 is refused', async () => {
  const bodies = [
    '{',
    'nope',
    '{"a":1}{"b":2}',
    "{'a':1}",
    '[1,]',
    '{"a":1,}',
    'NaN',
    '-',
    '"',
    '/**/{}',
    '\ufeff\ufeff{}',
    '{\ufeff}',
    ' ',
  ]
  const bytes = [
    Buffer.from([0xff, 0xfe]),
    Buffer.from('{"display_name":"\xff"}', 'latin1'),
    Buffer.from([0x22, 0xc0, 0x80, 0x22]),
  ]
  const surrogate = Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])
  const bomb = '['.repeat(30_000)
  await changesNothing(async () => {
    for (const operation of WITH_BODY) {
      for (const body of [...bodies, ...bytes, surrogate, bomb]) {
        await refusedAs(operation, ['API_BAD_BODY'], String(body), send(operation, body))
      }
    }
  })
})

promise(
  'JSON is taken as any type where a credential counts, and nowhere else; no type gets around the contract',
  async () => {
    const types = [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/vnd.x+json',
      'application/jsonp',
      'application/json+x',
      'json',
      '',
      ';',
      'application/json,text/plain',
    ]
    const spellings = [
      'application/json\t;',
      'Application/JSON ; charset',
      'application/json;',
      'application/json; charset=latin1',
      'application/json ;x="',
      ' application/json',
      'application/json\t',
    ]
    await changesNothing(async () => {
      for (const operation of WITH_BODY) {
        const token = rightTokenOf(world(), operation)
        const headers = token === null ? {} : bearer(token)
        for (const type of types) {
          const sent = { headers: { ...headers, 'content-type': type } }
          const code = isForAnyone(operation) ? 'API_UNSUPPORTED_MEDIA_TYPE' : 'VALIDATION_ERROR'
          await refusedAs(operation, [code], type, send(operation, '{"a":"\\u0000"}', sent))
          if (type === '') continue
          const refusal = await refusedAs(operation, ['API_UNSUPPORTED_MEDIA_TYPE'], type, send(operation, 'a=b', sent))
          assert.ok(refusal.message.includes(` as ${type}. `), refusal.message)
        }
        // Refused by every schema, whichever way it is read.
        for (const type of [...spellings, ['text/plain', 'application/json'], ['application/json', 'text/plain']]) {
          const answer = send(operation, '{"a":"\\u0000"}', { headers: { ...headers, 'content-type': type } })
          await refusedAs(operation, ['VALIDATION_ERROR', 'API_UNSUPPORTED_MEDIA_TYPE'], String(type), answer)
        }
        const bare = await ask(addressOf(world(), operation, callOf(world(), operation)), {
          method: operation.method,
          headers,
          body: '{"a":"\\u0000"}',
        })
        requireRefusal(bare, isForAnyone(operation) ? 'API_UNSUPPORTED_MEDIA_TYPE' : 'VALIDATION_ERROR')
        const packed = { headers: { ...headers, ...JSON_TYPE, 'content-encoding': 'gzip' } }
        const compressed = send(operation, gzipSync('{"a":"\\u0000"}'), packed)
        await refusedAs(operation, ['API_UNSUPPORTED_MEDIA_TYPE'], 'gzip', compressed)
        const marked = send(operation, '\ufeff{"a":"\\u0000"}')
        await refusedAs(operation, ['VALIDATION_ERROR'], 'a byte order mark', marked)
      }
    })
  },
)

promise('JSON of an engine makes what it asks for, and a form learns what the engine needs', async () => {
  const { game } = world()
  const operation = OPERATIONS.find(({ id }) => id === 'games.validateGame')!
  const name = `n${game.game_id.slice(0, 8)}`
  const body = JSON.stringify({ display_name: name, name_id: name })
  const authorization = bearer(rightTokenOf(world(), operation)!)
  const types: Record<string, string>[] = [
    {},
    { 'content-type': 'application/x-www-form-urlencoded' },
    { 'content-type': 'json' },
  ]
  for (const type of types) {
    for (const sent of [body, `\ufeff${body}`]) {
      const headers = { ...authorization, ...type, 'content-encoding': 'identity' }
      const answer = await ask(addressOf(world(), operation, callOf(world(), operation)), {
        ...{ method: operation.method, headers, body: sent },
      })
      assert.equal(answer.status, 200, answer.text)
    }
  }
  const remedies = [
    ['application/x-www-form-urlencoded', /UnityWebRequest\.Post\(url, json, "application\/json"\)/],
    ['Multipart/Form-Data; boundary=x', /WWWForm/],
    ['application/octet-stream', /uploadHandler\.contentType/],
  ] as const
  for (const [type, remedy] of remedies) {
    const answer = await send(operation, 'name_id=a', { headers: { ...authorization, 'content-type': type } })
    const { message, metadata } = requireRefusal(answer, 'API_UNSUPPORTED_MEDIA_TYPE')
    assert.match(message, remedy)
    assert.deepEqual(metadata, { content_type: type })
  }
  for (const coding of ['gzip', 'br', 'identity, gzip', 'x']) {
    const answer = await send(operation, body, { headers: { ...authorization, 'content-encoding': coding } })
    const { message } = requireRefusal(answer, 'API_UNSUPPORTED_MEDIA_TYPE')
    assert.ok(message.includes(`Content-Encoding ${coding}. `), message)
  }
  const login = OPERATIONS.find(({ id }) => id === 'auth.tokens.refreshIdentityToken')!
  const bare = await ask(addressOf(world(), login, {}), { method: login.method, body: '{}' })
  assert.match(requireRefusal(bare, 'API_UNSUPPORTED_MEDIA_TYPE').message, /without a Content-Type.*Godot/)
  const broken = await send(operation, '{"a":', { headers: { ...authorization, 'content-type': 'text/plain' } })
  assert.match(requireRefusal(broken, 'API_BAD_BODY').message, /not valid JSON/)
})

promise('NUL, half a surrogate pair, __proto__ and endless nesting are refused wherever they are', async () => {
  const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
  const bodies: [string, Pick<ErrorDetail, 'path' | 'reason'>][] = [
    ['{"a":"\\u0000"}', { path: ['a'], reason: 'invalid' }],
    ['{"a":{"b":["x","\\ud800"]}}', { path: ['a', 'b', '1'], reason: 'invalid' }],
    ['{"a":"\\udc00\\ud800"}', { path: ['a'], reason: 'invalid' }],
    ['{"a":{"\\u0000":1}}', { path: ['a'], reason: 'invalid' }],
    ['{"\\udfff":1}', { path: [], reason: 'invalid' }],
    ['"\\u0000"', { path: [], reason: 'invalid' }],
    ['{"__proto__":{"admin":true}}', { path: ['__proto__'], reason: 'invalid' }],
    ['{"a":{"\\u005f_proto__":1}}', { path: ['a', '__proto__'], reason: 'invalid' }],
    [nested(65), { path: ['0', '0', '0', '0'], reason: 'too_deep' }],
    [nested(30_000), { path: ['0', '0', '0', '0'], reason: 'too_deep' }],
    [`${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`, { path: ['a', 'a', 'a', 'a'], reason: 'too_deep' }],
  ]
  await changesNothing(async () => {
    for (const operation of WITH_BODY) {
      for (const [body, detail] of bodies) {
        const refusal = await refusedAs(operation, ['VALIDATION_ERROR'], body, send(operation, body))
        assert.deepEqual(detailsOf(refusal), [detail], operation.id)
      }
    }
  })
})

promise('a member that is unknown, missing or of the wrong type is named by its path', async () => {
  await changesNothing(async () => {
    for (const operation of WITH_BODY) {
      if (isAnyJson(operation)) continue
      const { body: good = {} } = callOf(world(), operation) as { body?: Record<string, unknown> }
      const refuse = async (body: unknown) =>
        detailsOf(
          await refusedAs(operation, ['VALIDATION_ERROR'], JSON.stringify(body), send(operation, JSON.stringify(body))),
        )

      assert.deepEqual(await refuse({ ...good, no_such_member: 1 }), [{ path: ['no_such_member'], reason: 'unknown' }])
      for (const name of ['game_id', 'complete', 'create_ts', 'is_admin', 'constructor', 'a/b~c']) {
        if (name in membersOf(operation)) continue
        assert.deepEqual(await refuse({ ...good, [name]: 'x' }), [{ path: [name], reason: 'unknown' }])
      }
      for (const name of requiredOf(operation)) {
        const { [name]: _, ...rest } = good
        assert.deepEqual(await refuse(rest), [{ path: [name], reason: 'required' }], operation.id)
      }
      for (const [name, schema] of Object.entries(membersOf(operation))) {
        // A member of any type is checked by its own operation.
        if (!('type' in schema) && !('enum' in schema) && !('const' in schema)) continue
        // A null for an optional member is as if it were absent.
        const nulls = requiredOf(operation).includes(name) ? [null] : []
        for (const wrong of [...nulls, ...wrongTypes(schema.type)]) {
          const details = await refuse({ ...good, [name]: wrong })
          assert.ok(
            details.every(({ path }) => path[0] === name || operation.document === name),
            `${operation.id} ${name}: ${JSON.stringify(details)}`,
          )
          assert.ok(
            details.some(({ reason }) => ['wrong_type', 'not_allowed'].includes(reason)),
            JSON.stringify(details),
          )
        }
      }
      const whole = ['[]', '"x"', '1', 'true', ...(requiredOf(operation).length > 0 ? ['null'] : [])]
      for (const body of whole) {
        const refusal = await refusedAs(operation, ['VALIDATION_ERROR'], body, send(operation, body))
        assert.deepEqual(detailsOf(refusal), [{ path: [], reason: 'wrong_type' }], operation.id)
      }
    }
  })
})

/** Values of the JSON types that a member is not of: text is no number, not even "5". */
function wrongTypes(type: string | undefined): unknown[] {
  const values: Record<string, unknown> = { string: '5', integer: 5, boolean: true, array: [], object: {} }
  const wrong = Object.entries(values).filter(([name]) => name !== type)
  return [...wrong.map(([, value]) => value), ...(type === 'integer' ? [1.5, '1', '0x1'] : [])]
}

promise('unsigned 32-bit limits are taken to the last one, and not beyond', async () => {
  const operation = OPERATIONS.find(({ id }) => id === 'games.namespaces.updateGameNamespaceMatchmakerConfig')!
  const answerTo = (value: string) => send(operation, `{"max_players_per_client_vpn":${value}}`)
  for (const value of ['0', '-0', '4294967295', '1e2', '3.0']) assert.equal((await answerTo(value)).status, 200, value)
  const refused: Record<string, string> = {
    '4294967296': 'too_high',
    '18446744073709551616': 'too_high',
    '1e400': 'too_high',
    '-1': 'too_low',
    '-4294967295': 'too_low',
    '1.5': 'wrong_type',
    '"5"': 'wrong_type',
    true: 'wrong_type',
    '[1]': 'wrong_type',
  }
  await changesNothing(async () => {
    for (const [value, reason] of Object.entries(refused)) {
      const details = detailsOf(await refusedAs(operation, ['VALIDATION_ERROR'], value, answerTo(value)))
      assert.ok(
        details.some((detail) => detail.reason === reason),
        `${value}: ${JSON.stringify(details)}`,
      )
      for (const { path } of details) assert.deepEqual(path, ['max_players_per_client_vpn'])
    }
  })
})

promise('a body that is too large is refused with an answer that can be read, whole or in chunks', async () => {
  await changesNothing(async () => {
    for (const operation of WITH_BODY) {
      // Who shows no credential makes nobody read millions of bytes.
      const is_small = isMatchmaker(operation) || operation.auth.includes('anyone')
      const bytes = is_small ? SMALL_BODY_BYTES : API_BODY_BYTES
      const body = Buffer.alloc(bytes + 1, ' ')
      await refusedAs(operation, ['API_BODY_TOO_LARGE'], 'whole', send(operation, body))
      const headers = { 'transfer-encoding': 'chunked' }
      await refusedAs(operation, ['API_BODY_TOO_LARGE'], 'chunked', send(operation, body, { headers }))
    }
  })
})

promise('a malformed id in the path is refused, and named', async () => {
  const malformed = [
    'x',
    '%20',
    '00000000-0000-0000-0000-00000000000',
    'ABCDEF00-0000-7000-8000-000000000000',
    '%7B0190163d-8694-739b-aea5-966c26f8ad91%7D',
    '0190163d-8694-739b-aea5-966c26f8ad91%0A',
    '%F0%9F%92%A9',
    '%00',
    "'%20or%201=1",
    '..%2f..',
    '__proto__',
    'x'.repeat(512),
    'x'.repeat(2_000),
  ]
  await changesNothing(async () => {
    for (const operation of OPERATIONS) {
      const token = rightTokenOf(world(), operation)
      for (const [name, schema] of Object.entries(operation.params.properties)) {
        if (!isId(schema)) continue
        for (const id of malformed) {
          const call = callOf(world(), operation)
          const path = operation.path.replace(`{${name}}`, id)
          const refusal = await refusedAs(
            operation,
            ['VALIDATION_ERROR', 'API_BAD_REQUEST'],
            id,
            askFor(world(), operation, call, token, { path }),
          )
          if (refusal.code === 'VALIDATION_ERROR') assert.deepEqual(detailsOf(refusal)[0]?.path, ['params', name])
        }
      }
    }
  })
})

promise('an unknown member of the query is refused', async () => {
  await changesNothing(async () => {
    for (const operation of OPERATIONS) {
      const good = callOf(world(), operation)
      const call = { ...good, query: { ...good.query, no_such_member: '1' } }
      const answer = askFor(world(), operation, call, rightTokenOf(world(), operation))
      const refusal = await refusedAs(operation, ['VALIDATION_ERROR'], 'query', answer)
      assert.deepEqual(detailsOf(refusal), [{ path: ['query', 'no_such_member'], reason: 'unknown' }])
    }
  })
  const list = OPERATIONS.find(({ id }) => id === 'lobbies.list')!
  for (const query of [
    'include_state=yes',
    'include_state=',
    'include_state=true&include_state=true',
    'anchor=x',
    'anchor=%00',
  ]) {
    const path = `${list.path}?${query}`
    const answer = askFor(world(), list, {}, rightTokenOf(world(), list), { path })
    const refusal = await refusedAs(list, ['VALIDATION_ERROR'], query, answer)
    assert.deepEqual(detailsOf(refusal)[0]?.path, ['query', query.split('=')[0]])
  }
})

promise('an address has one spelling: another one is no way in, and none around the credential', async () => {
  const { platform } = world()
  const spell = (path: string): string[] => {
    const [, first = '', ...rest] = path.split('/')
    const tail = rest.join('/')
    return [
      `/${path}`,
      `/${first}//${tail}`,
      `${path}/`,
      `/./${first}/${tail}`,
      `/x/../${first}/${tail}`,
      `/${first}/..%2f${first}/${tail}`,
      `/${first}%2f${tail}`,
      `/${first}%5c${tail}`,
      `${path}%00`,
      `${path}%20`,
      `${path};x=1`,
      `${path}.json`,
      path.toUpperCase(),
      `/%2e/${first}/${tail}`,
      `${path}%`,
      `${path}%zz`,
      `${path}%c0%af`,
    ]
  }
  await changesNothing(async () => {
    for (const operation of OPERATIONS) {
      // Where a path ends in a text of people's, another ending is another text.
      if (!Object.values(operation.params.properties).every(isId)) continue
      const call = callOf(world(), operation)
      const base = new URL(addressOf(world(), operation, call))
      for (const target of spell(base.pathname)) {
        for (const token of [null, rightTokenOf(world(), operation)]) {
          const answer = ask(base.origin, {
            method: operation.method,
            target,
            headers: token === null ? {} : bearer(token),
          })
          // Some lead to a neighbour whose id they are not.
          const refusals: ErrorCode[] = [
            'API_NOT_FOUND',
            'API_BAD_REQUEST',
            token === null ? 'API_UNAUTHORIZED' : 'VALIDATION_ERROR',
            ...(operation.id === 'games.namespaces.removeNamespaceDomain' ? (['CDN_DOMAIN_NOT_FOUND'] as const) : []),
          ]
          await refusedAs(operation, refusals, target, answer)
        }
      }
      // A path with a percent-encoded letter leads to the same endpoint.
      const same = base.pathname.replace(/^\/(\w)/, (_, letter: string) => `/%${letter.charCodeAt(0).toString(16)}`)
      const stranger = await ask(base.origin, { method: operation.method, target: same })
      if (!operation.auth.includes('anyone')) requireRefusal(stranger, 'API_UNAUTHORIZED', 'API_NOT_FOUND')
    }
  })
  for (const url of [platform.api_url, platform.matchmaker_url]) {
    requireRefusal(await ask(url, { target: `/${'x'.repeat(64 * 1024)}` }), 'API_HEADERS_TOO_LARGE')
  }
})

promise('only the documented method of an address answers', async () => {
  const methods = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'TRACE', 'PROPFIND', 'SEARCH']
  const documented = new Set(
    OPERATIONS.flatMap(({ method, path, aliases }) => [path, ...aliases].map((at) => `${method} ${at}`)),
  )
  await changesNothing(async () => {
    for (const operation of OPERATIONS) {
      const [call, token] = [callOf(world(), operation), rightTokenOf(world(), operation)]
      for (const path of [operation.path, ...operation.aliases]) {
        // What a browser may send it asks of operations that pages call: the matchmaker's, entries', ratings', identities'.
        const isForPages = isMatchmaker(operation) || /^\/(?:kv|ratings|identity)\//.test(path)
        for (const method of isForPages ? methods : [...methods, 'OPTIONS']) {
          if (documented.has(`${method} ${path}`)) continue
          const overriding = { 'x-http-method-override': operation.method, 'x-http-method': operation.method }
          const answer = askFor(world(), operation, call, token, { method, path, headers: overriding })
          // Or it is a neighbour's: /cloud/games/validate is no id of a game.
          await refusedAs(operation, ['API_NOT_FOUND', 'VALIDATION_ERROR'], method, answer)
        }
        const head = await askFor(world(), operation, {}, token, { method: 'HEAD', path })
        assert.equal(head.status, 404)
        assert.equal(head.text, '')
        assert.match(String(head.headers['x-ray-id']), /^[0-9a-f-]{36}$/)
      }
    }
  })
})

promise('a GET is answered without reading a body', async () => {
  for (const operation of OPERATIONS.filter(({ method }) => method === 'GET')) {
    const answer = await send(operation, '{"not":"json"')
    const [call, token] = [callOf(world(), operation), rightTokenOf(world(), operation)]
    const bare = await askFor(world(), operation, call, token)
    assert.equal(answer.status, bare.status, `${operation.id}: ${answer.text}`)
    // The game mode of the lobby has no ratings, and the platform no place for backups.
    const is_refused = /^(ratings\.getPlayers|admin\.listStoredBackups)$/.test(operation.id) && bare.status === 400
    assert.ok(bare.status === 200 || bare.status === 404 || is_refused, operation.id)
  }
})

promise('bytes that are no request are refused with the same five members, and the connection is closed', async () => {
  const { platform } = world()
  const cases: [ErrorCode, string][] = [
    ['API_BAD_REQUEST', 'NONSENSE\r\n\r\n'],
    ['API_BAD_REQUEST', 'GET / HTTP/9.9\r\nhost: x\r\n\r\n'],
    ['API_BAD_REQUEST', 'GET /a b HTTP/1.1\r\nhost: x\r\n\r\n'],
    ['API_BAD_REQUEST', 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n'],
    ['API_BAD_REQUEST', 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n'],
    ['API_BAD_REQUEST', 'GET / HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n'],
    ['API_HEADERS_TOO_LARGE', `GET / HTTP/1.1\r\nhost: x\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`],
  ]
  for (const url of [platform.api_url, platform.matchmaker_url]) {
    for (const [code, bytes] of cases) requireRefusal(await answerToBytes(url, bytes), code)
  }
})

/** What comes back until the other side closes. */
async function answerToBytes(url: string, bytes: string): Promise<Answer> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.write(bytes)
  const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n', 2)
  const [status_line = '', ...lines] = head.split('\r\n')
  const headers = Object.fromEntries(lines.map((line) => line.toLowerCase().split(': ', 2) as [string, string]))
  return { status: Number(status_line.split(' ')[1]), headers, text: body }
}

promise('every code has a page where its documentation is said to be', async () => {
  const { platform } = world()
  for (const code of ERROR_CODES) {
    const page = await ask(`${platform.api_url}/docs/errors/${code}`)
    assert.equal(page.status, 200, code)
    assert.match(page.text, new RegExp(code))
  }
  for (const code of ['NOTHING', '__proto__', 'constructor', '%3Cscript%3E']) {
    requireRefusal(await ask(`${platform.api_url}/docs/errors/${code}`), 'API_NOT_FOUND')
  }
})

promise('an address that is not there says so to every client, whatever is sent', async () => {
  const { platform } = world()
  for (const url of [platform.api_url, platform.matchmaker_url]) {
    for (const path of ['/nothing', '/matchmaker', '/cloud', '/v1/players/connected', '/__proto__', '/.env']) {
      requireRefusal(await ask(`${url}${path}`), 'API_NOT_FOUND')
      const body = { method: 'POST', body: '{', headers: { 'content-type': 'application/json' } }
      requireRefusal(await ask(`${url}${path}`, body), 'API_NOT_FOUND', 'API_BAD_BODY')
    }
  }
})

test('bad input on every operation', async (t) => {
  await startWorld(t)
  for (const [name, keep] of promises) await t.test(name, keep)
})
