// Who asks for the seats of bots. With a cloud token the bots are players of a game's backend, each with an address of its
// own, so limits per client do not bound them. Otherwise they are players of this machine, with a public token.
// `muster swarm` gets a cloud token for a person or an operator (run.ts).
import { randomUUID } from 'node:crypto'
import { createGameNamespaceTokenPublic, findLobby } from '@musterhost/contract'
import { type Client, createClient } from '@musterhost/contract/client'
import type { BotSeat } from './bot.ts'

/** The network for benchmarks (RFC 2544), which is not routed: 198.18.0.0/15. */
const ADDRESSES = { first: [198, 18], count: 2 ** 17 } as const

type SwarmTarget = { game_id: string; namespace_id: string; url: string; token: string; game_mode: string }

/** Resolves to the function that requests one seat. It throws an ApiError when the seat is refused. */
export async function openRequester(
  client: Client,
  target: SwarmTarget,
  signal: AbortSignal,
): Promise<{ kind: 'backend' | 'player'; find: () => Promise<BotSeat> }> {
  const { namespace_id, game_mode } = target
  const request = { game_modes: [game_mode] }
  const headers = (): Record<string, string> => ({ 'idempotency-key': randomUUID() })
  if (kindOf(target.token) === 'cloud') {
    let players = 0
    const find = (): Promise<BotSeat> => {
      const clients = [{ address: addressOf(players++), user_agent: 'muster swarm' }]
      return client.call(findLobby, { body: { ...request, namespace_id, clients }, headers: headers(), signal })
    }
    return { kind: 'backend', find }
  }
  const token = await playerToken(client, target)
  const player = createClient({ url: target.url, token })
  return { kind: 'player', find: () => player.call(findLobby, { body: request, headers: headers(), signal }) }
}

/** Whether the token is one of a namespace, with which bots are players of this machine. */
export function isPlayerToken(token: string): boolean {
  return ['pub', 'dev'].includes(kindOf(token))
}

/** A public or development token is used as it is. */
async function playerToken(client: Client, { game_id, namespace_id, token }: SwarmTarget): Promise<string> {
  if (isPlayerToken(token)) return token
  return (await client.call(createGameNamespaceTokenPublic, { params: { game_id, namespace_id } })).token
}

/** The label in front of a token, without the namespace that some have. */
function kindOf(token: string): string {
  return /^[a-z]+/.exec(token)?.[0] ?? ''
}

function addressOf(player: number): string {
  const index = player % ADDRESSES.count
  const [first, second] = ADDRESSES.first
  return [first, second + (index >> 16), (index >> 8) & 255, index & 255].join('.')
}
