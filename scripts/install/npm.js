// Runs `npm ci` in a folder with a line of progress, and turns npm's failures into one sentence with the remedy.
import { spawn } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { constants } from 'node:os'
import { basename } from 'node:path'
import { createInterface } from 'node:readline'
import { lockOf, Obstacle, recordOf } from './differences.js'

/** npm's own pauses between attempts add up to a minute. */
const FETCH_OPTIONS = ['--fetch-retries=3', '--fetch-retry-factor=2', '--fetch-retry-mintimeout=1000']
const OPTIONS = ['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=http']
/** What npm said first is printed when its failure is none of those below. */
const LINES_MAX = 30
const PROGRESS_MS = 100
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP']

/** One line for each archive that arrived, from the network or from npm's cache. */
const ARRIVED = /^npm http (fetch GET 200|cache) .*(\.tgz|\/-\/)/
/** A failure, and a warning about a file that could not be written. */
const SAID = /^npm error|TAR_ENTRY_ERROR/
const RETRY = /^npm http fetch .* attempt \d+ failed with (\w+)/

/** Codes of npm and of the system, and the sentence for each. `npm` writes some of them only in a warning, and goes on. */
const OBSTACLES = [
  {
    codes: /\b(ENOSPC|EDQUOT)\b/,
    say: (code, { folder }) =>
      `The disk is full (${code}) where npm writes, in ${folder} or in its cache: free some space, then run the command again.`,
  },
  {
    codes: /\b(EROFS|EACCES|EPERM)\b/,
    say: (code, { folder }) =>
      `npm may not write in ${folder} or in its cache (${code}): make both belong to this user, then run the command again.`,
  },
  {
    codes:
      /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|ENOTCACHED)\b/,
    say: (code, { registry }) =>
      `npm cannot reach its registry${registry} (${code}): connect this machine to the network, or name another registry ` +
      'with "npm config set registry URL", then run the command again.',
  },
  {
    codes: /\b(SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT_LOCALLY|UNABLE_TO_VERIFY_LEAF_SIGNATURE)\b/,
    say: (code, { registry }) =>
      `npm does not trust the certificate of its registry${registry} (${code}): ` +
      'name the authority with "npm config set cafile FILE", then run the command again.',
  },
  {
    codes: /\b(EINTEGRITY)\b/,
    say: (code) =>
      `A package is not the one that package-lock.json names (${code}): ` +
      'run "npm cache clean --force", then the command again.',
  },
  {
    codes: /\b(EUSAGE)\b/,
    say: (code, { folder }) =>
      `package.json and package-lock.json of ${folder} do not agree (${code}): run "npm install" there, then the command again.`,
  },
]

export async function runNpm(folder, lock, env) {
  const count = Object.keys(JSON.parse(readFileSync(lockOf(folder), 'utf8')).packages).length
  const progress = startProgress(`Installing packages of ${basename(folder)} with npm`, count)
  const { program, args } = npmOf(env)
  const child = spawn(program, [...args, 'ci', ...optionsOf(folder, env)], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe', lock],
  })
  const forward = (signal) => child.kill(signal)
  for (const signal of SIGNALS) process.on(signal, forward)
  const lines = []
  for (const output of [child.stdout, child.stderr]) {
    createInterface({ input: output }).on('line', (line) => {
      const retry = RETRY.exec(line)
      if (retry !== null) progress.note(`the registry does not answer (${retry[1]}), trying again`)
      if (ARRIVED.test(line)) progress.step()
      if (SAID.test(line) && lines.length < LINES_MAX) lines.push(line)
    })
  }
  const { code, signal, error } = await ended(child)
  for (const name of SIGNALS) process.off(name, forward)
  const obstacle = findObstacle(lines, code, { folder, registry: registryOf(env) })
  if (code === 0 && obstacle === null) return progress.end('installed')
  progress.end('failed')
  // npm may have written its record of an install that lacks files.
  rmSync(recordOf(folder), { force: true })
  if (signal !== null) process.exit(128 + constants.signals[signal])
  if (error?.code === 'ENOENT') {
    throw new Obstacle('npm is missing: install the one of your Node (https://nodejs.org), then run the command again.')
  }
  if (obstacle !== null) throw new Obstacle(obstacle)
  throw new Obstacle(`${lines.join('\n')}\n"npm ci" failed in ${folder}; its first lines are above.`)
}

function ended(child) {
  return new Promise((resolve) => {
    let error = null
    child.on('error', (reason) => {
      error = reason
      if (child.pid === undefined) resolve({ code: null, signal: null, error })
    })
    child.on('close', (code, signal) => resolve({ code, signal, error }))
  })
}

/** The npm that runs this script, else the one of PATH. */
function npmOf(env) {
  const { npm_execpath, npm_node_execpath } = env
  return npm_execpath !== undefined && basename(npm_execpath) === 'npm-cli.js'
    ? { program: npm_node_execpath ?? process.execPath, args: [npm_execpath] }
    : { program: 'npm', args: [] }
}

function optionsOf(folder, env) {
  // The user's own setting is better than ours.
  const fetch_options = env.npm_config_fetch_retries === undefined ? FETCH_OPTIONS : []
  // The only package of runtime/ is an optional one.
  return [...OPTIONS, ...fetch_options, ...(basename(folder) === 'runtime' ? ['--include=optional'] : [])]
}

function registryOf(env) {
  return env.npm_config_registry === undefined ? '' : ` ${env.npm_config_registry}`
}

/** A full disk fails the install even where npm itself ends well. */
function findObstacle(lines, code, about) {
  if (code === 0 && !lines.some((line) => /ENOSPC|EDQUOT/.test(line))) return null
  for (const { codes, say } of OBSTACLES) {
    const match = lines.map((line) => codes.exec(line)).find((found) => found !== null)
    if (match !== undefined) return say(match[1], about)
  }
  return null
}

/** On a terminal one line that changes, elsewhere one at the beginning and one at the end. */
function startProgress(title, count) {
  const started = process.hrtime.bigint()
  const seconds = () => `${(Number(process.hrtime.bigint() - started) / 1e9).toFixed(0)} s`
  const is_terminal = process.stderr.isTTY === true
  let arrived = 0
  let note = null
  if (!is_terminal) console.error(`${title}.`)
  const draw = () => {
    const state = note ?? `${arrived} of ${count}`
    process.stderr.write(`\r\x1b[2K${title}: ${state}, ${seconds()}`)
  }
  const timer = is_terminal ? setInterval(draw, PROGRESS_MS) : undefined
  return {
    step: () => {
      arrived = Math.min(arrived + 1, count)
      note = null
    },
    note: (text) => {
      note = text
    },
    end: (outcome) => {
      clearInterval(timer)
      if (is_terminal) process.stderr.write('\r\x1b[2K')
      console.error(`${title}: ${outcome} after ${seconds()}.`)
    },
  }
}
