// What `muster doctor` says about a Docker Swarm: that it works, which engine is away, which node starts nothing, and that no
// manager takes requests. Each with a remedy.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '../../src/config/read-config.ts'
import { examineSandbox } from '../../src/doctor/machine.ts'
import { lacking } from '../run/optional-programs.ts'
import { needsOf, sharedSwarm, swarmSettings } from '../runner/driver-fixture.ts'
import { freePorts } from '../support/free-ports.ts'
import { until } from '../support/until.ts'

const GRACE_S = 60

async function examine(env: Record<string, string>): Promise<string[]> {
  const config = readConfig({ MUSTER_NODE_GRACE_SECONDS: String(GRACE_S), ...env })
  const findings = await examineSandbox(config, false)
  for (const { status, remedy } of findings) assert.equal(remedy === null, status === 'ok')
  return findings.map(({ check, status, message, remedy }) => `${check} ${status}: ${message} -> ${remedy}`)
}

test('a machine where no engine responds names the engine, the reason and the remedy', async () => {
  const [port] = await freePorts(1)
  const found = await examine({
    MUSTER_DRIVER: 'swarm',
    MUSTER_SWARM_ENGINES: `far=tcp://127.0.0.1:${port},gone=unix:///run/there-is-none.sock`,
    MUSTER_SWARM_REGISTRY: '10.0.0.1:5000',
    MUSTER_INTERNAL_HOST: '0.0.0.0',
  })
  assert.equal(found.length, 3, found.join('\n'))
  const remedy = /-> systemctl start docker on that machine, or correct MUSTER_SWARM_ENGINES/
  for (const [line, expected] of [
    [found[0], /^sandbox failed: the engine of the node far does not respond: .*ECONNREFUSED/],
    [found[1], /^sandbox failed: the engine of the node gone does not respond: .*ENOENT/],
  ] as const) {
    assert.match(line!, expected)
    assert.match(line!, remedy)
  }
  assert.match(found[2]!, /^sandbox failed: .*manager.*-> docker node ls on a manager/)
})

test('doctor says that a Swarm works, names a node that starts nothing, and an engine that is away', async (t) => {
  const missing = lacking(...needsOf('swarm'))
  if (missing !== null) return t.skip(missing)
  const { machines } = await sharedSwarm(['worker'])
  const env = await swarmSettings('tcp')
  const [manager, worker] = machines as [(typeof machines)[number], (typeof machines)[number]]
  assert.deepEqual(await examine(env), [
    'sandbox ok: all engines of the Swarm respond, and a manager takes requests: swarm-a (manager), swarm-b (worker) -> null',
  ])

  const [swarm_id] = (await worker.engine.docker(['info', '--format', '{{.Swarm.NodeID}}'])).trim().split('\n')
  const setAvailability = (availability: string) =>
    manager.engine.docker(['node', 'update', '--availability', availability, swarm_id!])
  await setAvailability('drain')
  assert.match(
    (await examine(env)).join('\n'),
    /^sandbox warning: the Swarm starts nothing on the node swarm-b -> docker node update --availability active NODE/,
  )
  await setAvailability('active')
  await until('the node to be used again', async () => (await examine(env))[0]!.startsWith('sandbox ok'))

  worker.setConnected(false)
  try {
    const found = (await examine(env)).join('\n')
    assert.match(found, /sandbox failed: the engine of the node swarm-b does not respond: .* -> systemctl start docker/)
    assert.doesNotMatch(found, /node swarm-a/)
  } finally {
    worker.setConnected(true)
  }
})
