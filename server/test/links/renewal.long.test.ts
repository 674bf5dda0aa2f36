// The renewal of a node's certificate, on a clock that the test advances.
import assert from 'node:assert'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { listNodes } from '@musterhost/contract'
import { type NodeFile, readNodeFile } from '../../src/links/node/node-file.ts'
import { startPlatform } from '../support/platform.ts'
import { openLink, refusalOf, startNode } from './node.ts'

const ROLES = { roles: 'api,matchmaker,edge' }
const HOUR_MS = 60 * 60_000

test('a certificate is renewed after half of its life, and up to thirty days after its end', async (t) => {
  const platform = await startPlatform(t, ROLES)
  const node = await startNode(t, platform)
  const stored = () => readNodeFile(node.data_dir)!
  const expire_ms = () => Date.parse(new X509Certificate(stored().certificate).validTo)
  await node.link.close()
  /** The node is started again, and has said hello. */
  const greet = async (file: NodeFile): Promise<void> => {
    const { link } = openLink(platform, node.data_dir, file)
    t.after(() => link.close())
    await link.hello()
    await link.close()
  }
  platform.advance(11 * HOUR_MS)
  const first = stored()
  await greet(first)
  assert.deepStrictEqual(stored(), first)
  platform.advance(2 * HOUR_MS)
  await greet(first)
  assert.notStrictEqual(stored().certificate, first.certificate)
  assert.ok(expire_ms() > platform.ctx.now() + 23 * HOUR_MS)
  platform.advance(29 * 24 * HOUR_MS)
  await greet(stored())
  assert.ok(expire_ms() > platform.ctx.now())
  const { nodes } = await platform.client.call(listNodes, {})
  const listed = nodes.find(({ node_id }) => node_id === 'attic')?.link?.certificate_expire_ts
  assert.ok(Math.abs(Date.parse(listed!) - expire_ms()) < 1_000)
  // The first certificate ended more than thirty days ago.
  platform.advance(2 * 24 * HOUR_MS)
  assert.match(await refusalOf(t, platform, first), /has not joined/)
})
