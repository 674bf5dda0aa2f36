// What the two ends of a link agree on. A link joins a node on another machine to the platform. The node makes all
// connections: an HTTP upgrade at the platform's own address, and inside it mutual TLS with certificates of the platform's
// authority (authority.ts). So no proxy on the way has to be trusted. Over TLS runs HTTP/2, which has flow control for each
// stream. A link has up to three connections: over `calls` the node calls the platform, over `streams` the platform reaches the
// lobbies of the node, and over `edge` the edge of the node reaches roles and lobbies on other machines.
import Type, { type Static } from 'typebox'

/** Where the edge receives links, on every host. */
export const LINK_PATH = '/.well-known/muster-link'
/** The TLS protocol names (ALPN) of the connections of a link. */
export const CONNECTION_KINDS = ['muster-calls', 'muster-streams', 'muster-edge'] as const
export type ConnectionKind = (typeof CONNECTION_KINDS)[number]
/** The name in the certificate of the platform's end. No certificate of a node has it. */
export const PLATFORM_NAME = 'platform.muster.internal'
/** Version of this protocol. The platform serves nodes of this version and the one before. */
export const LINK_VERSION = 1
export const LINK_VERSION_MIN = 1

/** Roles that a joined node can run. */
export const NODE_ROLES = ['runner', 'edge'] as const
/** Roles of an invitation that names none. */
export const NODE_ROLES_DEFAULT: readonly (typeof NODE_ROLES)[number][] = ['runner']

/**
 * Over `streams`, from the platform: its edge is being replaced. The node connects again, to the next edge, and keeps this link for
 * what runs over it. A node of an older release refuses it, as it refuses any port that is not of a lobby.
 */
export const RETIRE_PATH = '/retire'

/** Bytes of a JSON body between the two ends. The text of muster.toml is the largest part. */
export const JSON_BYTES_MAX = 1024 ** 2
/** Time for one call that is not a stream. */
export const CALL_MS_MAX = 15_000
/** Time for the upgrade of a connection, and for its TLS handshake. */
export const HANDSHAKE_MS_MAX = 10_000
/** How often each end sends a ping. */
export const PING_MS = 5_000
/** Without a response to a ping for this time, the connection is lost. */
export const PING_MS_MAX = 15_000
/** Lifetime of the certificate of a node. The node renews it when half of this time is over. */
export const CERTIFICATE_LIFETIME_MS = 24 * 60 * 60_000
/** How long after its end a certificate still proves the node for a renewal, and for nothing else. */
export const RENEW_LATE_MS_MAX = 30 * 24 * 60 * 60_000

/** Settings of the platform that a node takes over: they decide the addresses of lobbies. */
export const SHARED_SETTINGS = [
  'MUSTER_DOMAIN_MAIN',
  'MUSTER_DOMAIN_CDN',
  'MUSTER_DOMAIN_JOB',
  'MUSTER_PUBLIC_SCHEME',
  'MUSTER_ADVERTISED_HTTP_PORT',
  'MUSTER_ADVERTISED_HTTPS_PORT',
  'MUSTER_EDGE_PORTS',
] as const

/** Settings that a node takes over where the platform was given them: its edge serves the certificates that the api orders. */
export const SHARED_GIVEN_SETTINGS = [
  'MUSTER_ACME',
  'MUSTER_ACME_DNS_SERVER',
  'MUSTER_ACME_DNS_KEY',
  'MUSTER_ACME_DNS_HOOK',
  'MUSTER_ACME_DNS_FOR',
] as const

const Text = Type.String({ maxLength: 4_096 })
const Closed = { additionalProperties: false }

/** POST /join. `secret`: of the invitation. `public_key`: of the node, SPKI in base64. */
export const JoinRequest = Type.Object({ secret: Text, public_key: Text, version: Text }, Closed)
/** `certificate` and `authority`: PEM. */
export const Identity = Type.Object({ certificate: Type.String(), authority: Type.String() })
export const JoinResponse = Type.Intersect([
  Identity,
  Type.Object({ node_id: Type.String(), region: Type.String(), roles: Type.Array(Type.Enum([...NODE_ROLES])) }),
])
export type JoinResponse = Static<typeof JoinResponse>

/** POST /hello: the first call of each connection, and its repetition. Times in milliseconds since the epoch. */
export const HelloRequest = Type.Object({ link_version: Type.Integer(), version: Text, now_ms: Type.Number() }, Closed)
/** `regions`: the text of muster.toml; null: the platform has none. */
export const HelloResponse = Type.Object({
  version: Type.String(),
  now_ms: Type.Number(),
  region: Type.String(),
  roles: Type.Array(Type.Enum([...NODE_ROLES])),
  settings: Type.Record(Type.String(), Type.String()),
  regions: Type.Union([Type.String(), Type.Null()]),
})
export type HelloResponse = Static<typeof HelloResponse>

/** POST /database: gives the database role of the node a new password. */
export const DatabaseResponse = Type.Object({ user: Type.String(), password: Type.String(), database: Type.String() })
export type DatabaseResponse = Static<typeof DatabaseResponse>

/** POST /lobby-tokens. The response has `token`, and `secrets` by the names of their variables. */
export const LobbyTokenRequest = Type.Object({ lobby_id: Text }, Closed)

/** POST /certificate-keys. The response has `key`. */
export const CertificateKeyRequest = Type.Object({ host: Text }, Closed)

/** A refusal of the platform, with a status that is no success. */
export const Refusal = Type.Object({ code: Type.String(), message: Type.String() })
