// The end of a container that ends at the same moment. The engine is played, because no real one can be made to be late.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endContainer } from '../../src/runner/drivers/docker/end-container.ts'
import { type EngineClient, EngineError } from '../../src/runner/drivers/docker/engine.ts'

const LOBBY_ID = '00000000-0000-4000-8000-000000000001'

/** It runs when it is read first, and has ended when the signal comes. */
function engineWith(refusal: EngineError) {
  const calls: string[] = []
  const find = async (path: string) => {
    calls.push(`GET ${path}`)
    return { State: { Running: calls.length === 1 } }
  }
  const call = async (method: string, path: string) => {
    calls.push(`${method} ${path}`)
    throw refusal
  }
  return { calls, engine: { find, call } as unknown as EngineClient }
}

const end = (engine: EngineClient): Promise<void> => {
  const ending = { deadline_ms: performance.now() + 60_000 } as Parameters<typeof endContainer>[2]['ending']
  return endContainer(engine, { lobby_id: LOBBY_ID } as never, { ending, stop_signal: 'SIGTERM' }, () => false)
}

test('a container that ends right before its signal has ended, whatever the engine calls that', async () => {
  for (const refusal of [
    new EngineError(409, 'container is not running'),
    new EngineError(500, 'container state improper: stopped'),
    new EngineError(500, 'can only kill running containers. abc is in state exited: container state improper'),
  ]) {
    const { calls, engine } = engineWith(refusal)
    await end(engine)
    assert.deepEqual(
      calls.map((line) => line.split(' ')[0]),
      ['GET', 'POST', 'GET'],
      refusal.message,
    )
  }
})

test('any other refusal of a signal is an error', async () => {
  const { engine } = engineWith(new EngineError(500, 'the disk is full'))
  await assert.rejects(end(engine), /the disk is full/)
})
