// The house rules as data: which part may import which, and which words only stand where they are allowed. An arrow or
// a word that is needed after all gets a line here, with its reason; a line that nothing needs any more is a fault.

/** The files at the root of server/src: every room stands on them, and they import only each other. */
const ROOT_FILES = [
  'absent-nulls',
  'batch-writer',
  'config',
  'exact-json',
  'regions',
  'context',
  'caller',
  'ids',
  'free-buffer',
  'json-text',
  'mail',
  'parking-protocol',
  'procfs',
  'schema-check',
  'semaphore',
  'start-error',
  'start-garbage',
  'suggestion',
  'timer-while-needed',
  'toml',
  'text-position',
  'tsig-key',
] as const
const TOOLS = ['tokens', 'objects', 'lobby-logs', 'addresses', 'outbound', 'observe', 'database', 'contract'] as const
const ROOM = [...ROOT_FILES, ...TOOLS]

/**
 * What each part may import beside itself. A part is a workspace, a room of server/src, or a file at the root of it.
 * http, runner, edge and matchmaker meet only in the database. The one exception: http serves the matchmaker's operations.
 */
export const ARROWS: Record<string, readonly string[]> = {
  contract: [],
  sdk: [],

  main: [
    'config',
    'context',
    'start-error',
    'start-garbage',
    'roles',
    'runner',
    'edge',
    'supervisor',
    'database',
    'observe',
  ],
  // It loads what the roles load, so that Node keeps what it has compiled.
  compile: ['main', 'roles', 'runner', 'edge'],
  context: ['config', 'start-error', 'mail', ...TOOLS],
  config: ['regions', 'suggestion', 'tsig-key'],
  regions: ['text-position', 'schema-check', 'toml'],
  caller: ['contract', 'tokens'],
  'absent-nulls': [],
  'batch-writer': [],
  'exact-json': [],
  ids: [],
  'free-buffer': [],
  'json-text': [],
  // Mails are shared among the clients that asked for them.
  mail: ['addresses', 'semaphore'],
  'parking-protocol': [],
  procfs: [],
  semaphore: [],
  'schema-check': ['contract', 'absent-nulls', 'suggestion'],
  suggestion: [],
  'timer-while-needed': [],
  'text-position': [],
  toml: ['text-position'],
  'tsig-key': [],
  'start-error': ['config'],
  'start-garbage': [],

  // What the matchmaker wrote, for whoever reads it: roles that may not import each other.
  journal: ['context', 'database'],
  // Who checks a captcha: seats and logins require one.
  captcha: ['context', 'outbound', 'contract'],
  // What a role opens, in order, and closes in reverse.
  roles: [...ROOM, 'http', 'cloud', 'analytics', 'captcha', 'matchmaker', 'identity', 'kv'],
  http: [...ROOM, 'cloud', 'analytics', 'captcha', 'matchmaker', 'identity', 'kv'],
  cloud: [...ROOM, 'journal', 'analytics'],
  // The journal folded into facts and roll-ups, and the queries over them.
  analytics: [...ROOM, 'journal'],
  identity: [...ROOM, 'captcha'],
  kv: ROOM,
  matchmaker: [...ROOM, 'journal', 'captcha'],
  runner: ROOM,
  edge: ROOM,
  // The roles are its children, and no code of theirs runs in it.
  supervisor: ROOM,
  // It reads what the matchmaker wrote, and takes the data folder as the supervisor does.
  backup: [...ROOM, 'supervisor', 'matchmaker', 'journal'],

  tokens: ['ids', 'contract'],
  // What a process has left behind is told by whether it lives.
  objects: ['tokens', 'procfs', 'contract'],
  // Other machines are asked through the database.
  'lobby-logs': ['config', 'database', 'contract'],
  addresses: ['outbound', 'tokens'],
  outbound: ['tokens', 'tsig-key'],
  observe: ['config', 'batch-writer'],
  database: ['start-error', 'contract'],

  cli: ['supervisor', 'backup'],
  'examples/arena': ['sdk'],
  // A stranger's: it knows openapi.json and nothing of ours.
  'examples/generated-client': [],
  // Analytics are measured on roll-ups that the platform itself has made.
  bench: ['analytics', 'contract', 'config', 'tokens', 'observe', 'database', 'examples/arena'],
  scripts: ['config', 'contract'],
}

/**
 * What the files and folders inside a room may import of each other, from the top to the bottom: this is the picture of the
 * room. An arrow that no import needs any more is a fault, and so is a circle.
 */
export const INSIDE: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'server/src/matchmaker': {
    start: ['book', 'explanations', 'idle-lobbies', 'metrics', 'projection', 'retention', 'seats', 'shards', 'watch'],
    calls: ['book', 'seats', 'shards'],
    'idle-lobbies': ['book', 'seats', 'shards', 'watch'],
    metrics: ['projection', 'shards', 'watch'],
    retention: ['book', 'explanations'],
    seats: ['book', 'explanations', 'shards', 'watch'],
    explanations: ['book', 'shards'],
    watch: ['book', 'shards'],
    shards: ['book', 'projection'],
    projection: ['book'],
    book: [],
  },
  'server/src/edge': {
    start: [
      'cdn',
      'connection-limits',
      'domains',
      'hosts',
      'http',
      'limits',
      'lobby-connections',
      'lookups',
      'proxy',
      'proxy-socket',
      'report-connections',
      'routes',
      'streams',
      'tls',
    ],
    proxy: [
      'cdn',
      'connection-limits',
      'domains',
      'hosts',
      'http',
      'limits',
      'lobby-connections',
      'lookups',
      'routes',
      'shared-reads',
      'splice',
      'tls',
    ],
    streams: [
      'connection-limits',
      'hosts',
      'limits',
      'lobby-connections',
      'lookups',
      'routes',
      'shared-reads',
      'splice',
      'tls',
    ],
    cdn: ['http', 'limits', 'lookups'],
    http: ['connection-limits', 'hosts', 'limits', 'routes', 'tls'],
    'report-connections': ['limits', 'lobby-connections'],
    domains: ['limits', 'lookups'],
    'shared-reads': ['routes'],
    splice: ['limits', 'tls'],
    tls: ['hosts', 'limits', 'lookups'],
    routes: ['limits', 'lookups'],
    'connection-limits': ['limits'],
    hosts: ['limits'],
    lookups: ['limits'],
    limits: [],
  },
}

/** Arrows inside a room that lead back, each until it is gone. */
export const BACK = [
  { room: 'server/src/matchmaker', arrow: 'projection -> shards', why: 'load.ts.' },
  { room: 'server/src/edge', arrow: 'http -> proxy', why: 'connections.ts.' },
] as const

/** Arrows of one file only. */
export const FILE_ARROWS = [
  { file: 'examples/arena/deploy.ts', to: 'contract', why: 'It calls the public API by the typed client.' },
  {
    file: 'bench/src/find/peer.ts',
    to: 'matchmaker',
    why: 'Asks a game as the platform does, so that both pay for it.',
  },
  { file: 'bench/src/find/switched-matchmaker.ts', to: 'main', why: 'The role itself, in a process of the bench.' },
  { file: 'bench/src/find/watched-matchmaker.ts', to: 'main', why: 'The role itself, in a process of the bench.' },
] as const

/** The matchmaker's core, and what it writes: functions of what they are given, so that all can be simulated and replayed. */
export const PURE = ['server/src/matchmaker/book/', 'server/src/journal/changes.ts'] as const

/** What a pure file may not say. */
export const IMPURE_WORDS =
  /\b(Date\.now|performance\.now|new Date\(\)|Math\.random|crypto|setTimeout|setInterval|setImmediate|queueMicrotask|process|fetch|await|async)\b/

/** Written by a program when they are needed, and not committed: they may be there or not, and are not looked at. */
export const GENERATED: readonly string[] = ['examples/generated-client/api.ts']

/** Files beside the code that only its tests use. They count as tests: nothing else may import them. */
export const TEST_SUPPORT = ['sdk/src/test-platform.ts'] as const

export type WordRule = {
  name: string
  pattern: RegExp
  /** The folders it holds in. */
  within: readonly string[]
  why: string
  allowed: readonly { file: string; why: string }[]
}

export const WORDS: readonly WordRule[] = [
  {
    name: 'environment',
    pattern: /\bprocess\s*\.\s*env\b|\benv\b[^;]*\bfrom 'node:process'|\}\s*=\s*process\b/,
    within: ['contract/', 'server/src/', 'sdk/', 'cli/', 'scripts/', 'examples/', 'bench/'],
    why: 'Settings come from ctx.config, which readConfig makes of the environment once.',
    allowed: [
      { file: 'server/src/main.ts', why: 'Hands it to readConfig.' },
      { file: 'cli/src/main.ts', why: 'Hands it to the supervisor, which hands it to readConfig.' },
      { file: 'sdk/src/server.ts', why: 'A lobby is told by its environment who it is.' },
      { file: 'sdk/src/attach.ts', why: 'It tells an unchanged server by PORT where to listen.' },
      { file: 'sdk/build.ts', why: 'A program of its own: where npm was typed.' },
      { file: 'examples/arena/deploy.ts', why: 'A program of its own: the address and the token of the platform.' },
      { file: 'examples/generated-client/deploy.ts', why: 'The same.' },
      { file: 'examples/arena/dev.ts', why: 'A program of its own: its port, and the rest for its child.' },
      { file: 'bench/src/idle/run.ts', why: 'Starts the platform as a person would: with PATH and HOME.' },
      { file: 'bench/src/platform.ts', why: 'Starts the platform as a person would: with PATH and HOME.' },
      { file: 'bench/src/find/starts.ts', why: 'Starts a bare game server: with PATH.' },
      { file: 'bench/src/find/switched-matchmaker.ts', why: 'A program of its own: hands it to readConfig.' },
      { file: 'bench/src/find/watched-matchmaker.ts', why: 'A program of its own: hands it to readConfig.' },
    ],
  },
  {
    name: 'clock',
    pattern: /\bDate\s*\.\s*now\b|\bnew Date(?:\(\s*\)|(?![\w(]))|(?<!new )\bDate\(\)/,
    within: ['contract/', 'server/src/', 'sdk/', 'cli/'],
    why: 'Time is ctx.now(), which tests move; a duration is measured with performance.now().',
    allowed: [
      { file: 'server/src/context.ts', why: 'The one clock that ctx.now() reads, unless a test brings another.' },
      { file: 'server/src/supervisor/start.ts', why: 'The supervisor has no context; it hands this clock on.' },
      { file: 'server/src/supervisor/credentials.ts', why: 'Commands of their own: there is no context.' },
      { file: 'server/src/backup/command.ts', why: 'Commands of their own: there is no context.' },
      { file: 'server/src/runner/logs/logger.ts', why: 'A process of its own that outlives the runner: no context.' },
    ],
  },
  {
    name: 'randomness',
    pattern: /\bMath\s*\.\s*random\b/,
    within: ['contract/', 'server/src/', 'sdk/', 'cli/'],
    why: 'Ids and secrets come from node:crypto.',
    allowed: [{ file: 'sdk/src/request.ts', why: 'Spreads repetitions; it guards nothing.' }],
  },
  {
    name: 'trust',
    pattern: /\brejectUnauthorized\b(?!\s*:\s*true\b)|\bcheckServerIdentity\b|\bNODE_TLS_REJECT_UNAUTHORIZED\b/,
    within: ['contract/', 'server/src/', 'sdk/', 'cli/', 'scripts/', 'examples/', 'bench/'],
    why: 'A certificate is believed when an authority vouches for it, and for the name that was asked.',
    allowed: [
      { file: 'server/src/config/config.ts', why: 'Refuses to start with the variable that would switch this off.' },
    ],
  },
  {
    name: 'loading',
    pattern: /\bcreateRequire\b|\brequire\(|\bgetBuiltinModule\b/,
    within: ['contract/', 'server/src/', 'sdk/', 'cli/', 'scripts/', 'examples/', 'bench/'],
    why: 'What is loaded by import can be checked here; what is loaded otherwise cannot.',
    allowed: [
      { file: 'server/src/database/embedded/binaries.ts', why: 'Finds the PostgreSQL of this machine in its package.' },
    ],
  },
]

/** Imports that are worked out at run time. */
export const UNREADABLE = [
  { file: 'server/src/database/embedded/binaries.ts', why: 'The package of the binaries is named for the machine.' },
] as const

/** Fewer than these were read: then something is wrong with the reading, not with the code. */
export const FILES_MIN = 200
export const IMPORTS_MIN = 800
