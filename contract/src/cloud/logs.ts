// Logs of lobbies, and past lobbies. The log of a lobby is what its server wrote to standard output and standard error. It
// outlives the lobby, for as long as the operator's settings keep it.
import Type, { type Static } from 'typebox'
import { GameId, LobbyId, NamespaceId, RegionId } from '../ids.ts'
import { operation } from '../operation.ts'
import { described, IsCut, object, Timestamp, Watch } from '../records.ts'
import { ServicePerf } from './rays.ts'

const defaults = { service: 'api', auth: ['admin', 'user', 'cloud'], rate_limit: 'cloud' } as const
const lobby = { game_id: GameId, lobby_id: LobbyId }
const namespace = { game_id: GameId, namespace_id: NamespaceId }
const Milliseconds = (description: string) =>
  Type.Integer({
    minimum: 0,
    maximum: 253_402_300_799_999,
    description: `${description} Milliseconds since the epoch.`,
  })
const PresignedUrl = Type.String({
  description: 'URL of the file, valid for an hour. It needs no credential, so keep it secret.',
})

/** Lines of a first response, and of one that continues it. */
export const LOG_LINES_MAX = 256
/** Lines of a later response. */
export const LOG_LINES_MORE_MAX = 64

export const LogStreamName = Type.Enum(['std_out', 'std_err'], {
  description: '`std_out`: standard output of the server. `std_err`: standard error.',
})
const WatchIndex = Type.Optional(
  Type.String({
    maxLength: 64,
    description:
      '`watch.index` of the previous response. The call waits for lines after it. Without it, the last lines are returned at once.',
  }),
)

const LogFormat = Type.Optional(
  Type.Enum(['base64', 'text'], {
    description:
      'Encoding of `lines`. Default `base64`. `text`: UTF-8, with control characters escaped (`\\x1b[31m`) and invalid bytes replaced by U+FFFD.',
  }),
)

export const getLobbyLogs = operation({
  ...defaults,
  id: 'games.matchmaker.getLobbyLogs',
  method: 'GET',
  path: '/cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}/logs',
  summary:
    'Gets the log of a lobby: the last 256 lines, or with a watch index the next lines (at most 64). A WebSocket at the same address streams it: see docs/logs.md.',
  role: 'developer',
  params: object(lobby),
  query: object({ stream: LogStreamName, watch_index: WatchIndex, format: LogFormat }),
  response: object({
    lines: Type.Array(Type.String(), {
      description:
        'Lines of the log, oldest first. In base64 they are the exact bytes, which may contain terminal escape sequences.',
    }),
    timestamps: Type.Array(Timestamp('When the line was written.'), {
      description: 'When each line was written, in the order of `lines`.',
    }),
    watch: Watch,
    is_complete: Type.Boolean({ description: 'Whether the log ends with these lines: the server has ended.' }),
  }),
  errors: ['GAME_NOT_FOUND', 'LOBBY_NOT_FOUND', 'LOBBY_LOGS_NOT_REACHABLE'],
})

/** Messages of a WebSocket at the same address. Control characters in `text` are escaped, so a page may show it. */
export type LogMessage =
  | { kind: 'lines'; index: string; lines: { ts: string; text: string }[]; is_complete: boolean }
  | { kind: 'heartbeat'; index: string }

export const exportLobbyLogs = operation({
  ...defaults,
  id: 'games.matchmaker.exportLobbyLogs',
  method: 'POST',
  path: '/cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}/logs/export',
  summary:
    'Gets a URL for the whole log as a text file, each line with its time. Control characters are escaped. The file is made when the URL is fetched.',
  role: 'developer',
  params: object(lobby),
  body: object({ stream: LogStreamName }),
  response: object({ url: PresignedUrl }),
  errors: ['GAME_NOT_FOUND', 'LOBBY_NOT_FOUND', 'MATCHMAKER_LOBBY_NOT_STARTED'],
})

export const exportMatchmakerLobbyHistory = operation({
  ...defaults,
  id: 'games.matchmaker.exportMatchmakerLobbyHistory',
  method: 'POST',
  path: '/cloud/games/{game_id}/matchmaker/lobbies/export-history',
  summary:
    'Gets a URL for a CSV file with the lobbies of the game that were created in a time window, by namespace, oldest first.',
  role: 'viewer',
  params: object({ game_id: GameId }),
  body: object({
    query_start: Milliseconds('Start of the window, inclusive.'),
    query_end: Milliseconds('End of the window, exclusive.'),
  }),
  response: object({ url: PresignedUrl }),
  errors: ['GAME_NOT_FOUND'],
})

export const ReportedProtocol = object(
  {
    name: Type.String({ description: 'Protocol of the version config. Example: `agones`.' }),
    state: Type.String({
      description: 'State of the server in the words of the protocol. Example: `Allocated`.',
    }),
    health_ts: Type.Optional(
      Timestamp('When the server last reported its health, within 30 s. Absent when it never did.'),
    ),
    is_healthy: Type.Optional(
      Type.Boolean({ description: 'What the server reported of its health. Absent when it never did.' }),
    ),
  },
  'What the server reported in the protocol of another platform. Absent in lists, and where its server speaks none.',
)
export type ReportedProtocol = Static<typeof ReportedProtocol>

export const LogsLobbySummary = object(
  {
    lobby_id: LobbyId,
    namespace_id: NamespaceId,
    lobby_group_name_id: Type.String({ description: 'Name of the game mode in the version config.' }),
    region_id: RegionId,
    create_ts: Timestamp('When the lobby was created.'),
    start_ts: Type.Optional(Timestamp('When the server was started. Absent before.')),
    ready_ts: Type.Optional(Timestamp('When the server called ready. Absent before.')),
    protocol: Type.Optional(ReportedProtocol),
    status: object(
      {
        live: Type.Optional(
          object(
            {
              is_idle: Type.Boolean({
                description: 'Whether the lobby has no players: no seat is reserved or connected.',
              }),
              is_closed: Type.Boolean({ description: 'Whether find leaves the lobby out.' }),
              is_stalled: Type.Boolean({
                description: 'Whether the server has stopped responding. A stalled lobby takes no new players.',
              }),
              is_outdated: Type.Boolean({ description: 'Whether its version is neither deployed nor rolled out now.' }),
            },
            'State of the running lobby. Absent when it has stopped.',
          ),
        ),
        running: object({}, 'Always present, because known clients require it. Use `stopped` to tell the state.'),
        stopped: Type.Optional(
          object(
            {
              stop_ts: Timestamp('When the lobby was stopped.'),
              failed: Type.Boolean({
                description:
                  'Whether the lobby failed: the server ended on its own, before it was ready or not with exit code 0.',
              }),
              exit_reason: Type.Optional(
                Type.String({
                  description:
                    'How the server ended, such as `exit`, `signal`, `oom` (out of memory), `pids`, `disk`, `never_ready`, `stopped` (by the platform) or `lost`. Absent while it ends, and when its record is no longer kept.',
                }),
              ),
              exit_code: Type.Integer({
                description:
                  'Exit code of the server; 128 plus the signal number when a signal ended it. 127: the program does not exist. -1: unknown, for example because the server was never started.',
              }),
            },
            'Present when the lobby has stopped.',
          ),
        ),
      },
      'Whether the lobby runs or has stopped.',
    ),
  },
  'A running or stopped lobby.',
)
export type LogsLobbySummary = Static<typeof LogsLobbySummary>

export const listNamespaceLobbies = operation({
  ...defaults,
  id: 'games.namespaces.logs.listNamespaceLobbies',
  method: 'GET',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/logs/lobbies',
  summary:
    'Lists the lobbies of a namespace, running and stopped, newest first. A page has 64, or more when several were created in the same millisecond.',
  role: 'viewer',
  params: object(namespace),
  query: object({
    before_create_ts: Type.Optional(
      Timestamp('Next page: `create_ts` of the last lobby. Only lobbies created before are listed.'),
    ),
  }),
  response: object({
    lobbies: Type.Array(LogsLobbySummary, { description: 'The lobbies, newest first.' }),
    is_cut: IsCut('Get older lobbies with `before_create_ts`.'),
  }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})

export const LobbyMetrics = object(
  {
    job: Type.String({ description: 'Id of the lobby.' }),
    cpu: Type.Array(Type.Number(), { description: 'Mean number of busy cores in each step.' }),
    memory: Type.Array(Type.Number(), { description: 'Highest memory use in each step, in bytes.' }),
    allocated_memory: Type.Number({ description: 'Memory limit of the lobby, in bytes.' }),
    start_ts: Timestamp('When the first step begins.'),
    step: Type.Integer({
      description:
        'Length of a step in milliseconds. It grows with the age of the lobby: at most 240 steps cover the whole time.',
    }),
  },
  'Processor and memory use of a lobby since its start.',
)
export type LobbyMetrics = Static<typeof LobbyMetrics>

export const getNamespaceLobby = operation({
  ...defaults,
  id: 'games.namespaces.logs.getNamespaceLobby',
  method: 'GET',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/logs/lobbies/{lobby_id}',
  summary:
    'Gets a running or stopped lobby: its metrics, URLs of its logs, and the timings of the request that started it.',
  role: 'developer',
  params: object({ ...namespace, lobby_id: LobbyId }),
  response: object({
    lobby: LogsLobbySummary,
    metrics: Type.Optional(
      described(LobbyMetrics, 'Processor and memory use of the lobby since its start. Absent when none was recorded.'),
    ),
    stdout_presigned_urls: Type.Array(PresignedUrl, {
      description: 'URLs of the standard output. Empty before the server was started.',
    }),
    stderr_presigned_urls: Type.Array(PresignedUrl, {
      description: 'URLs of the standard error. Empty before the server was started.',
    }),
    perf_lists: Type.Array(ServicePerf, {
      description: 'Timings of the request that started the lobby. Empty when no request did, or its ray is not kept.',
    }),
    is_cut: IsCut('`perf_lists` contains the first 64.'),
  }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND', 'LOBBY_NOT_FOUND'],
})
