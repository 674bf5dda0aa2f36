// The attacks: what many clients can occupy, each as the bytes that its connections send.
import { randomUUID } from 'node:crypto'
import {
  createGame,
  createGameCdnSite,
  findLobby,
  getKvEntry,
  listLobbies,
  putKvEntry,
  watchEvents,
} from '@musterhost/contract'
import type { BenchGame } from '../find/games.ts'
import type { BenchPlatform } from '../platform.ts'
import type { Attack } from './attacker.ts'

/** More than one edge can accept with 20,000 descriptors, and than the connections to a role before there were pools. */
const IDLE_EACH = 160
const WAITING_EACH = 130
const UPLOADS_EACH = 2
const LARGE_EACH = 30
/** The limit of long polls of an identity. */
const WATCHES_PER_IDENTITY = 8
const IDENTITY_MS = 3_600_000
/** Requests of a client per second: the limits are 120 finds and 600 calls a minute. */
const FINDS_EACH = 2
const CALLS_EACH = 9
/** Bytes of a body per second: just over the edge's minimum. */
const SLOW_BYTES = 1_100
const FILE_BYTES = 5_000_000

type NamedAttack = { name: string; attack: Omit<Attack, 'port'> }

export async function attacksOf(platform: BenchPlatform, game: BenchGame, clients: number): Promise<NamedAttack[]> {
  const admin = platform.keys.issue({ kind: 'access', name: 'bench' }, { now_ms: Date.now(), lifetime_ms: null })
  const guests = Array.from({ length: Math.ceil((clients * WAITING_EACH) / WATCHES_PER_IDENTITY) }, () =>
    platform.keys.issue(
      { kind: 'game_user', identity_id: randomUUID(), namespace_id: game.namespace_id },
      { now_ms: Date.now(), lifetime_ms: IDENTITY_MS },
    ),
  )
  const holding = { clients, each: WAITING_EACH, drip_bytes: 0, repeat_ms: 0 }
  const guest_find = { path: findLobby.path, token: game.public_token, method: 'POST' }
  return [
    { name: 'idle connections', attack: { ...holding, each: IDLE_EACH, requests: [''] } },
    {
      name: 'long polls of guests',
      attack: {
        ...holding,
        requests: guests.map((token) => head({ path: `${watchEvents.path}?watch_index=0`, token })),
      },
    },
    { name: 'one byte of a body', attack: { ...holding, requests: [`${head({ ...guest_find, length: 1_000 })}{`] } },
    {
      name: 'slow uploads',
      attack: {
        ...holding,
        each: UPLOADS_EACH,
        drip_bytes: SLOW_BYTES,
        requests: await uploadsOf(platform, game, clients),
      },
    },
    {
      name: 'slow large bodies',
      attack: {
        ...holding,
        each: LARGE_EACH,
        drip_bytes: SLOW_BYTES,
        requests: [head({ method: 'POST', path: createGame.path, token: admin, length: 1_000_000 })],
      },
    },
    { name: 'KV watches', attack: { ...holding, requests: await watchesOf(platform, game, admin) } },
    {
      name: 'WebSockets',
      attack: { ...holding, requests: guests.map(socketHead) },
    },
    {
      name: 'floods within the rates',
      attack: {
        ...{ clients, each: FINDS_EACH + CALLS_EACH, drip_bytes: 0, repeat_ms: 1_000 },
        // Each client sends all of them, one per connection.
        requests: Array.from({ length: clients * (FINDS_EACH + CALLS_EACH) }, (_, slot) =>
          slot < clients * FINDS_EACH
            ? `${head({ ...guest_find, length: FIND_BODY.length })}${FIND_BODY}`
            : head({ path: listLobbies.path, token: game.public_token }),
        ),
      },
    },
  ]
}

export const FIND_BODY = JSON.stringify({ game_modes: ['default'], prevent_auto_create_lobby: true })

type Head = { method?: string; path: string; token: string; length?: number }

function head({ method = 'GET', path, token, length }: Head): string {
  const body = length === undefined ? '' : `content-type: application/json\r\ncontent-length: ${length}\r\n`
  return `${method} ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n${body}\r\n`
}

function socketHead(token: string): string {
  const path = `${watchEvents.path}?identity_token=${encodeURIComponent(token)}`
  const key = Buffer.from(randomUUID().slice(0, 16)).toString('base64')
  return `GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${key}\r\n\r\n`
}

async function uploadsOf({ api }: BenchPlatform, { game_id }: BenchGame, clients: number): Promise<string[]> {
  const files = Array.from({ length: clients * UPLOADS_EACH }, (_, i) => ({
    path: `${i}.bin`,
    content_length: FILE_BYTES,
  }))
  const { presigned_requests } = await api.call(createGameCdnSite, {
    params: { game_id },
    body: { display_name: 'Slow', files },
  })
  return presigned_requests.map(({ url }) => {
    const { pathname, search } = new URL(url)
    return `PUT ${pathname}${search} HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${FILE_BYTES}\r\n\r\n`
  })
}

async function watchesOf({ api }: BenchPlatform, { namespace_id }: BenchGame, token: string): Promise<string[]> {
  await api.call(putKvEntry, { body: { namespace_id, key: 'a', value: 1 } })
  const { watch } = await api.call(getKvEntry, { query: { namespace_id, key: 'a' } })
  const path = `${getKvEntry.path}?key=a&namespace_id=${namespace_id}&watch_index=${encodeURIComponent(watch.index)}`
  return [head({ path, token })]
}
