// A seat as a player gets it: shows which lobby the matchmaker chooses, and how to connect. The seat stays reserved until the
// player connects, or the deadline of the namespace has passed.
import { createCloudToken, findLobby, inspectAuth } from '@musterhost/contract'
import { EXIT, Failure } from '../failure.ts'
import { openNamespace } from '../manage/games.ts'
import type { GlobalOptions } from '../options.ts'
import { createCommandClient, type Session } from '../session.ts'
import { printFields } from '../table.ts'
import type { Terminal } from '../terminal.ts'

export type FindOptions = GlobalOptions & {
  mode: string[]
  region?: string[]
  tag?: string[]
  address?: string
  create: boolean
}

/** A find waits 50 s for a lobby; the token lives a little longer. */
const TOKEN_TTL_MS = 2 * 60_000
/** For a platform of a version that does not say which address it sees. */
const LOOPBACK = '127.0.0.1'

export async function find(terminal: Terminal, options: FindOptions): Promise<void> {
  const { session, params, where } = await openNamespace(terminal, options)
  terminal.note(`Finding a lobby for ${options.mode.join(' or ')} in ${where}`)
  const { token, client_ip } = await cloudToken(session, params.game_id)
  const client = createCommandClient(session.url, token, terminal.signal)
  const started_ms = performance.now()
  const seat = await client.call(findLobby, {
    body: {
      game_modes: options.mode,
      namespace_id: params.namespace_id,
      clients: [{ address: options.address ?? client_ip ?? LOOPBACK }],
      prevent_auto_create_lobby: !options.create,
      ...(options.region === undefined ? {} : { regions: options.region }),
      ...(options.tag === undefined ? {} : { tags: Object.fromEntries(options.tag.map(parseTag)) }),
    },
  })
  if (terminal.is_json) return terminal.json(seat)
  printFields(terminal, [
    ['lobby', seat.lobby.lobby_id],
    ['region', seat.lobby.region.region_id],
    ['took', `${Math.round(performance.now() - started_ms)} ms`],
    ...Object.entries(seat.ports).map(([name, { url }]) => [`port ${name}`, url] as const),
    ['player token', seat.player.token],
  ])
  terminal.note('The seat stays reserved until the player connects, or the deadline has passed.')
}

/**
 * Returns a token of the game, which find takes. For a person or an administrator, one is made that expires soon. `client_ip`: the
 * address of this machine, as the platform sees it.
 */
async function cloudToken(
  { client, token }: Session,
  game_id: string,
): Promise<{ token: string; client_ip: string | undefined }> {
  const { agent, client_ip } = await client.call(inspectAuth, {})
  if (agent.game_cloud !== undefined) return { token, client_ip }
  const created = await client.call(createCloudToken, { params: { game_id }, body: { ttl: TOKEN_TTL_MS } })
  return { token: created.token, client_ip }
}

function parseTag(text: string): [string, string] {
  const split = text.indexOf('=')
  if (split > 0) return [text.slice(0, split), text.slice(split + 1)]
  throw new Failure(`${text} is not a tag.`, { exit_code: EXIT.usage, remedy: 'A tag has this form: --tag map=desert' })
}
