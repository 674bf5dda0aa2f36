// What lobbies have written, and which there were. A lobby's log is what its server wrote to its standard output and
// error: it goes on after the lobby has ended, for as long as the operator keeps it.
import Type, { type Static } from 'typebox'
import { operation } from '../operation.ts'
import { Id, IsCut, object, Timestamp } from '../records.ts'
import { ServicePerf } from './rays.ts'

const defaults = { service: 'api', auth: ['admin', 'user', 'cloud'], rate_limit: 'cloud' } as const
const lobby = { game_id: Id, lobby_id: Id }
const namespace = { game_id: Id, namespace_id: Id }
const Milliseconds = (description: string) =>
  Type.Integer({ minimum: 0, maximum: 253_402_300_799_999, description: `${description} Milliseconds since 1970.` })
const PresignedUrl = Type.String({ description: 'Good for an hour, for whoever has it.' })

/** Lines of a first answer, and of one that goes on behind it. */
export const LOG_LINES_MAX = 256
export const LOG_LINES_MORE_MAX = 64

export const LogStreamName = Type.Enum(['std_out', 'std_err'])
const WatchIndex = Type.Optional(Type.String({ maxLength: 64, description: 'The `watch.index` of the answer before.' }))

const LogFormat = Type.Optional(
  Type.Enum(['base64', 'text'], {
    description:
      'How `lines` are written; base64 unless given. text: as UTF-8, where a control character is written out (`\\x1b[31m`) and a byte that is not UTF-8 becomes U+FFFD.',
  }),
)

export const getLobbyLogs = operation({
  ...defaults,
  id: 'games.matchmaker.getLobbyLogs',
  method: 'GET',
  path: '/cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}/logs',
  summary:
    'The log of a lobby: without a watch_index its last 256 lines, at once; with one up to 64 behind it, as soon as there are any, or none after a while. The same address takes a WebSocket, with the token in the query; docs/logs.md has its messages.',
  role: 'developer',
  params: object(lobby),
  query: object({ stream: LogStreamName, watch_index: WatchIndex, format: LogFormat }),
  response: object({
    lines: Type.Array(Type.String(), {
      description:
        'In base64, byte for byte as the server wrote them; decoded, they may hold what drives a terminal. With `format=text` as text.',
    }),
    timestamps: Type.Array(Timestamp, { description: 'When each was written, ascending.' }),
    watch: object({ index: Type.String() }),
    is_complete: Type.Boolean({ description: 'Whether the server has ended, and nothing comes behind these.' }),
  }),
  errors: ['GAME_NOT_FOUND', 'LOBBY_NOT_FOUND', 'LOBBY_LOGS_NOT_REACHABLE'],
})

/** What a WebSocket at the same address is told. `text` is made harmless for whoever shows it. */
export type LogMessage =
  | { kind: 'lines'; index: string; lines: { ts: string; text: string }[]; is_complete: boolean }
  | { kind: 'heartbeat'; index: string }

export const exportLobbyLogs = operation({
  ...defaults,
  id: 'games.matchmaker.exportLobbyLogs',
  method: 'POST',
  path: '/cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}/logs/export',
  summary:
    'An address of all that is kept of the log by the time it is fetched: stdout.txt or stderr.txt, each line with its time, made harmless to terminals.',
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
    'An address of export.csv, a row for each lobby of the game that was created in that time, namespace by namespace, the oldest first.',
  role: 'viewer',
  params: object({ game_id: Id }),
  body: object({
    query_start: Milliseconds('The first moment.'),
    query_end: Milliseconds('The first moment after it.'),
  }),
  response: object({ url: PresignedUrl }),
  errors: ['GAME_NOT_FOUND'],
})

export const LogsLobbySummary = object(
  {
    lobby_id: Id,
    namespace_id: Id,
    lobby_group_name_id: Type.String({ description: 'Its game mode.' }),
    region_id: Id,
    create_ts: Timestamp,
    start_ts: Type.Optional(Type.String({ format: 'date-time', description: 'When its server was started.' })),
    ready_ts: Type.Optional(Type.String({ format: 'date-time', description: 'When its server called ready.' })),
    status: object({
      running: object({}, 'Always there, as known clients expect.'),
      stopped: Type.Optional(
        object(
          {
            stop_ts: Timestamp,
            failed: Type.Boolean({
              description: 'Whether its server ended otherwise than by exit code 0 or because it was told to.',
            }),
            exit_code: Type.Integer({
              description:
                'Exit code of the server; 128 plus the number of the signal that ended it. 127: the program does not exist. -1: unknown, for example because the server has not ended yet or was never started.',
            }),
          },
          'There when it has stopped.',
        ),
      ),
    }),
  },
  'A lobby that there is, or was.',
)
export type LogsLobbySummary = Static<typeof LogsLobbySummary>

export const listNamespaceLobbies = operation({
  ...defaults,
  id: 'games.namespaces.logs.listNamespaceLobbies',
  method: 'GET',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/logs/lobbies',
  summary:
    'The 64 newest lobbies of a namespace, running and stopped, or those before a time; more where several were created in the moment of the last.',
  role: 'viewer',
  params: object(namespace),
  query: object({
    before_create_ts: Type.Optional(
      Type.String({ format: 'date-time', description: 'The `create_ts` of the last one that is known.' }),
    ),
  }),
  response: object({
    lobbies: Type.Array(LogsLobbySummary, { description: 'The newest first.' }),
    is_cut: IsCut('Older lobbies follow with `before_create_ts`.'),
  }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})

export const LobbyMetrics = object(
  {
    job: Type.String({ description: 'The lobby.' }),
    cpu: Type.Array(Type.Number(), { description: 'Cores that it kept busy, on average, in each step.' }),
    memory: Type.Array(Type.Number(), { description: 'The most bytes of memory that were seen in each step.' }),
    allocated_memory: Type.Number({ description: 'Bytes that it may use.' }),
    start_ts: Timestamp,
    step: Type.Integer({
      description:
        'Milliseconds. Longer for those that live longer: it is always the whole life, in 240 steps at most.',
    }),
  },
  'What the processes of a lobby have used since it began.',
)
export type LobbyMetrics = Static<typeof LobbyMetrics>

export const getNamespaceLobby = operation({
  ...defaults,
  id: 'games.namespaces.logs.getNamespaceLobby',
  method: 'GET',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/logs/lobbies/{lobby_id}',
  summary:
    'A lobby of a namespace, running or stopped: what it used, addresses of its logs, and where the time of the request went that started it.',
  role: 'developer',
  params: object({ ...namespace, lobby_id: Id }),
  response: object({
    lobby: LogsLobbySummary,
    metrics: Type.Optional(LobbyMetrics),
    stdout_presigned_urls: Type.Array(PresignedUrl, { description: 'None before its server was started.' }),
    stderr_presigned_urls: Type.Array(PresignedUrl),
    perf_lists: Type.Array(ServicePerf, { description: 'None where no request started it, or its ray is not kept.' }),
    is_cut: IsCut('It has the first 64 of `perf_lists`.'),
  }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND', 'LOBBY_NOT_FOUND'],
})
