// The settings of the swarm driver.
import { isIPv4 } from 'node:net'
import type { SettingsReader } from './read.ts'

/** Machines of one Swarm. */
const ENGINES_MAX = 256
const ENGINE =
  /^(?<node_id>[a-z0-9]+(?:-[a-z0-9]+)*)=(?:unix:\/\/(?<socket>\/.+)|tcp:\/\/(?<host>[a-z0-9][a-z0-9.-]*):(?<port>[0-9]{1,5}))$/
const REGISTRY = /^(?<host>[0-9.]+):(?<port>[0-9]{1,5})$/
const NODE_NAME_LENGTH_MAX = 32
const PORT_MAX = 65_535

/** Addresses where lobbies of other machines do not reach this one. */
const LOCAL = /^(localhost|127\..*|\[?::1\]?)$/
const ALL_ADDRESSES = ['0.0.0.0', '::', '[::]']

/**
 * `engines`: in the order of the setting. `registry`: port 0 stands for any free one. `services`: where lobbies reach the
 * platform.
 */
export type SwarmConfig = {
  engines: readonly ({ node_id: string } & ({ socket: string } | { host: string; port: number }))[]
  registry: { host: string; port: number }
  services: string
  tls_folder: string | null
}

export function readSwarm(read: SettingsReader, mode: 'development' | 'production'): SwarmConfig {
  const tls_folder = read.textOrNull('MUSTER_SWARM_TLS')
  const engines = readEngines(read)
  const is_used = read.choice('MUSTER_DRIVER') === 'swarm'
  if (is_used && engines.length === 0) {
    read.mistakes.push('MUSTER_DRIVER is swarm, and MUSTER_SWARM_ENGINES names no engine.')
  }
  if (is_used && mode === 'production' && tls_folder === null && engines.some((engine) => 'host' in engine)) {
    read.mistakes.push(
      'MUSTER_SWARM_ENGINES has an engine at tcp://, and MUSTER_SWARM_TLS is empty: who reaches such a port is root on the machine.',
    )
  }
  if (is_used && read.isSet('MUSTER_LINK')) {
    read.mistakes.push(
      'MUSTER_DRIVER is swarm on a joined node, whose database role is for that node alone: run it on a machine of the platform.',
    )
  }
  const internal_host = read.text('MUSTER_INTERNAL_HOST')
  if (is_used && LOCAL.test(internal_host)) {
    read.mistakes.push(
      `MUSTER_INTERNAL_HOST is ${internal_host}, and the lobbies of a Swarm call the platform there: set it to an address of this machine that the engines reach.`,
    )
  }
  const registry = readRegistry(read, is_used)
  const services = ALL_ADDRESSES.includes(internal_host) ? registry.host : internal_host
  return { engines, registry, services, tls_folder }
}

function readEngines(read: SettingsReader): SwarmConfig['engines'] {
  const texts = read.list('MUSTER_SWARM_ENGINES')
  if (texts.length > ENGINES_MAX) read.mistakes.push(`MUSTER_SWARM_ENGINES has more than ${ENGINES_MAX} engines.`)
  const engines = texts.flatMap((text) => {
    const { node_id = '', socket, host = '', port = '' } = ENGINE.exec(text)?.groups ?? {}
    if (node_id !== '' && node_id.length <= NODE_NAME_LENGTH_MAX && Number(port) <= PORT_MAX) {
      return socket === undefined ? { node_id, host, port: Number(port) } : { node_id, socket }
    }
    read.mistakes.push(
      `MUSTER_SWARM_ENGINES names ${JSON.stringify(text)}, which is not NODE=unix:///PATH or NODE=tcp://HOST:PORT. NODE has lower-case letters, digits and single hyphens, ${NODE_NAME_LENGTH_MAX} characters at most.`,
    )
    return []
  })
  const names = engines.map(({ node_id }) => node_id)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) read.mistakes.push(`MUSTER_SWARM_ENGINES names the node ${twice} twice.`)
  return engines
}

function readRegistry(read: SettingsReader, is_used: boolean): SwarmConfig['registry'] {
  const text = read.text('MUSTER_SWARM_REGISTRY')
  const { host = '', port = '' } = REGISTRY.exec(text)?.groups ?? {}
  if (isIPv4(host) && host !== '0.0.0.0' && Number(port) <= PORT_MAX) return { host, port: Number(port) }
  if (is_used || text !== '') {
    read.mistakes.push(
      `MUSTER_SWARM_REGISTRY is ${JSON.stringify(text)}: it must be an IPv4 address of this machine that the engines reach, and a port, like 10.0.0.1:5000.`,
    )
  }
  return { host: '', port: 0 }
}
