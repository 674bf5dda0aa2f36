import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type OpenapiDocument, openapiDocument } from './openapi.ts'
import { listUndescribed } from './undescribed.ts'

/** A document with its structure alone. */
function withoutTexts(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutTexts)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).filter(
    ([key, member]) => typeof member !== 'string' || (key !== 'description' && key !== 'summary'),
  )
  return Object.fromEntries(members.map(([key, member]) => [key, withoutTexts(member)]))
}

test('a document without texts is undescribed in every operation, parameter, body, list item and map value', () => {
  const found = new Set(listUndescribed(withoutTexts(openapiDocument('0')) as OpenapiDocument))
  for (const line of [
    'POST /matchmaker/lobbies/find: summary',
    'POST /matchmaker/lobbies/find: header Idempotency-Key',
    'POST /matchmaker/lobbies/find: request.clients[].user_agent',
    'POST /matchmaker/lobbies/find: response 400',
    'GET /kv/entries: query key',
    'GET /cloud/games/{game_id}: path game_id',
    'PUT /matchmaker/lobbies/state: request',
    'GET /matchmaker/players/statistics: response 200.game_modes.*.regions.*.player_count',
    'component VersionConfig.matchmaker.docker.ports.*.port',
    'component Error.message',
  ])
    assert.ok(found.has(line), line)
})
