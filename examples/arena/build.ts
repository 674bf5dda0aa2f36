// Sources to what is uploaded: TypeScript becomes JavaScript by leaving the types out, imports get the names of the new
// files, and that is all. No bundler: the browser loads a dozen small modules, Node loads the server's few.
import { readdir, readFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

const CONTENT_TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

const here = fileURLToPath(new URL('.', import.meta.url))
const sdk = dirname(fileURLToPath(import.meta.resolve('musterhost-sdk/server')))
const ws = dirname(fileURLToPath(import.meta.resolve('ws')))

export type BuiltFile = { path: string; content: Buffer }

export function contentTypeOf(path: string): string {
  return CONTENT_TYPES[extname(path)] ?? 'application/octet-stream'
}

/** index.html and the styles at the root; site/, game/ and sdk/ beside each other, as in the sources. */
export async function buildSite(): Promise<BuiltFile[]> {
  const files: BuiltFile[] = []
  for (const name of (await readdir(join(here, 'site'))).sort()) {
    const source = join(here, 'site', name)
    if (name.endsWith('.ts')) files.push({ path: `site/${asJs(name)}`, content: await javascript(source, '../sdk/') })
    else if (!name.endsWith('.json')) files.push({ path: name, content: await readFile(source) })
  }
  files.push(...(await gameFiles()))
  for (const name of ['browser.ts', 'player.ts', 'request.ts', 'resume.ts', 'error.ts']) {
    files.push({ path: `sdk/${asJs(name)}`, content: await javascript(join(sdk, name), './') })
  }
  return files
}

/** `node server/main.js` runs from the archive's root: everything that is imported is inside, and nothing else. */
export async function buildServer(): Promise<BuiltFile[]> {
  const files: BuiltFile[] = [{ path: 'package.json', content: Buffer.from('{"type":"module"}\n') }]
  for (const name of ['main.ts', 'admission.ts', 'world.ts']) {
    files.push({ path: `server/${asJs(name)}`, content: await javascript(join(here, 'server', name), '../sdk/') })
  }
  files.push(...(await gameFiles()))
  for (const name of ['server.ts', 'error.ts']) {
    files.push({ path: `sdk/${asJs(name)}`, content: await javascript(join(sdk, name), './') })
  }
  for (const name of ['package.json', 'wrapper.mjs', 'index.js']) {
    files.push({ path: `node_modules/ws/${name}`, content: await readFile(join(ws, name)) })
  }
  for (const name of (await readdir(join(ws, 'lib'))).sort()) {
    files.push({ path: `node_modules/ws/lib/${name}`, content: await readFile(join(ws, 'lib', name)) })
  }
  return files
}

/** A tar.gz of the files, the same bytes for the same files. */
export function archive(files: BuiltFile[]): Buffer {
  const parts: Buffer[] = []
  for (const { path, content } of files) {
    const header = Buffer.alloc(512)
    header.write(path, 0, 100)
    header.write('0000644\0', 100)
    header.write('0000000\0', 108)
    header.write('0000000\0', 116)
    header.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124)
    header.write('00000000000\0', 136)
    header.write('        ', 148)
    header.write('0', 156)
    header.write('ustar\x0000', 257)
    const sum = header.reduce((total, byte) => total + byte, 0)
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
    parts.push(header, content, Buffer.alloc((512 - (content.length % 512)) % 512))
  }
  parts.push(Buffer.alloc(1024))
  return gzipSync(Buffer.concat(parts), { level: 9 })
}

async function gameFiles(): Promise<BuiltFile[]> {
  const files: BuiltFile[] = []
  for (const name of ['messages.ts', 'motion.ts']) {
    files.push({ path: `game/${asJs(name)}`, content: await javascript(join(here, 'game', name), '../sdk/') })
  }
  return files
}

/** `from './x.ts'` becomes `from './x.js'`, `from 'musterhost-sdk/x'` the file that stands beside. */
async function javascript(source: string, sdkFolder: string): Promise<Buffer> {
  const text = stripTypeScriptTypes(await readFile(source, 'utf8'))
  const renamed = text
    .replaceAll(/(from ')(\.[^']*)\.ts'/g, "$1$2.js'")
    .replaceAll(/(from ')musterhost-sdk\/([a-z]+)'/g, `$1${sdkFolder}$2.js'`)
  return Buffer.from(renamed)
}

function asJs(name: string): string {
  return name.replace(/\.ts$/, '.js')
}
