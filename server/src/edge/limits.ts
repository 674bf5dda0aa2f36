// Every maximum of the edge. The other end of each of these is not trusted, so nothing here is unbounded: whatever exceeds a
// limit is refused or closed, and players below it do not notice. The limits page of the docs is generated from it.
import { readFileSync } from 'node:fs'
import { PACKED_IN_MEMORY_BYTES_MAX } from '../objects/pack.ts'

/** sockaddr_un holds 108 bytes with the closing NUL. */
export const SOCKET_PATH_BYTES_MAX = 107
/** Connections open at once, if the process may open enough descriptors. */
const CONNECTIONS_MAX = 50_000
/** Descriptors of one connection: its own, and the one to the backend. */
const DESCRIPTORS_PER_CONNECTION = 2
/** Descriptors kept free for the database, for objects being read, and for the runtime. */
const DESCRIPTORS_RESERVED = 256
/** The share of all connections that one client may hold, so that a few clients cannot lock out the others. */
export const CONNECTIONS_PER_CLIENT_SHARE = 0.5

/** Bytes of all header lines of a request. */
export const HEADER_BYTES_MAX = 16 * 1024
/** Header lines of a request. */
export const HEADERS_MAX = 100
/** Header lines of a response: as many as fit into HEADER_BYTES_MAX, the shortest being a letter, a colon and CRLF. */
export const RESPONSE_LINES_MAX = HEADER_BYTES_MAX / 4
/** Interim (1xx) responses of a backend to one request. */
export const INTERIM_RESPONSES_MAX = 16
/** Bytes of a chunk's first line. */
export const CHUNK_LINE_BYTES_MAX = 1_024
/** Bytes of all chunk extensions of one body. */
export const CHUNK_EXTENSIONS_BYTES_MAX = 16 * 1024
/** Characters of a host: no DNS name is longer. */
export const HOST_LENGTH_MAX = 255

/** Milliseconds from a connection's start, or a request's first byte, to the end of the request's head. */
export const HEADER_MS_MAX = 10_000
/** Milliseconds from a connection's start to the end of its TLS handshake. */
export const TLS_HANDSHAKE_MS_MAX = 10_000
/** Milliseconds between two checks of all connections: a late one is closed at most this much later. */
export const HEADER_CHECK_MS = 1_000
/** Late connections that one batch ends before other requests are served: about a millisecond of work. */
export const LATE_ENDED_AT_ONCE_MAX = 8
/** Clients that hung up whose end one turn of the loop handles: about a millisecond of work. */
export const HUNG_UP_AT_ONCE_MAX = 16
/** Milliseconds without a byte in either direction while a request is under way: longer than any wait for a lobby. */
export const REQUEST_IDLE_MS_MAX = 120_000
/** Milliseconds that a connection without a request stays open. */
export const KEEP_ALIVE_MS_MAX = 60_000
/** Milliseconds without a byte over a spliced connection. Games send regularly; a chess player may think for long. */
export const SPLICE_IDLE_MS_MAX = 60 * 60_000
/** Milliseconds without a byte over a spliced connection after one side has ended. */
export const HALF_CLOSED_MS_MAX = 30_000
/** Milliseconds that a spliced connection lasts after one side has ended, whatever the other side still sends. */
export const HALF_CLOSED_TOTAL_MS_MAX = 5 * 60_000
/** Milliseconds that a splice waits until everything it has read is written, before it is handed over. */
export const HOLD_MS_MAX = 50
/** Milliseconds between two checks of that. */
export const HOLD_PAUSE_MS = 2
/** Milliseconds that an edge waits for each message of its successor. */
export const GIVE_MS_MAX = 30_000
/** Bytes of the receive buffer of a raw UDP port during a hand-over. At other times it would hold more forged datagrams too. */
export const HAND_OVER_BUFFER_BYTES = 4 * 1024 * 1024
/** Milliseconds for which it stays so large after the hand-over. */
export const HAND_OVER_BUFFER_MS = 5_000
/** Milliseconds between two checks of a retiring edge for connections that can be handed over, or have ended. */
export const RETIRING_CHECK_MS = 250
/** Milliseconds of silence after which TCP itself checks whether the peer still exists. */
export const TCP_KEEP_ALIVE_MS = 30_000
/** Milliseconds that a part of the self-test of node-internals.ts may take. */
export const SELF_TEST_MS_MAX = 5_000

/** Raw TCP: milliseconds from a connection's start to the first byte in either direction. */
export const FIRST_BYTE_MS_MAX = 30_000
/** First bytes of a client that are kept back until it is known which host, if any, a browser named in them. */
export const NAMED_HOST_BYTES_MAX = 8 * 1024
/** Milliseconds for which such bytes are kept back, unless they may contain a cookie. */
export const FIRST_BYTES_MS_MAX = 100
/** Connections to one raw port: one lobby cannot starve another. */
export const PORT_CONNECTIONS_MAX = 4_096
/** Connections of one client to one raw port: one player cannot lock the others out of a lobby. */
export const PORT_CONNECTIONS_PER_CLIENT_MAX = 128
/** Connections that the system queues for one raw port. */
export const TCP_BACKLOG = 512
/** Milliseconds that a connection waits for a lobby that reports that it is ready just before it listens. */
export const LISTEN_WAIT_MS_MAX = 1_000
/** Milliseconds between two attempts to connect to such a lobby. */
export const LISTEN_PAUSE_MS = 50
/** Bytes of a balancer's PROXY header: both addresses, and room for TLVs. */
export const PROXY_HEADER_BYTES_MAX = 536
/** Milliseconds until a PROXY header must be complete. */
export const PROXY_HEADER_MS_MAX = 5_000

/** Milliseconds between two checks of the edge's raw ports while one may be missing. */
export const PORTS_EVERY_MS = 1_000
/** The same while all are open and recorded, in case a notification was lost. */
export const PORTS_COMPLETE_EVERY_MS = 5_000
/** Numbers of which the edge keeps both the tcp and the udp port open in advance, for lobbies that want one for both. */
export const PORT_PAIRS_SPARE = 16
/** Milliseconds that HTTP waits at the start for the raw ports, so that it also starts without a database. */
export const PORTS_START_MS_MAX = 2_000
/** Milliseconds between two reads of the owners of ports, however many connections ask. */
export const PORTS_READ_PAUSE_MS = 20
/** Milliseconds of silence after which a port, to which clients of an ended lobby still sent, is free again. */
export const PORT_SILENT_MS = 120_000
/** Such ports of each kind. */
export const PORTS_RESTING_MAX = 256
/** The share of MUSTER_EDGE_PORTS that such ports may be, so that there are always ports for lobbies. */
export const PORTS_RESTING_SHARE = 0.25
/** Raw ports that are opened at once. */
export const PORTS_OPENING_MAX = 16
/** Milliseconds between two reports of the bytes carried for lobbies (report-traffic.ts). */
export const TRAFFIC_REPORT_EVERY_MS = 5_000
/** Milliseconds between two removals of the counts of lobbies without traffic. */
export const TRAFFIC_REMOVE_EVERY_MS = 60_000
/** Milliseconds between two reports of the open connections to lobbies (report-connections.ts). */
export const CONNECTIONS_REPORT_EVERY_MS = 1_000
/** Milliseconds that HTTP waits at the start for the first report, so that it also starts without a database. */
export const CONNECTIONS_REPORT_START_MS_MAX = 2_000
/** Reports during which a count of 0 stays in the table, so that the matchmaker reads it. */
export const REPORTED_ZERO_KEPT = 60

/** Milliseconds that a connection waits for its player to be admitted: longer than a restart of the matchmaker. */
export const ADMIT_MS_MAX = 10_000
/** Connections of one player to one lobby. */
export const PLAYER_CONNECTIONS_MAX = 64
/** Players who have connections through this edge, or wait for one. */
export const PLAYERS_MAX = 50_000
/** Milliseconds between two writes of players' changes: those of the moment share one statement. */
export const PLAYERS_WRITE_PAUSE_MS = 5
/** Milliseconds between two attempts to write them while the database is away. */
export const PLAYERS_RETRY_MS = 200
/** Milliseconds that a hand-over waits until the players of its connections are written. */
export const WRITTEN_MS_MAX = 10_000
/** Milliseconds between two checks for answers of the matchmaker, in case a notification was lost. */
export const ADMISSIONS_EVERY_MS = 1_000
/** Milliseconds for which a player without a connection stays in the table, so that the matchmaker reads it. */
export const CLOSED_PLAYER_KEPT_MS = 60_000

/** Bytes of a datagram that the UDP echo returns. */
export const PING_BYTES_MAX = 61
/** Datagrams that the echo returns to a client at once: a measurement of 64 regions takes 4 at each edge. */
export const PINGS_AT_ONCE_MAX = 60
/** The same in a minute: at most 1 KB/s for an address that others forge. */
export const PINGS_PER_MINUTE_MAX = 600
/** Clients whose datagrams the echo counts. */
export const PING_CLIENTS_MAX = 20_000
/** Milliseconds between two attempts to open the echo's port while another program has it. */
export const PING_PORT_PAUSE_MS = 1_000
/** Addresses of this machine with a socket of their own in each UDP port. */
export const UDP_ADDRESSES_MAX = 16
/** Milliseconds between two reads of the addresses of this machine. */
export const UDP_ADDRESSES_EVERY_MS = 10_000
/** UDP sources (an address and a port) that have a session. */
export const UDP_SESSIONS_MAX = 10_000
/** UDP sessions of one client. */
export const UDP_SESSIONS_PER_CLIENT_MAX = 256
/** The share of all connections that UDP sessions may take where descriptors are scarce. */
export const UDP_SESSIONS_SHARE = 0.5
/** Milliseconds of silence after which a validated source is forgotten: games pause. */
export const UDP_IDLE_MS_MAX = 120_000
/** Milliseconds of silence after which a source that is not validated is forgotten. */
export const UDP_UNVALIDATED_IDLE_MS_MAX = 10_000
/** Milliseconds between two checks of all UDP sessions. */
export const UDP_SWEEP_MS = 1_000
/** Datagrams of one client in a second. A game sends about a hundred. */
export const UDP_DATAGRAMS_PER_SECOND_MAX = 50_000
/** UDP sources that wait until their player has been admitted. */
export const UDP_ADMITTING_MAX = 1_024
/** Datagrams that wait for a look-up, or for a session's socket. */
export const UDP_WAITING_MAX = 64
/** Bytes sent to a source that is not validated, for each byte received from it (RFC 9000, 8.1). */
export const REPLY_FACTOR_MAX = 3
/** Bytes sent in a second to the sources of one client that are not validated. */
export const UNVALIDATED_BYTES_PER_CLIENT_MAX = 64 * 1024
/** Bytes sent in a second to all sources that are not validated. */
export const UNVALIDATED_BYTES_MAX = 1024 * 1024
/** Milliseconds after which the clients that have a seat in a lobby are read again. */
export const SEATS_AGE_MS = 250
/** Players of one address in a lobby, as large as the largest lobby. */
export const SEATS_PER_ADDRESS_MAX = 256
/** Lobbies whose seats are read at once. */
export const SEATS_READING_MAX = 8

/** HTTP/2: streams of one connection that are open at once. */
export const HTTP2_STREAMS_MAX = 128
/** Header fields of a request: more than HEADERS_MAX, because browsers send each cookie as a field. */
export const HTTP2_FIELDS_MAX = 256
/** Bytes of all fields of a request after decompression. Up to here a longer one than HEADER_BYTES_MAX gets a response. */
export const HTTP2_FIELD_BYTES_MAX = 64 * 1024
/** Bytes of a body that a client may send before the edge has read any: a sender over 40 ms then reaches 13 MB/s. */
export const HTTP2_STREAM_WINDOW_BYTES = 512 * 1024
/** The same for all bodies of a connection. */
export const HTTP2_CONNECTION_WINDOW_BYTES = 1024 * 1024
/** Bodies that may fill such a window, because their length is not known to be small. Bounds memory. */
export const HTTP2_BODIES_POOL: PoolLimits = { slots_max: 512, client_max: 128 }
/** Megabytes that Node may hold for one connection: a file from memory for each stream, and the tables of compression. */
export const HTTP2_MEMORY_MB_MAX = 64
/** Lobbies, and players of lobbies, that one connection counts for: two for each stream, and one that has no stream. */
export const HTTP2_VISITS_MAX = 2 * HTTP2_STREAMS_MAX + 1
/** Invalid frames of one connection, empty DATA frames among them. */
export const HTTP2_INVALID_FRAMES_MAX = 32
/** Streams of one connection that are refused, because too many are open. */
export const HTTP2_REFUSED_STREAMS_MAX = 100
/** Streams that a client may reset at once. A browser that leaves a page resets all of them. */
export const HTTP2_RESETS_BURST_MAX = 3 * HTTP2_STREAMS_MAX
/** Streams that a client may reset in a second after that. */
export const HTTP2_RESETS_PER_SECOND_MAX = 33
/** Values in one SETTINGS frame. */
export const HTTP2_SETTINGS_ENTRIES_MAX = 32
/** SETTINGS frames of one connection between two checks. */
export const HTTP2_SETTINGS_FRAMES_MAX = 8
/** PING frames of one connection between two checks. */
export const HTTP2_PINGS_MAX = 32
/** Bytes of frames that belong to no head and no body, between two checks: PRIORITY, WINDOW_UPDATE, unknown ones. */
export const HTTP2_CONTROL_BYTES_MAX = 256 * 1024
/** The share of a body that the heads of its frames may be. */
export const HTTP2_DATA_OVERHEAD_SHARE = 0.1

/** Bytes of a client that are kept until something takes them. Further ones stay in the system's buffers. */
export const READ_AHEAD_BYTES_MAX = 64 * 1024
/** Bytes of a body that are written in one piece with the head. */
export const SMALL_BYTES_MAX = 16 * 1024

/** Connections to one lobby. */
export const SOCKETS_PER_TARGET_MAX = 8_192

/** Places for requests at one role, and how many one client may hold. A /56 may hold 4 times this number, a /48 16 times. */
export type PoolLimits = { slots_max: number; client_max: number }
/**
 * One pool for each class of request (proxy/request-class.ts), so that no class exhausts what another needs. `seat` is a
 * reserve for finds and for calls of lobbies. `parked` requests wait at the role, which has said so (wire/trunk-frames.ts).
 */
export const ROLE_POOLS = {
  seat: { slots_max: 4_096, client_max: 512 },
  call: { slots_max: 2_048, client_max: 256 },
  wait: { slots_max: 1_024, client_max: 256 },
  upload: { slots_max: 512, client_max: 128 },
  live: { slots_max: 16_384, client_max: 1_024 },
  parked: { slots_max: 16_384, client_max: 2_048 },
} as const satisfies Record<string, PoolLimits>
/** Requests of a class that are at one role at the same time. The others wait at the edge (proxy/client-queue.ts). */
export const ROLE_CONCURRENT_MAX = { seat: 256, call: 64, wait: 256 } as const
/** Requests whose small body is being collected. Each holds at most SMALL_BODY_BYTES_MAX, so this also bounds memory. */
export const ARRIVING_POOL: PoolLimits = { slots_max: 1_024, client_max: 128 }
/** Connections to one role: never reached, because every request takes a place first. */
export const ROLE_SOCKETS_MAX =
  ROLE_POOLS.seat.slots_max +
  ROLE_POOLS.call.slots_max +
  ROLE_POOLS.wait.slots_max +
  ROLE_POOLS.upload.slots_max +
  ROLE_POOLS.live.slots_max

/** Bytes of a body that is collected before its request is forwarded to a role. */
export const SMALL_BODY_BYTES_MAX = 64 * 1024
/** Milliseconds until a small body must be complete. */
export const SMALL_BODY_MS_MAX = 30_000
/** Milliseconds after its head during which a small body has no minimum rate. */
export const SMALL_BODY_GRACE_MS = 5_000
/** Bytes per second at which a small body must arrive after the grace period. */
export const BODY_BYTES_PER_SECOND_MIN = 1_024
/** Milliseconds over which the rate of a large body is measured. */
export const LARGE_BODY_PACE_MS = 5_000

/** Free connections that are kept to one address. */
export const FREE_SOCKETS_PER_TARGET_MAX = 256
/** Free connections that are kept to all addresses. */
export const FREE_SOCKETS_MAX = 2_048
/** Milliseconds that a free connection is kept: less than the 5 s after which many servers close an idle one. */
export const FREE_SOCKET_MS_MAX = 4_000
/** Milliseconds until a connection to a backend must be made. */
export const CONNECT_MS_MAX = 5_000
/** Milliseconds from a WebSocket handshake's request to the backend's response. */
export const HANDSHAKE_MS_MAX = 30_000

/** Milliseconds that a request waits for a role that is being restarted. */
export const ROLE_WAIT_MS_MAX = 2_500
/** Milliseconds between two attempts to connect to such a role. */
export const ROLE_PAUSE_MS = 50
/** Requests that wait for one such role. */
export const ROLE_WAITERS_MAX = 2_000

/** Milliseconds between two reads of who has which shard, in case a notification was lost. */
export const LEASES_EVERY_MS = 5_000
/** Matchmakers that are known. */
export const MATCHMAKERS_MAX = 64
/** Credentials whose shard is remembered. */
export const SHARD_CREDENTIALS_MAX = 50_000
/** Milliseconds between two probes of a matchmaker, where there are several. */
export const MATCHMAKER_PROBE_EVERY_MS = 500
/** Milliseconds until a probe must be answered. */
export const MATCHMAKER_PROBE_MS_MAX = 750
/** Probes in a row that fail before a matchmaker counts as unreachable. */
export const MATCHMAKER_PROBES_MAX = 2

/** Bytes of a body that are read and dropped after an early response, so that the client can read the response. */
export const DRAIN_BYTES_MAX = 1024 * 1024
/** Milliseconds that such a body is read. */
export const DRAIN_MS_MAX = 2_000

/** Trunks to processes of roles. Beyond it those without a request are closed. */
export const TRUNKS_MAX = 130
/** Milliseconds from the connection to the acceptance of a trunk. After it, requests go over HTTP. */
export const TRUNK_OPEN_MS_MAX = 10_000
/** Milliseconds for which a role that accepts no trunk gets its requests over HTTP, before it is asked again. */
export const TRUNK_ABSENT_MS = 5_000
/** Milliseconds after which a request to such a role lets the next one of its queue pass. */
export const UNREPORTED_WAIT_MS = 2_000
/** Milliseconds between two pings over a trunk that has requests. */
export const TRUNK_PING_EVERY_MS = 10_000
/** Milliseconds after a ping without a byte, until the trunk counts as lost. */
export const TRUNK_SILENT_MS_MAX = 30_000

/** Milliseconds that requests under way may take when the edge is stopped. */
export const STOP_MS_MAX = 1_000

/** Lobbies whose ports are cached. */
export const ROUTES_MAX = 20_000
/** Milliseconds after which a cached route is read again, in case a notification was lost. */
export const ROUTE_AGE_MS_MAX = 5_000
/** Milliseconds for which it is cached that a lobby has ended. */
export const ROUTE_ENDED_MS = 1_000
/** Look-ups in the database at once. */
export const LOOKUPS_MAX = 64
/** Look-ups without a result that one client may cause in a second. */
export const FAILED_LOOKUPS_PER_CLIENT_MAX = 100
/** Clients whose look-ups without a result are counted. */
export const LOOKUP_CLIENTS_MAX = 10_000

/** Hosts of sites whose current site is cached. */
export const SITE_HOSTS_MAX = 10_000
/** Milliseconds after which the site of a host is read again. */
export const SITE_HOST_AGE_MS_MAX = 1_000
/** Milliseconds after a deploy during which open pages still find hashed files of the previous version. */
export const PREVIOUS_SITE_MS = 10 * 60_000
/** Files in all cached manifests. */
export const MANIFEST_FILES_MAX = 200_000
/** Bytes of a file that is served from memory. */
export const MEMORY_FILE_BYTES_MAX = PACKED_IN_MEMORY_BYTES_MAX
/** Bytes of all files in memory. */
export const MEMORY_FILES_BYTES_MAX = 64 * 1024 * 1024

/** Bytes of all cached lists of block hashes. */
export const BLOCK_LISTS_BYTES_MAX = 32 * 1024 * 1024
/** Lists of block hashes that are computed from whole files at once. */
export const BLOCK_LISTS_MADE_AT_ONCE_MAX = 2
/** Requests that wait for such a computation. */
export const BLOCK_LISTS_WAITING_MAX = 64
/** Damaged files that are refused without being read. */
export const DAMAGED_MAX = 10_000
/** Milliseconds after which the list of damaged files is read again, in case a notification was lost. */
export const DAMAGED_EVERY_MS = 30_000

/** Images of games that are cached. */
export const MEDIA_MAX = 10_000
/** Milliseconds after which an image's record is read again. */
export const MEDIA_AGE_MS_MAX = 1_000

/** Bytes from which on a text file without a compressed form is compressed, and kept in memory. */
export const COMPRESSED_BYTES_MIN = 1_400
/** Compressed files that are sent decompressed at once, to all clients and to one. Each holds up to 17 MB for the decompressor. */
export const UNPACKED_POOL: PoolLimits = { slots_max: 16, client_max: 12 }
/** Bytes that one such file may become. The connection is closed at more. */
export const UNPACKED_BYTES_MAX = 2 * 1024 * 1024 * 1024
/** Versions whose routes are cached. */
export const ROUTED_VERSIONS_MAX = 1_000

/** Passwords of sites that are checked by bcrypt at once. */
export const AUTH_RUNNING_MAX = 2
/** Passwords of all sites that wait for a check. */
export const AUTH_WAITING_MAX = 64
/** Passwords of one site that wait for a check. */
export const AUTH_WAITING_PER_SITE_MAX = 16
/** Passwords that one client may try on one site in a row. A remembered password is no attempt. */
export const AUTH_ATTEMPTS_BURST = 20
/** Passwords that one client may try on one site in a minute. */
export const AUTH_ATTEMPTS_PER_MINUTE = 20
/** Clients whose attempts are counted. */
export const AUTH_CLIENTS_MAX = 10_000
/** Milliseconds for which a correct password is remembered. */
export const AUTH_REMEMBERED_MS = 5 * 60_000
/** Correct passwords that are remembered. */
export const AUTH_REMEMBERED_MAX = 10_000
/** Characters of an Authorization header for a site. */
export const AUTH_CREDENTIALS_LENGTH_MAX = 1_024

/** Certificates, with their keys, in one folder. */
export const CERTIFICATES_MAX = 2_000
/** Bytes of one file of that folder. */
export const CERTIFICATE_BYTES_MAX = 64 * 1024
/** Milliseconds between two checks of that folder for changed files. */
export const CERTIFICATES_READ_MS = 1_000
/** Certificates from the database that are cached. */
export const STORED_CERTIFICATES_MAX = 10_000
/** Milliseconds after which a cached certificate is read again. */
export const STORED_CERTIFICATE_MS_MAX = 30_000
/** Certificates of this machine's own authority that are cached. */
export const LOCAL_CERTIFICATES_MAX = 1_000

/** Returns how many connections may be open with this process's limit of open descriptors. */
export function connectionsMax(): number {
  const available = openFilesMax() - DESCRIPTORS_RESERVED
  return Math.max(1, Math.min(CONNECTIONS_MAX, Math.floor(available / DESCRIPTORS_PER_CONNECTION)))
}

/** The soft limit, which Node raises to the hard one. Where it cannot be read, the usual default of systems. */
function openFilesMax(): number {
  const OPEN_FILES_DEFAULT = 1_024
  try {
    const line = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
    if (line === 'unlimited') return Number.MAX_SAFE_INTEGER
    return line === undefined ? OPEN_FILES_DEFAULT : Number(line)
  } catch {
    return OPEN_FILES_DEFAULT
  }
}
/** Bytes of a file of a site that are fetched from a bucket at once: a whole number of blocks. */
export const SITE_SEGMENT_BYTES = 4 * 1024 * 1024
/** Fetches from a bucket at once. Each holds one segment in memory. */
export const SITE_FETCHES_AT_ONCE_MAX = 16
/** Fetches that wait for one of them to end. */
export const SITE_FETCHES_WAITING_MAX = 1_000
