// Small web exports, built like those of the engines: they run from the CDN with nothing configured but, for threads,
// two headers.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { startTestEdge } from '../edge/platform.ts'
import { openBrowser } from './browser.ts'

/** A module that exports answer(), which is 42. */
const WASM = Buffer.from('0061736d010000000105016000017f03020100070a0106616e7377657200000a06010400412a0b', 'hex')

type ExportWindow = { result?: unknown }

const UNITY = {
  'index.html': '<!doctype html><canvas></canvas><script src="Build/game.loader.js"></script>',
  'Build/game.loader.js': `
    const script = document.createElement('script')
    script.src = 'Build/game.framework.js.br'
    script.onload = async () => {
      const module = await WebAssembly.instantiateStreaming(fetch('Build/game.wasm.br'))
      const data = await (await fetch('Build/game.data.gz')).text()
      globalThis.result = { framework: unityFramework, answer: module.instance.exports.answer(), data }
    }
    document.head.append(script)`,
  'Build/game.framework.js.br': brotliCompressSync('globalThis.unityFramework = "framework"'),
  'Build/game.wasm.br': brotliCompressSync(WASM),
  'Build/game.data.gz': gzipSync('level one'),
}

const GODOT = {
  'index.html': '<!doctype html><canvas></canvas><script src="index.js"></script>',
  'index.js': `
    const memory = new Int32Array(new SharedArrayBuffer(4))
    const worker = new Worker('index.worker.js')
    worker.onmessage = async () => {
      const module = await WebAssembly.instantiateStreaming(fetch('index.wasm'))
      const pack = await (await fetch('index.pck', { headers: { range: 'bytes=0-3' } })).text()
      const answer = module.instance.exports.answer()
      globalThis.result = { isolated: crossOriginIsolated, thread: Atomics.load(memory, 0), answer, pack }
    }
    worker.postMessage(memory)`,
  'index.worker.js': 'onmessage = ({ data }) => { Atomics.store(data, 0, 7); postMessage("done") }',
  'index.wasm': WASM,
  'index.pck': 'GDPC and more',
}

const ISOLATED = [
  { name: 'Cross-Origin-Opener-Policy', value: 'same-origin' },
  { name: 'Cross-Origin-Embedder-Policy', value: 'require-corp' },
]

test('web exports of engines run from the CDN', async (t) => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const edge = await startTestEdge(t)
  const unity = await edge.game('unity')
  const godot = await edge.game('godot')
  await unity.deploy(await unity.site(UNITY))
  const middlewares = [{ kind: { custom_headers: { headers: ISOLATED } } }]
  await godot.deploy(await godot.site(GODOT), [{ glob: '**', priority: 0, middlewares }])
  const run = async (game: string) => {
    const page = await browser.newPage()
    const faults: string[] = []
    page.on('pageerror', (error) => faults.push(String(error)))
    await page.goto(`http://${game}.cdn.localhost:${edge.port}/`)
    const RUN_MS_MAX = 20_000
    await page
      .waitForFunction(() => (globalThis as ExportWindow).result !== undefined, null, { timeout: RUN_MS_MAX })
      .catch((error: unknown) => assert.fail(`${String(error)} ${faults.join()}`))
    return page.evaluate(() => (globalThis as ExportWindow).result)
  }

  await t.test('like Unity: brotli and gzip as they were built', async () => {
    assert.deepEqual(await run('unity'), { framework: 'framework', answer: 42, data: 'level one' })
  })

  await t.test('like Godot: threads, by the headers of a route', async () => {
    assert.deepEqual(await run('godot'), { isolated: true, thread: 7, answer: 42, pack: 'GDPC' })
  })
})
