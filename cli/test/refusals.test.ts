// Every refusal names the field, the line or the remedy, has the exit code of its kind, and writes nothing to stdout. A refusal of
// the platform has its ray id, and the page that explains its code. `--json` has the same as an object.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openRefusalWorld, REFUSALS, type Refusal, type RefusalWorld } from './refusals.ts'

const RAY = /\nRay id: [0-9a-f-]{36}\n$/
const PAGE = /\n[A-Z_]+: http\S+\/docs\/errors\/[A-Z_]+\n/

test('every refusal says what to do', async (t) => {
  const world = await openRefusalWorld(t)
  const empty = mkdtempSync(join(tmpdir(), 'muster-empty-'))
  t.after(() => rmSync(empty, { recursive: true, force: true }))
  for (const refusal of REFUSALS) await t.test(refusal.what, (t) => refuses(t, world, refusal, empty))
})

async function refuses(t: TestContext, world: RefusalWorld, refusal: Refusal, empty: string): Promise<void> {
  const { project } = world
  const args = typeof refusal.args === 'function' ? refusal.args(world) : refusal.args
  const { folder } = refusal
  const cwd = folder === undefined ? project.folder : folder === 'empty' ? empty : join(project.folder, folder)
  const run = (more: readonly string[]) =>
    project.muster.run([...args, ...more], { cwd, env: refusal.env?.(world) ?? {}, input: refusal.input ?? '' })
  const { code, stdout, stderr } = await run([])
  t.diagnostic(`muster ${args.join(' ')}: ${code}\n${stderr}`)
  assert.deepEqual([code, stdout], [refusal.code, ''], stderr)
  for (const words of refusal.says) assert.match(stderr, words)
  assert.doesNotMatch(stderr, /\n {4}at /, 'no stack')
  if (refusal.is_platforms !== true) return
  assert.match(stderr, RAY)
  assert.match(stderr, PAGE)
  const json = await run(['--json'])
  assert.deepEqual([json.code, json.stdout], [refusal.code, ''])
  const { error } = JSON.parse(json.stderr.trimEnd().split('\n').at(-1)!) as { error: Record<string, unknown> }
  assert.deepEqual([typeof error.code, typeof error.message, typeof error.ray_id], ['string', 'string', 'string'])
}
