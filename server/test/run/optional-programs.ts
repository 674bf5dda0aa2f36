// The programs beside Node and npm that tests use: each with its words for people, how it is found, and the Debian package that
// installs it. A test asks `lacking` for what it needs, and is skipped with the reason that this returns. The end of
// `npm test` counts these reasons, and `npm test -- --without-programs` hides these programs. `.ci/run` installs them.
import { spawnSync } from 'node:child_process'
import { accessSync, constants, globSync } from 'node:fs'
import { delimiter, join } from 'node:path'

export type OptionalProgram = {
  words: string
  /** The package of Debian. */
  package: string
  /** Names on PATH, or an absolute path with `*`. The first that is found is used. Default: the name of the row. */
  names?: readonly string[]
  /** Other programs of the package that tests or the platform start. */
  with?: readonly string[]
  /** A module of Debian's Python, in place of a program. */
  module?: string
}

const WHOLE_CHROMIUM = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'] as const

const TABLE = {
  chromium: {
    words: 'Chromium',
    // The first has the same engine without a window, and takes half the processor time.
    package: 'chromium-headless-shell',
    names: ['chromium-headless-shell', ...WHOLE_CHROMIUM],
  },
  'whole-chromium': {
    words: 'Chromium with its settings',
    package: 'chromium',
    names: WHOLE_CHROMIUM,
  },
  bwrap: { words: 'bubblewrap', package: 'bubblewrap' },
  'systemd-analyze': { words: 'systemd', package: 'systemd' },
  'godot3-server': { words: 'Godot', package: 'godot3-server' },
  git: { words: 'Git', package: 'git' },
  ip: { words: 'iproute2', package: 'iproute2', with: ['tc', 'ss', 'bridge'] },
  nft: { words: 'nftables', package: 'nftables' },
  curl: { words: 'curl', package: 'curl' },
  python3: { words: 'Python', package: 'python3', with: ['python', 'python3.11', 'python3.12', 'python3.13'] },
  prometheus: { words: 'Prometheus', package: 'prometheus', with: ['promtool'] },
  nginx: { words: 'nginx', package: 'nginx' },
  haproxy: { words: 'HAProxy', package: 'haproxy' },
  knotd: { words: 'Knot', package: 'knot', with: ['keymgr'] },
  pebble: { words: 'Pebble', package: 'pebble' },
  buildah: { words: 'Buildah', package: 'buildah' },
  umoci: { words: 'umoci', package: 'umoci' },
  busybox: { words: 'BusyBox', package: 'busybox-static' },
  zstd: { words: 'zstd', package: 'zstd' },
  gcc: { words: 'gcc', package: 'gcc', with: ['cc', 'readelf'] },
  'musl-gcc': { words: 'musl', package: 'musl-tools' },
  dockerd: { words: 'Docker', package: 'docker.io' },
  docker: { words: 'Docker', package: 'docker.io' },
  containerd: { words: 'containerd', package: 'containerd' },
  runc: { words: 'runc', package: 'runc' },
  'docker-init': { words: 'tini', package: 'tini' },
  podman: { words: 'Podman', package: 'podman' },
  conmon: { words: 'conmon', package: 'conmon' },
  catatonit: { words: 'catatonit', package: 'catatonit' },
  'docker-registry': { words: 'docker-registry', package: 'docker-registry' },
  'docker-compose': { words: 'docker-compose', package: 'docker-compose' },
  skopeo: { words: 'Skopeo', package: 'skopeo' },
  debootstrap: { words: 'debootstrap', package: 'debootstrap' },
  openssl: { words: 'OpenSSL', package: 'openssl' },
  iptables: { words: 'iptables', package: 'iptables' },
  'freeciv-server': {
    words: 'Freeciv',
    package: 'freeciv-server',
    names: ['/usr/games/freeciv-server'],
  },
  'teeworlds-server': {
    words: 'Teeworlds',
    package: 'teeworlds-server',
    names: ['/usr/games/teeworlds-server'],
  },
  'ddnet-server': {
    words: 'DDNet',
    package: 'ddnet-server',
    names: ['/usr/games/DDNet-Server'],
  },
  'openarena-server': {
    words: 'OpenArena',
    package: 'openarena-server',
    names: ['/usr/games/openarena-server'],
  },
  'minetest-server': {
    words: 'Minetest',
    package: 'minetest-server',
    names: ['/usr/lib/minetest/minetestserver'],
  },
  'armagetronad-dedicated': {
    words: 'Armagetron',
    package: 'armagetronad-dedicated',
    names: ['/usr/games/armagetronad-dedicated.real'],
  },
  'swift-proxy-server': { words: 'Swift', package: 'swift-proxy' },
  'swift-account-server': { words: 'Swift', package: 'swift-account' },
  'swift-container-server': { words: 'Swift', package: 'swift-container' },
  'swift-object-server': { words: 'Swift', package: 'swift-object' },
  s3cmd: { words: 's3cmd', package: 's3cmd' },
  boto3: { words: 'boto3', package: 'python3-boto3', module: 'boto3' },
  patroni: { words: 'Patroni', package: 'patroni' },
  'python3-etcd': { words: 'etcd for Python', package: 'python3-etcd', module: 'etcd' },
  'python3-grpcio': { words: 'gRPC for Python', package: 'python3-grpcio', module: 'grpc' },
  etcd: { words: 'etcd', package: 'etcd-server' },
  pg_rewind: {
    words: 'PostgreSQL of Debian',
    package: 'postgresql',
    names: ['/usr/lib/postgresql/*/bin/pg_rewind'],
  },
  pgbouncer: { words: 'PgBouncer', package: 'pgbouncer' },
} as const satisfies Readonly<Record<string, OptionalProgram>>

export type ProgramName = keyof typeof TABLE
export const OPTIONAL_PROGRAMS: Readonly<Record<ProgramName, OptionalProgram>> = TABLE
/** Beside programs, tests may need to be root, on Linux. */
export type Need = ProgramName | 'root'

const REASON = /^needs (?<words>.+)$/
const DEBIANS_PYTHON = '/usr/bin/python3'

/** Why a test with these needs cannot run here, in the form that the run counts: `needs root, bubblewrap`. Null: it can. */
export function lacking(...needs: readonly Need[]): string | null {
  const words = needs.filter((need) => !isHere(need)).map((need) => (need === 'root' ? need : TABLE[need].words))
  return words.length === 0 ? null : `needs ${[...new Set(words)].join(', ')}`
}

/** The words of a reason that `lacking` returned, or the reason itself. */
export function wordsOf(reason: string): string[] {
  const words = REASON.exec(reason)?.groups?.words
  return words === undefined ? [reason] : words.split(', ')
}

/** The Debian packages of the programs with these words, as one command needs them. */
export function packagesFor(words: Iterable<string>): string[] {
  const wanted = new Set(words)
  const rows = Object.values(OPTIONAL_PROGRAMS).filter((row) => wanted.has(row.words))
  return [...new Set(rows.map((row) => row.package))]
}

function isHere(need: Need): boolean {
  if (need === 'root') return process.platform === 'linux' && process.geteuid?.() === 0
  const { module }: OptionalProgram = TABLE[need]
  return module === undefined
    ? findProgram(need) !== null
    : spawnSync(DEBIANS_PYTHON, ['-c', `import ${module}`], { stdio: 'ignore' }).status === 0
}

/** The path of a program; null: it is not installed. */
export function findProgram(name: ProgramName): string | null {
  for (const each of OPTIONAL_PROGRAMS[name].names ?? [name]) {
    const paths = each.startsWith('/') ? globSync(each).sort() : foldersOfPath().map((folder) => join(folder, each))
    const found = paths.find(isExecutable)
    if (found !== undefined) return found
  }
  return null
}

function foldersOfPath(): string[] {
  return (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '')
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
