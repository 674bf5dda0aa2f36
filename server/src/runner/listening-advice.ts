// What the developer of a server changes that does not listen where its version says, and the line about it in the log.
import { type ReadyCheck, uncalledRemedy, variableOfPort } from '@musterhost/contract'
import type { Listening } from '../database/schema.ts'
import type { ListeningSocket, Transport } from './sockets.ts'

/** `is_first`: the number is in PORT too. */
export type WantedPort = { name: string; protocol: string; transport: Transport; port: number; is_first: boolean }

/** Null: nothing is known. `may_fix`: whether the version may give a port a number. */
export function listeningAdvice(
  shut: WantedPort | undefined,
  others: readonly ListeningSocket[],
  may_fix: boolean,
): string | null {
  if (shut === undefined) return null
  const { name, protocol, transport, port, is_first } = shut
  const same = others.find((socket) => socket.transport === transport && socket.port === port)
  if (same?.address === '::') {
    return 'Its socket takes IPv6 only, and the platform connects over IPv4: listen on the address in HOST, or without ipv6Only.'
  }
  if (same !== undefined) return `Listen on the address in HOST, not on ${same.address}.`
  const [other] = [...others].sort((a, b) => Number(b.transport === transport) - Number(a.transport === transport))
  if (other === undefined) return null
  const variable = is_first ? 'PORT' : `PORT_${variableOfPort(name)}`
  const number = may_fix ? `read ${variable}, or set \`port: ${other.port}\`` : `read ${variable}`
  if (other.transport === transport) return `${number[0]!.toUpperCase()}${number.slice(1)} for the port ${name}.`
  const add = `add \`protocol: ${other.transport}\` to it`
  const both = other.port === port ? add : `${add}, and ${number}`
  return `It listens on ${other.transport} ${other.port}, and the port ${name} is ${protocol}: ${both}.`
}

/** A line for the log of a server that is not ready. Null: nothing is known yet. `is_early`: it may still load. */
export function listeningNote(
  { shut, others, remedy }: Listening,
  ports: readonly WantedPort[],
  ready_check: ReadyCheck,
  is_early: boolean,
): string | null {
  const elsewhere = others === null || others.length === 0 ? '' : ` It listens on ${others.join(', ')}.`
  if (shut.length > 0) {
    if (is_early && elsewhere === '') return null
    const missing = ports.filter(({ name }) => shut.includes(name)).map(numberedName)
    const none = elsewhere === '' && others !== null ? ' It listens on no other port.' : elsewhere
    return `The server is not ready: it does not listen on ${missing.join(', ')}.${none}${remedy === undefined ? '' : ` ${remedy}`}`
  }
  if (is_early || ready_check === 'listening') return null
  if (ready_check !== null) {
    return `The server is not ready: no line of its output has matched ${JSON.stringify(ready_check.log)}.`
  }
  const listens = ports.length === 0 ? '' : 'it listens on its ports, and '
  return `The server is not ready: ${listens}it has not called ready. ${uncalledRemedy(ports.length > 0)}`
}

function numberedName({ name, transport, port }: WantedPort): string {
  return `PORT_${variableOfPort(name)} (${transport} ${port})`
}
