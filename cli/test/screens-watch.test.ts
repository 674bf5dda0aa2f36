// The screens of the commands that watch a namespace, on a real platform with a real lobby and players who play.
import { test } from 'node:test'
import { showStep } from './screens.ts'
import { openWatchWorld, WATCH_STEPS } from './screens-watch.ts'

test('the screens of the commands that watch are as they were kept', async (t) => {
  const world = await openWatchWorld(t)
  for (const step of WATCH_STEPS) await t.test(step.name, (t) => showStep(t, world, step))
})
