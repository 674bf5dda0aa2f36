import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OPERATIONS } from './operations.ts'
import { serviceOf } from './services.ts'

/** The expression by which the edge chose the role until it was derived from the operations. */
const FORMER_MATCHMAKER_PATH =
  /^\/(?:(?:matchmaker|v1|parties|identity\/events|cloud\/games\/[^/?]+\/matchmaker(?!\/lobbies\/(?:export-history|[^/?]+\/logs(?:\/export)?)(?:[?]|$))|cloud\/rays\/[^/?]+\/explain)(?=[/?]|$)|identity\/identities(?=[?]|$))/

/** Operations that are newer than the expression, which has them in the other role. */
const NEWER: ReadonlySet<string> = new Set([
  'lobbies.result',
  'games.matchmaker.writeLobbyInput',
  'games.matchmaker.getLobbyUsage',
  'games.matchmaker.getLobbyTimeline',
])

const ID = '0199c6a2-7d3e-7b41-9c55-2f8e6a1d4b07'

test('every address of an operation is routed to the role that serves the operation, as it was before', () => {
  for (const { id, service, path, aliases } of OPERATIONS) {
    for (const address of [path, ...aliases].map((one) => one.replace(/\{\w+\}/g, ID))) {
      for (const url of [address, `${address}?x=/matchmaker`]) {
        assert.equal(serviceOf(url), service, `${id}: ${url}`)
        if (NEWER.has(id)) continue
        assert.equal(FORMER_MATCHMAKER_PATH.test(url) ? 'matchmaker' : 'api', service, `${id}: ${url}`)
      }
    }
  }
})

test('an unknown path below a prefix of one role is routed to this role, every other unknown path to the api', () => {
  for (const path of ['/matchmaker', '/matchmaker/x', '/v1/x/y', '/parties/x?y', '/identity/events/x']) {
    assert.equal(serviceOf(path), 'matchmaker', path)
  }
  for (const path of [
    '/',
    '/matchmakers',
    '/x/matchmaker/lobbies/find',
    '/cloud/games//matchmaker/lobbies/x',
    `/identity/identities/${ID}`,
    `/cloud/games/${ID}/matchmaker/lobbies/export-history?x`,
    `/cloud/games/${ID}/matchmaker/lobbies/${ID}/logs/export/`,
  ]) {
    assert.equal(serviceOf(path), 'api', path)
  }
})
