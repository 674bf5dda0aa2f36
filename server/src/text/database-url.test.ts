import assert from 'node:assert/strict'
import { test } from 'node:test'
import { databaseUrlMistake, serversOf } from './database-url.ts'

test('each server of a URL gets a URL of its own', () => {
  const url =
    'postgres://muster:p%2Cw@db1:6000,[2001:db8::1],10.0.0.3/muster?sslmode=require&target_session_attrs=read-write'
  assert.deepEqual(serversOf(url), [
    { url: 'postgres://muster:p%2Cw@db1:6000/muster?sslmode=require', host: 'db1', port: 6_000, name: 'db1:6000' },
    {
      url: 'postgres://muster:p%2Cw@[2001:db8::1]/muster?sslmode=require',
      host: '2001:db8::1',
      port: 5_432,
      name: '[2001:db8::1]:5432',
    },
    {
      url: 'postgres://muster:p%2Cw@10.0.0.3/muster?sslmode=require',
      host: '10.0.0.3',
      port: 5_432,
      name: '10.0.0.3:5432',
    },
  ])
  assert.deepEqual(
    serversOf('postgresql://a,b/x?target_session_attrs=primary').map((server) => server.url),
    ['postgresql://a/x', 'postgresql://b/x'],
  )
})

test('a URL of one server stays as it is, also one of a unix socket', () => {
  for (const url of ['postgres://muster:a,b@db/muster', 'postgres://muster:pw@/muster?host=%2Frun%2Fpg&port=5433']) {
    assert.deepEqual(
      serversOf(url).map((server) => server.url),
      [url],
    )
    assert.equal(databaseUrlMistake(url), null)
  }
})

test('a URL that cannot work is refused with its reason', () => {
  const mistakes: [string, RegExp][] = [
    ['mysql://db/muster', /postgres:\/\//],
    ['postgres://a,b/muster?target_session_attrs=any', /accepts writes/],
    ['postgres://a/muster?sslmode=verify_full', /sslmode=verify_full; use verify-full/],
    ['postgres://a,,b/muster', /""/],
    ['postgres://a:99999,b/muster', /"a:99999"/],
    ['postgres:///muster?host=a,b', /before the database/],
    [`postgres://${Array.from({ length: 10 }, (_, n) => `db${n}`)}/muster`, /at most 9/],
  ]
  for (const [url, expected] of mistakes) assert.match(databaseUrlMistake(url) ?? 'nothing', expected)
})
