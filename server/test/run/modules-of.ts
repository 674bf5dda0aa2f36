// The modules of tests that a test file loads, by its imports.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

const ROOT = join(import.meta.dirname, '../../..')
/** Relative modules of an import, and programs of tests that are named by their address. */
const MODULE = /(?:from|import\(|new URL\()\s*'(?<path>\.[^']+\.ts)'/g
/** Only modules of tests are followed: the platform itself loads the runner always, and runs it when a test asks for that. */
const OF_TESTS = /\/(?:test|examples)\/|\.test\.ts$/

/** The file and all modules of tests that it loads. */
export function modulesOf(file: string): Set<string> {
  const found = new Set([file])
  // A set is iterated with what is added meanwhile; it holds each file of the checkout at most once.
  for (const module of found) {
    for (const { groups } of readFileSync(module, 'utf8').matchAll(MODULE)) {
      const path = resolve(dirname(module), groups!.path!)
      if (OF_TESTS.test(path.slice(ROOT.length)) && existsSync(path)) found.add(path)
    }
  }
  return found
}
