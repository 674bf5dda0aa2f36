import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resolveAlias } from '../../src/cloud/certificates/dns-challenge.ts'
import { authoritativeServers, waitUntilServed } from '../../src/cloud/certificates/dns-served.ts'
import { createDns } from '../../src/outbound/dns.ts'
import { startNameServer } from '../outbound/name-server.ts'
import { lacking } from '../run/optional-programs.ts'
import { startKnot } from '../support/knot.ts'

const PROOF = '_acme-challenge.lobby.local.lobbies.test'

test('a proof is shown to the authority once every name server serves it', async (t) => {
  const [fast, slow] = [await startNameServer(t), await startNameServer(t)]
  const names = createDns([fast.address])
  const record = { name: PROOF, value: 'proof' }
  fast.zones.set(PROOF, { TXT: ['other', 'proof'] })
  // A server that is behind, then one that does not respond, then the record.
  slow.zones.set(PROOF, (question) =>
    question === 1 ? { TXT: ['other'] } : question === 2 ? 'SERVFAIL' : { TXT: ['proof'] },
  )
  await waitUntilServed(names, [fast.address, slow.address], record)
  assert.equal(fast.questions.length, 1, 'a server that serves it is not asked again')
  assert.ok(slow.questions.length >= 3)

  const late = await startNameServer(t)
  const waiting = waitUntilServed(names, [fast.address, late.address], record, { polls_max: 2 })
  await assert.rejects(waiting, new RegExp(`${PROOF} is not served by ${late.address} \\(asked 2 times\\)`))
})

test('an alias of the name is followed, and a circle is not followed for ever', async (t) => {
  const server = await startNameServer(t)
  const names = createDns([server.address])
  assert.equal(await resolveAlias(names, PROOF), PROOF)
  server.zones.set(PROOF, { CNAME: 'a.proofs.test' })
  server.zones.set('a.proofs.test', { CNAME: 'b.proofs.test' })
  assert.equal(await resolveAlias(names, PROOF), 'b.proofs.test')
  server.zones.set('b.proofs.test', { CNAME: PROOF })
  await assert.rejects(resolveAlias(names, PROOF), /alias of an alias, more than 8 times/)
  server.zones.set(PROOF, 'SERVFAIL')
  await assert.rejects(resolveAlias(names, PROOF), /SERVFAIL/)
})

test('the name servers of a name are those of the closest zone above it', async (t) => {
  const missing = lacking('knotd')
  if (missing !== null) return t.skip(missing)
  const knot = await startKnot(t, {
    'lobbies.test': ['@ NS ns.servers.test.'],
    'local.lobbies.test': ['@ NS one.servers.test.', '@ NS two.servers.test.'],
    'servers.test': ['@ NS ns', 'ns A 127.0.0.9', 'one A 127.0.0.1', 'one AAAA ::1', 'two A 127.0.0.2'],
  })
  const names = createDns([knot.address])
  const found = await authoritativeServers(names, PROOF)
  const sorted = found.map(({ server, addresses }) => [server, ...addresses]).sort()
  assert.deepEqual(sorted, [
    ['one.servers.test', '127.0.0.1', '::1'],
    ['two.servers.test', '127.0.0.2'],
  ])
  assert.deepEqual(await authoritativeServers(names, '_acme-challenge.lobbies.test'), [
    { server: 'ns.servers.test', addresses: ['127.0.0.9'] },
  ])
  await assert.rejects(authoritativeServers(names, 'x.elsewhere.test'), /No zone of x\.elsewhere\.test|REFUSED/)
})
