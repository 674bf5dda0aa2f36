// Joins a platform: makes a key, checks that the platform is the one of the invitation, and only then sends the secret.
import { generateKeyPairSync } from 'node:crypto'
import { connect } from 'node:http2'
import { StartError } from '../../config/start-error.ts'
import { readInvitation } from '../invitation.ts'
import { platformAuthority, shownKeyHash } from '../peers.ts'
import { JoinResponse, PLATFORM_NAME } from '../protocol.ts'
import { call, LinkRefusal, sessionOptions } from '../streams.ts'
import { dial } from './dial.ts'
import type { NodeFile } from './node-file.ts'

const KEY_HASH_SHOWN = 10

export type JoinOptions = { url: string; invitation: string; version: string; onVerified: () => void }

/** Throws a StartError with what to do. */
export async function joinPlatform({ url, invitation, version, onVerified }: JoinOptions): Promise<NodeFile> {
  const platform = parseUrl(url)
  const parts = readInvitation(invitation)
  if (parts === null) {
    throw new StartError(
      'The invitation is incomplete. It begins with "mj1." and has 80 characters; copy the whole line.',
    )
  }
  // The chain is checked below, against the hash of the invitation.
  const socket = await dial(
    { url: platform, tls: { servername: PLATFORM_NAME, rejectUnauthorized: false } },
    'muster-calls',
  ).catch((error: unknown) => {
    throw new StartError(`${platform.origin} cannot be reached: ${messageOf(error)}`, { cause: error })
  })
  const authority = platformAuthority(socket, parts.key_hash)
  if (authority === null) {
    const shown = shownKeyHash(socket)?.slice(0, KEY_HASH_SHOWN) ?? 'none'
    socket.destroy()
    throw new StartError(
      `${platform.origin} is not the platform of the invitation: its key is ${shown}…, and the invitation names ` +
        `${parts.key_hash.slice(0, KEY_HASH_SHOWN)}…. The invitation was not sent. Check the address, and whether ` +
        'something between this machine and the platform intercepts the connection.',
    )
  }
  onVerified()
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const session = connect('http://platform', { ...sessionOptions('muster-calls'), createConnection: () => socket })
  session.on('error', () => {})
  try {
    const public_key = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
    const joined = await call(session, '/join', { secret: parts.secret, public_key, version }, JoinResponse)
    const key = String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
    const { node_id, region, roles, certificate } = joined
    return { platform_url: platform.origin, node_id, region, roles, authority, certificate, key }
  } catch (error) {
    if (error instanceof LinkRefusal) throw new StartError(error.message, { cause: error })
    throw new StartError(`${platform.origin} did not complete the join: ${messageOf(error)}`, { cause: error })
  } finally {
    session.destroy()
  }
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new StartError(`${JSON.stringify(text)} is no address of a platform. Example: https://play.example.com`)
  }
  return url
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
