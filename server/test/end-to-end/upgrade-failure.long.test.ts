// `muster upgrade` to programs that do not start, and to one whose edge shares no hand-over. A player plays during all of them.
import assert from 'node:assert/strict'
import { chmodSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createClient } from '@musterhost/contract/client'
import { HAND_OVER_VERSION, WIRE_VERSION } from '../../src/wire/compatibility.ts'
import { platformVersion } from '../../src/wire/platform-version.ts'
import { ROLE_PROGRAM } from '../run/built-programs.ts'
import { processesOf } from '../supervisor/started.ts'
import { until } from '../support/until.ts'
import { startArena } from './arena.ts'
import { change, copyWithVersion, setHandOver, setWireVersion, stayConnected, upgrade } from './next-version.ts'

const ROLES = ['api', 'edge', 'matchmaker', 'runner']
const VERSION = platformVersion().replaceAll('.', '\\.')

/**
 * What is broken: a file of the program, and what the command says. `is_tried`: the roles are replaced before it shows. `is_long`:
 * only with FAULTS=all. */
const FAULTS: readonly { name: string; file: string; to: string; says: RegExp; is_tried: boolean; is_long?: true }[] = [
  {
    ...{ name: 'code that cannot be loaded', file: 'server/src/edge/start.ts', to: 'const broken = ;\n' },
    says: /99\.0\.0 does not start: SyntaxError.*Nothing has changed, and .* runs on\. The line "program of the upgrade/s,
    is_tried: false,
  },
  {
    ...{ name: 'settings that it refuses', file: 'server/src/config/edge.ts' },
    // The command itself reads settings of its own.
    to: "if (process.argv[2] === 'check') process.stderr.write('MUSTER_X is unknown.\\n'), process.exit(78)\n",
    says: /99\.0\.0 does not start: MUSTER_X is unknown\. Nothing has changed/,
    is_tried: false,
  },
  {
    ...{ name: 'a supervisor that ends', file: 'server/src/supervisor/start-platform.ts' },
    to: "if (process.argv[2] === 'start') setTimeout(() => process.exit(7), 1_500)\n",
    says: /99\.0\.0 did not start: its supervisor ended with code 7\. All roles run .* again/,
    is_tried: true,
  },
  {
    ...{ name: 'a role that ends', file: 'server/src/roles/matchmaker.ts', is_long: true },
    to: "if (process.argv[2] === 'matchmaker') throw new Error('a fault of the next version')\n",
    says: /99\.0\.0 did not start: The matchmaker role cannot start.*a fault of the next version.*All roles run .* again/s,
    is_tried: true,
  },
  {
    ...{ name: 'an edge that ends', file: 'server/src/edge/presence/flows.ts' },
    to: "if (process.argv[2] === 'edge') throw new Error('a fault of the next version')\n",
    says: /99\.0\.0 did not start: The edge role cannot start.*a fault of the next version.*All roles run .* again/s,
    is_tried: true,
  },
]

test('a program that does not start leaves the version before running, and its players connected', async (t) => {
  const arena = await startArena(t, { deploy: [], env: { MUSTER_LOBBY_NETWORK: 'machine' } })
  chmodSync(arena.folder, 0o711)
  const { origin } = new URL(arena.play_url)
  const port = arena.settings.MUSTER_EDGE_HTTP_PORT!
  const client = createClient({ url: `http://localhost:${port}`, headers: { origin } })
  const player = await stayConnected(t, client, port)
  const next = copyWithVersion(t, WIRE_VERSION + 1)
  const holder = () => JSON.parse(readFileSync(join(arena.folder, 'lock-holder.json'), 'utf8'))
  const supervisor = holder().pid

  for (const { name, file, to, says, is_tried, is_long } of FAULTS) {
    if (is_long && process.env.FAULTS !== 'all') continue
    await t.test(name, async () => {
      const before = holder().roles.map(({ pid }: { pid: number }) => pid)
      const restore = change(next, file, /(?<=\n)(?=import )/, to)
      const begin_ms = performance.now()
      const { code, output } = await upgrade(next, arena.settings)
      t.diagnostic(`${name}: ${Math.round(performance.now() - begin_ms)} ms`)
      restore()
      assert.equal(code, 1, output)
      assert.match(output, says)
      assert.match(output, new RegExp(`${VERSION} runs on|run ${VERSION} again`))
      assert.match(output, /supervisor\.log has the whole error\. Remove the cause, and run muster upgrade again/)
      await player.requireOpen()
      assert.equal(holder().pid, supervisor)
      const after = holder().roles as { role: string; pid: number }[]
      assert.deepEqual(after.map(({ role }) => role).toSorted(), ROLES)
      assert.equal(
        after.every(({ pid }) => before.includes(pid)),
        !is_tried,
      )
      await until('no process of the next version is left', () =>
        processesOf(arena.folder).every(({ command }) => !command.includes(next)),
      )
      for (const { pid } of after)
        assert.ok(readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(ROLE_PROGRAM), String(pid))
    })
  }

  await t.test('the repaired program is taken, and one whose edge shares no hand-over says so first', async () => {
    setWireVersion(next, WIRE_VERSION)
    setHandOver(next, { min: HAND_OVER_VERSION + 1, max: HAND_OVER_VERSION + 2 })
    const { code, output } = await upgrade(next, arena.settings)
    assert.equal(code, 0, output)
    assert.match(
      output,
      /! {3}edge {6}.* share no hand-over: all connections through this edge break once\n {2}ok {2}roles/,
    )
    await assert.rejects(player.requireOpen())
    const again = await stayConnected(t, client, port)
    await again.requireOpen()
  })
})
