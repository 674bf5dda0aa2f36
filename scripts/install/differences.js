// Compares a folder's package-lock.json with node_modules/.package-lock.json, which npm writes last: an install that was
// interrupted has none.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A mistake or an obstacle that the user can remove. It is printed as one sentence, without a stack. */
export class Obstacle extends Error {}

export const lockOf = (folder) => join(folder, 'package-lock.json')
export const recordOf = (folder) => join(folder, 'node_modules', '.package-lock.json')

/** Returns the path of a package that is not installed as the lock says; null when everything is. */
export function findDifference(folder, env) {
  const wanted = readLock(lockOf(folder))
  if (wanted === null) {
    throw new Obstacle(
      `${lockOf(folder)} is missing, and only it names the packages exactly: ` +
        'restore it with "git checkout -- package-lock.json", then run the command again.',
    )
  }
  const found = readLock(recordOf(folder))
  if (found === null) return 'node_modules'
  for (const [path, entry] of Object.entries(wanted.packages)) {
    if (path === '') continue
    const installed = found.packages[path]
    if (installed === undefined) {
      if (!mayBeAbsent(entry, env)) return path
    } else if (!isSame(entry, installed) || !existsSync(join(folder, path))) return path
  }
  // A package that `npm install --no-save` added is the user's own.
  const removed = Object.entries(found.packages).find(
    ([path, entry]) => wanted.packages[path] === undefined && entry.extraneous !== true,
  )
  return removed === undefined ? null : removed[0]
}

/** A workspace has no integrity, and its own files are the checkout's. */
function isSame(wanted, installed) {
  if (wanted.link === true) return installed.link === true && installed.resolved === wanted.resolved
  return wanted.version === installed.version && wanted.integrity === installed.integrity
}

/** Whether npm leaves the package out on this machine: it is for another system, or the user's settings omit its kind. */
function mayBeAbsent(entry, env) {
  const omitted = omittedKinds(env)
  if (entry.dev === true && omitted.has('dev')) return true
  if (entry.peer === true && omitted.has('peer')) return true
  if (entry.devOptional === true && omitted.has('dev') && omitted.has('optional')) return true
  if (entry.optional !== true) return false
  // One that names no system belongs to others that do. Only npm knows which C library this system has.
  const is_for_all = entry.os === undefined && entry.cpu === undefined
  return (
    omitted.has('optional') ||
    is_for_all ||
    entry.libc !== undefined ||
    !isListed(entry.os, process.platform) ||
    !isListed(entry.cpu, process.arch)
  )
}

/** `listed`: for example ["linux"], "linux" or ["!win32"]. */
function isListed(listed, name) {
  if (listed === undefined) return true
  const list = [listed].flat()
  if (list.includes('any')) return true
  if (list.includes(`!${name}`)) return false
  return list.includes(name) || list.every((item) => item.startsWith('!'))
}

/** npm passes its settings to scripts as variables, and a list with newlines. */
function omittedKinds(env) {
  const kinds = (env.npm_config_omit ?? '').split(/[\s,]+/)
  if (env.NODE_ENV === 'production' && !(env.npm_config_include ?? '').includes('dev')) kinds.push('dev')
  return new Set(kinds)
}

/** Null when there is no such file, or when it is not whole. */
function readLock(path) {
  let text
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null
    throw error
  }
  try {
    const lock = JSON.parse(text)
    return lock.packages === undefined ? null : lock
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}
