import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { clientKey } from './client-ip.ts'
import { clientNetworks } from './client-networks.ts'
import { ClientShare, type ClientSlot, type NoSlot } from './client-share.ts'

const keysOf = (client_ip: string): string[] => clientNetworks(clientKey(client_ip)).map(({ key }) => key)

function slotOf(entered: ClientSlot | NoSlot): ClientSlot {
  assert.ok(typeof entered === 'object', `no place: ${String(entered)}`)
  return entered
}

test('an IPv6 client is counted by its /64, /56 and /48, any other client by its address', () => {
  assert.deepEqual(keysOf('192.0.2.7'), ['192.0.2.7'])
  assert.deepEqual(keysOf('::ffff:192.0.2.7'), ['192.0.2.7'])
  assert.deepEqual(keysOf('2001:db8:1:2ff::9'), ['2001:db8:1:2ff::/64', '2001:db8:1:200::/56', '2001:db8:1::/48'])
  assert.deepEqual(keysOf('2001:db8::1').slice(1), ['2001:db8:0:0::/56', '2001:db8:0::/48'])
  assert.deepEqual(keysOf('::1'), ['::1'])
  assert.deepEqual(clientNetworks('a local socket/64'), [{ key: 'a local socket/64', factor: 1 }])
})

test('a client gets no more than its own limit, a /56 four times and a /48 sixteen times as much', () => {
  const share = new ClientShare({ slots_max: 1_000, client_max: 2 })
  const enterAll = (client_ips: string[]): number =>
    client_ips.filter((client_ip) => typeof share.enter(clientKey(client_ip)) === 'object').length
  assert.equal(enterAll(Array.from({ length: 5 }, () => '192.0.2.7')), 2)
  assert.equal(enterAll(Array.from({ length: 5 }, (_, i) => `2001:db8::${i + 1}`)), 2)
  const of_a_56 = Array.from({ length: 100 }, (_, i) => `2001:db8:0:${(i + 1).toString(16)}::1`)
  assert.equal(enterAll(of_a_56), 8 - 2)
  const of_a_48 = Array.from({ length: 100 }, (_, i) => `2001:db8:0:${((i + 1) * 256).toString(16)}::1`)
  assert.equal(enterAll(of_a_48), 32 - 8)
  assert.equal(enterAll(['2001:db8:1::1', '192.0.2.8']), 2)
})

test('when a few clients have taken everything, another one is given a place of the one that holds most', () => {
  const share = new ClientShare({ slots_max: 8, client_max: 6 })
  const displaced: string[] = []
  const enter = (client: string, name: string) => share.enter(client, () => displaced.push(name))
  for (let i = 0; i < 5; i++) slotOf(enter('192.0.2.1', `first ${i}`))
  for (let i = 0; i < 3; i++) slotOf(enter('192.0.2.2', `second ${i}`))
  slotOf(enter('192.0.2.3', 'third 0'))
  slotOf(enter('192.0.2.3', 'third 1'))
  // The longest held goes first.
  assert.deepEqual(displaced, ['first 0', 'first 1'])
  // Nobody holds more than it would then hold itself.
  assert.equal(enter('192.0.2.3', 'third 2'), 'full')
  assert.equal(enter('192.0.2.1', 'first 5'), 'full')
  assert.equal(share.count, 8)
  assert.equal(share.displaced_count, 2)
})

test('many /64 of one network count as one client with a larger limit when everything is taken', () => {
  const share = new ClientShare({ slots_max: 64, client_max: 64 })
  let displaced_count = 0
  for (let i = 0; i < 64; i++) {
    slotOf(share.enter(clientKey(`2001:db8:0:${(i * 256).toString(16)}::1`), () => displaced_count++))
  }
  const honest = Array.from({ length: 3 }, (_, i) => share.enter(`192.0.2.${i + 1}`, () => assert.fail()))
  for (const entered of honest) slotOf(entered)
  assert.equal(displaced_count, 3)
})

test('a place that cannot be given to another client stays, and is given back once', () => {
  const share = new ClientShare({ slots_max: 2, client_max: 2 })
  const [first, second] = [slotOf(share.enter('192.0.2.1')), slotOf(share.enter('192.0.2.1'))]
  assert.equal(share.enter('192.0.2.1'), 'client_full')
  assert.equal(share.enter('192.0.2.2'), 'full')
  first.leave()
  first.leave()
  assert.equal(share.count, 1)
  slotOf(share.enter('192.0.2.2'))
  second.leave()
  assert.equal(share.count, 1)
})

test('whatever clients come and go: no limit is passed, and a refused client holds its share', () => {
  const clients = ['192.0.2.1', '192.0.2.2', '2001:db8::1', '2001:db8:0:1::1', '2001:db8:0:100::1', '2001:db8:1::1']
  const step = fc.record({ client: fc.constantFrom(...clients), leaves: fc.boolean(), stays: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), fc.integer({ min: 1, max: 12 }), (steps, slots_max) => {
      const client_max = 5
      const share = new ClientShare({ slots_max, client_max })
      const held: { keys: string[]; place: ClientSlot; can_be_displaced: boolean }[] = []
      const loadOf = (key: string, factor: number): number =>
        held.filter(({ keys }) => keys.includes(key)).length / factor
      for (const { client, leaves, stays } of steps) {
        if (leaves) {
          held.shift()?.place.leave()
          continue
        }
        const networks = clientNetworks(clientKey(client))
        const entry = { keys: networks.map(({ key }) => key), place: { leave: () => {} }, can_be_displaced: !stays }
        const displace = (): void => void held.splice(held.indexOf(entry), 1)
        const entered = share.enter(clientKey(client), stays ? null : displace)
        if (typeof entered === 'object') held.push(Object.assign(entry, { place: entered }))
        else if (entered === 'client_full') {
          assert.ok(networks.some(({ key, factor }) => loadOf(key, factor) >= client_max))
        } else {
          assert.equal(held.length, slots_max)
          const then = Math.max(...networks.map(({ key, factor }) => loadOf(key, factor) + 1 / factor))
          for (const other of clients.flatMap((one) => clientNetworks(clientKey(one)))) {
            const given = held.filter(({ keys, can_be_displaced }) => can_be_displaced && keys.includes(other.key))
            assert.ok(given.length / other.factor <= then)
          }
        }
        assert.equal(share.count, held.length)
        assert.ok(held.length <= slots_max)
        for (const { key, factor } of networks) assert.ok(loadOf(key, factor) <= client_max)
      }
    }),
  )
})
