import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Context } from '../../context.ts'
import { type EndedPort, MachineEdges } from './machine-edges.ts'

const PLAYER = { player_id: 'player', lobby_id: 'lobby', namespace_id: 'namespace' }

test('edge processes of a machine know the addresses of their players, and end their earlier connections', async (t) => {
  const data_dir = mkdtempSync(join(tmpdir(), 'muster-ask-'))
  t.after(() => rmSync(data_dir, { recursive: true }))
  const ctx = { config: { data_dir, process: { number: 0, count: 2 } } } as Context
  const folder = join(data_dir, 'edge', 'ask')
  const ended: EndedPort[] = []
  const nothing = { end: async () => {}, addressesOf: () => ({ own: null, used: [] }) }
  const open = async (name: string, asked: Parameters<typeof MachineEdges.open>[1]): Promise<MachineEdges> => {
    const edges = await MachineEdges.open(ctx, asked)
    renameSync(join(folder, String(process.pid)), join(folder, name))
    return edges!
  }
  const other = await open('other', {
    end: async (of) => void ended.push(of),
    addressesOf: ({ player_id }) => ({ own: player_id === 'player' ? '127.64.0.1' : null, used: ['127.64.0.1'] }),
  })
  // Its process was killed: the file is all that is left.
  await (await open('killed', nothing)).close()
  const own = (await MachineEdges.open(ctx, nothing))!
  assert.deepEqual(await own.addressesOf(PLAYER), { own: '127.64.0.1', used: ['127.64.0.1'] })
  const stranger = { ...PLAYER, player_id: 'stranger' }
  assert.deepEqual(await own.addressesOf(stranger), { own: null, used: ['127.64.0.1'] })
  await own.endOf({ player_id: 'player', number: null, port_name: 'game' })
  assert.deepEqual(ended, [{ player_id: 'player', number: null, port_name: 'game' }])
  assert.deepEqual(readdirSync(folder).sort(), [String(process.pid), 'other'].sort())
  await own.close()
  await other.close()
  const alone = { config: { data_dir, process: { number: 0, count: 1 } } } as Context
  assert.equal(await MachineEdges.open(alone, nothing), null)
})
