// Every maximum of the edge on one page. Strangers are at the other end of each of these, so nothing here may be
// unbounded: what is over a limit is refused or closed, and players who are under it do not notice.
import { readFileSync } from 'node:fs'
import { PACKED_IN_MEMORY_BYTES_MAX } from '../objects/pack.ts'

/** Connections held at once, if the descriptors reach for them: a connection costs two, its own and the one behind it. */
const CONNECTIONS_MAX = 50_000
const DESCRIPTORS_PER_CONNECTION = 2
/** Kept free for the database, objects being read, and the runtime. */
const DESCRIPTORS_RESERVED = 256
/**
 * One client may hold this share of them. When all are taken, a new client gets a connection of the client that holds most
 * (addresses/client-share.ts), so a few clients cannot keep the others out.
 */
export const CONNECTIONS_PER_SOURCE_SHARE = 0.5

/** All header lines of a request together. */
export const HEADER_BYTES_MAX = 16 * 1024
export const HEADERS_MAX = 100
/** A backend's answer may have as many lines as fit: the shortest is a letter, a colon and its end. */
export const ANSWER_LINES_MAX = HEADER_BYTES_MAX / 4
/** Answers of a backend's that only announce another one, to one request. */
export const INTERIM_ANSWERS_MAX = 16
/** A chunk's first line, and what all chunks of a body may say there beside their sizes. */
export const CHUNK_LINE_BYTES_MAX = 1_024
export const CHUNK_EXTENSIONS_BYTES_MAX = 16 * 1024
export const HOST_LENGTH_MAX = 255

/** From the connection's first moment, or the request's first byte, to the end of its header. */
export const HEADER_MS_MAX = 10_000
/** From a secure connection's first moment to the end of its handshake. */
export const TLS_HANDSHAKE_MS_MAX = 10_000
/** How often connections are looked at for what is late: it is cut off at most this much later. */
export const HEADER_CHECK_MS = 1_000
/** Late connections that are ended before other requests get a turn: about a millisecond of work. */
export const LATE_ENDED_AT_ONCE_MAX = 8
/** A connection with a request on it over which no byte moves in either direction. Longer than any wait for a lobby. */
export const REQUEST_IDLE_MS_MAX = 120_000
/** A connection without a request. */
export const KEEP_ALIVE_MS_MAX = 60_000
/** A spliced connection over which nothing moves. Games ping; a chess player thinks. */
export const SPLICE_IDLE_MS_MAX = 60 * 60_000
/** After one side of a splice has said that it is finished, the other may be silent for this long. */
export const HALF_CLOSED_MS_MAX = 30_000
/** And go on for this long. Bytes count as movement though nobody reads them, until the system's buffers are full. */
export const HALF_CLOSED_TOTAL_MS_MAX = 5 * 60_000
/** A peer that vanished without a word is noticed by TCP itself. */
export const TCP_KEEP_ALIVE_MS = 30_000

/** Raw TCP: from a connection's first moment to the first byte in either direction. */
export const FIRST_BYTE_MS_MAX = 30_000
/** The first bytes of a client are held up to here, to know whether a browser sends them to another host than the port's. */
export const NAMED_HOST_BYTES_MAX = 8 * 1024
/** Connections to one number of the edge's, and those of one client to it. */
export const PORT_CONNECTIONS_MAX = 4_096
export const PORT_CONNECTIONS_PER_CLIENT_MAX = 128
export const TCP_BACKLOG = 512
/** A server that says that it is ready a moment before it listens is waited for. */
export const LISTEN_WAIT_MS_MAX = 1_000
export const LISTEN_PAUSE_MS = 50
/** The header of a balancer with all its addresses; TLVs may make it longer. */
export const PROXY_HEADER_BYTES_MAX = 536
export const PROXY_HEADER_MS_MAX = 5_000

/** The edge's own ports: how often they are looked after, and how many are opened at once. */
export const PORTS_EVERY_MS = 1_000
/** HTTP waits for them when the edge starts, but for no database. */
export const PORTS_START_MS_MAX = 2_000
export const PORTS_READ_PAUSE_MS = 20
export const PORTS_OPENING_MAX = 16
/** How often open connections to lobbies are reported (report-connections.ts); HTTP waits for the first report, but for no database. */
export const CONNECTIONS_REPORT_EVERY_MS = 1_000
export const CONNECTIONS_REPORT_START_MS_MAX = 2_000
/** Reports during which a count of 0 stays in the table, so that a matchmaker that reads what has changed sees it. */
export const REPORTED_ZERO_KEPT = 60
/** As long as the matchmaker leaves a port unused after its lobby. */
export const PORT_REST_MS = 60_000

/** Sources of datagrams that are remembered, and those of one client; a source is an address and a port. */
export const UDP_SESSIONS_MAX = 10_000
export const UDP_SESSIONS_PER_CLIENT_MAX = 256
/** Of all places, where descriptors are scarce: the others are for connections. */
export const UDP_SESSIONS_SHARE = 0.5
/** A source that has proven itself is forgotten after this, for games pause; any other sooner. */
export const UDP_IDLE_MS_MAX = 120_000
export const UDP_UNPROVEN_IDLE_MS_MAX = 10_000
export const UDP_SWEEP_MS = 1_000
/** Datagrams of one client in a second. A game sends a hundred. */
export const UDP_DATAGRAMS_PER_SECOND_MAX = 50_000
/** Datagrams that wait for a look-up or for a session's socket. */
export const UDP_WAITING_MAX = 64
/** Towards a source that has not proven that it is where it says: for each byte from it, and in a second. */
export const REPLY_FACTOR_MAX = 3
export const UNPROVEN_BYTES_PER_CLIENT_MAX = 64 * 1024
export const UNPROVEN_BYTES_MAX = 1024 * 1024
/** Whether a client has a seat in a lobby is asked again after this, by so many at once. */
export const SEATS_AGE_MS = 250
export const SEATS_READING_MAX = 8

/** Bytes of a client's that are held while nobody can take them yet; there is more only in the system's buffers. */
export const READ_AHEAD_BYTES_MAX = 64 * 1024
/** What is shorter leaves in one piece with its head. */
export const SMALL_BYTES_MAX = 16 * 1024

/** Connections to one lobby. */
export const SOCKETS_PER_TARGET_MAX = 8_192

/** Places for requests at one role, and how many of them one client may hold. A /56 may hold 4 times, a /48 16 times as many. */
export type PoolLimits = { places_max: number; client_max: number }
/**
 * One pool for each class of request (http/request-class.ts), so that no class uses up what another needs: `seat` is the
 * reserve of finds and of calls of lobbies. `parked` requests wait at the role without a connection (http/parking.ts).
 */
export const ROLE_POOLS = {
  seat: { places_max: 4_096, client_max: 512 },
  call: { places_max: 2_048, client_max: 256 },
  wait: { places_max: 1_024, client_max: 256 },
  upload: { places_max: 512, client_max: 128 },
  live: { places_max: 16_384, client_max: 1_024 },
  parked: { places_max: 16_384, client_max: 2_048 },
} as const satisfies Record<string, PoolLimits>
/** Requests of a class that are at one role at the same time; the others wait at the edge (http/turns.ts). */
export const ROLE_TURNS = { seat: 256, call: 64, wait: 256 } as const
/** Requests whose small body has not arrived: each holds at most SMALL_BODY_BYTES_MAX, so this bounds the memory too. */
export const ARRIVING_POOL: PoolLimits = { places_max: 1_024, client_max: 128 }
/** Responses to parked requests that are fetched at once. The others wait in a queue. */
export const CLAIMS_MAX = 512
/** Connections to one role: never reached, because every request has a place first. */
export const ROLE_SOCKETS_MAX =
  CLAIMS_MAX +
  ROLE_POOLS.seat.places_max +
  ROLE_POOLS.call.places_max +
  ROLE_POOLS.wait.places_max +
  ROLE_POOLS.upload.places_max +
  ROLE_POOLS.live.places_max

/** A body of a known length up to this is collected before a role is asked. It is what a stranger may send at all. */
export const SMALL_BODY_BYTES_MAX = 64 * 1024
/** A small body has this long in all; after the grace, bytes must have come at the minimum rate since its head came. */
export const SMALL_BODY_MS_MAX = 30_000
export const SMALL_BODY_GRACE_MS = 5_000
export const BODY_BYTES_PER_SECOND_MIN = 1_024
/** A larger body must come at the minimum rate over each stretch of this length. */
export const LARGE_BODY_PACE_MS = 5_000

export const FREE_SOCKETS_PER_TARGET_MAX = 256
export const FREE_SOCKETS_MAX = 2_048
/** Below the five seconds after which many servers close an idle connection, so that they do not do it under a request. */
export const FREE_SOCKET_MS_MAX = 4_000
export const CONNECT_MS_MAX = 5_000
/** From an upgrade request to the backend's answer. */
export const HANDSHAKE_MS_MAX = 30_000

/** A role that is being started again is waited for this long, by at most so many requests. */
export const ROLE_WAIT_MS_MAX = 2_500
export const ROLE_PAUSE_MS = 50
export const ROLE_WAITERS_MAX = 2_000

/** Of a body that nobody wants any more, read so that the sender gets to read the answer. */
export const DRAIN_BYTES_MAX = 1024 * 1024
export const DRAIN_MS_MAX = 2_000

/** How long the edge waits before it opens the parking channel to a role again, and for the role to take it. */
export const PARKING_PAUSE_MS = 100
export const PARKING_OPEN_MS_MAX = 5_000

/** Requests that are under way when the edge is stopped may take this long to end. */
export const STOP_MS_MAX = 1_000

/** Lobbies whose ports are remembered. */
export const ROUTES_MAX = 20_000
/** A route is asked for again after this, should a wake-up have been lost. */
export const ROUTE_AGE_MS_MAX = 5_000
export const ROUTE_ENDED_MS = 1_000
/** Look-ups in the database at once, and those without a result that one source may cause in a second. */
export const LOOKUPS_MAX = 64
export const FAILED_LOOKUPS_PER_SOURCE_MAX = 100
export const LOOKUP_SOURCES_MAX = 10_000

/** Sites: hosts whose current site is remembered, and for how long without asking again. */
export const SITE_HOSTS_MAX = 10_000
export const SITE_HOST_AGE_MS_MAX = 1_000
/** After a deploy, pages that are still open find the old version's files that carry a hash in their name. */
export const PREVIOUS_SITE_MS = 10 * 60_000
/** Files in all manifests that are remembered. */
export const MANIFEST_FILES_MAX = 200_000
export const MEMORY_FILE_BYTES_MAX = PACKED_IN_MEMORY_BYTES_MAX
export const MEMORY_FILES_BYTES_MAX = 64 * 1024 * 1024

/** Lists of block hashes that are remembered; lists that are made from whole files at once, and requests that wait. */
export const BLOCK_LISTS_BYTES_MAX = 32 * 1024 * 1024
export const BLOCK_LISTS_MADE_AT_ONCE_MAX = 2
export const BLOCK_LISTS_WAITING_MAX = 64
/** Damaged files that are refused without a read; how often the marks are read, should a wake-up have been lost. */
export const DAMAGED_MAX = 10_000
export const DAMAGED_EVERY_MS = 10_000

/** Games' pictures that are remembered, and for how long without asking again. */
export const MEDIA_MAX = 10_000
export const MEDIA_AGE_MS_MAX = 1_000

/** Text without a packed variant is packed when it is at least this long and kept in memory. */
export const COMPRESSED_BYTES_MIN = 1_400
/** Versions whose routes are remembered, and files of each whose headers are. */
export const ROUTED_VERSIONS_MAX = 1_000
export const ROUTED_FILES_MAX = 2_000

/** Passwords of sites: bcrypt hashes computed at once and waiting, for all sites and for one. */
export const AUTH_RUNNING_MAX = 2
export const AUTH_WAITING_MAX = 64
export const AUTH_WAITING_PER_SITE_MAX = 16
/** What one source may try on one site; what is remembered as right is no attempt. */
export const AUTH_ATTEMPTS_BURST = 20
export const AUTH_ATTEMPTS_PER_MINUTE = 20
export const AUTH_SOURCES_MAX = 10_000
export const AUTH_REMEMBERED_MS = 5 * 60_000
export const AUTH_REMEMBERED_MAX = 10_000
/** The header as it comes. */
export const AUTH_CREDENTIALS_LENGTH_MAX = 1_024

/** Certificates with their keys in one folder, and the bytes of one file of them. */
export const CERTIFICATES_MAX = 2_000
export const CERTIFICATE_BYTES_MAX = 64 * 1024
/** How often the folder is looked at for certificates that have changed. */
export const CERTIFICATES_READ_MS = 1_000
/** Certificates from the database that are remembered, and for how long without asking again. */
export const STORED_CERTIFICATES_MAX = 10_000
export const STORED_CERTIFICATE_MS_MAX = 30_000
/** Names of this machine that its own authority has certified, in memory. */
export const LOCAL_CERTIFICATES_MAX = 1_000

/** How many connections may be held with this process's limit of open descriptors. */
export function connectionsMax(): number {
  const available = openFilesMax() - DESCRIPTORS_RESERVED
  return Math.max(1, Math.min(CONNECTIONS_MAX, Math.floor(available / DESCRIPTORS_PER_CONNECTION)))
}

/** The soft limit, which Node has raised to the hard one; where the system does not tell, what every system has. */
function openFilesMax(): number {
  const OPEN_FILES_ELSEWHERE = 1_024
  try {
    const line = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
    if (line === 'unlimited') return Number.MAX_SAFE_INTEGER
    return line === undefined ? OPEN_FILES_ELSEWHERE : Number(line)
  } catch {
    return OPEN_FILES_ELSEWHERE
  }
}
