// The rules of check-arrows.ts as data: which part may import which, and where some words are allowed. An exception gets a
// line here with its reason. A line that no file needs is a fault.

/** The files at the root of server/src, beside the two that start it. There is no room for another one. */
const HALL = ['context', 'ids'] as const
/** Code without a subject of its own, which knows nothing of the platform. */
const GROUND = ['flow', 'node', 'text', 'wire', 'config'] as const
const TOOLS = [
  'tokens',
  'objects',
  'lobby-logs',
  'addresses',
  'outbound',
  'observe',
  'process-tls',
  'database',
  'contract',
] as const
const ROOM = [...HALL, ...GROUND, ...TOOLS]

/**
 * What each part may import beside itself. A part is a workspace, a room of server/src, or a file at the root of it.
 * http, runner, edge and matchmaker meet only in the database. The one exception: http serves the matchmaker's operations.
 */
export const ARROWS: Record<string, readonly string[]> = {
  contract: [],
  sdk: [],
  // Rooms of protocols see their lobby by a port of their own.
  protocols: ['contract'],

  main: ['config', 'context', 'node', 'roles', 'runner', 'edge', 'supervisor', 'database', 'observe'],
  // It loads the modules of the roles, so that Node caches the compiled code; of cloud those that the api loads at its first upload.
  compile: ['main', 'roles', 'runner', 'edge', 'cloud', 'config', 'supervisor'],
  context: ['config', 'wire', ...TOOLS],
  ids: ['contract'],

  // The settings, and why a start fails. Players reach a lobby at addresses that follow from them.
  config: ['contract', 'text'],
  // What is read from text, and written as text.
  text: [],
  // What processes of the platform say to each other, also of two versions of the program.
  wire: [],
  // When work is done, and how much is kept: in batches, a few at once, while somebody needs it, up to a bound.
  flow: [],
  // What Node and the kernel of the machine do.
  node: [],

  // Readers of the journal: roles that may not import each other.
  journal: ['context', 'database', 'wire'],
  // The transaction of a change with its event, and refusals.
  audit: ['context', 'ids', 'flow', 'tokens', 'database', 'contract'],
  // Captcha providers: seats and logins may require a captcha.
  captcha: ['context', 'outbound', 'contract'],
  // Each role opens its parts in order, and closes them in reverse.
  // The api role runs the checks of the doctor when the operator asks for them.
  roles: [...ROOM, 'doctor', 'http', 'peers', 'cloud', 'analytics', 'captcha', 'matchmaker', 'identity', 'kv'],
  // What other processes of the platform add to the requests of a role. No handler meets it.
  peers: [...ROOM, 'http', 'matchmaker'],
  http: [...ROOM, 'audit', 'cloud', 'analytics', 'captcha', 'matchmaker', 'identity', 'kv', 'ratings'],
  // Scheduled backups are a program that jobs start.
  // An erasure deletes entries of a player through the store.
  cloud: [...ROOM, 'journal', 'analytics', 'audit', 'links', 'backup', 'schedules', 'kv'],
  // When schedules are due: the api shows it, and the matchmaker does it. Backups are due by one, too.
  schedules: ['contract'],
  // The journal folded into facts and roll-ups, and the queries over them.
  analytics: [...ROOM, 'journal'],
  identity: [...ROOM, 'captcha', 'audit'],
  kv: ROOM,
  ratings: [...ROOM, 'audit'],
  matchmaker: [...ROOM, 'journal', 'captcha', 'audit', 'schedules'],
  // Servers of lobbies may speak the protocols of other platforms.
  runner: [...ROOM, 'protocols'],
  edge: [...ROOM, 'links'],
  // Both ends of the links of joined nodes: the platform's runs in the edge, the node's in the supervisor.
  links: [...ROOM, 'audit'],
  // The roles are its child processes. Their code does not run in it.
  supervisor: [...ROOM, 'links'],
  // It reads the journal, locks the data folder like the supervisor, and is due by a schedule.
  // The import of a game has an audit event.
  backup: [...ROOM, 'supervisor', 'matchmaker', 'journal', 'schedules', 'audit'],

  tokens: ['ids', 'wire', 'contract'],
  // Files of a process are leftovers when the process is gone.
  objects: ['outbound', 'tokens', 'wire', 'node', 'flow', 'contract'],
  // Requests to other machines go through the database.
  'lobby-logs': ['config', 'database', 'wire', 'contract'],
  addresses: ['outbound', 'tokens', 'flow'],
  // Processes of several machines recognise each other by the keys that they share. The authority behind their certificates
  // also signs those of links between nodes, and of a development machine's own names.
  'process-tls': ['addresses', 'tokens'],
  outbound: ['flow', 'text', 'tokens', 'contract'],
  observe: ['config', 'flow', 'database'],
  database: ['config', 'outbound', 'wire', 'text', 'contract'],

  // It runs the checks of a start: the roles' own code, which it calls and does not start.
  doctor: [...ROOM, 'captcha', 'edge', 'runner', 'supervisor', 'backup'],

  // `muster dev` serves the protocol of its server on this machine.
  cli: ['config', 'contract', 'protocols', 'supervisor', 'backup', 'doctor'],
  // In the browser: the shapes of the API are types, and pure checks of the contract run in the page.
  hub: ['contract'],
  'examples/arena': ['sdk'],
  // Code of a third party: it uses openapi.json and no module of the platform.
  'examples/generated-client': [],
  // Analytics are measured on roll-ups that the platform computes.
  // The boxes of lobbies are measured without a platform.
  bench: [
    'analytics',
    'contract',
    'config',
    'tokens',
    'wire',
    'observe',
    'database',
    'examples/arena',
    'ids',
    'runner',
    // Duels by rating are rated as the platform does.
    'ratings',
  ],
  // The pages of the commands are made from the program. The packed table of addresses is made from the public one. Templates
  // have the SDK as JavaScript.
  scripts: ['addresses', 'config', 'contract', 'cli', 'sdk'],
}

/**
 * The imports that are allowed between the files and folders of a room, from the top to the bottom. An arrow that no import
 * needs is a fault, and so is a circle. A room of the server without a line here has no circle either.
 */
export const INSIDE: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  // From the top: the program, the commands (names and options), rooms that do the work of a family of commands, and tools.
  'cli/src': {
    main: ['failure', 'program', 'terminal'],
    program: ['commands', 'terminal'],
    // A command declares its options, and loads its room when it runs. So `muster --help` loads no room.
    commands: [
      'completion',
      'deploy',
      'dev',
      'doctor',
      'failure',
      'login',
      'manage',
      'allocator',
      'matching',
      'mcp',
      'options',
      'platform-node',
      'project',
      'session',
      'swarm',
      'templates',
      'terminal',
      'up',
      'watch',
    ],
    // `up` is `init`, `start` and `deploy` in one.
    up: ['deploy', 'dev', 'options', 'platforms', 'project', 'session', 'templates', 'terminal'],
    // `dev` reads the folders of a project as a deploy does.
    dev: [
      'deploy',
      'failure',
      'local-url',
      'open-browser',
      'options',
      'platform-node',
      'project',
      'session',
      'temporary-token',
      'terminal',
    ],
    deploy: ['failure', 'options', 'progress', 'project', 'session', 'table', 'temporary-token', 'terminal', 'times'],
    // `watch` names games, namespaces and removals as `manage` does.
    watch: ['failure', 'manage', 'options', 'progress', 'session', 'table', 'terminal', 'times'],
    manage: ['failure', 'local-url', 'open-browser', 'options', 'progress', 'session', 'table', 'terminal', 'times'],
    login: ['failure', 'options', 'platforms', 'project', 'session', 'table', 'terminal'],
    // It reads a file, and calls no platform.
    allocator: ['failure', 'options', 'session', 'terminal'],
    matching: ['failure', 'table', 'terminal'],
    mcp: ['failure', 'options', 'session', 'terminal'],
    swarm: ['failure', 'options', 'session', 'table', 'temporary-token', 'terminal'],
    completion: [],
    doctor: ['failure', 'options', 'session', 'terminal'],
    templates: ['failure', 'terminal'],
    // Tools.
    'open-browser': ['terminal'],
    'temporary-token': ['session', 'terminal'],
    session: ['failure', 'options', 'platform-node', 'platforms', 'project', 'terminal'],
    // It reads muster.yaml, and calls no platform.
    project: ['failure'],
    platforms: ['failure'],
    times: ['terminal'],
    table: ['terminal'],
    terminal: ['failure', 'progress'],
    progress: [],
    'local-url': [],
    options: [],
    failure: [],
    'platform-node': ['failure', 'fetched-node'],
    'fetched-node': ['failure'],
  },
  'server/src/matchmaker': {
    start: [
      'book',
      'explanations',
      'idle-lobbies',
      'metrics',
      'projection',
      'retention',
      'schedules',
      'seats',
      'shards',
      'watch',
    ],
    schedules: ['book', 'idle-lobbies', 'shards', 'watch'],
    calls: ['book', 'seats', 'shards'],
    'idle-lobbies': ['book', 'seats', 'shards', 'watch'],
    metrics: ['projection', 'shards'],
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
      'hand-over',
      'http',
      'limits',
      'links',
      'node-internals',
      'presence',
      'proxy',
      'proxy-socket',
      'routes',
      'shared-counts',
      'status',
      'streams',
      'tls',
    ],
    'hand-over': ['handles', 'http', 'limits', 'node-internals', 'presence', 'proxy', 'streams'],
    'proxy-socket': [],
    proxy: [
      'cdn',
      'http',
      'http2',
      'limits',
      'links',
      'node-internals',
      'presence',
      'routes',
      'shared-counts',
      'splice',
      'status',
      'tls',
    ],
    status: ['cdn', 'http', 'routes'],
    cdn: ['http', 'limits', 'routes', 'shared-counts'],
    links: ['routes', 'streams'],
    streams: ['handles', 'limits', 'node-internals', 'presence', 'routes', 'shared-counts', 'splice', 'tls'],
    http2: ['http', 'limits', 'presence', 'tls'],
    http: ['handles', 'hang-ups', 'limits', 'presence', 'routes', 'tls'],
    'node-internals': ['handles', 'limits', 'routes'],
    presence: ['limits', 'splice', 'tls'],
    splice: ['handles', 'hang-ups', 'limits', 'tls'],
    'hang-ups': ['limits'],
    tls: ['limits', 'routes'],
    handles: [],
    'shared-counts': [],
    routes: ['limits'],
    limits: [],
  },
  'hub/src': {
    main: ['api', 'router', 'shell', 'styles'],
    router: ['links', 'pages', 'parts', 'shell'],
    pages: ['api', 'links', 'parts', 'shell', 'toasts'],
    shell: ['api', 'links', 'parts', 'toasts'],
    parts: ['api', 'toasts'],
    api: ['toasts'],
  },
}

/** Arrows of one file only. */
export const FILE_ARROWS = [
  { file: 'examples/arena/deploy.ts', to: 'contract', why: 'It calls the public API by the typed client.' },
  {
    file: 'bench/src/find/peer.ts',
    to: 'matchmaker',
    why: 'It calls a game with the same code as the platform, so that both pay for it.',
  },
  { file: 'hub/build.ts', to: 'scripts', why: 'It replaces its folder as the build of the programs does.' },
  { file: 'bench/src/find/switched-matchmaker.ts', to: 'main', why: 'The role itself, in a process of the bench.' },
  { file: 'bench/src/find/watched-matchmaker.ts', to: 'main', why: 'The role itself, in a process of the bench.' },
] as const

/** The core of the matchmaker: pure functions, so that every decision can be simulated and replayed. */
export const PURE = ['server/src/matchmaker/book/', 'server/src/journal/changes.ts', 'contract/src/matching/'] as const

/** Words that a pure file may not use. */
export const IMPURE_WORDS =
  /\b(Date\.now|performance\.now|new Date\(\)|Math\.random|crypto|setTimeout|setInterval|setImmediate|queueMicrotask|process|fetch|await|async)\b/

/**
 * Folders in which no two exported types have one name. sdk/src is not among them: games import the SDK, a package of its
 * own, and its names (`Lobby`, `Player`) are theirs.
 */
export const UNIQUE_TYPES: readonly string[] = ['contract/src/', 'server/src/', 'cli/src/', 'hub/src/']

/** Files that a program generates, which are not committed. They may be missing, and are not checked. */
export const GENERATED: readonly string[] = ['examples/generated-client/api.ts']

/** The code of games, which is no part of the platform: what `muster init` copies (cli/test/init.test.ts), and an example. */
export const GAMES: readonly string[] = ['cli/templates/', 'examples/socketio/', 'examples/allocate/']

/** Files beside the code that only its tests use. They count as tests: nothing else may import them. */
export const TEST_SUPPORT = ['sdk/src/test-platform.ts'] as const

export type WordRule = {
  name: string
  pattern: RegExp
  /** The folders that the rule applies to. */
  within: readonly string[]
  why: string
  allowed: readonly { file: string; why: string }[]
}

export const WORDS: readonly WordRule[] = [
  {
    name: 'environment',
    pattern: /\bprocess\s*\.\s*env\b|\benv\b[^;]*\bfrom 'node:process'|\}\s*=\s*process\b/,
    within: ['contract/', 'server/src/', 'sdk/', 'cli/', 'scripts/', 'examples/', 'bench/'],
    why: 'Settings come from ctx.config, which readConfig creates from the environment once.',
    allowed: [
      { file: 'server/src/main.ts', why: 'Passes it to readConfig.' },
      { file: 'server/src/compile.ts', why: 'Passes it to readConfig.' },
      { file: 'server/src/supervisor/upgrade/guard.ts', why: 'Passes it to the program that it starts.' },
      { file: 'server/src/cloud/backups/backup-process.ts', why: 'PATH and HOME of the program that it starts.' },
      { file: 'cli/src/main.ts', why: 'Passes it to the supervisor, which passes it to readConfig.' },
      { file: 'cli/muster.js', why: 'Passes it to cli/src/main.ts, which it starts.' },
      { file: 'sdk/src/server.ts', why: 'The environment of a lobby has its id and token.' },
      { file: 'sdk/src/attach.ts', why: 'It sets PORT for a server that does not use the SDK.' },
      { file: 'sdk/build.ts', why: 'A separate program: the folder in which npm was called.' },
      { file: 'examples/arena/deploy.ts', why: 'A separate program: the address and the token of the platform.' },
      { file: 'examples/generated-client/deploy.ts', why: 'The same.' },
      { file: 'examples/arena/dev.ts', why: 'A separate program: its port, and the environment of its child process.' },
      { file: 'scripts/install/install.js', why: 'Runs before everything else: settings of npm, which it passes on.' },
      { file: 'scripts/install/fixture.ts', why: 'The PATH of the machine, for an npm that a test starts.' },
      { file: 'bench/src/hub/log.ts', why: 'In the text of a game server, which reads its own environment.' },
      { file: 'bench/src/idle/run.ts', why: 'Starts the platform as a person would: with PATH and HOME.' },
      { file: 'bench/src/platform.ts', why: 'Starts the platform as a person would: with PATH and HOME.' },
      { file: 'bench/src/find/starts.ts', why: 'Starts a bare game server: with PATH.' },
      { file: 'bench/src/find/switched-matchmaker.ts', why: 'A separate program: passes it to readConfig.' },
      { file: 'bench/src/find/watched-matchmaker.ts', why: 'A separate program: passes it to readConfig.' },
    ],
  },
  {
    name: 'clock',
    pattern: /\bDate\s*\.\s*now\b|\bnew Date(?:\(\s*\)|(?![\w(]))|(?<!new )\bDate\(\)/,
    within: ['contract/', 'server/src/', 'sdk/', 'cli/'],
    why: 'Time is ctx.now(), which tests can move. Durations are measured with performance.now().',
    allowed: [
      { file: 'server/src/context.ts', why: 'The one clock that ctx.now() reads, unless a test brings another.' },
      { file: 'server/src/supervisor/start.ts', why: 'The supervisor has no context; it passes this clock on.' },
      { file: 'server/src/supervisor/credentials.ts', why: 'Separate commands: there is no context.' },
      { file: 'server/src/backup/command.ts', why: 'Separate commands: there is no context.' },
      { file: 'server/src/backup/game/command.ts', why: 'Separate commands: there is no context.' },
      { file: 'server/src/backup/with.ts', why: 'Separate commands: there is no context.' },
      { file: 'server/src/backup/program.ts', why: 'A separate process: there is no context.' },
      { file: 'server/src/runner/logs/logger.ts', why: 'A separate process that outlives the runner: no context.' },
      {
        file: 'server/src/runner/protocols/attached-lobby.ts',
        why: 'A separate process that outlives the runner: no context.',
      },
      {
        file: 'server/src/identity/providers/sign-in.ts',
        why: 'The library of OpenID Connect reads the clock of the process; it gets the difference to ctx.now().',
      },
      { file: 'cli/src/terminal.ts', why: 'The clock of the commands: Terminal.now().' },
    ],
  },
  {
    name: 'randomness',
    pattern: /\bMath\s*\.\s*random\b/,
    within: ['contract/', 'server/src/', 'sdk/', 'cli/'],
    why: 'Ids and secrets come from node:crypto.',
    allowed: [{ file: 'sdk/src/request.ts', why: 'Spreads retries over time; no security depends on it.' }],
  },
  {
    name: 'trust',
    pattern: /\brejectUnauthorized\b(?!\s*:\s*true\b)|\bcheckServerIdentity\b|\bNODE_TLS_REJECT_UNAUTHORIZED\b/,
    within: ['contract/', 'server/src/', 'sdk/', 'cli/', 'scripts/', 'examples/', 'bench/'],
    why: 'A certificate is trusted when an authority signed it for the requested name.',
    allowed: [
      { file: 'server/src/config/read-config.ts', why: 'Refuses to start with the variable that would disable this.' },
      {
        file: 'server/src/links/node/dial.ts',
        why: 'The link has a TLS of its own inside, which proves both ends. The outer one proves nothing.',
      },
      {
        file: 'server/src/links/node/join-platform.ts',
        why: 'A machine that joins knows the hash of the key of the authority, and compares it itself.',
      },
      {
        file: 'server/src/links/platform/listener.ts',
        why: 'A machine that joins has no certificate yet; links/peers.ts checks all others.',
      },
    ],
  },
  {
    name: 'loading',
    pattern: /\bcreateRequire\b|\brequire\(|\bgetBuiltinModule\b/,
    within: ['contract/', 'server/src/', 'sdk/', 'cli/', 'scripts/', 'examples/', 'bench/'],
    why: 'Only imports can be checked here.',
    allowed: [
      { file: 'server/src/database/embedded/binaries.ts', why: 'Finds the PostgreSQL of this machine in its package.' },
      { file: 'scripts/package/http-members.ts', why: 'Writes a module for bundles that gets node:http so.' },
    ],
  },
]

/** Imports whose path is computed at run time. */
export const UNREADABLE = [
  { file: 'cli/muster.js', why: 'The built program is not in the checkout until it is built.' },
  { file: 'bench/src/cost/commit-tree.ts', why: 'The migrations of another commit are in a folder of their own.' },
  { file: 'server/src/database/embedded/binaries.ts', why: 'The package of the binaries is named for the machine.' },
] as const

/** With fewer files or imports, the reading is at fault, not the code. */
export const FILES_MIN = 200
export const IMPORTS_MIN = 800
