// The screens of the commands that manage, on a real platform. Each command runs on a terminal and without one.
import { test } from 'node:test'
import { createMuster } from './program.ts'
import { showStep } from './screens.ts'
import { CONTEXT_STEPS, MANAGE_STEPS, openManageWorld } from './screens-manage.ts'

test('the screens of the commands that manage are as they were kept', async (t) => {
  const world = await openManageWorld(t)
  for (const step of MANAGE_STEPS) await t.test(step.name, (t) => showStep(t, world, step))
  const without_token = { ...world, muster: createMuster(t) }
  for (const step of CONTEXT_STEPS) await t.test(step.name, (t) => showStep(t, without_token, step))
})
