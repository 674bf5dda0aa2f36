#!/usr/bin/env node
// The command `muster` of a checkout, for any Node from 20.19 on: it runs the built program, or src/main.ts where a source has
// changed since, with the Node that the checkout has installed, node_modules/.bin/node. The built program starts in a third of
// the time. This file is plain JavaScript, because an older Node cannot read TypeScript.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const CLI = dirname(fileURLToPath(import.meta.url))
const CHECKOUT = dirname(CLI)
const SOURCE = join(CLI, 'src', 'main.ts')
const BUILT = join(CHECKOUT, 'dist', 'programs')
/** Its time is that at which scripts/build.ts began to read. */
const BUILT_FROM = join(BUILT, 'built-from.txt')
/** All that scripts/build.ts reads is in them. */
const SOURCES = [
  ...['cli/src', 'contract/src', 'protocols/src', 'server/src', 'examples/arena', 'scripts/package'],
  ...[
    'cli/package.json',
    'contract/package.json',
    'protocols/package.json',
    'server/package.json',
    'package-lock.json',
  ],
]
const NODE = join(CHECKOUT, 'node_modules', '.bin', 'node')
/** Makes NODE, and installs what package-lock.json names. It explains what is in its way. */
const INSTALL = join(CHECKOUT, 'scripts', 'install', 'main.cjs')
/** Exit codes of programs that a signal ended, as shells report them. */
const SIGNAL_EXIT_CODE = 128

if (!existsSync(NODE)) {
  const { status } = spawnSync(process.execPath, [INSTALL], { stdio: ['ignore', 2, 2] })
  if (status !== 0) process.exit(status ?? 1)
}
// The command finds the platform that `npm start` runs here, from every folder.
process.env.MUSTER_CHECKOUT = CHECKOUT
const program = isBuilt() ? join(BUILT, 'muster.js') : SOURCE
if (realpathSync(NODE) === realpathSync(process.execPath)) {
  process.argv[1] = program
  await (program === SOURCE ? import('./src/main.ts') : import(pathToFileURL(program).href))
} else {
  runWith(NODE)
}

/** Whether nothing was written to a source, moved or removed since the last build. */
function isBuilt() {
  try {
    const { mtimeMs } = statSync(BUILT_FROM)
    return SOURCES.every((path) => isUnchanged(join(CHECKOUT, path), mtimeMs))
  } catch {
    return false
  }
}

/** By the time that the kernel keeps, which no program can set back. */
function isUnchanged(path, since_ms) {
  const stats = statSync(path)
  if (stats.ctimeMs >= since_ms) return false
  return !stats.isDirectory() || readdirSync(path).every((name) => isUnchanged(join(path, name), since_ms))
}

function runWith(node) {
  // With this variable the child watches its parent, and stops the platform when this process is killed.
  const env = { npm_lifecycle_event: 'muster', ...process.env }
  const args = [program, ...process.argv.slice(2)]
  const child = spawn(node, args, { stdio: 'inherit', env })
  // A terminal sends Ctrl-C to the child too, which counts: the second one ends a command at once.
  const has_terminal = process.stdin.isTTY === true || process.stderr.isTTY === true
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      if (signal !== 'SIGINT' || !has_terminal) child.kill(signal)
    })
  }
  child.on('error', (error) => {
    console.error(
      `${node} does not start (${error.message}): run "npm start" in the checkout, which installs it again.`,
    )
    process.exitCode = 1
  })
  child.on('exit', (code, signal) => {
    process.exitCode = signal === null ? code : SIGNAL_EXIT_CODE + constants.signals[signal]
  })
}
