#!/usr/bin/env node
// The command `muster` of a checkout, for any Node from 20.19 on: it runs src/main.ts with the Node that the checkout has
// installed, node_modules/.bin/node. This file is plain JavaScript, because an older Node cannot read TypeScript.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const CLI = dirname(fileURLToPath(import.meta.url))
const PROGRAM = join(CLI, 'src', 'main.ts')
const NODE = join(CLI, '..', 'node_modules', '.bin', 'node')
/** Makes NODE, and installs what package-lock.json names. It explains what is in its way. */
const INSTALL = join(CLI, '..', 'scripts', 'install', 'main.cjs')
/** Exit codes of programs that a signal ended, as shells report them. */
const SIGNAL_EXIT_CODE = 128

if (!existsSync(NODE)) {
  const { status } = spawnSync(process.execPath, [INSTALL], { stdio: ['ignore', 2, 2] })
  if (status !== 0) process.exit(status ?? 1)
}
// The command finds the platform that `npm start` runs here, from every folder.
process.env.MUSTER_CHECKOUT = join(CLI, '..')
if (realpathSync(NODE) === realpathSync(process.execPath)) {
  process.argv[1] = PROGRAM
  await import('./src/main.ts')
} else {
  runWith(NODE)
}

function runWith(node) {
  // With this variable the child watches its parent, and stops the platform when this process is killed.
  const env = { npm_lifecycle_event: 'muster', ...process.env }
  const args = [PROGRAM, ...process.argv.slice(2)]
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
