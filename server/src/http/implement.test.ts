import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setLobbyReady } from '@musterhost/contract'
import { implement } from './implement.ts'

test('an operation needs a handler for exactly the callers that its contract lets in', () => {
  const handler = () => ({})
  assert.throws(() => implement(setLobbyReady, { lobby: handler }), /takes lobby, development, but has .* lobby$/)
  const too_many = { lobby: handler, development: handler, user: handler }
  assert.throws(() => implement(setLobbyReady, too_many), /development, lobby, user$/)
  implement(setLobbyReady, { lobby: handler, development: handler })
})
