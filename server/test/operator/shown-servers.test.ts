// The servers that users copy: those of the guide, the other pages, the SDK and the examples.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const PAGES = ['README.md', 'sdk/README.md']
const FOLDERS = ['docs', 'examples']
/** A call that makes a server or a socket listen, with its arguments up to the first closing bracket. */
const LISTENS = /(?:\.listen|\.bind|new WebSocketServer|new Server|create_server)\([^)]*\)(?:[^)\n]*\))?/g

function textsOf(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && /\.(?:md|ts|js|mjs|gd)$/.test(entry.name))
    .map(({ parentPath, name }) => join(parentPath, name).slice(ROOT.length))
    .filter((path) => !path.includes('node_modules'))
}

test('every server that the documentation and the examples show listens on 127.0.0.1', () => {
  const shown = [...PAGES, ...FOLDERS.flatMap(textsOf)].flatMap((path) =>
    [...readFileSync(join(ROOT, path), 'utf8').matchAll(LISTENS)].map(([call]) => ({ path, call })),
  )
  for (const path of ['docs/api-by-hand.md', 'docs/ports.md', 'sdk/README.md', 'examples/arena/server/main.ts']) {
    assert.ok(
      shown.some((one) => one.path === path),
      `${path} shows a server`,
    )
  }
  // A server that is attached to an HTTP server does not listen.
  const isAttached = (call: string): boolean => call.includes('noServer: true') || call.startsWith('new Server(http')
  const isLocal = ({ path, call }: { path: string; call: string }): boolean =>
    call.includes('127.0.0.1') ||
    (/\bHOST\b/.test(call) && readFileSync(join(ROOT, path), 'utf8').includes("HOST = '127.0.0.1'"))
  const others = shown.filter((one) => !isLocal(one) && !isAttached(one.call))
  assert.deepEqual(others, [])
})
