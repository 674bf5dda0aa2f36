// Which routes the platform's HTTP servers have: every route that the framework knows is an operation of the contract,
// whose caller is checked, or one of the few below. There is no other way in.
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { OPERATIONS } from '@musterhost/contract/operations'
import type { FastifyInstance } from 'fastify'
import { startPlatform } from '../support/platform.ts'

/** They need no token. */
const OTHERS = [
  // The address is the credential.
  'PUT /objects/:key',
  'GET /exports/*',
  // A signed token of a provider of sign-ins is the credential. OpenID Connect says its form.
  'POST /auth/backchannel-logout/:name',
  // Pages and files for people, the same for all.
  'GET /',
  'GET /docs',
  'GET /docs/:name',
  'GET /docs/commands/:name',
  'GET /docs/api',
  'GET /docs/api/:section',
  'GET /docs/errors',
  'GET /docs/errors/:code',
  'GET /openapi.json',
  // The command of this version, for `npm install`.
  'GET /cli.tgz',
  // The token in its address names the game and the program; it confirms nothing without a session.
  'GET /devices/link/*',
  'GET /images/avatar.svg',
  // The hub: one document for all of its pages, and its files.
  'GET /sign-in',
  'GET /sign-in/*',
  'GET /account',
  'GET /games/*',
  'GET /groups/*',
  'GET /invites/*',
  'GET /platform',
  'GET /platform/*',
  'GET /hub-assets/*',
  'GET /hub-icon.svg',
  // A browser asks what it may send.
  'OPTIONS /*',
  'OPTIONS /kv/*',
  'OPTIONS /ratings/*',
  'OPTIONS /identity/*',
]

test('what is answered is an operation of the contract, or a page', async (t) => {
  const routes = new Set<string>()
  const onApp = (message: unknown): void => {
    const { fastify } = message as { fastify: FastifyInstance }
    fastify.addHook('onRoute', ({ method, url }) => {
      for (const name of [method].flat()) routes.add(`${name} ${url}`)
    })
  }
  subscribe('fastify.initialization', onApp)
  t.after(() => unsubscribe('fastify.initialization', onApp))
  await startPlatform(t)

  const known = OPERATIONS.flatMap(({ method, path, aliases }) =>
    [path, ...aliases].map((at) => `${method} ${at.replace(/\{(\w+)\}/g, ':$1')}`),
  )
  const expected = new Set([...known, ...OTHERS])
  assert.deepEqual([[...routes.difference(expected)], [...expected.difference(routes)]], [[], []])
})
