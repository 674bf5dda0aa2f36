import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { Hub } from './files.ts'

test('a hub that is built, or built again, while the platform runs is served from then on', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'muster-hub-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const dist = join(folder, 'dist')
  const hub = new Hub(pathToFileURL(`${dist}/`))
  const build = (name: string): void => {
    const made = join(folder, name)
    mkdirSync(join(made, 'hub-assets'), { recursive: true })
    writeFileSync(join(made, 'index.html'), name)
    writeFileSync(join(made, 'hub-assets', `${name}.js`), name)
    rmSync(dist, { recursive: true, force: true })
    renameSync(made, dist)
  }
  assert.equal(await hub.files(), null)
  for (const name of ['first', 'second']) {
    build(name)
    const files = await hub.files()
    assert.equal(files?.document, name)
    assert.equal((await files?.read(`/hub-assets/${name}.js`, ''))?.bytes.toString(), name)
    assert.equal(await files?.read('/hub-assets/other.js', ''), undefined)
  }
  rmSync(dist, { recursive: true })
  assert.equal(await hub.files(), null)
})
