// Runs in a process of its own: what ran before would change the processor time that it measures.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { cpuMsOf } from '../../test/support/cpu-time.ts'
import { readConfig } from '../config/read-config.ts'
import { openKeys } from '../tokens/keys.ts'
import { createLog } from './log.ts'
import { credentialsOf } from './redact.ts'

const folder = mkdtempSync(join(tmpdir(), 'muster-log-'))
after(() => rmSync(folder, { recursive: true }))

const id = '0190163d-8694-739b-aea5-966c26f8ad91'

async function plantedSecrets(): Promise<{ text: string; secret: string }[]> {
  const keys = await openKeys(join(folder, 'keys'))
  const times = { now_ms: 1_790_000_000_000, lifetime_ms: null, name: 'prod' }
  const tokens = [
    keys.issue({ kind: 'access', name: 'test' }, times),
    keys.issue({ kind: 'cloud', game_id: id }, times),
    keys.issue({ kind: 'lobby', lobby_id: id, namespace_id: id }, times),
    keys.issue({ kind: 'user', user_id: id, session_id: id }, times),
    keys.issue({ kind: 'device', device_link_id: id }, times),
    keys.issue({ kind: 'public', namespace_id: id }, times),
    keys.issue({ kind: 'game_user', identity_id: id, namespace_id: id }, times),
    keys.issue({ kind: 'player', player_id: id, lobby_id: id, namespace_id: id }, times),
    keys.issue({ kind: 'dev_player', player_id: id, namespace_id: id }, times),
    keys.issue({ kind: 'development', namespace_id: id, hostname: 'localhost', ports: [] }, times),
  ]
  const { privateKey } = generateKeyPairSync('ed25519')
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
  const hash = `$2b$10$${'Ab1.'.repeat(13)}x`
  return [
    ...tokens.map((token) => ({ text: token, secret: token.split('.').at(-1)! })),
    { text: `Authorization: Bearer ${'s3cret-value'}`, secret: 's3cret-value' },
    { text: `authorization: basic YWRhOmh1bnRlcjI=`, secret: 'YWRhOmh1bnRlcjI' },
    { text: 'postgres://muster:hunter2@/postgres?host=/run', secret: 'hunter2' },
    { text: 'smtps://ada:pass%2Fword@mail.example.com:465', secret: 'pass%2Fword' },
    { text: 'http://localhost/objects/00?content_length=1&expires=1&signature=0badc0de', secret: '0badc0de' },
    { text: hash, secret: hash.slice(7) },
    { text: pem, secret: pem.split('\n')[1]! },
  ]
}

test('a secret of any kind is hidden wherever it stands in a line, and the rest of the line stays', async () => {
  const lines: string[] = []
  const log = createLog({ who: 'test', level: 'debug', to: { write: (line: string) => void lines.push(line) } })
  for (const { text, secret } of await plantedSecrets()) {
    lines.length = 0
    log.warn(`before ${text} after`)
    log.error({ err: new Error(`it failed with ${text}`, { cause: new Error(text) }), ray_id: id }, 'a request failed')
    log.info({ headers: { cookie: `session=${text}`, other: text }, list: [text], deep: { deeper: { text } } }, 'told')
    log.child({ url: text }).debug({ token: text }, 'said')
    assert.equal(lines.length, 4)
    for (const line of lines) {
      assert.ok(!line.includes(secret), `${secret} in ${line}`)
      assert.ok(line.includes('[hidden]'))
      assert.equal((JSON.parse(line) as { who: string }).who, 'test')
    }
    assert.match(lines[0]!, /before .* after/)
    assert.ok(lines[1]!.includes(id), 'the ray id is in the line')
  }
})

test('a line about a broken database connection leaves out the connection, which pg adds to the error', () => {
  const lines: string[] = []
  const log = createLog({ who: 'test', level: 'debug', to: { write: (line: string) => void lines.push(line) } })
  const client = { parsedStatements: { find: 'select 1' } }
  log.warn({ err: Object.assign(new Error('it ended'), { code: '57P01', client }) }, 'a database connection broke')
  assert.ok(!lines[0]!.includes('select 1'))
  assert.match(lines[0]!, /it ended.*57P01/)
})

test('what is no secret is written as it is, and long adversarial lines cost nothing', () => {
  const lines: string[] = []
  const log = createLog({ who: 'test', level: 'info', to: { write: (line: string) => void lines.push(line) } })
  const plain = 'GET http://localhost:80/a.b.c?x=1 user@example.com 1.2.3.4 muster.rules.yml'
  log.info(plain)
  assert.ok(lines[0]!.includes(plain))
  const ms = cpuMsOf(() => {
    for (const text of ['a'.repeat(200_000), '://'.repeat(70_000), 'a.eyJ'.repeat(40_000), ':'.repeat(200_000)])
      log.info(text)
    for (const text of ['-----BEGIN PRIVATE KEY-----'.repeat(2_000), 'Bearer '.repeat(30_000)]) log.info(text)
  })
  assert.ok(ms < 2_000, `${ms} ms`)
})

test('a credential of the settings is hidden as it is, as it is said, and in quotes', () => {
  const config = readConfig({
    DATABASE_URL: 'postgres://muster:data%2Fbase@db.example.com/muster',
    MUSTER_DATABASE_LISTEN_URL: 'postgres://muster:listening@db.example.com/muster',
    MUSTER_SMTP_URL: 'smtp://ada:p%22q%5Crstu@mail.example.com',
    MUSTER_METRICS_TOKEN: 'metrics-token',
    MUSTER_OTLP_URL: 'https://otlp.example.com',
    MUSTER_OTLP_HEADERS: 'x-team=collector',
    MUSTER_LOGIN_TURNSTILE_SITE_KEY: 'site-key',
    MUSTER_LOGIN_TURNSTILE_SECRET_KEY: 'turnstile-secret',
  })
  const lines: string[] = []
  const to = { write: (line: string) => void lines.push(line) }
  const log = createLog({ who: 'test', level: 'info', secrets: credentialsOf(config), to })
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const said = ['data/base', 'data%2Fbase', 'p"q\\rstu', base64('p"q\\rstu'), base64('\0ada\0p"q\\rstu')]
  for (const secret of [...said, 'listening', 'metrics-token', 'collector', 'turnstile-secret'])
    log.warn(`535 who is ${secret}?`)
  assert.equal(lines.length, 9)
  for (const line of lines) assert.equal((JSON.parse(line) as { msg: string }).msg, '535 who is [hidden]?')
})
