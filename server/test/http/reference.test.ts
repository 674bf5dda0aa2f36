import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import {
  completeUpload,
  createGameCdnSite,
  ERROR_CODES,
  ERRORS,
  listGameBuilds,
  type Operation,
} from '@musterhost/contract'
import { errorsOf, openapiDocument, operationOf } from '@musterhost/contract/openapi'
import { OPERATIONS } from '@musterhost/contract/operations'
import { createShapeCheck } from '@musterhost/contract/schema-check'
import { sectionId, sectionsOf } from '@musterhost/contract/sections'
import { readGuides } from '../../src/http/guides/files.ts'
import { curlOf, responseExample } from '../../src/http/reference/example.ts'
import type { OpenApiSchema, Schemas } from '../../src/http/reference/schema.ts'
import { lacking } from '../run/optional-programs.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { ask } from './ask.ts'
import { createWorld, type World } from './world.ts'

const run = promisify(execFile)
const SECTIONS = sectionsOf(OPERATIONS).map(({ id }) => `/docs/api/${id}`)
const GUIDES = readGuides().map(({ name }) => (name === '' ? '/docs' : `/docs/${name}`))
const PAGES = [
  ...GUIDES,
  '/docs/api',
  ...SECTIONS,
  '/docs/errors',
  ...ERROR_CODES.map((code) => `/docs/errors/${code}`),
]
const CALLS_AT_ONCE = 8

test('the reference', async (t) => {
  const platform = await startPlatform(t)

  await t.test('every operation and every code has its place, and every link leads to one', async () => {
    const pages = new Map<string, string>()
    for (const path of PAGES) {
      const page = await ask(`${platform.api_url}${path}`)
      assert.equal(page.status, 200, path)
      pages.set(path, page.text)
    }
    const ids = new Map([...pages].map(([path, text]) => [path, idsOf(path, text)]))
    for (const { id } of OPERATIONS) {
      assert.ok(ids.get('/docs/api')!.has(id), `${id} is not in the index`)
      assert.ok(ids.get(`/docs/api/${sectionId({ id })}`)!.has(id), `${id} is not on the page of its section`)
    }
    assert.equal((await ask(`${platform.api_url}/docs/api/nothing`)).status, 404)
    for (const code of ERROR_CODES) assert.ok(ids.get('/docs/errors')!.has(code), `${code} is not on the page`)
    for (const [from, text] of pages) {
      for (const [, href = ''] of text.matchAll(/<a [^>]*href="([^"]*)"/g)) {
        const [path = '', id] = href.split('#', 2)
        const to = path === '' ? from : path
        if (to === '/openapi.json' || /^https?:/.test(to)) continue
        assert.ok(ids.has(to), `${from} links to ${href}`)
        if (id !== undefined) assert.ok(ids.get(to)!.has(id), `${from} links to ${href}`)
      }
    }
  })

  await t.test(
    'the guides are served with a search, and nothing that a visitor writes becomes part of a page',
    async () => {
      assert.ok(GUIDES.includes('/docs/first-game') && GUIDES.includes('/docs/commands/deploy'))
      const read = async (path: string) => (await ask(`${platform.api_url}${path}`)).text
      const guide = await read('/docs/first-game')
      assert.match(guide, /<h1 id="[^"]+">/)
      assert.doesNotMatch(guide, /run by:|<!--/, 'comments of the file are left out')
      const found = await read('/docs?q=udp%20PORT')
      assert.match(found, /<a href="\/docs\/ports(#[^"]*)?">/)
      assert.match(await read('/docs?q=nosuchword'), /0 sections have/)
      const marked = await read(`/docs?q=${encodeURIComponent('"><script>alert(1)</script>')}`)
      assert.doesNotMatch(marked, /<script>/)
      for (const path of ['/docs/nothing', '/docs/commands/nothing', '/docs/design', '/docs/..%2f..%2fpackage.json']) {
        assert.equal((await ask(`${platform.api_url}${path}`)).status, 404, path)
      }
      const long = await ask(`${platform.api_url}/docs?q=${'long%20'.repeat(1000)}`)
      assert.equal(long.status, 200)
    },
  )

  await t.test('documentation of a refusal is the address of a page that names the code', async () => {
    const refused = await ask(`${platform.api_url}/cloud/games`)
    const { code, documentation } = JSON.parse(refused.text) as { code: string; documentation: string }
    assert.equal(new URL(documentation).pathname, `/docs/errors/${code}`)
    const page = await ask(`${platform.api_url}${new URL(documentation).pathname}`)
    assert.match(page.text, new RegExp(`<h1[^>]*>${code}</h1>`))
  })

  await t.test(
    'a page is packed for who takes it, told apart by its tag, and allows nothing but what it carries',
    async () => {
      const url = `${platform.api_url}/docs/api/lobbies`
      const plain = await fetch(url, { headers: { 'accept-encoding': 'identity' } })
      const policy = plain.headers.get('content-security-policy') ?? ''
      assert.match(policy, /^default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; /)
      assert.doesNotMatch(policy, /unsafe|'self'|https?:|\*/)
      const text = await plain.text()
      assert.doesNotMatch(
        text,
        /\s(?:src|srcset|style|on\w+)=/i,
        'nothing is fetched, and nothing stands in attributes',
      )
      const packed = await fetch(url, { headers: { 'accept-encoding': 'br' } })
      assert.equal(packed.headers.get('content-encoding'), 'br')
      assert.equal(await packed.text(), text, 'fetch unpacks it')
      const etag = packed.headers.get('etag') ?? ''
      assert.notEqual(etag, plain.headers.get('etag'))
      const again = await fetch(url, { headers: { 'accept-encoding': 'br', 'if-none-match': etag } })
      assert.equal(again.status, 304)
    },
  )
})

test('what is shown as an answer is one', () => {
  const document = openapiDocument('0')
  for (const operation of OPERATIONS) {
    const schema = operationOf(document, operation).responses[200].content['application/json'].schema as OpenApiSchema
    const example = responseExample(document.components.schemas as Schemas, schema)
    assert.deepEqual(createShapeCheck(operation.response)(example), [], `${operation.id}: ${JSON.stringify(example)}`)
  }
})

test('the call that is shown for an operation can be pasted into a shell', async (t) => {
  const missing = lacking('curl')
  if (missing !== null) return t.skip(missing)
  const platform = await startPlatform(t, { env: { MUSTER_ACCESS: 'public' } })
  const world = await createWorld(platform)
  const cwd = await mkdtemp(join(tmpdir(), 'muster-calls-'))
  t.after(() => rm(cwd, { recursive: true }))
  const env = { PATH: process.env.PATH, ...(await variablesOf(world)) }
  const call = async (operation: Operation) => {
    const script = exampleOf(platform, operation).replace(/^curl /, 'curl -s -w "\\n%{http_code}" ')
    const caller = operation.auth.includes('user') ? 'owner' : operation.auth.includes('admin') ? 'admin' : 'cloud'
    const MUSTER_TOKEN = world.tokens[caller]!
    const { stdout } = await run('sh', ['-euc', script], { env: { ...env, MUSTER_TOKEN }, cwd })
    const [body = '', status = ''] = stdout.split(/\n(?=\d+$)/)
    requireUnderstood(operation, Number(status), body)
  }
  // What deletes comes last: the others are to find what they ask for.
  for (const is_deleting of [false, true]) {
    const waiting = OPERATIONS.filter(({ method }) => (method === 'DELETE') === is_deleting)
    const callers = Array.from({ length: CALLS_AT_ONCE }, async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await call(next)
    })
    await Promise.all(callers)
  }
})

/** Done, or refused for a reason of the operation's own: never for what the call looks like. */
function requireUnderstood(operation: Operation, status: number, body: string): void {
  if (status === 200) return
  const { code } = JSON.parse(body) as { code: string }
  const told = `${operation.id}: ${body}`
  assert.ok((errorsOf(operation) as string[]).includes(code), told)
  assert.equal(status, ERRORS[code as keyof typeof ERRORS].status, told)
  const faults = [
    'VALIDATION_ERROR',
    'API_BAD_BODY',
    'API_UNSUPPORTED_MEDIA_TYPE',
    'API_UNAUTHORIZED',
    'API_FORBIDDEN',
  ].filter((fault) => !(operation.errors as readonly string[]).includes(fault))
  assert.ok(!faults.includes(code), told)
}

function exampleOf(platform: Platform, operation: Operation): string {
  const document = openapiDocument('0')
  const described = operationOf(document, operation)
  const query = (described.parameters ?? []).filter((parameter) => parameter.in === 'query' && parameter.required)
  const body = described.requestBody?.content['application/json'].schema ?? null
  const url = operation.service === 'matchmaker' ? platform.matchmaker_url : platform.api_url
  const parts = {
    operation,
    query: query as { name: string; schema: OpenApiSchema }[],
    body: body as OpenApiSchema | null,
  }
  return curlOf(url, document.components.schemas as Schemas, parts)
}

function idsOf(path: string, text: string): Set<string> {
  const ids = [...text.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id!)
  assert.equal(new Set(ids).size, ids.length, `${path} has an id twice`)
  return new Set(ids)
}

/** What a reader of the page would have set. */
async function variablesOf(world: World): Promise<Record<string, string>> {
  const { platform, game, tokens, seat } = world
  const of_game = { params: { game_id: game.game_id } }
  const { builds } = await platform.client.call(listGameBuilds, of_game)
  const site = await platform.client.call(createGameCdnSite, {
    ...of_game,
    body: { display_name: 'Site', files: [{ path: 'empty.txt', content_length: 0 }] },
  })
  const { pathname, search } = new URL(site.presigned_requests[0]!.url)
  await fetch(`${platform.api_url}${pathname}${search}`, { method: 'PUT', body: '' })
  await platform.client.call(completeUpload, { params: { upload_id: site.upload_id } })
  const unknown = '00000000-0000-7000-8000-000000000000'
  return {
    PUBLIC_TOKEN: tokens.namespace!,
    PLATFORM_TOKEN: tokens.lobby!,
    DEVELOPMENT_TOKEN: tokens.development!,
    IDENTITY_TOKEN: tokens.identity!,
    PLAYER_TOKEN: seat.player.token,
    DEVICE_LINK_TOKEN: 'device.none',
    GROUP_INVITE_CODE: world.invite_code,
    GROUP_ID: game.group_id,
    DEVELOPER_GROUP_ID: game.group_id,
    GAME_ID: game.game_id,
    TARGET_ID: world.notice_target_id,
    NOTICE_ID: unknown,
    SCHEDULE_ID: world.schedule_id,
    INCIDENT_ID: world.incident_id,
    NAMESPACE_ID: game.namespace_id,
    VERSION_ID: game.version_id,
    LOBBY_ID: seat.lobby.lobby_id,
    PLAYER_ID: unknown,
    RAY_ID: unknown,
    UPLOAD_ID: world.upload_id,
    SITE_ID: site.site_id,
    BUILD_ID: builds[0]!.build_id,
    INVITATION_ID: unknown,
    TOKEN_ID: unknown,
    SESSION_ID: unknown,
    PASSKEY_ID: unknown,
    USER_ID: unknown,
    IDENTITY_ID: unknown,
    NEW_OWNER_IDENTITY_ID: unknown,
    VERIFICATION_ID: unknown,
    NAME: 'PAYMENT_KEY',
    PROVIDER_NAME: 'studio',
  }
}
