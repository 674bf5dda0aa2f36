// Addresses under which players appear to a server that limits players by address. The address follows from the player, so
// it is the same after a reconnect, also through another edge, unless another player of the lobby has it.
import { createHash } from 'node:crypto'

/** `network`: an IPv4 network with more addresses than a lobby has players. `used`: those of the lobby's other players. */
export function addressIn(network: string, player_id: string, used: ReadonlySet<string>): string {
  const [address = '', bits] = network.split('/')
  const first = numberOfAddress(address)
  const count = 2 ** (32 - Number(bits))
  const start = createHash('sha256').update(player_id).digest().readUInt32BE(0)
  for (let step = 0; step < count; step++) {
    const candidate = addressOfNumber(first + ((start + step) % count))
    if (!used.has(candidate)) return candidate
  }
  throw new Error(`The network ${network} has no address left for another player.`)
}

export function numberOfAddress(address: string): number {
  return address.split('.').reduce((number, octet) => number * 256 + Number(octet), 0)
}

export function addressOfNumber(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join('.')
}
