// `muster join` that fails after the invitation was used: the machine has joined, and the output says how to go on.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { startMuster, temporaryFolder } from '../supervisor/started.ts'
import { freePorts } from '../support/free-ports.ts'
import { startPlatform } from '../support/platform.ts'
import { invite } from './node.ts'

const GO_ON = /This data folder has joined a platform already\. Continue its node with: muster start/

test('a join that fails after its invitation was used says that `muster start` continues, and it does', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge' })
  const { invitation } = await invite(platform, { name: 'attic' })
  const folder = temporaryFolder(t)
  const [port] = (await freePorts(1)) as [number]
  const settings = {
    MUSTER_DATA: folder,
    MUSTER_LOBBY_API_PORT: String(port),
    MUSTER_METRICS_PORT: '0',
    MUSTER_SANDBOX: 'off',
    MUSTER_LOBBY_NETWORK: 'machine',
  }
  const words = ['join', platform.edge_url, invitation]

  const other = createServer().listen(port, '127.0.0.1')
  await once(other, 'listening')
  const failed = startMuster(settings, words)
  await assert.rejects(failed.ready, new RegExp(`Port ${port} is taken.*${GO_ON.source}`, 's'))
  assert.equal((await failed.ended).code, 1)
  other.close()
  await once(other, 'close')

  // Not only that somebody has used the invitation, which would look like a thief.
  const again = startMuster(settings, words)
  await assert.rejects(again.ready, new RegExp(`was used at.*${GO_ON.source}`, 's'))

  const started = startMuster(settings)
  await started.ready
  assert.match(started.output(), /node +attic +region local/)
  started.signalGroup('SIGINT')
  await started.ended
})

test('a join that is refused before its invitation is used does not say so', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge' })
  const { invitation } = await invite(platform, { name: 'attic' })
  const invented = `${invitation.slice(0, -32)}${'A'.repeat(32)}`
  const folder = temporaryFolder(t)
  const refused = startMuster({ MUSTER_DATA: folder, MUSTER_METRICS_PORT: '0' }, ['join', platform.edge_url, invented])
  await assert.rejects(refused.ready, /has no such invitation/)
  assert.doesNotMatch(refused.output(), GO_ON)
})
