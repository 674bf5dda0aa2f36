// Firewalls of other programs on the machine of the lobbies: found by the runner and by the doctor, with commands that work.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { promisify } from 'node:util'
import type { Examination } from '../../src/doctor/examine.ts'
import type { Handle } from '../../src/runner/drivers/driver.ts'
import { MUSTER } from '../run/built-programs.ts'
import { lacking } from '../run/optional-programs.ts'
import { freeSettings, killIfThere, temporaryFolder } from '../supervisor/started.ts'
import { until } from '../support/until.ts'
import { makeWorld, NETWORK_NEEDS, namespacesOf, PUBLIC_ADDRESS, traces, type World } from './network-world.ts'

/** Prints whether the internet and the platform respond. */
const PROBE = `
  import { connect } from 'node:net'
  const reach = (host, port) => new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 1500 })
    const end = (is_open) => { socket.destroy(); resolve(is_open) }
    socket.on('connect', () => end(true)).on('error', () => end(false)).on('timeout', () => end(false))
  })
  const found = await Promise.all([reach('${PUBLIC_ADDRESS}', 80), reach(process.env.SERVICES, 4999)])
  console.log('found ' + found.join(' '))`

/** What Docker and ufw leave in the tables of iptables. */
const IPTABLES = ['iptables -P FORWARD DROP', 'iptables -P INPUT DROP', 'iptables -A INPUT -i lo -j ACCEPT']
/** As firewalld: the chain accepts nothing that it does not know. */
const NFT = [
  'nft add table inet other',
  "nft add chain inet other known '{ }'",
  "nft add chain inet other passing '{ type filter hook forward priority 10; policy accept; }'",
  'nft add rule inet other passing ct state established,related accept',
  'nft add rule inet other passing jump known',
  'nft add rule inet other passing reject',
]

async function inMachine({ machine }: World, ...command: string[]): Promise<string> {
  return (await promisify(execFile)('nsenter', [`--net=/run/netns/${machine}`, ...command])).stdout
}

test('a firewall that takes the packets of lobbies is named, and its remedy gives them back', async (t) => {
  const missing = lacking(...NETWORK_NEEDS, 'iptables')
  if (missing !== null) return t.skip(missing)
  const world = await makeWorld(t)
  const host = await world.host()
  const folder = temporaryFolder(t)
  chmodSync(folder, 0o711)
  const { PATH } = process.env
  const env = { PATH, ...(await freeSettings(folder)) }
  const found = async (): Promise<string> => {
    const { lobby_id } = await host.call<Handle>({ start: { program: PROBE } })
    return (await host.call<{ match: string[] }>({ line: lobby_id, pattern: '^found (.*)$' })).match[1]!
  }
  const drops = async (): Promise<{ message: string; remedy: string }[]> => {
    const args = [`--net=/run/netns/${world.machine}`, process.execPath, MUSTER, 'doctor', '--json']
    const { findings } = JSON.parse((await promisify(execFile)('nsenter', args, { env })).stdout) as Examination
    return findings.flatMap(({ message, remedy }) =>
      message.includes('drops their packets') ? [{ message, remedy: remedy! }] : [],
    )
  }
  assert.equal(await found(), 'true true')
  assert.deepEqual(await drops(), [])
  for (const [commands, seen, chains] of [
    [IPTABLES, 'false false', ['FORWARD of the nftables table ip filter', 'INPUT of the nftables table ip filter']],
    [NFT, 'false true', ['passing of the nftables table inet other']],
  ] as const) {
    for (const command of commands) await inMachine(world, 'sh', '-c', command)
    assert.equal(await found(), seen)
    const named = await drops()
    assert.deepEqual(named.map(({ message }) => / chain (.*?) drops /.exec(message)?.[1]).toSorted(), chains)
    for (const { remedy } of named) await inMachine(world, 'sh', '-c', remedy)
    assert.deepEqual(await drops(), [])
    assert.equal(await found(), 'true true')
  }
})

test('networks of a platform that does not come back are removed without a trace', async (t) => {
  const missing = lacking(...NETWORK_NEEDS)
  if (missing !== null) return t.skip(missing)
  const world = await makeWorld(t)
  const before = traces(world)
  const host = await world.host({ is_quiet: true })
  const { lobby_id } = await host.call<Handle>({ start: { program: 'setInterval(() => undefined, 1_000)' } })
  const { PATH } = process.env
  const env = { PATH, MUSTER_DATA: world.data_dir }
  const remove = async (): Promise<{ code: number; output: string }> => {
    const args = [`--net=/run/netns/${world.machine}`, process.execPath, MUSTER, 'doctor', '--remove-networks']
    const child = spawn('nsenter', args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    const [output, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    return { code: code as number, output: `${output}${errors}` }
  }
  const early = await remove()
  assert.equal(early.code, 1)
  assert.match(early.output, /A platform runs on /)
  // As a machine that is taken away: neither the runner nor the lobby ends in order.
  await host.kill()
  const living = await until('the runner counts as gone', async () => {
    const removal = await remove()
    return removal.output.includes('A platform runs on ') ? null : removal
  })
  assert.equal(living.code, 1)
  const pids = /kill ([\d ]+)/.exec(living.output)![1]!.trim().split(' ')
  assert.ok(pids.length > 0 && namespacesOf(world.machine).length > 0)
  // The end of the first one may end the others.
  for (const pid of pids) killIfThere(Number(pid), 'SIGKILL')
  const removal = await until(`the processes of ${lobby_id} are gone`, async () => {
    const removal = await remove()
    return removal.code === 0 ? removal : null
  })
  assert.match(
    removal.output,
    /removed network muster-[\s\S]*removed nftables table muster_[\s\S]*removed interface mst/,
  )
  const network = ({ interfaces, routes, tables, forwarding, namespaces }: ReturnType<typeof traces>) => ({
    ...{ interfaces, routes, tables, forwarding, namespaces },
  })
  assert.deepEqual(network(traces(world)), network(before))
  assert.match((await remove()).output, /Nothing of lobbies is left/)
  // The next runner on the folder removes what is left beside the network.
  const next = await world.host({ is_quiet: true })
  await next.call({ list: true })
  await next.call({ collect: true })
  await next.call({ close: 'end' })
  assert.deepEqual(traces(world), before)
})
