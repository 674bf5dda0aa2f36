// The screens of the commands that begin a project or operate a platform, on platforms that they start themselves.
import { test } from 'node:test'
import { showStep } from './screens.ts'
import { OPERATE_STEPS, openOperateWorld, openProjectWorld, PROJECT_STEPS } from './screens-operate.ts'

test('the screens of the commands that begin a project are as they were kept', async (t) => {
  const world = openProjectWorld(t)
  for (const step of PROJECT_STEPS) await t.test(step.name, (t) => showStep(t, world, step))
})

test('the screens of the commands that operate a platform are as they were kept', async (t) => {
  const world = await openOperateWorld(t)
  for (const step of OPERATE_STEPS) await t.test(step.name, (t) => showStep(t, world, step))
})
